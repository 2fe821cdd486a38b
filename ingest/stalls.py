"""Calls of the host that leave the device with nothing to do in the middle of a step.

A *stall* is idle time of the device that ends with work of the same step whose launch came late,
since the lane that launches it was in a call that blocks: an allocation, a copy, a synchronisation.
Waiting at the end of a step, after its last launch, is none.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest import tree

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# One row a kind of stall and operator, the longest first. kind: alloc, copy or sync.
STALLS: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("operator", pa.string()),
        ("held_ns", pa.int64()),  # idle time of the device, and the copy's own
        ("stalls", pa.int64()),
        ("steps", pa.int64()),
    ]
)
MOST: Final = 8
SLACK_NS: Final = 5_000  # a call returns this much after the work that it waited for
BLOCKING: Final = ("alloc", "copy_api", "sync")
KINDS: Final = ("alloc", "copy", "sync")
COPYING: Final = 0.5  # of a call's time: a copy to the host that takes less waited for work


def find(table: pa.Table, rows: tree.Columns, grown: tree.Tree, step_row: Ints) -> pa.Table:
    """Give the stalls of one shaped source."""
    family = table["family"].combine_chunks().cast(pa.string())
    blocking = pc.index_in(family, pa.array(BLOCKING))
    kind = pc.fill_null(blocking, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    calls = np.flatnonzero((kind >= 0) & ~rows.device & (step_row >= 0))
    work, since = _late(rows, grown, step_row)
    if not len(calls) or not len(work):
        return STALLS.empty_table()
    work, since, call = _blamed(rows, grown, calls, work, since)
    middle = (step_row[call] == step_row[work]) & _launched_before(rows, grown, step_row, call)
    work, since, call = work[middle], since[middle], call[middle]
    given, fetched = (_copied(rows, grown, _is(family, f)) for f in ("memcpy_h2d", "memcpy_d2h"))
    kind = _kinds(rows, kind, fetched)
    held = rows.start[work] - since + given[call] + fetched[call]
    return _sums(table, kind[call], call, step_row[call], held)


def _is(family: pa.Array, word: str) -> Flags:
    found: Flags = pc.equal(family, word).to_numpy(zero_copy_only=False)
    return found


def _late(rows: tree.Columns, grown: tree.Tree, step_row: Ints) -> tuple[Ints, Ints]:
    """Give the device rows that end idle time and were launched within it, and when it began."""
    work = np.flatnonzero(rows.device)
    if not len(work):
        return work, work
    work = work[np.argsort(rows.start[work], kind="stable")]
    before = np.maximum.accumulate(rows.end[work])
    since = np.r_[rows.start[work[:1]], before[:-1]]
    call = grown.launched_by[work]
    late = (call >= 0) & (step_row[work] >= 0) & (rows.start[work] > since)
    late &= rows.start[np.maximum(call, 0)] >= since
    return work[late], since[late]


def _blamed(
    rows: tree.Columns, grown: tree.Tree, calls: Ints, work: Ints, since: Ints
) -> tuple[Ints, Ints, Ints]:
    """Give the work that a blocking call held back, since when, and the call.

    The call was active when the device ran out of work, or took most of the time from then to the
    launch.
    """
    launch = grown.launched_by[work]
    zero, reach = rows.start.min(), rows.end.max() - rows.start.min() + 1
    calls = calls[np.lexsort((rows.start[calls], rows.lane[calls]))]
    key = rows.lane[calls] * reach + rows.start[calls] - zero
    lift = rows.lane[launch] * reach - zero
    found = np.full(len(work), -1)
    for until in (since, since + SLACK_NS, rows.start[launch]):
        at = np.searchsorted(key, lift + np.minimum(until, rows.start[launch]), "right") - 1
        one = calls[np.maximum(at, 0)]
        same = (at >= 0) & (rows.lane[one] == rows.lane[launch])
        active = rows.end[one] >= since - SLACK_NS
        inside = np.minimum(rows.end[one], rows.start[launch]) - np.maximum(rows.start[one], since)
        covers = 2 * inside >= rows.start[launch] - since
        holds = same & active & (covers | (rows.start[one] <= since))
        found = np.where((found < 0) & holds, one, found)
    held = found >= 0
    return work[held], since[held], found[held]


def _launched_before(rows: tree.Columns, grown: tree.Tree, step_row: Ints, call: Ints) -> Flags:
    """Tell which calls come after their step has launched something."""
    never = np.iinfo(np.int64).max
    first = np.full(int(step_row.max()) + 1, never)
    work = np.flatnonzero(rows.device & (grown.launched_by >= 0) & (step_row >= 0))
    np.minimum.at(first, step_row[work], rows.start[grown.launched_by[work]])
    earlier: Flags = first[step_row[call]] < rows.start[call]
    return earlier


def _copied(rows: tree.Columns, grown: tree.Tree, copies: Flags) -> Ints:
    """Give the device time of the copies that each call made."""
    work = np.flatnonzero(copies & rows.device & (grown.launched_by >= 0))
    sums = np.bincount(grown.launched_by[work], rows.end[work] - rows.start[work], len(rows.start))
    return sums.astype(np.int64)


def _kinds(rows: tree.Columns, kind: Ints, fetched: Ints) -> Ints:
    """Take a copy to the host that mostly waited for work before it as a synchronisation."""
    waited = (fetched > 0) & (fetched < COPYING * (rows.end - rows.start))
    return np.where(waited & (kind == KINDS.index("copy")), KINDS.index("sync"), kind)


def _sums(table: pa.Table, kind: Ints, call: Ints, step: Ints, held: Ints) -> pa.Table:
    operator = table["operator"].combine_chunks().cast(pa.string()).take(pa.array(call))
    each: dict[str, Any] = {
        "kind": pa.array(KINDS).take(pa.array(kind)), "operator": operator,
        "held_ns": pa.array(held), "step": pa.array(step),
    }  # fmt: skip
    sums = (
        pa.table(each)
        .group_by(["kind", "operator"], use_threads=False)
        .aggregate([("held_ns", "sum"), ("held_ns", "count"), ("step", "count_distinct")])
    )
    sums = sums.rename_columns(STALLS.names).cast(STALLS)
    return sums.sort_by([("held_ns", "descending"), ("operator", "ascending")]).slice(0, MOST)
