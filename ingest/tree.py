"""Structure inside one source: call trees, launches, stream order, gaps, self time.

All functions take and give NumPy arrays over the rows of one SPANS table; -1 stands for "none".
A row is host (its stream is null: it nests in its lane) or device (it runs in stream order).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Writers round to their own grid (1 ns, in 2021 whole µs), so a child may end this much after its
# parent; half of the child's own length bounds it, or short siblings would nest in each other.
SLACK_NS = 1_000
# A device clock is converted at start and end of a capture: a kernel may seem to start this much
# before the call that launched it.
CLOCK_SLACK_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a SPANS table that structure needs, as arrays of one length."""

    place: Ints
    lane: Ints  # codes
    start: Ints
    end: Ints
    device: Flags  # runs in stream order
    correlation: Ints  # -1: none


@dataclass(frozen=True, slots=True)
class Tree:
    """Rows point at rows; -1: none. `gap` is idle time of the lane before the row."""

    parent: Ints  # enclosing host span of the same lane
    depth: Ints
    self_ns: Ints
    launched_by: Ints  # API call of a device row
    previous: Ints  # row before on the same device stream
    gap: Ints


def columns(spans: pa.Table) -> Columns:
    """Give the arrays of a SPANS table."""
    lane = spans["lane"].combine_chunks()
    return Columns(
        place=_ints(spans["place"]),
        lane=lane.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        start=_ints(spans["start_ns"]),
        end=_ints(spans["end_ns"]),
        device=pc.is_valid(spans["stream"]).combine_chunks().to_numpy(zero_copy_only=False),
        correlation=_ints(pc.fill_null(spans["correlation"], -1)),
    )


def _ints(column: pa.ChunkedArray) -> Ints:
    values: Ints = column.to_numpy().astype(np.int64, copy=False)
    return values


def build(rows: Columns) -> Tree:
    """Build all structure of one source."""
    size = len(rows.start)
    parent, gap = np.full(size, -1), np.zeros(size, np.int64)
    host = np.flatnonzero(~rows.device)
    order = host[np.lexsort((rows.place[host], -rows.end[host], rows.start[host], rows.lane[host]))]
    inner = enclosing(rows.lane[order], rows.start[order], rows.end[order])
    parent[order] = np.where(inner >= 0, order[inner], -1)
    free = _idle_before(rows.lane[order], rows.start[order], rows.end[order])
    gap[order] = np.where(inner < 0, free, 0)
    previous = np.full(size, -1)
    work = np.flatnonzero(rows.device)
    queue = work[np.lexsort((rows.place[work], rows.start[work], rows.lane[work]))]
    same = rows.lane[queue[1:]] == rows.lane[queue[:-1]]
    previous[queue[1:][same]] = queue[:-1][same]
    gap[queue] = _idle_before(rows.lane[queue], rows.start[queue], rows.end[queue])
    return Tree(parent, _depth(parent), _self_time(rows, parent), _launches(rows), previous, gap)


def enclosing(lane: Ints, start: Ints, end: Ints) -> Ints:
    """Give each row's innermost enclosing row of its lane, -1 at the top.

    Rows are sorted by (lane, start, longest first). Each row first points at the row before it and
    then follows that row's pointer until it meets one that contains it: whatever a pointer skips
    ended before its owner did, so it cannot contain a row that ends still later.
    """
    size = len(start)
    slack = np.minimum(SLACK_NS, (end - start) // 2)
    found = np.arange(-1, size - 1)
    first = np.ones(size, bool)
    first[1:] = lane[1:] != lane[:-1]
    found[first] = -1
    open_rows = np.flatnonzero(found >= 0)
    while len(open_rows):
        at = found[open_rows]
        inside = (end[at] >= end[open_rows] - slack[open_rows]) & (end[at] > start[open_rows])
        open_rows, at = open_rows[~inside], at[~inside]
        found[open_rows] = found[at]
        open_rows = open_rows[found[open_rows] >= 0]
    return found


def _depth(parent: Ints) -> Ints:
    """Count ancestors by doubling the distance of the pointers."""
    depth = (parent >= 0).astype(np.int64)
    above = parent.copy()
    while (climbing := above >= 0).any():
        here = above[climbing]
        depth[climbing] += depth[here]
        above[climbing] = above[here]
    return depth


def _self_time(rows: Columns, parent: Ints) -> Ints:
    """Give duration without children; a child counts up to its parent's end."""
    children = np.flatnonzero(parent >= 0)
    above = parent[children]
    inside = np.minimum(rows.end[children], rows.end[above]) - rows.start[children]
    covered = np.bincount(above, weights=inside, minlength=len(parent)).astype(np.int64)
    own: Ints = np.maximum(rows.end - rows.start - covered, 0)
    return own


def _idle_before(lane: Ints, start: Ints, end: Ints) -> Ints:
    """Give idle time of the lane before each row; rows are sorted by (lane, start)."""
    if not len(start):
        return np.zeros(0, np.int64)
    # One running maximum serves all lanes once each lane is lifted above those before it.
    lift = np.cumsum(np.r_[0, lane[1:] != lane[:-1]]) * (end.max() - start.min() + 1)
    busy_until = np.maximum.accumulate(end + lift)
    gap = np.r_[0, start[1:] + lift[1:] - busy_until[:-1]]
    gap[np.r_[True, lane[1:] != lane[:-1]]] = 0
    idle: Ints = np.maximum(gap, 0)
    return idle


def _launches(rows: Columns) -> Ints:
    """Give each device row the call with its correlation: the last one that began before it.

    A graph launch has many device rows. Correlation ids wrap and are reused, hence "the last one".
    """
    launched = np.full(len(rows.start), -1)
    calls = np.flatnonzero(~rows.device & (rows.correlation >= 0))
    work = np.flatnonzero(rows.device & (rows.correlation >= 0))
    if not len(calls) or not len(work):
        return launched
    calls = calls[np.lexsort((rows.start[calls], rows.correlation[calls]))]
    ids = rows.correlation[calls]
    low = np.searchsorted(ids, rows.correlation[work], "left")
    high = np.searchsorted(ids, rows.correlation[work], "right")
    known = high > low
    work, low, high = work[known], low[known], high[known]
    pick = low.copy()
    for reuse in range(1, int((high - low).max(initial=1))):
        later = np.minimum(low + reuse, high - 1)
        fits = rows.start[calls[later]] <= rows.start[work] + CLOCK_SLACK_NS
        pick = np.where(fits, later, pick)
    launched[work] = calls[pick]
    return launched


def waited_for(rows: Columns, sync: Ints) -> Ints:
    """Give each synchronising call (row numbers) the device row whose end let it go on.

    That is the device row that ended last before the call returned, if it ended during the call.
    """
    work = np.flatnonzero(rows.device)
    if not len(work) or not len(sync):
        return np.full(len(sync), -1)
    work = work[np.argsort(rows.end[work], kind="stable")]
    at = np.searchsorted(rows.end[work], rows.end[sync], "right") - 1
    target = work[np.maximum(at, 0)]
    during = (at >= 0) & (rows.end[target] >= rows.start[sync])
    return np.where(during, target, -1)
