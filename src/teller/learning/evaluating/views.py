"""Samples with something taken away or mixed up: what the model needs shows in what it loses."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.graph.medians import Ints
from teller.models.samples.sample import Samples

View = Callable[[Samples], Samples]
UNKNOWN: Final = ""  # a text that has no vector


def whole(held: Samples) -> Samples:
    """Give them as they are."""
    return held


def without_logs(held: Samples) -> Samples:
    """Take all log lines away."""
    none = np.zeros(0, np.int64)
    return replace(held, line_of=none, line_word=none, line_x=held.line_x[:0])


def without_operators(held: Samples) -> Samples:
    """Leave operators without name and figures; which there are stays, since it is asked."""
    return replace(nameless(held, operators=True, lines=False), op_x=np.zeros_like(held.op_x))


def without_traces(held: Samples) -> Samples:
    """Leave log lines alone: no figure of ranks, operators and collectives."""
    bare = without_meetings(without_operators(held))
    return replace(bare, rank_x=np.zeros_like(held.rank_x))


def without_meetings(held: Samples) -> Samples:
    """Take collectives and all edges to them away."""
    none = np.zeros(0, np.int64)
    return replace(
        held, meet_of=none, meet_x=held.meet_x[:0], edge_rank=none, edge_meet=none,
        edge_x=held.edge_x[:0],
    )  # fmt: skip


def shuffled_meetings(held: Samples) -> Samples:
    """Give each rank another rank's part in the collectives of the iteration."""
    random = np.random.default_rng(len(held.rank))
    own = held.rank_of[held.edge_rank]
    return replace(held, edge_rank=_within(own, held.edge_rank, random))


def shuffled(held: Samples) -> Samples:
    """Do that, and hang operators on other ranks of their iteration too."""
    random = np.random.default_rng(len(held.rank) + 1)
    own = held.rank_of[held.op_rank]
    return replace(shuffled_meetings(held), op_rank=_within(own, held.op_rank, random))


def nameless(held: Samples, *, operators: bool = True, lines: bool = True) -> Samples:
    """Take the words of names and log templates away; what is there stays."""
    texts = np.array([*held.texts.tolist(), UNKNOWN], np.str_)
    none = len(texts) - 1
    return replace(
        held, texts=texts,
        op_word=np.full_like(held.op_word, none) if operators else held.op_word,
        line_word=np.full_like(held.line_word, none) if lines else held.line_word,
    )  # fmt: skip


def _within(group: Ints, values: Ints, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Permute values within their groups."""
    order = np.argsort(group, kind="stable")
    mixed = np.lexsort((random.random(len(group)), group))
    found = np.empty_like(values)
    found[order] = values[mixed]
    return found


# What is taken away, by the name of its row.
VIEWS: Final[dict[str, View]] = {
    "without logs": without_logs,
    "without operators": without_operators,
    "without traces": without_traces,
    "without communication edges": without_meetings,
    "communication edges shuffled": shuffled_meetings,
    "all edges shuffled": shuffled,
    "names zeroed": nameless,
}
