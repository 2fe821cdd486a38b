"""A workspace whose graph is on a server: the archive stays here, its runs are copied there."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from teller.errors import BadUsage, SchemaMismatch, UnknownName
from teller.graph import parts, queries
from teller.graph.answer import Found, Limits
from teller.graph.archive import RunEntry
from teller.graph.neo4j import TIMEOUT_S, Neo4jStore
from teller.graph.neo4j_address import Address
from teller.graph.neo4j_import import Import
from teller.graph.parts import Part
from teller.graph.reading import Question
from teller.graph.schema import FINDING, SAMPLE, Node
from teller.graph.store import Store
from teller.graph.workspace import Files, Project, Rest, Workspace

# what is said of a run and may change: it is taken out before it is said again
_SAID: Final = (
    (FINDING.label, "MATCH (n:Finding) WHERE n.run_id = $run RETURN n.id AS id"),
    (
        SAMPLE.label,
        "MATCH (n:Sample) WHERE n.run_id = $run AND n.name STARTS WITH 'slo.' RETURN n.id AS id",
    ),
)


def import_into(home: Path, workspace: Workspace, project: Project, runs: Collection[int]) -> int:
    """Make the database of a stopped server's home from runs of a workspace; give the rows.

    What was found in the runs is copied by a push to the server, once it is started and migrated.
    """
    with TemporaryDirectory(prefix="teller-import-") as scratch:
        made = Import(Path(scratch))
        for run_id in runs:
            entry = workspace.archive.entry(run_id)
            folder = Path(scratch) / str(run_id)
            folder.mkdir()
            files = project(workspace.archive.folder_of(run_id), folder)
            made.add(run_id, files, f"{entry.generation}+")
        made.run(home)
        return sum(made.rows.values())


class SharedWorkspace(Workspace):
    """A workspace with its graph on a Neo4j server, where other workspaces have runs as well."""

    def __init__(
        self,
        folder: Path,
        address: Address,
        *,
        write: bool = False,
        project: Project | None = None,
        rest: Rest | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Open it; the server is asked when it is needed."""
        self.address = address
        super().__init__(folder, write=write, project=project, rest=rest, timeout_s=timeout_s)

    def writer(self, project: Project | None = None, rest: Rest | None = None) -> "SharedWorkspace":
        """Open the same workspace as its only writer."""
        return SharedWorkspace(
            self.folder,
            self.address,
            write=True,
            project=project or self._project,
            rest=rest or self._rest,
            timeout_s=self._timeout_s,
        )

    def entries(self) -> list[RunEntry]:
        """Give the runs that are on the server, oldest first."""
        with self._store() as store:
            return [_entry(row) for row in queries.run(store, "runs").to_pylist()]

    def reader(self, runs: Collection[int] = ()) -> Store:
        """Give the graph on the server; those of the runs that it lacks are copied there first."""
        store = self._store()
        try:
            states = store.states()
            kept = {e.run_id: e for e in self.archive.runs()}
            wanted = [kept[r] for r in runs if r in kept]
            stale = [e.run_id for e in wanted if states.get(e.run_id) != self._state(e)]
            if stale:
                if self._lock is not None:
                    self.push(stale)
                else:
                    with self.writer() as writer:
                        writer.push(stale)
        except BaseException:  # whatever it is, the connection is let go of
            store.close()
            raise
        return store

    def answer(self, question: Question, given: Mapping[str, object], limits: Limits) -> Found:
        """Answer a person's query on the server, which lets it read and stops it in time."""
        with self._store() as store:
            return store.answer(question, given, limits)

    def version(self) -> str:
        """Give what changes when a run on the server does, or what is said of it."""
        with self._store() as store:
            states = store.states()
        digest = hashlib.blake2b(msgspec.json.encode(sorted(states.items())), digest_size=8)
        return digest.hexdigest()

    def holds(self, run_id: int) -> bool:
        """Tell whether the server has the run as it stands in the archive."""
        with self._store() as store:
            held = store.states().get(run_id, "")
        return held.partition("+")[0] == self.archive.entry(run_id).generation

    def push(
        self, runs: Collection[int], progress: Callable[[RunEntry], object] = lambda _: None
    ) -> dict[int, dict[str, int]]:
        """Copy runs to the server, and give the rows of each table that are there then.

        A run that is there already is left, but for what was said of it since. One that is there
        in part, or as it was before, is taken out first.
        """
        self._must_write()
        counted = {}
        with self._store() as store:
            states = store.states()
            for entry in map(self.archive.entry, runs):
                progress(entry)
                held = states.get(entry.run_id, "")
                if held.partition("+")[0] != entry.generation:
                    self._copy(store, entry)
                    held = ""
                if held != self._state(entry):
                    self._say(store, entry)
                counted[entry.run_id] = store.counts(entry.run_id)
        return counted

    @contextmanager
    def changing(self) -> Iterator[Store]:
        """Give the graph on the server to change; other readers see the changes at once."""
        self._must_write()
        with self._store() as store:
            yield store
            for entry in self.archive.runs():
                held = store.states().get(entry.run_id, "")
                if held.partition("+")[0] == entry.generation and held != self._state(entry):
                    self._say(store, entry)

    def remove(self, run_id: int) -> None:
        """Remove a run from the server; an archive that has it keeps it."""
        self._must_write()
        with self._store() as store:
            if not store.has_any(run_id):
                raise UnknownName("run", str(run_id), map(str, store.runs()))
            store.drop(run_id)

    def publish(self, run_id: int, files: Files) -> None:
        """Copy a run that was committed to the archive to the server."""
        self.push([run_id])

    def rebuild(self, project: Project | None = None) -> None:
        """Copy all runs of the archive to the server anew."""
        self._project = project or self._project
        runs = [e.run_id for e in self.archive.runs()]
        with self._store() as store:
            for run_id in runs:
                store.drop(run_id)
        self.push(runs)

    def _store(self) -> Neo4jStore:
        return Neo4jStore(self.address, timeout_s=self._timeout_s)

    def _copy(self, store: Neo4jStore, entry: RunEntry) -> None:
        if store.has_any(entry.run_id):
            store.drop(entry.run_id)
        with TemporaryDirectory(prefix="teller-push-") as scratch:
            files = self._files(entry, Path(scratch))
            store.load(entry.run_id, files)  # what it holds is noted when it was counted
            found = parts.look(entry.run_id, files)
        _compare(found, store.counts(entry.run_id), entry)

    def _files(self, entry: RunEntry, scratch: Path) -> Files:
        if self._project is None:
            raise BadUsage(f"run {entry.run_id}: nobody said how its tables are made")
        return self._project(self.archive.folder_of(entry.run_id), scratch)

    def _say(self, store: Neo4jStore, entry: RunEntry) -> None:
        """Put what the archive says of a run in the place of what was said before."""
        for label, asked in _SAID:
            store.remove(label, store.query(asked, {"run": entry.run_id})["id"].to_pylist())
        if self._rest is not None:
            store.append(entry.run_id, self._rest(self.archive, entry), skip_lost=True)
        store.note(entry.run_id, self._state(entry))

    def _state(self, entry: RunEntry) -> str:
        """Give a word that changes with the run and with what is said of it."""
        said = self._rest(self.archive, entry) if self._rest is not None else {}
        rows = {name: table.to_pylist() for name, table in said.items()}
        digest = hashlib.blake2b(msgspec.json.encode(rows, order="sorted"), digest_size=8)
        return f"{entry.generation}+{digest.hexdigest()}"


def _compare(found: Collection[Part], counts: dict[str, int], entry: RunEntry) -> None:
    """Refuse a copy that has not as many rows of each table as the archive."""
    shared = {p.table.name for p in found if p.own < p.rows}  # labels that all runs share, in part
    wrong = []
    for part in found:
        if part.table.src in shared:
            continue  # its rows are counted by their starts, and these are of no run
        want = part.own if isinstance(part.table.kind, Node) else part.rows
        if counts[part.table.name] != want:
            wrong.append(f"{part.table.name}: {counts[part.table.name]} of {want}")
    if wrong:
        raise SchemaMismatch(f"run {entry.name} did not arrive whole: {'; '.join(wrong)}")


def _entry(row: dict[str, Any]) -> RunEntry:
    """Give a run of the server in the form of the archive."""
    return RunEntry(
        run_id=row["id"], key="", name=row["name"] or str(row["id"]),
        deployment=row["deployment"] or "", generation="",
        created_epoch_ns=row["t0_epoch_ns"] or 0, inputs_digest="",
        baseline=bool(row["baseline"]),
    )  # fmt: skip
