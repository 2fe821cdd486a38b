"""The span of its rank's busiest thread that a log line was written in, where its time is fine."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.ingest.parts import Part
from teller.ingest.ties import Ties
from teller.ingest.timeline import Axis

Ints = npt.NDArray[np.int64]

FINE_NS: Final = 1_000_000
COLUMNS: Final = ("place", "start_ns", "end_ns", "parent", "stream", "lane")


def inside(
    lines: pa.Table, tied: Ties, parts: Sequence[Part], axes: Sequence[Axis], bases: Ints
) -> pa.Array:
    """Give the id of the deepest span around each line; null where its time is too coarse."""
    found = np.full(lines.num_rows, -1)
    rank = pc.fill_null(lines["rank"].combine_chunks(), -1).to_numpy()
    fine = pc.fill_null(pc.less_equal(lines["resolution_ns"], FINE_NS), False).combine_chunks()
    usable = pc.and_(fine, pc.equal(tied.placed_by, "clock")).to_numpy(zero_copy_only=False)
    time = pc.fill_null(tied.time_ns, 0).to_numpy()
    for part, axis, base in zip(parts, axes, bases.tolist(), strict=True):
        at = np.flatnonzero(usable & (rank == part.identity.rank))
        if len(at):
            place = _deepest(
                pq.read_table(part.shaped.spans, columns=list(COLUMNS)), time[at], axis
            )
            found[at] = np.where(place >= 0, place + base, -1)
    return pa.array(found, pa.int64(), mask=found < 0)


def _deepest(spans: pa.Table, time: Ints, axis: Axis) -> Ints:
    """Give the place of the deepest span around each time, -1 where there is none."""
    host = spans.filter(pc.is_null(spans["stream"]))
    none = np.full(len(time), -1)
    if not host.num_rows:
        return none
    lanes = host["lane"].combine_chunks().cast(pa.string())
    busiest = pc.mode(lanes.dictionary_encode().indices)[0]["mode"].as_py()
    mine = host.filter(pc.equal(lanes.dictionary_encode().indices, busiest)).sort_by("start_ns")
    start, end = (axis.run_time(mine[c].to_numpy()) for c in ("start_ns", "end_ns"))
    place = mine["place"].to_numpy()
    parent = pc.fill_null(mine["parent"], -1).to_numpy()
    by_place = np.argsort(place)
    at = np.searchsorted(start, time, side="right") - 1
    while True:  # up the tree, one level for all lines at once
        outside = (at >= 0) & (end[np.maximum(at, 0)] < time)
        if not outside.any():
            break
        up = parent[at[outside]]
        where = np.searchsorted(place[by_place], up)
        held = by_place[np.minimum(where, len(place) - 1)]
        at[outside] = np.where((up >= 0) & (place[held] == up), held, -1)
    found: Ints = np.where(at >= 0, place[np.maximum(at, 0)], none)
    return found
