"""One source, from raw spans to what a run is built of: structure, steps, calls, and sums.

`shape` works on one source alone, so that any worker can do it; what needs several ranks (matching,
clocks, expected times) comes later and works on the small tables that this leaves.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.ingest import operators, pace, tree
from teller.ingest.source import COMM, PLACE_BITS, WORDS, Facts, Remark, Source
from teller.ingest.steps import Steps, find_steps

Ints = npt.NDArray[np.int64]

# The archive's span table: what the reader gave, on the source's own clock, and its structure.
# Other rows are named by place.
SHAPED = pa.schema(
    [
        ("place", pa.int64()),
        ("name", WORDS),
        ("operator", WORDS),
        ("family", WORDS),
        ("layer", WORDS),
        ("lane", WORDS),
        ("stream", pa.int64()),
        ("device_index", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("open", pa.bool_()),
        ("correlation", pa.int64()),
        ("size_bytes", pa.int64()),
        ("parent", pa.int64()),
        ("depth", pa.int64()),
        ("launched_by", pa.int64()),
        ("previous", pa.int64()),
        ("waited_for", pa.int64()),
        ("self_ns", pa.int64()),
        ("gap_ns", pa.int64()),
        ("step_index", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """One source, shaped; tables are small but for the spans, which are on disk."""

    facts: Facts
    spans: Path  # SHAPED, as Parquet
    span_count: int
    device_count: int
    launched_count: int  # device rows with their API call
    correlated: bool  # API calls and device rows carry correlation ids
    first_ns: int  # source clock
    last_ns: int
    steps: pa.Table  # STEPS of ingest.steps, with start and end over host and device work
    found_by: str
    confidence: float
    operators: pa.Table  # step_index, operator, family, layer, device, count, own_ns
    calls: pa.Table  # CALLS with times, step and launch
    paces: pa.Table  # PACES of ingest.pace
    silences: pa.Table  # SILENCES of ingest.pace
    remarks: tuple[Remark, ...] = ()


def shape(source: Source, to: Path) -> Shaped:
    """Give structure to one source and write its spans to `to`."""
    spans = _checked(source.spans.combine_chunks().unify_dictionaries())
    rows = tree.columns(spans)
    grown = tree.build(rows)
    named = _named(spans)
    steps = find_steps(spans, families=named["family"].combine_chunks().cast(pa.string()))
    step_row = assign(rows, grown, steps)
    index = steps.table["step_index"].to_numpy()
    step_index = np.where(step_row >= 0, index[step_row] if len(index) else -1, -1)
    table = _table(spans, named, rows, grown, step_index, step_row >= 0)
    pq.write_table(table, to, compression="lz4", write_statistics=False)
    measured = pace.measure(table, rows, grown, step_row, len(index))
    return Shaped(
        facts=source.facts,
        spans=to,
        span_count=len(table),
        device_count=int(rows.device.sum()),
        launched_count=int((grown.launched_by >= 0).sum()),
        correlated=bool((rows.correlation[rows.device] >= 0).any()),
        first_ns=int(rows.start.min()) if len(table) else 0,
        last_ns=int(rows.end.max()) if len(table) else 0,
        steps=_widen(steps.table, rows, step_row),
        found_by=steps.found_by,
        confidence=steps.confidence,
        operators=_sums(table, rows, step_index, step_row >= 0),
        calls=_calls(source.calls, table, rows, grown),
        paces=measured.paces,
        silences=measured.silences,
    )


def _checked(spans: pa.Table) -> pa.Table:
    if spans.num_rows and pc.max(spans["place"]).as_py() >= 1 << PLACE_BITS:
        raise AssertionError("a reader gave a place beyond its 29 bits")
    return spans


def _named(spans: pa.Table) -> pa.Table:
    """Operator and family of each row, worked out once for each distinct name."""
    name = spans["name"].combine_chunks()
    known = operators.classify(name.dictionary.cast(pa.string()))
    columns = {}
    for column in ("operator", "family"):
        words = known[column].combine_chunks().dictionary_encode()
        codes = words.indices.take(name.indices.cast(pa.int64()))
        columns[column] = pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), words.dictionary)
    return pa.table(columns)


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


def _widen(steps: pa.Table, rows: tree.Columns, step_row: Ints) -> pa.Table:
    """Stretch each step to the end of the device work that it launched."""
    end = steps["end_ns"].to_numpy().copy()
    begin = steps["start_ns"].to_numpy().copy()
    inside = np.flatnonzero(step_row >= 0)
    np.maximum.at(end, step_row[inside], rows.end[inside])
    np.minimum.at(begin, step_row[inside], rows.start[inside])
    for name, values in (("start_ns", begin), ("end_ns", end)):
        steps = steps.set_column(steps.column_names.index(name), name, pa.array(values))
    return steps


def _table(
    spans: pa.Table,
    named: pa.Table,
    rows: tree.Columns,
    grown: tree.Tree,
    step_index: Ints,
    stepped: npt.NDArray[np.bool_],
) -> pa.Table:
    sync = np.flatnonzero(pc.equal(named["family"].cast(pa.string()), "sync").to_numpy())
    waits = np.full(len(rows.start), -1)
    waits[sync] = tree.waited_for(rows, sync)
    made = {
        "parent": _places(rows, grown.parent),
        "depth": pa.array(grown.depth),
        "launched_by": _places(rows, grown.launched_by),
        "previous": _places(rows, grown.previous),
        "waited_for": _places(rows, waits),
        "self_ns": pa.array(grown.self_ns),
        "gap_ns": pa.array(grown.gap),
        "step_index": pa.array(step_index, mask=~stepped),
    }
    return pa.table(
        [
            made.get(f.name, named[f.name] if f.name in named.column_names else None)
            if f.name in made or f.name in named.column_names
            else spans[f.name]
            for f in SHAPED
        ],
        schema=SHAPED,
    )


def _places(rows: tree.Columns, at: Ints) -> pa.Array:
    return pa.array(rows.place[np.maximum(at, 0)] if len(at) else at, mask=at < 0)


def _sums(
    table: pa.Table, rows: tree.Columns, step_index: Ints, stepped: npt.NDArray[np.bool_]
) -> pa.Table:
    """Give own time and count by (step, operator, layer); step -1 lies outside of steps."""
    device = pa.array(rows.device)
    own = np.where(rows.device, rows.end - rows.start, table["self_ns"].to_numpy())
    small = pa.table(
        {
            "step_index": pa.array(np.where(stepped, step_index, -1)),
            "operator": table["operator"],
            "family": table["family"],
            "layer": table["layer"],
            "device": device,
            "own_ns": pa.array(own),
        }
    )
    keys = ["step_index", "operator", "family", "layer", "device"]
    sums = small.group_by(keys, use_threads=False).aggregate(
        [("own_ns", "sum"), ("own_ns", "count"), ("own_ns", "max")]
    )
    return sums.rename_columns([*keys, "own_ns", "count", "max_ns"])


def _calls(calls: pa.Table, table: pa.Table, rows: tree.Columns, grown: tree.Tree) -> pa.Table:
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
        "launched_by": _places(rows, launch),
        "parent": _places(rows, parent),
        "open": table["open"].combine_chunks().take(pa.array(at)),
    }
    for name, column in added.items():
        calls = calls.append_column(name, column)
    return calls


def is_comm(table: pa.Table) -> pa.Array:
    """Tell which rows of a SHAPED or operator table belong to the comm layer."""
    return pc.equal(table["layer"].cast(pa.string()), COMM)
