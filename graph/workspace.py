"""A folder with everything TELLER keeps: the archive, the graph made from it, and notes.

The archive is the truth. The graph may be behind it, after a crash or an upgrade: the next opening
sees that and loads what is missing.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import pyarrow as pa

from teller.errors import BadUsage, NothingUsable, QueryRefused, StoreBusy
from teller.graph import dialect, guard
from teller.graph.answer import Found, Limits
from teller.graph.archive import Archive, RunEntry
from teller.graph.embedded import POOL_BYTES, TIMEOUT_S, EmbeddedStore
from teller.graph.lock import WriterLock
from teller.graph.published import Current, Published, Scratch
from teller.graph.reading import Question
from teller.graph.store import Store, StoreUnreadable

T = TypeVar("T")
Files = Mapping[str, Sequence[Path]]
Tables = Mapping[str, pa.Table]
Project = Callable[[Path, Path], Files]  # generation folder, scratch folder -> files by table name
Rest = Callable[[Archive, RunEntry], Tables]  # what the archive has of a run beside its generation

VARIABLE: Final = "TELLER_WORKSPACE"
TRIES: Final = 5  # a reader that finds the file replaced looks again


def default_folder(given: Path | None = None) -> Path:
    """Give the workspace's folder: the given one, else `TELLER_WORKSPACE`, else the user's."""
    if given is not None:
        return given
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return _user_data() / "teller"


def _user_data() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


class Workspace:
    """A workspace; with `write` its only writer, from opening to `close`."""

    def __init__(
        self,
        folder: Path,
        *,
        write: bool = False,
        project: Project | None = None,
        rest: Rest | None = None,
        pool_bytes: int = POOL_BYTES,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Open it. `project` and `rest` give the tables of an archived run, to rebuild with."""
        self.folder = folder.expanduser().resolve()
        self._project = project
        self._rest = rest
        self._pool_bytes = pool_bytes
        self._timeout_s = timeout_s
        self._lock: WriterLock | None = None
        self._graph = Published(self.folder / "graph")
        if not write:
            self.archive = Archive(self.folder / "archive")
            return
        try:
            for part in ("archive", "graph", "notes"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
            self._lock = WriterLock(self.folder / "lock", str(self.folder))
            self.archive = Archive(self.folder / "archive", write=True)
            self._graph.sweep()
        except OSError as err:
            self.close()
            raise BadUsage(f"{self.folder} cannot be written ({err}); name another") from err
        except BaseException:  # an interrupt too lets go of the lock
            self.close()
            raise

    @property
    def notes(self) -> Path:
        """Give the folder for notes."""
        return self.folder / "notes"

    def writer(self, project: Project | None = None, rest: Rest | None = None) -> "Workspace":
        """Open the same workspace as its only writer."""
        return Workspace(
            self.folder,
            write=True,
            project=project or self._project,
            rest=rest or self._rest,
            pool_bytes=self._pool_bytes,
            timeout_s=self._timeout_s,
        )

    def entries(self) -> list[RunEntry]:
        """Give the runs that may be asked for, oldest first."""
        return self.archive.runs()

    def reader(self, runs: Collection[int] = ()) -> Store:
        """Give the published graph, read-only; it stays as it is while others publish.

        A graph that is behind the archive is brought up first, where `project` is known and no
        other process is writing. It holds all runs; one that others share holds at least `runs`.
        """
        if self._is_behind():
            self._bring_up_if_free()
        return self._trying(lambda path: self._open(path, read_only=True))

    def answer(self, question: Question, given: Mapping[str, object], limits: Limits) -> Found:
        """Answer a person's query on the published graph, in a process of its own."""
        text = dialect.adapted(question, limits.rows)
        if self._is_behind():
            self._bring_up_if_free()
        try:
            found = self._trying(lambda path: guard.GUARD.ask(path, text, given, limits))
        except QueryRefused as err:
            raise dialect.explained(question, err) from err
        if question.explained:
            return Found(found.table.rename_columns(["plan"]), found.truncated)
        return found

    def version(self) -> str:
        """Give what changes when readers would see another graph; "" where there is none."""
        current = self._current()
        return current.file if current else ""

    def holds(self, run_id: int) -> bool:
        """Tell whether the published graph has the run as it stands in the archive."""
        current = self._current()
        generation = self.archive.entry(run_id).generation
        return current is not None and current.generations.get(run_id) == generation

    def publish(self, run_id: int, files: Files) -> None:
        """Load a run that was committed to the archive, and show the new graph to readers."""
        self.archive.entry(run_id)
        self._renew({run_id: files})

    def remove(self, run_id: int) -> None:
        """Remove a run from the archive and from the graph."""
        self._must_write()
        self.archive.remove(run_id)
        self._renew({})

    def rebuild(self, project: Project | None = None) -> None:
        """Make the graph anew from the archive."""
        self._project = project or self._project
        self._renew({}, anew=True)

    @contextmanager
    def changing(self) -> Iterator[Store]:
        """Give a copy of the graph to change; it is published at the end, unless that fails.

        What is added here and is not in the archive is gone after a rebuild.
        """
        self._must_write()
        if self._is_behind():
            self._renew({})
        current = self._look()
        with self._graph.scratch(current) as made:
            with self._open(made.file) as store:
                yield store
            self._graph.publish(made, current.generations)

    def close(self) -> None:
        """Let others write. Closing twice is no error."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        """Give the workspace."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the workspace."""
        self.close()

    def _renew(self, given: Mapping[int, Files], *, anew: bool = False) -> None:
        """Publish a graph that holds what the archive holds."""
        self._must_write()
        entries = self.archive.runs()
        wanted = {e.run_id: e.generation for e in entries}
        start = None if anew else self._current()
        held = start.generations if start else {}
        stale = [run for run, generation in held.items() if wanted.get(run) != generation]
        kept = held.keys() - stale
        if stale and (self._project is not None or not kept):
            start, stale, kept = None, [], set()  # loading all again beats removing one run
        with self._graph.scratch(start) as made:
            with self._open(made.file) as store:
                for run_id in stale:
                    store.drop(run_id)
                for entry in (e for e in entries if e.run_id not in kept):
                    files = given.get(entry.run_id) or self._projected(entry.run_id, made)
                    store.load(entry.run_id, files)
                    if self._rest is not None:  # it may speak of what this generation lacks
                        rest = self._rest(self.archive, entry)
                        store.append(entry.run_id, rest, skip_lost=True)
            self._graph.publish(made, wanted)

    def _projected(self, run_id: int, made: Scratch) -> Files:
        if self._project is None:
            raise StoreUnreadable(f"run {run_id} is not in the graph; ingest its folder again")
        folder = made.folder / str(run_id)
        folder.mkdir()
        kept = self.archive.folder_of(run_id)
        try:
            return self._project(kept, folder)
        except (FileNotFoundError, ValueError) as err:  # Parquet or JSON that is none
            remedy = f"`teller runs rm {run_id}`, then ingest its folder again"
            raise StoreUnreadable(f"{kept}: the kept run is damaged ({err}); {remedy}") from err

    def _bring_up_if_free(self) -> None:
        if self._project is None:
            return
        if self._lock is not None:
            self._renew({})
            return
        try:
            with self.writer() as writer:
                if writer._is_behind():
                    writer._renew({})
        except (StoreBusy, BadUsage):
            self._look()  # an older graph will do; without one, say so

    def _is_behind(self) -> bool:
        runs = self.archive.runs()
        if not runs:
            raise NothingUsable(f"{self.folder} holds no run yet; `teller ingest DIR` adds one")
        current = self._current()
        return current is None or current.generations != {e.run_id: e.generation for e in runs}

    def _trying(self, use: Callable[[Path], T]) -> T:
        """Use the current file; where it was replaced meanwhile, use the next."""
        for left in reversed(range(TRIES)):
            current = self._look()
            try:
                return use(self._graph.path(current))
            except StoreUnreadable:
                if not left or self._look() == current:
                    raise
        raise AssertionError("the loop returns or raises")

    def _current(self) -> Current | None:
        try:
            return self._graph.look()
        except StoreUnreadable:
            return None

    def _look(self) -> Current:
        try:
            return self._graph.look()
        except StoreUnreadable as err:
            raise StoreUnreadable(f"{err}; ingest the runs again to rebuild it") from err

    def _open(self, path: Path, *, read_only: bool = False) -> EmbeddedStore:
        return EmbeddedStore(
            path, read_only=read_only, pool_bytes=self._pool_bytes, timeout_s=self._timeout_s
        )

    def _must_write(self) -> None:
        if self._lock is None:
            raise BadUsage(f"the workspace {self.folder} is not open for writing")
