"""What all Nsight Systems exports have in common: tables of known columns, whatever holds them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.source import Remark

BATCH_ROWS: Final = 1 << 16
TEXT_COLUMNS: Final = frozenset(
    ("text", "jsonText", "name", "value", "busLocation", "uuid", "label")
)

NEEDED: Final = "StringIds"
TELLING: Final = frozenset(
    (
        "META_DATA_EXPORT",
        "EXPORT_META_DATA",
        "NVTX_EVENTS",
        "OSRT_API",
        "SCHED_EVENTS",
        "ThreadNames",
    )
)
CUPTI: Final = "CUPTI_ACTIVITY_KIND_"


class Tables(Protocol):
    """The tables of one export. Nothing here raises on bad content: it goes into `remarks`."""

    path: str
    remarks: list[Remark]

    def columns(self, table: str) -> frozenset[str]:
        """Give the names of a table's columns; none where there is no such table."""

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Give all rows in stored order: text without nulls, the rest int64.

        A column that the table does not have is null, or empty text.
        """

    def is_used(self, table: str, columns: Sequence[str]) -> bool:
        """Tell whether any row has a value in one of the columns; True where that is not known."""

    def strings(self, ids: pa.Array) -> pa.Array:
        """Give the texts of distinct ids of `StringIds`, null where there is none."""


def is_export(names: Iterable[str]) -> bool:
    """Tell whether tables of these names are an export of Nsight Systems."""
    have = set(names)
    return NEEDED in have and any(n in TELLING or n.startswith(CUPTI) for n in have)


def whole(tables: Tables, table: str, columns: Sequence[str]) -> pa.Table:
    """Give a small table at once, its text cleaned."""
    schema = pa.schema([(c, column_type(c)) for c in columns])
    if not tables.columns(table):
        return schema.empty_table()
    read = pa.Table.from_batches(tables.batches(table, columns), schema)
    return pa.table({c: _cleaned(read[c]) for c in columns}, schema=schema)


def _cleaned(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type != pa.string():
        return column
    return pa.chunked_array(map(clean, column.chunks), pa.string())


def enum_ids(tables: Tables, enum: str, known: dict[str, int]) -> dict[str, int]:
    """Give the numbers of an enumeration's names: as the export has them, else as `known`."""
    rows = whole(tables, enum, ("id", "name")).to_pylist()
    return known | {r["name"]: r["id"] for r in rows if r["name"] in known and r["id"] is not None}


def column_type(column: str) -> pa.DataType:
    """Give the type that a column has here."""
    return pa.string() if column in TEXT_COLUMNS else pa.int64()


def typed(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Give the wanted columns in their types; `ArrowInvalid` where a value does not fit."""
    have = set(batch.schema.names)
    arrays = [
        _typed(batch.column(c), column_type(c)) if c in have else absent(c, batch.num_rows)
        for c in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def absent(column: str, rows: int) -> pa.Array:
    """Give a column that nobody wrote."""
    kind = column_type(column)
    return pa.repeat("", rows) if kind == pa.string() else pa.nulls(rows, kind)


def _typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if kind == pa.string():
        if values.type != kind:
            values = pa.repeat("", len(values)) if pa.types.is_null(values.type) else _text(values)
        return pc.fill_null(values, "") if values.null_count else values
    if values.type == pa.uint64():
        return values.view(kind)
    return values if values.type == kind else values.cast(kind, safe=False)


def _text(values: pa.Array) -> pa.Array:
    if pa.types.is_binary(values.type):
        return values.view(pa.string())
    return values.cast(pa.string())


def clean(texts: pa.Array) -> pa.Array:
    """Give valid text: bytes that are no UTF-8 are replaced, and a NUL ends a text.

    What stands behind a NUL is no part of a name: exports keep whole environment blocks that way.
    """
    offsets = np.frombuffer(texts.buffers()[1], np.int32) if len(texts) else np.zeros(1, np.int32)
    first, last = offsets[texts.offset], offsets[texts.offset + len(texts)]
    if first == last:
        return texts
    raw = np.frombuffer(texts.buffers()[2], np.uint8)[first:last]
    if (raw >= 0x80).any():
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            texts = _mapped(partial(str, encoding="utf-8", errors="replace"), texts)
    if not raw.all():
        texts = pc.replace_substring_regex(texts, "(?s)\\x00.*", "")
    return texts


def _mapped(repair: Callable[[bytes], str], texts: pa.Array) -> pa.Array:
    filled = pc.fill_null(texts.view(pa.binary()), b"").to_pylist()
    return pc.if_else(texts.is_valid(), pa.array(map(repair, filled), pa.string()), None)


def picked(tables: Tables, ids: pa.Array) -> pa.Array:
    """Give the texts of distinct ids by passing once over all of `StringIds`."""
    keys, values = [pa.array([], pa.int64())], [pa.array([], pa.string())]
    for batch in tables.batches(NEEDED, ("id", "value")):
        wanted = batch.filter(pc.is_in(batch["id"], ids))
        keys.append(wanted["id"])
        values.append(wanted["value"])
    return at_ids(pa.concat_arrays(keys), pa.concat_arrays(values), ids)


def at_ids(keys: pa.Array, values: pa.Array, ids: pa.Array) -> pa.Array:
    """Give the values in the order of `ids`, null where an id is not among the keys."""
    return clean(values).take(pc.index_in(ids, keys))
