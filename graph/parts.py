"""The Parquet files of a run that is to be loaded: looked at, counted, and what is taken."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.errors import SchemaMismatch
from teller.graph.schema import Node
from teller.graph.tables import TABLES, GraphTable, table_of

NAMED: Final = 3  # ids that an error names
CHUNK: Final = 50_000  # ids a look-up, when a collision is searched

Ints = npt.NDArray[np.int64]
Elsewhere = Callable[[list[int]], list[tuple[int, int]]]  # ids -> those in other runs, with the run


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


def collision(run_id: int, part: Part, elsewhere: Elsewhere) -> SchemaMismatch | None:
    """Give the error that names ids that are there twice, or belong to other runs."""
    ids = np.concatenate([_own_ids(run_id, path) for path in part.paths])
    known, times = np.unique(ids, return_counts=True)
    named = [f"{i} (twice in this run)" for i in known[times > 1][:NAMED].tolist()]
    taken = len(ids) - len(known)
    for start in range(0, len(known), CHUNK):
        found = elsewhere(known[start : start + CHUNK].tolist())
        taken += len(found)
        named += [f"{i} (in run {run})" for i, run in sorted(found)[:NAMED]]
    if not taken:
        return None
    short = f"{taken} of {part.own} ids are taken"
    return SchemaMismatch(f"{part.table.name}: {short}: {', '.join(named[:NAMED])}")


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
    """Engines load by position, so that a wrong order would be read without a word."""
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


def _own_ids(run_id: int, path: Path) -> Ints:
    rows = pq.ParquetFile(path).read(columns=["id", "run_id"])
    ids: Ints = rows.filter(pc.equal(rows["run_id"], run_id))["id"].to_numpy()
    return ids
