"""Many iterations as one graph: rows behind rows, edges counted on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.graph.medians import Ints
from teller.models.samples.sample import Reals, Samples

RANK_MEET: Final = 3  # figures on an edge between a rank and a collective


@dataclass(frozen=True, slots=True)
class Batch:
    """What the network reads; edges are (2, n), from and to. `…_rows` lead back to the samples."""

    rank_x: Reals
    op_x: Reals
    op_text: Reals
    meet_x: Reals
    line_x: Reals
    line_text: Reals
    op_rank: Ints  # (2, operators)
    rank_meet: Ints
    rank_meet_x: Reals
    rank_iteration: Ints
    meet_iteration: Ints
    line_iteration: Ints
    own_next: Ints  # from an iteration to the one after it
    rank_next: Ints  # from a rank-step to the rank's next one
    iterations: int
    iteration_rows: Ints
    rank_rows: Ints
    op_rows: Ints

    def inputs(self) -> dict[str, npt.NDArray[np.generic]]:
        """Give the arrays that go into the network, by the names of its arguments."""
        names = (
            "rank_x", "op_x", "op_text", "meet_x", "line_x", "line_text", "op_rank", "rank_meet",
            "rank_meet_x", "rank_iteration", "meet_iteration", "line_iteration", "own_next",
            "rank_next",
        )  # fmt: skip
        return {n: getattr(self, n) for n in names}


def batch(samples: Samples, text: Reals, wanted: Ints | None = None) -> Batch:
    """Give some iterations of a run (all where `wanted` is None) as one graph.

    `text` has a row for each of the run's texts; zeros stand for one that is not known.
    """
    size = len(samples.step_index)
    wanted = np.arange(size) if wanted is None else wanted
    new = np.full(size, -1)
    new[wanted] = np.arange(len(wanted))
    ranks = np.flatnonzero(new[samples.rank_of] >= 0)
    place = _places(len(samples.rank), ranks)
    ops = np.flatnonzero(place[samples.op_rank] >= 0)
    meets = np.flatnonzero(new[samples.meet_of] >= 0)
    met = _places(len(samples.meet_of), meets)
    edges = np.flatnonzero((place[samples.edge_rank] >= 0) & (met[samples.edge_meet] >= 0))
    line, of = _lines(samples, new, len(wanted))
    return Batch(
        rank_x=samples.rank_x[ranks], op_x=samples.op_x[ops],
        op_text=text[samples.op_word[ops]], meet_x=samples.meet_x[meets],
        line_x=samples.line_x[line], line_text=text[samples.line_word[line]],
        op_rank=_edges(np.arange(len(ops)), place[samples.op_rank[ops]]),
        rank_meet=_edges(place[samples.edge_rank[edges]], met[samples.edge_meet[edges]]),
        rank_meet_x=samples.edge_x[edges],
        rank_iteration=_edges(np.arange(len(ranks)), new[samples.rank_of[ranks]]),
        meet_iteration=_edges(np.arange(len(meets)), new[samples.meet_of[meets]]),
        line_iteration=_edges(np.arange(len(line)), of),
        own_next=_following(samples.replica, new), rank_next=_following(samples.rank, place),
        iterations=len(wanted), iteration_rows=wanted, rank_rows=ranks, op_rows=ops,
    )  # fmt: skip


def joined(parts: Sequence[Batch]) -> Batch:
    """Give several batches as one; rows of the samples are those of each part."""
    ops, ranks, meets, lines, own = (
        np.cumsum([0, *(len(getattr(p, n)) for p in parts)])
        for n in ("op_x", "rank_x", "meet_x", "line_x", "iteration_rows")
    )
    ends = {
        "op_rank": (ops, ranks), "rank_meet": (ranks, meets), "rank_iteration": (ranks, own),
        "meet_iteration": (meets, own), "line_iteration": (lines, own),
        "own_next": (own, own), "rank_next": (ranks, ranks),
    }  # fmt: skip

    def whole(name: str) -> npt.NDArray[np.generic]:
        held = [getattr(p, name) for p in parts]
        if name not in ends:
            return np.concatenate(held)
        above, below = ends[name]
        return np.concatenate(
            [e + np.array([[above[i]], [below[i]]]) for i, e in enumerate(held)], axis=1
        )

    names = (*parts[0].inputs(), "iteration_rows", "rank_rows", "op_rows")
    return Batch(**{n: whole(n) for n in names}, iterations=int(own[-1]))  # type: ignore[arg-type]  # by name


def _places(size: int, kept: Ints) -> Ints:
    place = np.full(size, -1)
    place[kept] = np.arange(len(kept))
    return place


def _edges(src: Ints, dst: Ints) -> Ints:
    return np.stack([src, dst]).astype(np.int64)


def _following(of: Ints, new: Ints) -> Ints:
    """Join each row to the next one of the same rank or replica, where both were chosen."""
    at = np.flatnonzero((of[1:] == of[:-1]) & (new[1:] >= 0) & (new[:-1] >= 0))
    return _edges(new[at], new[at + 1])


def _lines(samples: Samples, new: Ints, size: int) -> tuple[Ints, Ints]:
    """Give the lines of the iterations; those of the run belong to each of them."""
    own = np.flatnonzero((samples.line_of >= 0) & (new[np.maximum(samples.line_of, 0)] >= 0))
    of_run = np.flatnonzero(samples.line_of < 0)
    row = np.concatenate([own, np.tile(of_run, size)])
    of = np.concatenate([new[samples.line_of[own]], np.repeat(np.arange(size), len(of_run))])
    return row.astype(np.int64), of.astype(np.int64)
