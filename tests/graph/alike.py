"""Whether two engines gave the same answer, and whether two graphs are the same."""

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from teller.graph.neo4j import Neo4jStore
from teller.graph.tables import TABLES

Graph = dict[str, list[Any]]

TOLERANCE = 1e-9


def compared(mine: pa.Table, other: pa.Table, text: str) -> Iterator[str]:
    """Give what differs, in whatever order the rows come."""
    if mine.column_names != other.column_names:
        yield f"{text}: columns {mine.column_names} and {other.column_names}"
        return
    if mine.num_rows != other.num_rows:
        yield f"{text}: {mine.num_rows} and {other.num_rows} rows"
        return
    kinds = [
        f"{f.name} is {f.type} and {o.type}"
        for f, o in zip(mine.schema, other.schema, strict=True)
        if f.type != o.type and not pa.types.is_null(o.type)
    ]
    if kinds:
        yield f"{text}: {'; '.join(kinds)}"
    if "LIMIT" in text and "ORDER BY" not in text:
        return  # any rows will do: it is asked whether there are some
    pairs = zip(ordered(mine), ordered(other), strict=True)
    different = [(a, b) for a, b in pairs if not same(a, b)]
    if different:
        yield f"{text}: {len(different)} rows, as {different[0]}"


def rows(table: pa.Table) -> list[list[Any]]:
    """Give the rows in their order; lists in them have none."""
    return [[_listed(value) for value in row.values()] for row in table.to_pylist()]


def ordered(table: pa.Table) -> list[list[Any]]:
    return sorted(rows(table), key=lambda row: [_rank(value) for value in row])


def _listed(value: object) -> object:
    return sorted(value, key=_rank) if isinstance(value, list) else value


def _rank(value: object) -> tuple[bool, str]:
    return value is None, f"{value:.6g}" if isinstance(value, float) else repr(value)


def same(a: object, b: object) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or a != a != b != b
    return a == b


def graph(store: Neo4jStore) -> Graph:
    """Give all that a server holds: the rows of each table in order, and the whole runs."""
    found: Graph = {}
    for name, one in TABLES.items():
        columns = [f"x.{c.name} AS {c.name}" for c in one.kind.columns]
        if "." in name:
            columns = ["a.id AS src", "b.id AS dst", *columns]
            match = f"MATCH (a:{one.src})-[x:{name.split('.')[0]}]->(b:{one.dst})"
        else:
            match = f"MATCH (x:{name})"
        given = store.query(f"{match} RETURN {', '.join(columns)}").to_pylist()
        found[name] = sorted(given, key=lambda row: [str(v) for v in row.values()])
    found["whole runs"] = sorted(store.states())
    return found
