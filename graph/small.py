"""A few thousand rows into the embedded engine by parameters: what is added to a run later on.

A column that is null in all rows of a batch stays out of the statement: the engine takes it for
text, and refuses it where a number should be.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import ladybug
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.errors import SchemaMismatch
from teller.graph import cypher
from teller.graph.engine_words import answer, number
from teller.graph.schema import Node, Relation
from teller.graph.tables import TABLES, GraphTable, fit, fit_some, table_of

BATCH: Final = 5_000  # rows a statement

Fitted = tuple[tuple[GraphTable, pa.Table], ...]


def fitted(run_id: int, tables: Mapping[str, pa.Table]) -> Fitted:
    """Give the tables in the schema's form, nodes before relations."""
    for name in tables:
        table_of(name)
    found = tuple((TABLES[n], fit(tables[n], TABLES[n].kind)) for n in TABLES if n in tables)
    for table, rows in found:
        if isinstance(table.kind, Node):
            strange = set(pc.unique(rows["run_id"]).to_pylist()) - {0, run_id}
            if strange:
                raise SchemaMismatch(f"{table.name}: rows of run {min(strange)}, not {run_id}")
    return found


def add(
    connection: ladybug.Connection, table: GraphTable, rows: pa.Table, *, skip_lost: bool
) -> None:
    """Write the rows of one table that are not there yet."""
    if isinstance(table.kind, Node):
        for batch in _batches(_new(connection, table.name, rows)):
            _send(connection, cypher.create_nodes(table.kind, _said(batch)), batch)
    else:
        _merge(connection, table, table.kind, rows, skip_lost)


def remove(connection: ladybug.Connection, table: GraphTable, ids: Sequence[int]) -> None:
    """Remove nodes with their relations."""
    if not isinstance(table.kind, Node):
        raise SchemaMismatch(f"{table.name}: only nodes are removed by id")
    text = f"UNWIND $ids AS i MATCH (n:{table.name} {{id: i}}) DETACH DELETE n"
    for start in range(0, len(ids), BATCH):
        connection.execute(text, {"ids": list(ids[start : start + BATCH])})


def change(connection: ladybug.Connection, table: GraphTable, rows: pa.Table) -> None:
    """Set the columns of nodes that are there, by id."""
    node, found = changes(table, rows)
    for batch in _batches(found):
        empty = set(batch.column_names) - _said(batch)
        _send(connection, cypher.update_nodes(node, batch.column_names, empty), batch)


def changes(table: GraphTable, rows: pa.Table) -> tuple[Node, pa.Table]:
    """Give the label, and the rows in its types: `id` and what is to be set."""
    if not isinstance(table.kind, Node) or rows.num_columns < 2:
        raise SchemaMismatch(f"{table.name}: an update is of nodes, by id, one column or more")
    return table.kind, fit_some(rows, table.kind)


def _merge(
    connection: ladybug.Connection,
    table: GraphTable,
    relation: Relation,
    rows: pa.Table,
    skip_lost: bool,
) -> None:
    for batch in _batches(rows):
        text = cypher.merge_relations(relation, table.src, table.dst, _said(batch))
        came = _send(connection, f"{text} RETURN count(*)", batch)
        if came != batch.num_rows and not skip_lost:
            _name_lost(connection, table, batch)


def _name_lost(connection: ladybug.Connection, table: GraphTable, rows: pa.Table) -> None:
    for label, column in ((table.src, "src"), (table.dst, "dst")):
        ids = rows[column].combine_chunks().to_numpy()
        lost = ids[~np.isin(ids, _there(connection, label, ids))]
        if len(lost):
            raise SchemaMismatch(f"{table.name}: no {label} has the id {lost[0]} ({column})")


def _new(connection: ladybug.Connection, label: str, rows: pa.Table) -> pa.Table:
    """Give the rows whose id is not in the graph, each id once."""
    ids, first = np.unique(rows["id"].combine_chunks().to_numpy(), return_index=True)
    return rows.take(np.sort(first[~np.isin(ids, _there(connection, label, ids))]))


def _there(
    connection: ladybug.Connection, label: str, ids: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    text = f"UNWIND $ids AS i MATCH (n:{label} {{id: i}}) RETURN n.id AS id"
    found = answer(connection, text, {"ids": ids.tolist()}).get_as_arrow()
    known: npt.NDArray[np.int64] = found.column(0).combine_chunks().to_numpy()
    return known


def _batches(rows: pa.Table) -> Iterator[pa.Table]:
    return (rows.slice(start, BATCH) for start in range(0, rows.num_rows, BATCH))


def _said(batch: pa.Table) -> set[str]:
    return {n for n in batch.column_names if batch[n].null_count < batch.num_rows}


def _send(connection: ladybug.Connection, text: str, batch: pa.Table) -> int:
    return number(connection, text, {"rows": batch.to_pylist()})
