"""The branches of a step's tree that matter, with the calls that lead to each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Row = dict[str, Any]
Ints = npt.NDArray[np.int64]

CHOSEN: Final = 10  # spans that matter; those above them come along
ALIKE: Final = 2  # of them with the same operator: layers repeat
WORTH: Final = 0.01  # of the longest span: what took less does not matter
LOOKED_AT: Final = 500
_ROOT: Final = -1


@dataclass(slots=True)
class Branch:
    """A span with what is shown below it; `folded` calls of its layer above it are left out."""

    span: Row
    collective: Row | None
    chosen: bool  # it matters itself, and does not only lead to what does
    below: list["Branch"] = field(default_factory=list)
    folded: int = 0

    @property
    def size(self) -> int:
        """Give how many spans it stands for."""
        return 1 + self.folded + sum(branch.size for branch in self.below)


def branches(spans: pa.Table, collectives: Mapping[int, Row]) -> tuple[Branch, ...]:
    """Give the branches of a step (rows of `step_tree`); `collectives` go by their span."""
    if not spans.num_rows:
        return ()
    own = spans["id"].to_numpy()
    above = _places(own, pc.fill_null(spans["parent_id"], _ROOT).to_numpy())
    kept: set[int] = set()
    chosen = _worth(spans, own, collectives)
    for place in chosen:
        at = place
        while at != _ROOT and at not in kept:
            kept.add(at)
            at = int(above[at])
    order = sorted(kept)
    rows = spans.take(pa.array(order, pa.int64())).to_pylist()
    made = {
        at: Branch(row, collectives.get(row["id"]), at in chosen)
        for at, row in zip(order, rows, strict=True)
    }
    tops: list[Branch] = []
    for at in order:
        parent = int(above[at])
        (tops if parent == _ROOT else made[parent].below).append(made[at])
    return tuple(_folded(top) for top in tops)


def _places(own: Ints, wanted: Ints) -> Ints:
    """Give the rows of ids, -1 where there is none."""
    order = np.argsort(own, kind="stable")
    at = order[np.minimum(np.searchsorted(own[order], wanted), len(own) - 1)]
    return np.where(own[at] == wanted, at, _ROOT)


def _worth(spans: pa.Table, own: Ints, collectives: Mapping[int, Row]) -> list[int]:
    """Give the rows that matter: by what waited, was late or took too long, then by time."""
    waits = np.zeros(len(own), np.int64)
    at = _places(own, np.array(list(collectives), np.int64))
    late = [max(c["wait_ns"] or 0, c["skew_ns"] or 0) for c in collectives.values()]
    waits[at[at >= 0]] = np.array(late, np.int64)[at >= 0]
    excess = np.maximum(pc.fill_null(spans["excess_ns"], 0).to_numpy(), 0)
    device = spans["stream"].is_valid().to_numpy()
    spent = np.where(
        device,
        pc.fill_null(spans["dur_ns"], 0).to_numpy(),
        pc.fill_null(spans["self_ns"], 0).to_numpy(),
    )
    cost = np.maximum(waits, excess)
    best = np.lexsort((-spent, -cost))[:LOOKED_AT]
    least = WORTH * pc.max(spans["dur_ns"]).as_py()
    best = best[np.maximum(cost, spent)[best] >= least]
    operators = spans["operator"].take(pa.array(best)).to_pylist()
    seen: Counter[str | None] = Counter()
    chosen = []
    for place, operator in zip(best.tolist(), operators, strict=True):
        seen[operator] += 1
        if seen[operator] <= ALIKE:
            chosen.append(place)
    return chosen[:CHOSEN]


def _folded(branch: Branch) -> Branch:
    """Leave out calls of one layer that only hand on, between the first and the last of them."""
    while len(branch.below) == 1:
        (only,) = branch.below
        layer = branch.span["layer"]
        last = len(only.below) != 1 or only.below[0].span["layer"] != layer
        if only.span["layer"] != layer or last or only.chosen:
            break
        branch.below = only.below
        branch.below[0].folded += 1 + only.folded
    branch.below = [_folded(below) for below in branch.below]
    return branch
