"""Whole runs from Parquet files into the embedded engine by `COPY`, with the rows counted after."""

from collections.abc import Sequence
from pathlib import Path

import ladybug

from teller.errors import BadUsage, SchemaMismatch
from teller.graph.engine_words import answer, number
from teller.graph.parts import Part, collision
from teller.graph.schema import NODES, Node
from teller.graph.tables import GraphTable


def load(connection: ladybug.Connection, run_id: int, parts: Sequence[Part]) -> None:
    """Load all parts of a run that is not there; what does not arrive is named."""
    if any(_own(connection, run_id, node.label) for node in NODES):
        raise BadUsage(f"run {run_id} is in the graph already; drop it before loading it")
    for part in (p for p in parts if isinstance(p.table.kind, Node)):
        # without ignore_errors a taken id breaks the key index of the running process
        _copy(connection, part, "(ignore_errors=true)")
        arrived = _own(connection, run_id, part.table.name)
        if arrived != part.own:
            raise _collision(connection, run_id, part) or SchemaMismatch(
                f"{part.table.name}: {arrived} of {part.own} nodes arrived"
            )
    for part in (p for p in parts if not isinstance(p.table.kind, Node)):
        before = count(connection, part.table)
        _copy(connection, part, f"(from='{part.table.src}', to='{part.table.dst}')")
        came = count(connection, part.table) - before
        if came != part.rows:
            raise SchemaMismatch(f"{part.table.name}: {came} of {part.rows} relations arrived")


def count(connection: ladybug.Connection, table: GraphTable) -> int:
    """Give the number of rows of a table."""
    if isinstance(table.kind, Node):
        return number(connection, f"MATCH (n:{table.name}) RETURN count(*)")
    ends = f"(:{table.src})-[r:{table.kind.type}]->(:{table.dst})"
    return number(connection, f"MATCH {ends} RETURN count(*)")


def _own(connection: ladybug.Connection, run_id: int, label: str) -> int:
    return number(connection, f"MATCH (n:{label}) WHERE n.run_id = {run_id} RETURN count(*)")


def _copy(connection: ladybug.Connection, part: Part, how: str) -> None:
    if part.rows:
        name = part.table.name.partition(".")[0]
        connection.execute(f"COPY {name} FROM {_list(part.paths)} {how}")


def _collision(connection: ladybug.Connection, run_id: int, part: Part) -> SchemaMismatch | None:
    text = (
        f"UNWIND $ids AS i MATCH (n:{part.table.name} {{id: i}}) WHERE n.run_id <> {run_id} "
        "RETURN n.id AS id, n.run_id AS run"
    )

    def elsewhere(ids: list[int]) -> list[tuple[int, int]]:
        found = answer(connection, text, {"ids": ids}).get_as_arrow().to_pylist()
        return [(row["id"], row["run"]) for row in found]

    return collision(run_id, part, elsewhere)


def _list(paths: Sequence[Path]) -> str:
    quoted = (str(p).replace("\\", "\\\\").replace("'", "\\'") for p in paths)
    return "[" + ", ".join(f"'{q}'" for q in quoted) + "]"
