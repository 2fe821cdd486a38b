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

TOOL: Final = "org.neo4j.server.startup.Neo4jAdminCommand"
TYPES: Final = {
    pa.int64(): "long", pa.string(): "string", pa.float64(): "double", pa.bool_(): "boolean",
}  # fmt: skip
ENDS: Final = {"src": ":START_ID({0})", "dst": ":END_ID({1})"}
LOADED: Final = "run_id:long,state:string\n"
BATCH: Final = 100_000  # rows in memory

Files = Mapping[str, Sequence[Path]]
Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Import:
    """CSV files for one call of the tool; runs are added to them."""

    folder: Path
    rows: dict[str, int] = field(default_factory=dict)  # by table
    _options: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, Ints] = field(default_factory=dict)  # ids that are no run's own, by label

    def add(self, run_id: int, files: Files, state: str) -> None:
        """Write the tables of a run, and note the state that it is loaded in."""
        for part in parts.look(run_id, files):
            if part.rows:
                self._write(run_id, part)
        marker = "__TellerLoaded"
        path = self.folder / f"{marker}.csv"
        if not path.exists():
            path.write_text(LOADED)
        with path.open("a") as file:
            file.write(f'{run_id},"{state}"\n')
        self._options[marker] = f"--nodes={marker}={path}"

    def run(self, home: Path) -> None:
        """Make the database of a server's home from the files; it must not have one yet."""
        if not (home / "lib").is_dir():
            raise BadUsage(f"{home} is no home of a Neo4j server: there is no lib in it")
        if (home / "data" / "databases" / DEFAULT_DATABASE).exists():
            raise BadUsage(f"{home} has a database already: name a new home, or push to its server")
        java = shutil.which("java")
        if java is None:
            raise BadUsage("Java 17 or later is needed for the import tool")
        command = [
            java, "-Xmx1g", "-cp", f"{home}/lib/*", f"-Dbasedir={home}", TOOL,
            "database", "import", "full", DEFAULT_DATABASE, "--multiline-fields=true",
            f"--report-file={self.folder / 'report'}", *self._options.values(),
        ]  # fmt: skip
        env = {"NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf"), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip())[-1000:]
            raise SchemaMismatch(f"the import tool refuses the data: {said}")

    def _write(self, run_id: int, part: Part) -> None:
        table = part.table
        path = self.folder / f"{table.name}.csv"
        if table.name not in self._options:
            types = [_typed(table, f) for f in table.kind.arrow]
            path.write_text(",".join(types) + "\n")
            what = "nodes" if isinstance(table.kind, Node) else "relationships"
            self._options[table.name] = f"--{what}={table.name.partition('.')[0]}={path}"
        options = pcsv.WriteOptions(include_header=False, quoting_style="needed")
        with path.open("ab") as file:
            for batch in _batches(part):
                fresh = self._fresh(table, batch)
                pcsv.write_csv(fresh, file, options)
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


def _typed(table: GraphTable, column: pa.Field) -> str:
    if isinstance(table.kind, Node):
        if column.name == "id":
            return f"id:ID({table.name}){{id-type:long}}"
    elif column.name in ENDS:
        return ENDS[column.name].format(table.src, table.dst)
    return f"{column.name}:{TYPES[column.type]}"
