"""How a source keeps pace: device busy and idle time of each step, and silences of the host.

A *silence* is a stretch in which the host process began and ended nothing on the lanes that drive
its steps, and was not inside an API call or a communication either: a pause, not a wait.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest import tree
from teller.ingest.source import COMM, RUNTIME

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LONGEST_SILENCES = 64
SHORTEST_SILENCE_NS = 1_000_000

PACES = pa.schema(
    [
        ("step_row", pa.int64()),  # row of the step table; -1 is the whole source
        ("busy_ns", pa.int64()),  # device time with work of this step, any stream
        ("kernel_busy_ns", pa.int64()),  # the same without whole-graph rows
        ("host_idle_ns", pa.int64()),  # all streams idle, and the launch that ends it called within
        ("device_rows", pa.int64()),
        ("graph_rows", pa.int64()),
        ("launches", pa.int64()),
        ("driver_launches", pa.int64()),
        ("graph_launches", pa.int64()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),  # of the device work
        ("prompt_rows", pa.int64()),  # device rows that began right after their launch, stream idle
    ]
)
SILENCES = pa.schema(
    [
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("place", pa.int64()),
        ("step_index", pa.int64()),  # `place`: the span whose begin or end comes after the silence
    ]
)
PROMPT_NS = 20_000  # a free stream starts a kernel within some µs of its launch


@dataclass(frozen=True, slots=True)
class Measured:
    """Both tables."""

    paces: pa.Table
    silences: pa.Table


def measure(
    table: pa.Table, rows: tree.Columns, grown: tree.Tree, step_row: Ints, steps: int
) -> Measured:
    """Measure one shaped source."""
    family = table["family"].combine_chunks().cast(pa.string())
    return Measured(_paces(table, family, rows, grown, step_row, steps), _silences(table, rows))


def _is(column: pa.Array, *words: str) -> Flags:
    found: Flags = pc.is_in(column, pa.array(words)).to_numpy(zero_copy_only=False)
    return found


def _paces(
    table: pa.Table, family: pa.Array, rows: tree.Columns, grown: tree.Tree, step_row: Ints,
    steps: int,
) -> pa.Table:  # fmt: skip
    parts = _parts(table, family, rows, grown)
    sums = {
        name: np.r_[
            values.sum(dtype=np.int64),
            np.bincount(step_row + 1, weights=values, minlength=steps + 1)[1:],
        ].astype(np.int64)
        for name, values in parts.items()
    }
    first, last = _edges(rows, step_row, steps)
    return pa.table(
        {"step_row": pa.array(np.arange(-1, steps)), "first_ns": first, "last_ns": last}
        | {k: pa.array(v) for k, v in sums.items()}
    ).select(PACES.names)


def _parts(
    table: pa.Table, family: pa.Array, rows: tree.Columns, grown: tree.Tree
) -> dict[str, npt.NDArray[Any]]:
    """Give what each row adds to the sums of its step."""
    graph = _is(family, "graph") & rows.device
    launch = _is(family, "launch") & ~rows.device
    call = grown.launched_by
    called = np.where(call >= 0, rows.start[call], np.iinfo(np.int64).min)
    busy, idle = _busy_and_idle(rows, rows.device)
    late_call = rows.device & (call >= 0) & (called >= rows.start - idle)
    return {
        "host_idle_ns": np.where(late_call, idle, 0),
        "device_rows": rows.device,
        "graph_rows": graph,
        "launches": launch,
        "driver_launches": launch & _starts(table["operator"], "cuLaunch"),
        "graph_launches": _is(family, "graph_launch") & ~rows.device,
        "prompt_rows": rows.device
        & (call >= 0)
        & (grown.gap > 0)
        & (rows.start - called <= PROMPT_NS),
        "busy_ns": busy,
        "kernel_busy_ns": _busy_and_idle(rows, rows.device & ~graph)[0],
    }


def _starts(words: pa.ChunkedArray, prefix: str) -> Flags:
    column = words.combine_chunks()
    known = pc.starts_with(column.dictionary.cast(pa.string()), prefix)
    found: Flags = known.take(column.indices).to_numpy(zero_copy_only=False)
    return found


def _busy_and_idle(rows: tree.Columns, which: Flags) -> tuple[Ints, Ints]:
    """Give the device time that each row adds to all rows before it, and the idle time it ends.

    Over all streams: one that waits while another works is not idle time of the device.
    """
    added, idle = np.zeros((2, len(rows.start)), np.int64)
    work = np.flatnonzero(which)
    if not len(work):
        return added, idle
    work = work[np.argsort(rows.start[work], kind="stable")]
    start, end = rows.start[work], rows.end[work]
    before = np.r_[start[0], np.maximum.accumulate(end)[:-1]]
    added[work] = np.maximum(end - np.maximum(start, before), 0)
    idle[work] = np.maximum(start - before, 0)
    return added, idle


def _edges(rows: tree.Columns, step_row: Ints, steps: int) -> tuple[pa.Array, pa.Array]:
    none_first, none_last = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    first, last = np.full(steps + 1, none_first), np.full(steps + 1, none_last)
    work = np.flatnonzero(rows.device)
    inside = work[step_row[work] >= 0]
    np.minimum.at(first, step_row[inside] + 1, rows.start[inside])
    np.maximum.at(last, step_row[inside] + 1, rows.end[inside])
    if len(work):
        first[0], last[0] = rows.start[work].min(), rows.end[work].max()
    return pa.array(first, mask=first == none_first), pa.array(last, mask=last == none_last)


def _silences(table: pa.Table, rows: tree.Columns) -> pa.Table:
    """Find the longest silences of the lanes that drive the steps."""
    layer = table["layer"].combine_chunks().cast(pa.string())
    driving = _driving(rows, _is(layer, RUNTIME, COMM) & ~rows.device)
    host = np.flatnonzero(driving)
    if len(host) < 2:
        return SILENCES.empty_table()
    active = _is(layer, RUNTIME, COMM)[host]
    # An API call or communication counts from begin to end, any other span by its two edges only.
    begin = np.r_[rows.start[host], rows.end[host]]
    until = np.r_[np.where(active, rows.end[host], rows.start[host]), rows.end[host]]
    owner = np.r_[host, host]
    order = np.argsort(begin, kind="stable")
    begin, until, owner = begin[order], np.maximum.accumulate(until[order]), owner[order]
    gap = begin[1:] - until[:-1]
    long = np.flatnonzero(gap >= SHORTEST_SILENCE_NS)
    long = long[np.argsort(-gap[long], kind="stable")[:LONGEST_SILENCES]]
    after = owner[long + 1]
    return pa.table(
        {
            "start_ns": pa.array(until[long]),
            "end_ns": pa.array(begin[long + 1]),
            "place": pa.array(rows.place[after]),
            "step_index": table["step_index"].combine_chunks().take(pa.array(after)),
        },
        schema=SILENCES,
    )


def _driving(rows: tree.Columns, calls: Flags) -> Flags:
    """Rows of the host lanes that make API calls or communicate; all host rows where none does."""
    lanes = np.unique(rows.lane[calls])
    host = ~rows.device
    return host & np.isin(rows.lane, lanes) if len(lanes) else host
