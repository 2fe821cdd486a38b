"""Whole runs from Parquet files into the embedded engine by `COPY`, with the rows counted after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import ladybug
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.errors import BadUsage, SchemaMismatch
from teller.graph.engine_words import answer, number
from teller.graph.schema import NODES, Node
from teller.graph.tables import TABLES, GraphTable, table_of

NAMED: Final = 3  # ids that an error names
CHUNK: Final = 50_000  # ids a look-up, when a collision is searched


@dataclass(frozen=True, slots=True)
class Part:
    """The files of one table, the rows in them, and how many of these are the run's own nodes."""

    table: GraphTable
    paths: tuple[Path, ...]
    rows: int
    own: int


def look(run_id: int, files: Mapping[str, Sequence[Path]]) -> tuple[Part, ...]:
    """Give what is to be loaded, nodes first; files that do not fit their table are refused."""
    for name in files:
        table_of(name)
    return tuple(_part(run_id, table, files[n]) for n, table in TABLES.items() if n in files)


def load(connection: ladybug.Connection, run_id: int, parts: Sequence[Part]) -> None:
    """Load all parts of a run that is not there; what does not arrive is named."""
    if any(_own(connection, run_id, node.label) for node in NODES):
        raise BadUsage(f"run {run_id} is in the graph already; drop it before loading it")
    for part in (p for p in parts if isinstance(p.table.kind, Node)):
        # without ignore_errors a taken id breaks the key index of the running process
        _copy(connection, part, "(ignore_errors=true)")
        arrived = _own(connection, run_id, part.table.name)
        if arrived != part.own:
            raise _collision(connection, run_id, part, arrived)
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


def _part(run_id: int, table: GraphTable, paths: Sequence[Path]) -> Part:
    rows = own = 0
    for path in paths:
        try:
            file = pq.ParquetFile(path)
            _check_columns(table, path, file.schema_arrow)
            rows += file.metadata.num_rows
            if isinstance(table.kind, Node):
                own += _own_rows(run_id, path, file.read(columns=["run_id"])["run_id"])
        except (OSError, pa.ArrowInvalid) as err:
            raise SchemaMismatch(f"{path}: not a Parquet file that can be read ({err})") from err
    return Part(table, tuple(paths), rows, own)


def _check_columns(table: GraphTable, path: Path, found: pa.Schema) -> None:
    """`COPY` goes by position, so that a wrong order would be read without a word."""
    wanted = table.kind.arrow
    if found.names != wanted.names:
        said = f"{', '.join(found.names)}; wanted: {', '.join(wanted.names)}"
        raise SchemaMismatch(f"{path}: columns of {table.name} are {said}")
    pairs = zip(found, wanted, strict=True)
    wrong = [f"{f.name} is {f.type}" for f, w in pairs if _stored(f.type) != w.type]
    if wrong:
        raise SchemaMismatch(f"{path}: in {table.name} {', '.join(wrong)}; cast with `fit` first")


def _stored(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _own_rows(run_id: int, path: Path, runs: pa.ChunkedArray) -> int:
    found = set(pc.unique(runs).to_pylist())
    if strange := found - {0, run_id}:
        said = ", ".join(sorted(map(str, strange)))
        raise SchemaMismatch(f"{path}: rows of run {said} among those of run {run_id}")
    return int(pc.sum(pc.equal(runs, run_id)).as_py() or 0)


def _collision(
    connection: ladybug.Connection, run_id: int, part: Part, arrived: int
) -> SchemaMismatch:
    ids = np.concatenate([_own_ids(run_id, path) for path in part.paths])
    known, times = np.unique(ids, return_counts=True)
    named = [f"{i} (twice in this run)" for i in known[times > 1][:NAMED].tolist()]
    text = (
        f"UNWIND $ids AS i MATCH (n:{part.table.name} {{id: i}}) WHERE n.run_id <> {run_id} "
        f"RETURN n.id AS id, n.run_id AS run ORDER BY id LIMIT {NAMED}"
    )
    for start in range(0, len(known), CHUNK):
        chunk = {"ids": known[start : start + CHUNK].tolist()}
        found = answer(connection, text, chunk).get_as_arrow().to_pylist()
        named += [f"{row['id']} (in run {row['run']})" for row in found]
        if len(named) >= NAMED:
            break
    short = f"{part.own - arrived} of {part.own} ids are taken"
    return SchemaMismatch(f"{part.table.name}: {short}: {', '.join(named[:NAMED])}")


def _own_ids(run_id: int, path: Path) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    rows = pq.ParquetFile(path).read(columns=["id", "run_id"])
    ids: np.ndarray[tuple[int], np.dtype[np.int64]] = rows.filter(pc.equal(rows["run_id"], run_id))[
        "id"
    ].to_numpy()
    return ids


def _list(paths: Sequence[Path]) -> str:
    quoted = (str(p).replace("\\", "\\\\").replace("'", "\\'") for p in paths)
    return "[" + ", ".join(f"'{q}'" for q in quoted) + "]"
