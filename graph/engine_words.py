"""What the embedded engine says, in our words: its errors as ours, its results as plain Arrow."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain

import ladybug
import pyarrow as pa

from teller.errors import (
    NoRoom,
    QueryRefused,
    SchemaMismatch,
    StoreBusy,
    TellerError,
    TooMuch,
    UnknownName,
)
from teller.graph.schema import NODES, RELATIONS
from teller.graph.store import StoreUnreadable

_BUSY = re.compile(r"Could not set lock on file.*?PID (\d+)", re.DOTALL)
_NO_TABLE = re.compile(r"Table (\S+) does not exist")
_NO_PROPERTY = re.compile(r"Cannot find property (\S+) for")
_NO_KEY = re.compile(r"Unable to find primary key value (-?\d+)")
_PLACE = re.compile(r"\(line: \d+, offset: \d+\)")
_UNREADABLE = (
    "not a valid Lbug database",
    "different version",
    "Cannot read checkpoint",
    "bad_alloc",
    "Cannot create an empty database",
    "cannot be a directory",
    "corrupt",
    "IO exception",
)


def answer(
    connection: ladybug.Connection, text: str, params: Mapping[str, object] | None = None
) -> ladybug.QueryResult:
    """Give the result of one statement."""
    result = connection.execute(text, dict(params or {}))
    assert isinstance(result, ladybug.QueryResult), "one statement at a time"
    return result


def number(
    connection: ladybug.Connection, text: str, params: Mapping[str, object] | None = None
) -> int:
    """Give the first value of a statement, 0 where it has no row."""
    result = answer(connection, text, params)
    return int(result.get_as_arrow()[0][0].as_py()) if result.has_next() else 0


@contextmanager
def our_errors(timeout_s: float, place: str) -> Iterator[None]:
    """Turn what the engine raises inside into errors of ours."""
    try:
        yield
    except (RuntimeError, MemoryError) as err:
        raise translated(str(err), timeout_s, place) from err


def translated(said: str, timeout_s: float, place: str) -> TellerError:
    """Give the error of ours for a message of the engine."""
    line = said.partition("\n")[0].strip()
    if busy := _BUSY.search(said):
        return StoreBusy(f"{place} belongs to process {busy[1]}; wait until it is done")
    if found := _NO_TABLE.search(line):
        return UnknownName("label or relation", found[1], _table_words())
    if found := _NO_PROPERTY.search(line):
        return UnknownName("property", found[1], _property_words())
    if found := _NO_KEY.search(line):
        return SchemaMismatch(f"a relation ends at id {found[1]}, which no node has")
    if "read-only" in line:
        return QueryRefused("a query only reads the graph: it cannot create, change or delete")
    if "Interrupted" in line:
        limit = f"{timeout_s:g} s"
        return TooMuch(f"stopped after {limit}; narrow the query, or give it more time")
    if "Buffer manager" in line:
        return TooMuch("the query needs more memory than the store may use; narrow it")
    if "No space left on device" in said:
        return NoRoom(place)
    if any(word in line for word in _UNREADABLE):
        return StoreUnreadable(f"{place} cannot be read ({line})")
    place_in_text = _PLACE.search(said)
    if place_in_text is not None and place_in_text[0] not in line:  # the query's lines are between
        line = f"{line} … {place_in_text[0]}"
    return QueryRefused(line)


def plain(table: pa.Table) -> pa.Table:
    """Give the result with whole numbers as int64: the engine sums into 128 bits."""
    if not any(_has_decimal(field.type) for field in table.schema):
        return table
    columns = [_cast(table.column(i)) for i in range(table.num_columns)]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _cast(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(_narrow(column.type, pa.int64()))
    except pa.ArrowInvalid:  # a sum beyond 63 bits
        return column.cast(_narrow(column.type, pa.float64()))


def _narrow(kind: pa.DataType, number: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return number
    if pa.types.is_list(kind):
        return pa.list_(_narrow(kind.value_type, number))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _narrow(f.type, number)) for f in kind])
    return kind


def _has_decimal(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return True
    return any(_has_decimal(kind.field(i).type) for i in range(kind.num_fields))


def _table_words() -> Iterable[str]:
    return chain((n.label for n in NODES), (r.type for r in RELATIONS))


def _property_words() -> Iterable[str]:
    return {c.name for kind in (*NODES, *RELATIONS) for c in kind.columns}
