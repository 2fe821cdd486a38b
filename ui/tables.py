"""Tables of the graph as JSON, CSV and Parquet, without a digit lost."""

from pathlib import Path
from typing import IO, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

_ROWS: Final = 50_000  # a batch: what is held as Python objects at a time
_EXACT: Final = 1 << 53
_ENGINE: Final = frozenset({"_ID", "_LABEL", "_SRC", "_DST"})  # of a node or relation that is whole
_IDS: Final = frozenset({"id", "src", "dst", "run"})


def write_parquet(found: pa.Table, file: Path) -> None:
    """Write Parquet, compressed."""
    pq.write_table(found, file, compression="zstd")


def write_csv(found: pa.Table, file: IO[str]) -> None:
    """Write CSV with a head line; a list or a map in a cell is JSON."""
    flat = found
    for place, field in enumerate(found.schema):
        if pa.types.is_nested(field.type):
            texts = [None if v is None else as_text(v) for v in found.column(place).to_pylist()]
            flat = flat.set_column(place, field.name, pa.array(texts, pa.string()))
    head = True
    for batch in flat.to_batches(_ROWS) or [pa.RecordBatch.from_pylist([], schema=flat.schema)]:
        sink = pa.BufferOutputStream()
        pa_csv.write_csv(batch, sink, pa_csv.WriteOptions(include_header=head))
        file.write(sink.getvalue().to_pybytes().decode())
        head = False


def write_json(found: pa.Table, file: IO[str]) -> None:
    """Write a JSON list of rows; ids, and whole columns with a number past 2**53, are strings."""
    exact = exact_numbers(found)
    nested = any(pa.types.is_nested(field.type) for field in exact.schema)
    encoder = msgspec.json.Encoder()
    between = "[\n"
    for batch in exact.to_batches(_ROWS):
        if batch.num_rows:
            rows = batch.to_pylist()
            # a line break inside a value is escaped, so each one left parts two rows
            lines = encoder.encode_lines(list(map(_spelt, rows)) if nested else rows)
            file.write(between + lines.decode().rstrip("\n").replace("\n", ",\n"))
            between = ",\n"
    file.write("[]\n" if between == "[\n" else "\n]\n")


def exact_numbers(found: pa.Table) -> pa.Table:
    """Give the table with those numbers as text that a reader of JSON would round."""
    for place, field in enumerate(found.schema):
        if pa.types.is_integer(field.type) and _needs_text(field.name, found.column(place)):
            found = found.set_column(place, field.name, found.column(place).cast(pa.string()))
    return found


def _needs_text(name: str, column: pa.ChunkedArray) -> bool:
    last = name.rpartition(".")[2]
    if last in _IDS or last.endswith("_id"):
        return True
    ends = pc.min_max(column)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is not None and max(-low, high) > _EXACT


def as_text(value: object) -> str:
    """Give a value for a cell: a node, a list or a map as JSON, nothing for null."""
    if isinstance(value, dict | list):
        return msgspec.json.encode(_spelt(value)).decode()
    return "" if value is None else str(value)


def _spelt(value: object) -> object:
    """Give a value with the ids inside as strings, and without the engine's own names."""
    if isinstance(value, dict):
        return {
            key: str(inner) if _is_id(key, inner) else _spelt(inner)
            for key, inner in value.items()
            if key not in _ENGINE
        }
    if isinstance(value, list):
        return [_spelt(inner) for inner in value]
    if isinstance(value, int) and abs(value) > _EXACT:
        return str(value)
    return value


def _is_id(key: object, value: object) -> bool:
    named = str(key).rpartition(".")[2]
    return type(value) is int and (named in _IDS or named.endswith("_id"))
