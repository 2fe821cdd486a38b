"""Rows into Neo4j: whole runs by many batches at once, small changes in one transaction."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from neo4j import ManagedTransaction, Transaction

from teller.errors import SchemaMismatch
from teller.graph import cypher
from teller.graph.parts import Part
from teller.graph.schema import RUN, Node
from teller.graph.tables import GraphTable

BATCH: Final = 2_000  # rows a transaction; 5 000 cost the server nearly twice the time
WRITERS: Final = 2
WAITING: Final = 4  # batches that are read ahead: the server's pace is the reader's

Tx = ManagedTransaction | Transaction
Write = Callable[[Tx], object]
Do = Callable[[Write], object]  # does a write in a transaction of its own, again where that helps


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one table, and whether they may be there already."""

    table: GraphTable
    rows: pa.Table
    known: bool = False


def early(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Give the parts that are loaded first: all that does not touch the node of the run."""
    return tuple(p for p in parts if not _touches_run(p))


def late(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Give the parts that make the run known: they come in one transaction, when all else is in."""
    return tuple(p for p in parts if _touches_run(p))


def _touches_run(part: Part) -> bool:
    return RUN.label in (part.table.name, part.table.src, part.table.dst)


def pour(batches: Iterable[Batch], do: Do) -> None:
    """Write batches, some at a time; the first failure ends it."""
    with ThreadPoolExecutor(WRITERS) as pool:
        waiting: deque[Future[object]] = deque()
        try:
            for batch in batches:
                waiting.append(pool.submit(do, writing(batch)))
                while len(waiting) >= WAITING:
                    waiting.popleft().result()
            while waiting:
                waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()


def batches(part: Part, shared: frozenset[str]) -> Iterator[Batch]:
    """Give the rows of a part; what all runs share, labels and their relations, may be there."""
    both = {part.table.src, part.table.dst} <= shared
    for path in part.paths:
        for rows in pq.ParquetFile(path).iter_batches(BATCH):
            found = pa.Table.from_batches([rows])
            if not isinstance(part.table.kind, Node):
                yield Batch(part.table, found, known=both)
                continue
            is_shared = pc.equal(found["run_id"], 0)
            for known, mask in ((True, is_shared), (False, pc.invert(is_shared))):
                chosen = found.filter(mask)
                if chosen.num_rows:
                    yield Batch(part.table, chosen, known=known)


def writing(batch: Batch) -> Write:
    """Give what writes the batch whole or not at all.

    When it is done again the rows may be there: a server that goes away cannot say any more that
    it has kept them.
    """
    tried = False

    def write(tx: Tx) -> None:
        nonlocal tried
        if batch.known or tried:
            merge(tx, batch.table, batch.rows, skip_lost=False)
        else:
            tried = True
            _create(tx, batch)

    return write


def _create(tx: Tx, batch: Batch) -> None:
    table, rows = batch.table, batch.rows
    said = [n for n in rows.column_names if rows[n].null_count < rows.num_rows]
    if isinstance(table.kind, Node):
        text = cypher.create_node_columns(table.kind, said)
    else:
        text = cypher.create_relation_columns(table.kind, table.src, table.dst, said)
    given = {n: rows[n].to_pylist() for n in said}
    counters = tx.run(text, given, rows=rows.num_rows).consume().counters
    if not isinstance(table.kind, Node) and counters.relationships_created != rows.num_rows:
        name_lost(tx, table, rows)


def merge(tx: Tx, table: GraphTable, rows: pa.Table, *, skip_lost: bool) -> None:
    """Write the rows of one table that are not there yet."""
    kind = table.kind
    for part in _slices(rows):
        if isinstance(kind, Node):
            send(tx, cypher.merge_nodes(kind), rows=part.to_pylist())
            continue
        text = cypher.merge_relations(kind, table.src, table.dst)
        [[came]] = send(tx, f"{text} RETURN count(*)", rows=part.to_pylist())
        if came != part.num_rows and not skip_lost:
            name_lost(tx, table, part)


def change(tx: Tx, label: Node, rows: pa.Table) -> None:
    """Set the columns of nodes that are there, by id."""
    for part in _slices(rows):
        send(tx, cypher.update_nodes(label, part.column_names), rows=part.to_pylist())


def name_lost(tx: Tx, table: GraphTable, rows: pa.Table) -> None:
    """Refuse relations one end of which is not there."""
    for label, column in ((table.src, "src"), (table.dst, "dst")):
        ids = rows[column].combine_chunks().to_numpy()
        text = f"UNWIND $ids AS i MATCH (n:{label} {{id: i}}) RETURN n.id"
        there = [row[0] for row in send(tx, text, ids=ids.tolist())]
        lost = ids[~np.isin(ids, there)]
        if len(lost):
            raise SchemaMismatch(f"{table.name}: no {label} has the id {lost[0]} ({column})")


def send(tx: Tx, text: str, **given: Any) -> list[list[Any]]:
    """Give the rows of a statement."""
    return tx.run(text, given).values()


def _slices(rows: pa.Table) -> Iterator[pa.Table]:
    return (rows.slice(start, BATCH) for start in range(0, rows.num_rows, BATCH))


def taken(tx: Tx, label: str, run_id: int, ids: Sequence[int]) -> list[tuple[int, int]]:
    """Give those of the ids that nodes of other runs have, each with its run."""
    text = f"UNWIND $ids AS i MATCH (n:{label} {{id: i}}) WHERE n.run_id <> $run RETURN i, n.run_id"
    return [(row[0], row[1]) for row in send(tx, text, ids=list(ids), run=run_id)]
