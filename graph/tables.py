"""The tables of a run by name, and the cast that makes any table fit one of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from teller.errors import SchemaMismatch, UnknownName
from teller.graph.schema import NODES, RELATIONS, Node, Relation


@dataclass(frozen=True, slots=True)
class GraphTable:
    """One table of the graph: a label, or a relation type between two labels."""

    name: str
    kind: Node | Relation
    src: str = ""  # labels of the ends; empty for nodes
    dst: str = ""


def table_name(kind: Node | Relation, src: Node | None = None, dst: Node | None = None) -> str:
    """Give the name of a table: `Span`, or `CHILD.Span.Span`; the only ends need no naming."""
    if isinstance(kind, Node):
        return kind.label
    if src is None or dst is None:
        if len(kind.ends) != 1:
            raise SchemaMismatch(f"{kind.type} joins {len(kind.ends)} pairs of labels; name one")
        src, dst = kind.ends[0]
    if (src, dst) not in kind.ends:
        pairs = (f"{a.label} to {b.label}" for a, b in kind.ends)
        raise UnknownName(f"pair of {kind.type}", f"{src.label} to {dst.label}", pairs)
    return f"{kind.type}.{src.label}.{dst.label}"


def _all() -> Iterator[GraphTable]:
    for node in NODES:
        yield GraphTable(node.label, node)
    for relation in RELATIONS:
        for src, dst in relation.ends:
            yield GraphTable(table_name(relation, src, dst), relation, src.label, dst.label)


TABLES: Final = MappingProxyType({table.name: table for table in _all()})  # nodes come first


def table_of(name: str) -> GraphTable:
    """Give the table of that name, or say which there are."""
    if name not in TABLES:
        raise UnknownName("table", name, TABLES)
    return TABLES[name]


def fit(table: pa.Table, kind: Node | Relation) -> pa.Table:
    """Give the table in the kind's columns, order and types; absent optional columns are null.

    `kind` may be left out of a table of nodes. All that does not fit is named in one error.
    """
    name = kind.label if isinstance(kind, Node) else kind.type
    if isinstance(kind, Node) and "kind" not in table.column_names:
        table = table.append_column("kind", pa.repeat(kind.label, table.num_rows))
    return _fit(table, kind.arrow, name)


def fit_some(table: pa.Table, node: Node) -> pa.Table:
    """Give the columns that the table has, in the label's types; `id` must be among them."""
    names = {"id", *table.column_names}
    return _fit(table, pa.schema([f for f in node.arrow if f.name in names]), node.label)


def _fit(table: pa.Table, wanted: pa.Schema, name: str) -> pa.Table:
    faults = list(_wrong_names(table, wanted))
    columns = []
    for field in wanted:
        column, fault = _cast(table, field)
        columns.append(column)
        faults += [fault] if fault else []
    if faults:
        raise SchemaMismatch(f"{name}: {'; '.join(faults)}")
    return pa.Table.from_arrays(columns, schema=wanted)


def _wrong_names(table: pa.Table, wanted: pa.Schema) -> Iterator[str]:
    names = table.column_names
    if twice := sorted({n for n in names if names.count(n) > 1}):
        yield f"columns that are there twice: {', '.join(twice)}"
    if unknown := [n for n in names if n not in wanted.names]:
        yield f"columns that it does not have: {', '.join(unknown)}"
    if missing := [f.name for f in wanted if not f.nullable and f.name not in names]:
        yield f"columns that are missing: {', '.join(missing)}"


def _cast(table: pa.Table, field: pa.Field) -> tuple[pa.ChunkedArray, str]:
    """Give the column, and what is wrong with it; wrong ones come back as nulls."""
    nulls = pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    if table.column_names.count(field.name) != 1:
        return nulls, ""
    column = table.column(field.name)
    if column.null_count and not field.nullable:
        return nulls, f"{field.name} has {column.null_count} nulls where none may be"
    try:
        return column.cast(field.type), ""
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as err:
        return nulls, f"{field.name} is {column.type}, not {field.type} ({_first_line(err)})"


def _first_line(err: Exception) -> str:
    return str(err).partition("\n")[0]
