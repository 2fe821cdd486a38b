"""Runs into a new Neo4j database at once, by its own import tool, while no server runs on it.

The tool reads CSV, which Arrow writes here from the tables of the runs.
"""

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from teller.errors import BadUsage, SchemaMismatch
from teller.graph import parts
from teller.graph.neo4j_address import DEFAULT_DATABASE
from teller.graph.parts import Part
from teller.graph.schema import Node
from teller.graph.tables import GraphTable

TOOL: Final = "org.neo4j.cli.AdminTool"  # what neo4j-admin starts, after two more starts of Java
TYPES: Final = {
    pa.int64(): "long", pa.string(): "string", pa.float64(): "double", pa.bool_(): "boolean",
}  # fmt: skip
ENDS: Final = {"src": ":START_ID({0})", "dst": ":END_ID({1})"}
FEW: Final = 2_000_000  # rows; below, compiling the tool well costs more than it saves
BATCH: Final = 100_000  # rows in memory

Files = Mapping[str, Sequence[Path]]
Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Import:
    """CSV files for one call of the tool; runs are added to them."""

    folder: Path
    rows: dict[str, int] = field(default_factory=dict)  # by table
    _has_lines: bool = False  # a text has several: the tool must read more slowly then
    _options: list[str] = field(default_factory=list)
    _seen: dict[str, Ints] = field(default_factory=dict)  # ids that are no run's own, by label

    def add(self, run_id: int, files: Files, state: str) -> None:
        """Write the tables of a run, and note the state that it is loaded in."""
        for part in parts.look(run_id, files):
            if part.rows:
                self._write(run_id, part)
        path = self.folder / f"{run_id}.csv"
        path.write_text(f'run_id:long,state:string\n{run_id},"{state}"\n')
        self._options.append(f"--nodes=__TellerLoaded={path}")

    def run(self, home: Path) -> None:
        """Make the database of a server's home from the files; it must not have one yet."""
        if not (home / "lib").is_dir():
            raise BadUsage(f"{home} is no home of a Neo4j server: there is no lib in it")
        if (home / "data" / "databases" / DEFAULT_DATABASE).exists():
            raise BadUsage(f"{home} has a database already: name a new home, or push to its server")
        java = shutil.which("java")
        if java is None:
            raise BadUsage("Java 17 or later is needed for the import tool")
        quick = ["-XX:TieredStopAtLevel=1"] if sum(self.rows.values()) < FEW else []
        command = [
            java, "-Xmx1g", *quick, "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "-cp", f"{home}/lib/*", f"-Dbasedir={home}", TOOL,
            "database", "import", "full", DEFAULT_DATABASE,
            f"--multiline-fields={str(self._has_lines).lower()}",
            f"--report-file={self.folder / 'report'}", *self._options,
        ]  # fmt: skip
        env = {"NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf"), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip())[-1000:]
            raise SchemaMismatch(f"the import tool refuses the data: {said}")

    def _write(self, run_id: int, part: Part) -> None:
        table = part.table
        path = self.folder / f"{run_id}.{table.name}.csv"
        said = [f for f in table.kind.arrow if not _is_empty(part, f.name)]
        path.write_text(",".join(_typed(table, f) for f in said) + "\n")
        what = "nodes" if isinstance(table.kind, Node) else "relationships"
        self._options.append(f"--{what}={table.name.partition('.')[0]}={path}")
        options = pcsv.WriteOptions(include_header=False, quoting_style="needed")
        with path.open("ab") as file:
            for batch in _batches(part):
                fresh = self._fresh(table, batch)
                self._has_lines |= _has_lines(fresh)
                pcsv.write_csv(fresh.select([f.name for f in said]), file, options)
                self.rows[table.name] = self.rows.get(table.name, 0) + fresh.num_rows

    def _fresh(self, table: GraphTable, batch: pa.Table) -> pa.Table:
        """Leave out what runs share and an earlier one brought."""
        if not isinstance(table.kind, Node):
            return batch
        shared = batch.filter(pc.equal(batch["run_id"], 0))
        if not shared.num_rows:
            return batch
        known = self._seen.get(table.name, np.empty(0, np.int64))
        ids = batch["id"].to_numpy()
        again = np.isin(ids, known) & (batch["run_id"].to_numpy() == 0)
        self._seen[table.name] = np.union1d(known, shared["id"].to_numpy())
        return batch.filter(pa.array(~again))


def _batches(part: Part) -> Iterator[pa.Table]:
    for path in part.paths:
        for rows in pq.ParquetFile(path).iter_batches(BATCH):
            yield pa.Table.from_batches([rows]).cast(part.table.kind.arrow)


def _has_lines(rows: pa.Table) -> bool:
    texts = (c for c in rows.columns if c.type == pa.string())
    return any(pc.any(pc.match_substring_regex(c, r"[\r\n]")).as_py() for c in texts)


def _is_empty(part: Part, name: str) -> bool:
    """Tell whether a column is known to hold nulls alone: the tool reads each field of it."""
    for path in part.paths:
        held = pq.ParquetFile(path).metadata
        at = held.schema.names.index(name)
        for group in range(held.num_row_groups):
            column = held.row_group(group).column(at)
            known = column.statistics
            if known is None or not known.has_null_count or known.null_count < column.num_values:
                return False
    return True


def _typed(table: GraphTable, column: pa.Field) -> str:
    if isinstance(table.kind, Node):
        if column.name == "id":
            return f"id:ID({table.name}){{id-type:long}}"
    elif column.name in ENDS:
        return ENDS[column.name].format(table.src, table.dst)
    return f"{column.name}:{TYPES[column.type]}"
