"""The call tree of a step as one picture: the same calls are joined, and widths are time.

A box is as wide as the time of its own and of all that it called or launched, so that device work
counts below the call that launched it.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ui import lanes, phrase
from teller.ui.lanes import Picture

Ints = npt.NDArray[np.int64]

LEAST: Final = 0.0008  # of the whole: what is narrower is not drawn
DEEPEST: Final = 96


@dataclass(frozen=True, slots=True)
class Boxes:
    """One row a box, level by level: its parent's row, its time and its excess, ns, and calls."""

    parent: Ints
    level: Ints
    operator: Ints  # place in `names`
    total: Ints
    excess: Ints
    calls: Ints
    example: Ints  # row of the longest span in it
    names: tuple[str, ...]


def boxes(tree: pa.Table) -> Boxes:
    """Join the spans of the query `step_tree` that have the same operators above them."""
    ids, parents = _ints(tree["id"]), _ints(tree["parent_id"])
    order = np.argsort(ids)
    found = np.searchsorted(ids[order], parents).clip(0, max(len(ids) - 1, 0))
    up = np.where(ids[order][found] == parents, order[found], -1) if len(ids) else parents
    coded = tree["operator"].combine_chunks().cast(pa.string()).dictionary_encode()
    operator = _ints(coded.indices)
    own = np.maximum(_ints(tree["self_ns"]), 0)
    of_box = np.full(len(ids), -1, np.int64)
    rows: list[Ints] = []
    here, level, made = np.flatnonzero(up < 0), 0, 0
    while len(here) and level < DEEPEST:
        above = np.where(up[here] >= 0, of_box[up[here]], -1)
        pairs, place = np.unique(np.stack([above, operator[here]]), axis=1, return_inverse=True)
        of_box[here] = made + place.ravel()
        rows.append(np.vstack([pairs, np.full(pairs.shape[1], level)]))
        made += pairs.shape[1]
        here = np.flatnonzero((up >= 0) & (of_box < 0) & (of_box[up] >= 0))
        level += 1
    shape = np.concatenate(rows, axis=1) if rows else np.zeros((3, 0), np.int64)
    inside = of_box >= 0
    sums = [np.bincount(of_box[inside], w[inside], made).astype(np.int64)
            for w in (own, np.maximum(_ints(tree["excess_ns"]), 0), np.ones(len(ids)))]  # fmt: skip
    example = np.zeros(made, np.int64)
    by_length = np.argsort(_ints(tree["dur_ns"]), kind="stable")
    by_length = by_length[of_box[by_length] >= 0]
    example[of_box[by_length]] = by_length
    total = sums[0]
    for at in range(made - 1, -1, -1):  # boxes, not spans: some hundreds
        if shape[0, at] >= 0:
            total[shape[0, at]] += total[at]
    names = tuple(phrase.visible(n or "") for n in coded.dictionary.to_pylist())
    return Boxes(shape[0], shape[2], shape[1], total, sums[1], sums[2], example, names)


def places(found: Boxes) -> npt.NDArray[np.float64]:
    """Give where each box begins, ns: the widest first, inside the one above."""
    start = np.zeros(len(found.total))
    free: dict[int, float] = {}
    for at in np.lexsort((-found.total, found.level)).tolist():
        above = int(found.parent[at])
        begun = free.get(above, float(start[above]) if above >= 0 else 0.0)
        start[at] = begun
        free[above] = begun + float(found.total[at])
    return start


def draw(tree: pa.Table, key: str) -> Picture:
    """Give the picture for the timeline; ids are those of the longest span in each box."""
    found = boxes(tree)
    start = places(found)
    whole = float(found.total[found.level == 0].sum()) or 1.0
    kept = np.flatnonzero(found.total >= LEAST * whole)
    order = np.lexsort((start[kept], found.level[kept]))
    depth = int(found.level[kept].max()) + 1 if len(kept) else 1
    said = tree.select(["layer", "family"]).take(pa.array(found.example))
    rows: dict[str, Any] = {
        "start": start[kept] / 1e3, "length": found.total[kept] / 1e3,
        "id": _ints(tree["id"])[found.example[kept]], "name": np.arange(len(kept)),
        "color": lanes.colors(said)[kept],
    }  # fmt: skip
    hot = found.excess[kept] > 0.05 * whole
    head = {
        "n": len(kept), "key": key, "names": [_said(found, at) for at in kept.tolist()],
        "lanes": [{"label": "", "told": f"level {n}"} for n in range(depth)],
        "colors": list(lanes.COLORS.values()), "inks": lanes.INKS, "hot": lanes.HOT,
        "from": 0.0, "to": whole / 1e3, "zero": 0.0, "gutter": 1, "asks": False, "dim": False,
        "selected": "", "zones": [],
    }  # fmt: skip
    data = lanes.packed(head, rows, order, found.level[kept][order], hot * lanes.EVIDENCE)
    height = lanes.RULER_PX + lanes.ROW_PX * depth + 6
    return Picture(data, min(height, 520), len(kept), ())


def _said(found: Boxes, at: int) -> str:
    calls = int(found.calls[at])
    more = f" ×{calls:,}" if calls > 1 else ""
    over = f", {phrase.duration(int(found.excess[at]))} too long" if found.excess[at] > 0 else ""
    return f"{found.names[found.operator[at]]}{more}{over}"


def _ints(column: Any) -> Ints:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    filled: Ints = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return filled
