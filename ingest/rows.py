"""Tables of graph rows out of plain columns: what is missing is null, types are the schema's."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from teller.graph.schema import Node, Relation


def node_rows(node: Node, run_id: int, size: int, columns: Mapping[str, Any]) -> pa.Table:
    """Give a table of a label; `columns` hold arrays or lists, all of `size` rows."""
    given: dict[str, Any] = {
        "run_id": pa.repeat(pa.scalar(run_id, pa.int64()), size),
        "kind": pa.repeat(pa.scalar(node.label), size),
    } | dict(columns)
    return _table(node.arrow, size, given)


def relation_rows(
    relation: Relation, src: Any, dst: Any, columns: Mapping[str, Any] | None = None
) -> pa.Table:
    """Give a table of one end pair of a relation."""
    given = {"src": src, "dst": dst} | dict(columns or {})
    return _table(relation.arrow, len(src), given)


def from_dicts(node: Node, run_id: int, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Give a table of a label from a few rows; for ranks and hosts, never for spans."""
    names = {name for row in rows for name in row}
    return node_rows(node, run_id, len(rows), {n: [r.get(n) for r in rows] for n in names})


def _table(schema: pa.Schema, size: int, given: Mapping[str, Any]) -> pa.Table:
    unknown = set(given) - set(schema.names)
    if unknown:
        raise AssertionError(f"columns that the schema does not have: {sorted(unknown)}")
    return pa.table(
        [
            _column(given[f.name], f.type) if f.name in given else pa.nulls(size, f.type)
            for f in schema
        ],
        schema=schema,
    )


def _column(values: Any, kind: pa.DataType) -> Any:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values if values.type == kind else values.cast(kind)
    return pa.array(values, kind)
