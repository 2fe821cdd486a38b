"""Which step each row belongs to, and the time that each step takes on host and device."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest import tree
from teller.ingest.calls import is_comm
from teller.ingest.scores import WAITING
from teller.ingest.steps import Steps

Ints = npt.NDArray[np.int64]


def assign(rows: tree.Columns, grown: tree.Tree, steps: Steps) -> Ints:
    """Give each row its step (row of the step table); -1 outside all steps.

    Host rows go by the time they start; device rows by the call that launched them, since the
    device runs behind the host. Steps found in the kernel sequence have device times: there the
    calls follow their kernels.
    """
    begin, end = steps.table["start_ns"].to_numpy(), steps.table["end_ns"].to_numpy()
    if not len(begin):
        return np.full(len(rows.start), -1)
    if steps.table["lane"].null_count == steps.table.num_rows:
        return _by_kernels(rows, grown, begin, end)
    step = _inside(rows.start, begin, end)
    launched = rows.device & (grown.launched_by >= 0)
    step[launched] = step[grown.launched_by[launched]]
    return step


def _inside(time: Ints, begin: Ints, end: Ints) -> Ints:
    at = np.searchsorted(begin, time, "right") - 1
    return np.where((at >= 0) & (time < end[np.maximum(at, 0)]), at, -1)


def _by_kernels(rows: tree.Columns, grown: tree.Tree, begin: Ints, end: Ints) -> Ints:
    step = np.where(rows.device, _inside(rows.start, begin, end), -1)
    work = np.flatnonzero((step >= 0) & (grown.launched_by >= 0))
    host = ~rows.device
    if not len(work):
        step[host] = _inside(rows.start[host], begin, end)
        return step
    first_call = np.full(len(begin), np.iinfo(np.int64).max)
    last_call = np.full(len(begin), np.iinfo(np.int64).min)
    np.minimum.at(first_call, step[work], rows.start[grown.launched_by[work]])
    np.maximum.at(last_call, step[work], rows.end[grown.launched_by[work]])
    known = last_call >= first_call
    until = np.r_[first_call[known][1:], last_call[known][-1] + 1]
    inside = _inside(rows.start[host], first_call[known], until)
    step[host] = np.where(inside >= 0, np.flatnonzero(known)[inside], -1)
    return step


def widened(steps: pa.Table, table: pa.Table, rows: tree.Columns, step_row: Ints) -> pa.Table:
    """Stretch each step to the end of the device work that it launched, and add `host_ns`.

    That is what its own thread was busy with, without waiting: device work may wait meanwhile.
    """
    steps = steps.append_column("host_ns", pa.array(_host_time(steps, table, rows, step_row)))
    end = steps["end_ns"].to_numpy().copy()
    begin = steps["start_ns"].to_numpy().copy()
    inside = np.flatnonzero(step_row >= 0)
    np.maximum.at(end, step_row[inside], rows.end[inside])
    np.minimum.at(begin, step_row[inside], rows.start[inside])
    for name, values in (("start_ns", begin), ("end_ns", end)):
        steps = steps.set_column(steps.column_names.index(name), name, pa.array(values))
    return steps


def _host_time(steps: pa.Table, table: pa.Table, rows: tree.Columns, step_row: Ints) -> Ints:
    """Give the time from a step's begin to the end of its thread's last span, without waiting.

    What the thread does after its last span is not recorded: it may well wait for the device.
    Without device work the waiting itself is on the host, and nothing is given.
    """
    begin = steps["start_ns"].to_numpy()
    lane = table["lane"].combine_chunks()
    known = pc.index_in(steps["lane"].cast(pa.string()), lane.dictionary.cast(pa.string()))
    own_lane = pc.fill_null(known, -1).to_numpy().astype(np.int64)
    mine = np.flatnonzero(~rows.device & (step_row >= 0))
    mine = mine[
        (rows.lane[mine] == own_lane[step_row[mine]])
        & (rows.place[mine] != _places(steps)[step_row[mine]])
    ]
    if not rows.device.any() or not len(mine):
        return np.zeros(len(begin), np.int64)
    family = table["family"].combine_chunks()
    waits = pc.is_in(family.dictionary.cast(pa.string()), pa.array(WAITING)).take(family.indices)
    idle = pc.or_(waits, is_comm(table).combine_chunks()).to_numpy(zero_copy_only=False)[mine]
    last = begin.copy()
    np.maximum.at(last, step_row[mine], rows.end[mine])
    own = table["self_ns"].to_numpy()[mine]
    waited = np.bincount(step_row[mine][idle], weights=own[idle], minlength=len(begin))
    host: Ints = np.maximum(last - begin - waited.astype(np.int64), 0)
    return host


def _places(steps: pa.Table) -> Ints:
    places: Ints = pc.fill_null(steps["place"], -1).to_numpy()
    return places
