"""One source, from raw spans to what a run is built of: structure, steps, calls, and sums.

`shape` works on one source alone, so that any worker can do it; what needs several ranks (matching,
clocks, expected times) comes later and works on the small tables that this leaves.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.ingest import operators, pace, stalls, tree
from teller.ingest.asked import ASKED, asked
from teller.ingest.calls import places, timed_calls
from teller.ingest.source import PLACE_BITS, WORDS, Facts, Remark, Source
from teller.ingest.steps import find_steps
from teller.ingest.windows import assign, widened

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
    asked: pa.Table = field(default_factory=ASKED.empty_table)
    stalls: pa.Table = field(default_factory=stalls.STALLS.empty_table)
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
        steps=widened(steps.table, table, rows, step_row),
        found_by=steps.found_by,
        confidence=steps.confidence,
        operators=_sums(table, rows, step_index, step_row >= 0),
        calls=timed_calls(source.calls, table, rows, grown),
        paces=measured.paces,
        silences=measured.silences,
        asked=asked(table),
        stalls=stalls.find(table, rows, grown, step_row),
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
        "parent": places(rows, grown.parent),
        "depth": pa.array(grown.depth),
        "launched_by": places(rows, grown.launched_by),
        "previous": places(rows, grown.previous),
        "waited_for": places(rows, waits),
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
