"""The pieces of work that are measured, each run alone in a process: `work.py NAME ARGUMENT...`.

Imports stand inside, so that each piece pays for what it needs and for nothing else.
"""

import gzip
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final


def parse_json(folder: str) -> None:
    """Parse every file with the standard library: the unit of all other figures."""
    for path in _files(folder):
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            json.load(file)


def start() -> None:
    """Import what reading needs, and do nothing."""
    from teller.ingest.readers import kineto

    assert kineto.FORMAT


def read(folder: str) -> None:
    """Read every file to typed tables, one after the other."""
    from teller.ingest.readers import kineto

    for path in _files(folder):
        assert kineto.read(path).sources


def archive(folder: str, workspace: str) -> None:
    """Read, give structure, and keep in the archive: all but the graph."""
    from teller.graph.workspace import Workspace
    from teller.ingest.run import Silent, ingest
    from teller.ingest.who import Told

    with Workspace(Path(workspace), write=True) as place:
        got = ingest(
            [Path(folder)], place.archive, Told(), deployment="bench", progress=Silent()
        )  # fmt: skip
        assert got.runs


def graph(workspace: str) -> None:
    """Load the graph from an archive that has none yet."""
    from teller.graph.project import project
    from teller.graph.workspace import Workspace

    with (
        Workspace(Path(workspace), write=True, project=project) as place,
        place.reader() as store,
    ):
        assert store.query("MATCH (s:Step) RETURN count(*) AS n")["n"][0].as_py()


def asked(path: str) -> None:
    """Say which tables and columns of an export the reader asks for, as JSON."""
    from teller.ingest.readers import nsys
    from teller.ingest.readers.nsys_sqlite import SqliteTables

    wanted: dict[str, list[str]] = {}
    batches = SqliteTables.batches

    def told(self: SqliteTables, table: str, columns: tuple[str, ...]) -> Iterator[object]:
        names = [c for column in columns for c in column.split("|")]
        have = [c for c in names if c in self.columns(table)]
        if have:
            wanted[table] = [*dict.fromkeys([*wanted.get(table, []), *have])]
        return batches(self, table, columns)

    SqliteTables.batches = told  # type: ignore[method-assign, assignment] # to see what it asks for
    nsys.read(Path(path))
    sys.stdout.write(json.dumps(wanted))


def fetch_all(path: str, wanted: str) -> None:
    """Fetch the same tables and columns with the standard library, table by table."""
    with closing(sqlite3.connect(path)) as database:
        for table, columns in json.loads(wanted).items():
            names = ", ".join(f'"{c}"' for c in columns)
            database.execute(f'SELECT {names} FROM "{table}"').fetchall()


def read_export(path: str) -> None:
    """Read an export to typed tables."""
    from teller.ingest.readers import nsys

    assert nsys.read(Path(path)).sources


def _files(folder: str) -> list[Path]:
    return sorted(Path(folder).iterdir())


WORK: Final = {
    f.__name__: f for f in (parse_json, start, read, archive, graph, asked, fetch_all, read_export)
}

if __name__ == "__main__":
    WORK[sys.argv[1]](*sys.argv[2:])
