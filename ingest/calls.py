"""The communication calls of one source, with all that matching and timing needs."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest import tree
from teller.ingest.source import COMM

Ints = npt.NDArray[np.int64]


def timed_calls(calls: pa.Table, table: pa.Table, rows: tree.Columns, grown: tree.Tree) -> pa.Table:
    """Add to each call the times of its span, its step, and the host call that launched it."""
    order = np.argsort(rows.place, kind="stable")
    wanted = calls["place"].to_numpy()
    at = order[np.searchsorted(rows.place[order], wanted)] if len(wanted) else wanted
    launch = grown.launched_by[at] if len(at) else at
    host_start = (
        np.where(
            launch >= 0,
            rows.start[launch],
            np.where(rows.device[at], np.iinfo(np.int64).min, rows.start[at]),
        )
        if len(at)
        else at
    )
    parent = grown.parent[at] if len(at) else at
    step = table["step_index"].combine_chunks().take(pa.array(at))
    added = {
        "start_ns": pa.array(rows.start[at]),
        "end_ns": pa.array(rows.end[at]),
        "device": pa.array(rows.device[at]),
        "step_index": step,
        "operator": table["operator"].combine_chunks().take(pa.array(at)).cast(pa.string()),
        "host_start_ns": pa.array(host_start, mask=host_start == np.iinfo(np.int64).min),
        "launched_by": places(rows, launch),
        "parent": places(rows, parent),
        "open": table["open"].combine_chunks().take(pa.array(at)),
        "covered_ns": pa.array(covered(table, rows, at)),
    }
    for name, column in added.items():
        calls = calls.append_column(name, column)
    return calls


def places(rows: tree.Columns, at: Ints) -> pa.Array:
    """Give the places of rows; null where there is none."""
    return pa.array(rows.place[np.maximum(at, 0)] if len(at) else at, mask=at < 0)


def covered(table: pa.Table, rows: tree.Columns, at: Ints) -> Ints:
    """Give the time during each device call in which other work of the device ran as well."""
    comm = is_comm(table).combine_chunks().to_numpy(zero_copy_only=False)
    work = np.flatnonzero(rows.device & ~comm)
    if not len(work) or not len(at):
        return np.zeros(len(at), np.int64)
    work = work[np.argsort(rows.start[work], kind="stable")]
    until = np.maximum.accumulate(rows.end[work])
    fresh = np.maximum(rows.start[work], np.r_[rows.start[work[0]], until[:-1]])
    busy = np.cumsum(np.maximum(until - fresh, 0))  # by the end of each row, in order of start

    def before(time: Ints) -> Ints:
        row = np.searchsorted(rows.start[work], time, "right") - 1
        here = np.maximum(row, 0)
        over = np.maximum(until[here] - time, 0)  # not run by then
        return np.where(row >= 0, busy[here] - over, 0)

    shared: Ints = before(rows.end[at]) - before(rows.start[at])
    return np.where(rows.device[at], shared, 0)


def is_comm(table: pa.Table) -> pa.Array:
    """Tell which rows of a SHAPED or operator table belong to the comm layer."""
    return pc.equal(table["layer"].cast(pa.string()), COMM)
