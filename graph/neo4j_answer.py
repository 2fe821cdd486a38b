"""A person's query on a Neo4j server: a reading session, a time-out, and the first rows."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from neo4j import READ_ACCESS, Driver, Query, ResultSummary
from neo4j.graph import Entity, Path

from teller.errors import QueryRefused
from teller.graph.answer import Found, Limits, too_large
from teller.graph.neo4j_words import check_names, table
from teller.graph.reading import Question

FETCH_ROWS: Final = 1000  # a message
_SCALAR_BYTES: Final = 8


def answer(
    driver: Driver, database: str, question: Question, given: Mapping[str, object], limits: Limits
) -> Found:
    """Give the first rows; what the server has beyond them is not fetched."""
    rows: list[list[Any]] = []
    truncated, size = False, 0
    with driver.session(
        database=database, default_access_mode=READ_ACCESS, fetch_size=FETCH_ROWS
    ) as session:
        # not a transaction that is tried again: a query that fills the server would fill it again
        result = session.run(Query(question.text, timeout=limits.time_s), dict(given))
        names = result.keys()
        for record in result:
            if limits.rows and len(rows) == limits.rows:
                truncated = True
                break
            rows.append(record.values())
            size += _size(rows[-1])
            if size > limits.most_bytes:
                raise QueryRefused(too_large(limits.most_bytes))
        summary = result.consume()
    check_names(summary.gql_status_objects)
    if question.explained:
        return Found(_plan(summary), False)
    return Found(table(question.text, names, rows), truncated)


def _plan(summary: ResultSummary) -> pa.Table:
    plan = (summary.plan or {}).get("args", {}).get("string-representation", "")
    return pa.table({"plan": [plan]})


def _size(value: object) -> int:
    """Give about how many bytes a value takes."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Path):
        return sum(_size(part) for part in (*value.nodes, *value.relationships))
    if isinstance(value, Mapping | Entity):
        return sum(_size(part) for part in value.values())
    if isinstance(value, Sequence):
        return _SCALAR_BYTES + sum(map(_size, value))
    return _SCALAR_BYTES
