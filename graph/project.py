"""From a run's archived spans to the graph's span tables: one clock, ids, excess.

The archive keeps spans on their sources' clocks and names rows by place; `sources.json` says how to
reach the run's axis and ids. What is derived here can always be derived again.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.graph import ids, schema

Ints = npt.NDArray[np.int64]

SOURCES: Final = "sources.json"
EXPECTED: Final = "expected.parquet"
MEMBERS: Final = "members.parquet"
TABLES: Final = "tables"
SHARED_RUN: Final = 0
NO_OWN_TIME: Final = ("sync", "os_wait")


class SpanSource(msgspec.Struct, frozen=True):
    """One source of a run's spans."""

    file: str  # below the generation folder
    rank: int
    base: int  # id of place 0
    input_id: int
    shift_ns: int  # source clock to UTC
    offset_ns: int  # UTC to the common clock
    drift_ppm: float
    drift_at_ns: int
    t0_ns: int  # common clock to the run's axis
    step_shift: int  # added to the source's step numbers

    def run_time(self, time: Ints) -> Ints:
        """Put source times on the run's axis."""
        moved = time + self.shift_ns
        drift = np.rint((moved - self.drift_at_ns) * (self.drift_ppm * 1e-6)).astype(np.int64)
        aligned: Ints = moved + self.offset_ns + drift - self.t0_ns
        return aligned


class Sources(msgspec.Struct, frozen=True):
    """All sources of a run, and its key."""

    key: str
    run_id: int
    sources: tuple[SpanSource, ...]


def project(generation: Path, scratch: Path) -> Mapping[str, Sequence[Path]]:
    """Give the Parquet files of the whole run by table name; span tables are written to scratch."""
    files: dict[str, list[Path]] = {
        path.name.removesuffix(".parquet"): [path]
        for path in sorted((generation / TABLES).glob("*.parquet"))
    }
    operators: dict[str, tuple[str, str]] = {}
    for number, made in enumerate(span_tables(generation)):
        operators |= _operators(made[schema.SPAN.label])
        for name, table in made.items():
            path = scratch / f"{name}.{number}.parquet"
            pq.write_table(
                table,
                path,
                compression="none",
                use_dictionary=_words(table),
                write_statistics=False,
                store_schema=False,
            )
            files.setdefault(name, []).append(path)
    path = scratch / "Operator.parquet"
    pq.write_table(_operator_table(operators), path)
    return files | {"Operator": [path]}


def span_tables(generation: Path) -> Iterator[dict[str, pa.Table]]:
    """Give the span tables of a run, source by source, by table name."""
    run = msgspec.json.decode((generation / SOURCES).read_bytes(), type=Sources)
    expected = pq.read_table(generation / EXPECTED)
    members = pq.read_table(generation / MEMBERS)
    for number, source in enumerate(run.sources):
        spans = pq.read_table(generation / source.file)
        yield _span_tables(run, number, source, spans, expected, members)


def step_tables(generation: Path, step_index: int) -> dict[str, pa.Table]:
    """Give the spans of one step on all ranks, with their relations, by table name.

    Relations whose other end is in another step are among them: what takes them has to pass over
    those whose ends it does not have.
    """
    parts: dict[str, list[pa.Table]] = {}
    for made in span_tables(generation):
        spans = made[schema.SPAN.label]
        mine = spans.filter(pc.equal(spans["step_index"], step_index))
        for name, table in made.items():
            end = "src" if name.startswith("IN_STEP") else "dst"
            inside = mine if table is spans else _ending_at(table, end, mine["id"])
            parts.setdefault(name, []).append(inside)
    own = pa.concat_arrays([t["id"].combine_chunks() for t in parts[schema.SPAN.label]])
    found = {name: pa.concat_tables(tables).unify_dictionaries() for name, tables in parts.items()}
    for path in sorted((generation / TABLES).glob("*.parquet")):
        name = path.name.removesuffix(".parquet")
        for end, part in zip(("src", "dst"), name.split(".")[1:], strict=False):
            if part == schema.SPAN.label:
                found[name] = _ending_at(pq.read_table(path), end, own)
    return found


def _ending_at(table: pa.Table, end: str, own: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table[end], own))


def _words(table: pa.Table) -> list[str]:
    return [f.name for f in table.schema if pa.types.is_dictionary(f.type) or f.type == pa.string()]


def _span_tables(
    run: Sources,
    number: int,
    source: SpanSource,
    spans: pa.Table,
    expected: pa.Table,
    members: pa.Table,
) -> dict[str, pa.Table]:
    place = spans["place"].to_numpy()
    own_id = place + source.base
    start, end = (source.run_time(spans[n].to_numpy()) for n in ("start_ns", "end_ns"))
    late, own = _own_time(number, spans, members)
    columns = {
        "id": own_id,
        "rank": np.full(len(place), source.rank),
        "step_index": _steps(spans, source),
        "start_ns": start,
        "end_ns": end,
        "dur_ns": end - start,
        "own_ns": own,
        "late_ns": late,
        "excess_ns": _excess(number, spans, source, expected, own),
        "input_id": np.full(len(place), source.input_id),
    }
    size = len(place)
    arrays = []
    for field in schema.SPAN.arrow:
        if field.name == "run_id":
            arrays.append(pa.repeat(pa.scalar(run.run_id), size))
        elif field.name == "kind":
            arrays.append(pa.repeat(pa.scalar(schema.SPAN.label), size))
        elif field.name in columns:
            value = columns[field.name]
            arrays.append(value if isinstance(value, pa.Array) else pa.array(value, pa.int64()))
        else:
            arrays.append(spans[field.name])
    return {schema.SPAN.label: pa.table(arrays, names=schema.SPAN.arrow.names)} | _relations(
        run, source, spans, own_id
    )


def _steps(spans: pa.Table, source: SpanSource) -> pa.Array:
    column = spans["step_index"].combine_chunks()
    return pc.add(column, source.step_shift) if source.step_shift else column


def _own_time(number: int, spans: pa.Table, members: pa.Table) -> tuple[Ints, Ints]:
    """Lateness, and self time without waiting: what a rank is answerable for."""
    device = pc.is_valid(spans["stream"]).to_numpy()
    dur = spans["end_ns"].to_numpy() - spans["start_ns"].to_numpy()
    own = np.where(device, dur, spans["self_ns"].to_numpy())
    waits = pc.is_in(spans["family"].combine_chunks().cast(pa.string()), pa.array(NO_OWN_TIME))
    own[waits.to_numpy(zero_copy_only=False)] = 0
    late = np.zeros(len(own), np.int64)
    mine = members.filter(pc.equal(members["source"], number))
    if mine.num_rows:
        at = _find(spans["place"].to_numpy(), mine["place"].to_numpy())
        late[at] = mine["late_ns"].to_numpy()
        own[at] = np.maximum(own[at] - mine["wait_ns"].to_numpy(), 0)
    return late, own


def _find(places: Ints, wanted: Ints) -> Ints:
    order = np.argsort(places, kind="stable")
    return order[np.searchsorted(places[order], wanted)]


def _excess(
    number: int, spans: pa.Table, source: SpanSource, expected: pa.Table, own: Ints
) -> Ints:
    """Observed minus expected own time, 0 where nothing is expected."""
    mine = expected.filter(pc.equal(expected["source"], number))
    excess = np.zeros(len(own), np.int64)
    if not mine.num_rows:
        return excess
    operator = spans["operator"].combine_chunks()
    width = len(operator.dictionary) + 1
    known = pc.index_in(mine["operator"], operator.dictionary.cast(pa.string()))
    known_code = pc.fill_null(known, width - 1).to_numpy().astype(np.int64)
    device = pc.is_valid(spans["stream"]).to_numpy()
    step = pc.fill_null(_steps(spans, source), -1).to_numpy()
    lowest = min(int(step.min(initial=0)), int(pc.min(mine["step_index"]).as_py()))
    key = ((mine["step_index"].to_numpy() - lowest) * width + known_code) * 2 + (
        mine["device"].to_numpy()
    )
    own_key = ((step - lowest) * width + operator.indices.to_numpy().astype(np.int64)) * 2 + device
    order = np.argsort(key, kind="stable")
    at = order[np.minimum(np.searchsorted(key[order], own_key), len(key) - 1)]
    found = key[at] == own_key
    should = np.rint(mine["each_ns"].to_numpy()).astype(np.int64)
    excess[found] = own[found] - should[at[found]]
    return excess


def _relations(
    run: Sources, source: SpanSource, spans: pa.Table, own_id: Ints
) -> dict[str, pa.Table]:
    made = {}
    for name, column, columns in (
        ("CHILD", "parent", ()),
        ("LAUNCHED", "launched_by", ()),
        ("NEXT", "previous", ("gap_ns",)),
    ):
        known = pc.is_valid(spans[column])
        src = pc.add(spans[column].filter(known), source.base)
        parts = {"src": src, "dst": pa.array(own_id).filter(known.combine_chunks())}
        made[f"{name}.Span.Span"] = pa.table(parts | {c: spans[c].filter(known) for c in columns})
    known = pc.is_valid(spans["waited_for"])
    made["WAITED_FOR.Span.Span"] = pa.table(
        {
            "src": pa.array(own_id).filter(known.combine_chunks()),
            "dst": pc.add(spans["waited_for"].filter(known), source.base),
        }
    )
    step = _steps(spans, source)
    known = pc.is_valid(step)
    inside = step.filter(known).to_numpy()
    made["IN_STEP.Span.Step"] = pa.table(
        {
            "src": pa.array(own_id).filter(known),
            "dst": pa.array(
                ids.node_ids(run.key, "Step", np.full(len(inside), source.rank), inside)
            ),
        }
    )
    return made


def _operators(spans: pa.Table) -> dict[str, tuple[str, str]]:
    pairs = (
        spans.select(["operator", "family", "layer"])
        .group_by(["operator", "family", "layer"])
        .aggregate([])
    )
    return {
        o: (f, y)
        for o, f, y in zip(
            *(pairs[c].to_pylist() for c in ("operator", "family", "layer")), strict=True
        )
    }


def _operator_table(operators: Mapping[str, tuple[str, str]]) -> pa.Table:
    names = sorted(operators)
    return pa.table(
        {
            "id": [ids.node_id("", "Operator", n) for n in names],
            "run_id": [SHARED_RUN] * len(names),
            "kind": [schema.OPERATOR.label] * len(names),
            "name": names,
            "family": [operators[n][0] for n in names],
            "layer": [operators[n][1] for n in names],
        },
        schema=schema.OPERATOR.arrow,
    )
