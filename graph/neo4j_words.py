"""What a Neo4j server says, in our words: its errors as ours, its rows as Arrow tables."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    ConstraintError,
    DriverError,
    IncompleteCommit,
    Neo4jError,
)
from neo4j.graph import Node, Path, Relationship

from teller.errors import (
    BadUsage,
    QueryRefused,
    SchemaMismatch,
    StoreBusy,
    TellerError,
    TooMuch,
    UnknownName,
)
from teller.graph import result_types
from teller.graph.neo4j_address import DATABASE, PASSWORD, USER, Address
from teller.graph.schema import NODES, RELATIONS
from teller.graph.store import StoreUnreadable

_LABELS: Final = {n.label: n for n in NODES}
_TYPES: Final = {r.type: r for r in RELATIONS}
_UNKNOWN: Final = re.compile(r"The (label|relationship type|property) `([^`]*)` does not exist")


@contextmanager
def our_errors(address: Address, timeout_s: float) -> Iterator[None]:
    """Turn what the driver raises inside into errors of ours."""
    try:
        yield
    except (Neo4jError, DriverError) as err:
        raise translated(err, address, timeout_s) from err


def translated(err: Exception, address: Address, timeout_s: float) -> TellerError:
    """Give the error of ours for one of the driver."""
    if isinstance(err, AuthError):
        return BadUsage(
            f"{address.uri} does not let user {address.user} in; set {USER} and {PASSWORD}"
        )
    if isinstance(err, ConfigurationError):
        return BadUsage(f"{address.uri}: {_line(err)}")
    if isinstance(err, IncompleteCommit):
        return StoreUnreadable(
            f"{address.uri} went away in the middle of a write; when it is back, do the same "
            "again: what is there in part is made whole"
        )
    if isinstance(err, Neo4jError):
        return _refused(err, address, timeout_s)
    return StoreUnreadable(
        f"{address.uri} does not answer ({_line(err)}); start the server, or correct the address"
    )


def _refused(err: Neo4jError, address: Address, timeout_s: float) -> TellerError:
    code, said = err.code or "", _line(err)
    if isinstance(err, ConstraintError):
        return SchemaMismatch(said)
    if code.startswith("Neo.ClientError.Security"):
        return BadUsage(f"{address.uri} does not allow user {address.user} to do that: {said}")
    if code.endswith("Database.DatabaseNotFound"):
        return BadUsage(
            f"{address.uri} has no database {address.database!r}; set {DATABASE}, or name it in "
            "the address; the Community edition has one, neo4j"
        )
    if code.endswith("Statement.AccessMode"):
        return QueryRefused("a query only reads the graph: it cannot create, change or delete")
    if "TransactionTimedOut" in code:
        limit = f"{timeout_s:g} s"
        return TooMuch(f"stopped after {limit}; narrow the query, or give it more time")
    if "OutOfMemory" in code:
        return TooMuch("the query needs more memory than the server gives; narrow it")
    if "Transient" in code or "LockClient" in code:
        return StoreBusy(f"{address.uri} is too busy ({said}); try again")
    if "Unavailable" in code or "DatabaseError" in code:
        return StoreUnreadable(f"{address.uri} cannot do it now ({said}); look at its log")
    return QueryRefused(said)


def _line(err: Exception) -> str:
    message = getattr(err, "message", None) or str(err)
    line = str(message).strip().partition("\n")[0]
    return line.partition(" (resolved to")[0]  # what follows are the same addresses again


def check_names(said: Iterable[Any]) -> None:
    """Refuse what neither the server nor the schema knows; the server itself answers nothing."""
    for status in said:
        found = _UNKNOWN.search(status.status_description or "")
        if found is None:
            continue
        what, name = found.groups()
        if what == "property":
            if name not in result_types.COLUMNS:
                raise UnknownName("property", name, result_types.COLUMNS)
        elif name not in _LABELS and name not in _TYPES:
            raise UnknownName("label or relation", name, (*_LABELS, *_TYPES))


def table(text: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> pa.Table:
    """Give rows as a table with the types that the embedded engine would give."""
    told = result_types.of_columns(text)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [_array(column, told.get(name)) for name, column in zip(names, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(names))


def _array(values: Sequence[Any], wanted: pa.DataType | None) -> pa.Array:
    try:
        made = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        made = _mixed([_plain(v) for v in values])
    if pa.types.is_null(made.type) and wanted is not None:
        return made.cast(wanted)
    if pa.types.is_integer(made.type) and wanted == pa.float64():  # as a sum of nothing is
        return made.cast(wanted)
    return made


def _mixed(values: Sequence[Any]) -> pa.Array:
    """Give values of several kinds as text, where they are not maps or lists of one kind."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if v is None else str(v) for v in values])


def _plain(value: Any) -> object:
    """Give nodes and relations as maps with all columns of their kind, as the other engine does."""
    if isinstance(value, Node):
        [label, *_] = sorted(value.labels, key=lambda n: n not in _LABELS) or [""]
        kind = _LABELS.get(label)
        return {"_LABEL": label, **_properties(value, kind.columns if kind else ())}
    if isinstance(value, Relationship):
        relation = _TYPES.get(value.type)
        return {"_LABEL": value.type, **_properties(value, relation.columns if relation else ())}
    if isinstance(value, Path):
        return {
            "_NODES": [_plain(n) for n in value.nodes],
            "_RELS": [_plain(r) for r in value.relationships],
        }
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if hasattr(value, "iso_format"):  # the driver's dates, times and durations
        return value.iso_format()
    return value


def _properties(value: Any, columns: Iterable[Any]) -> dict[str, object]:
    found = {c.name: value.get(c.name) for c in columns}
    return found | {k: _plain(v) for k, v in value.items() if k not in found}
