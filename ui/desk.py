"""What the pages stand on: the places whose graphs are shown, and what visitors may do.

One desk a server. Who starts it says how the parts that `ui` may not know are reached.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from teller.errors import NothingUsable, TellerError, UnknownName
from teller.graph import incidents, journal, queries, recall
from teller.graph.archive import RunEntry
from teller.graph.finding import Diagnosis
from teller.graph.store import Store
from teller.graph.workspace import Workspace
from teller.ui.slice_text import Sliced

CACHE_BYTES: Final = 192 << 20
LOOK_S: Final = 1.0  # how old what is known of a published graph may be

Slicer = Callable[[Store, int, Sequence[int]], Sliced]


@dataclass(slots=True)
class _Held:
    """An open graph, and how many read it."""

    version: str
    store: Store
    readers: int = 0


class Place:
    """A workspace, or a server, whose published graph is kept open until there is another.

    May be used by many threads. Answers are kept as long as the graph they are of.
    """

    def __init__(self, name: str, open_workspace: Callable[[], Workspace], note: str = "") -> None:
        """Name it; nothing is opened yet. `note` says where it is."""
        self.name = name
        self.note = note
        self._open = open_workspace
        self._changing = threading.RLock()
        self._held: _Held | None = None
        self._old: list[_Held] = []
        self._looked = 0.0
        self._version = ""
        self._kept: OrderedDict[object, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    @property
    def workspace(self) -> Workspace:
        """Give the workspace, open for reading."""
        return self._open()

    def version(self) -> str:
        """Give what changes with the graph that is shown."""
        with self._changing:
            if not self._version or time.monotonic() - self._looked > LOOK_S:
                try:
                    self._version = self.workspace.version()
                except TellerError:  # a server that is away for a moment: what is open stays
                    if self._held is None:
                        raise
                self._looked = time.monotonic()
            return self._version

    @contextmanager
    def graph(self) -> Iterator[Store]:
        """Give the graph to ask; what others publish meanwhile is seen the next time."""
        held = self._take()
        try:
            yield held.store
        finally:
            with self._changing:
                held.readers -= 1
                self._let_go()

    def ask(self, name: str, **params: Any) -> pa.Table:
        """Give the answer to a named query; it is kept."""
        key = (name, tuple((k, _plain(v)) for k, v in sorted(params.items())))
        return self.kept(key, lambda graph: queries.run(graph, name, **params))

    def kept(self, key: object, make: Callable[[Store], Any]) -> Any:
        """Give what `make` makes of the graph, made once for each graph; callers leave it as it is.

        Two that come at once may both make it.
        """
        full = (self.version(), key)
        with self._changing:
            if full in self._kept:
                self._kept.move_to_end(full)
                return self._kept[full][0]
        with self.graph() as graph:
            made = make(graph)
        with self._changing:
            if full not in self._kept:
                size = made.nbytes if isinstance(made, pa.Table) else 1 << 16
                self._kept[full] = made, size
                self._bytes += size
                while self._bytes > CACHE_BYTES and len(self._kept) > 1:
                    self._bytes -= self._kept.popitem(last=False)[1][1]
        return made

    def runs(self) -> list[RunEntry]:
        """Give the runs, oldest first; `NothingUsable` where there are none."""
        found = self.workspace.entries()
        if not found:
            raise NothingUsable("there is no run yet; teller diagnose FOLDER puts one in")
        return found

    def diagnosis(self, run: int) -> Diagnosis:
        """Give what is stored of a run's diagnosis."""
        said: Diagnosis = self.kept(("diagnosis", run), lambda g: recall.diagnosis(g, run))
        return said

    def incidents(self) -> list[incidents.Incident]:
        """Give the incidents of all runs, with the notes as they stand now."""
        workspace = self.workspace
        watched = self.kept("watched", lambda graph: _watched(workspace, graph))
        notes = journal.read(workspace.notes)
        return incidents.gather(watched, notes, incidents.clean_runs_of(workspace.folder))

    def close(self) -> None:
        """Let go of the graph."""
        with self._changing:
            for held in [*self._old, *([self._held] if self._held else [])]:
                held.store.close()
            self._old, self._held = [], None

    def _take(self) -> _Held:
        with self._changing:
            version = self.version()
            if self._held is None or self._held.version != version or not version:
                store = self.workspace.reader()
                if self._held is not None:
                    self._old.append(self._held)
                self._looked = 0.0  # opening may have brought the graph up
                self._held = _Held(self.version(), store)
                self._kept.clear()
                self._bytes = 0
                self._let_go()
            self._held.readers += 1
            return self._held

    def _let_go(self) -> None:
        for held in [h for h in self._old if not h.readers]:
            held.store.close()
            self._old.remove(held)


@dataclass(frozen=True, slots=True)
class Desk:
    """The places, and what visitors may do."""

    places: tuple[Place, ...]
    slice_of: Slicer
    may_note: bool = False  # acknowledge, resolve, write notes
    upload_bytes: int = 0  # most of a run folder that is sent; 0: none is taken
    ingest: Callable[[Place, Path, str], list[str]] | None = None  # the command, for a folder
    needs_login: bool = False
    name_header: str = ""  # of a proxy in front that knows who asks
    limits: Mapping[str, float] = field(default_factory=dict)  # of queries: rows, seconds

    def place(self, name: str) -> Place:
        """Give the place of that name; the first for ''."""
        if not name:
            return self.places[0]
        for place in self.places:
            if place.name == name:
                return place
        raise UnknownName("store", name, [place.name for place in self.places])


_DESK: list[Desk] = []


def put(desk: Desk) -> None:
    """Make this the desk of all pages of this process."""
    _DESK[:] = [desk]


def current() -> Desk:
    """Give the desk of this process."""
    if not _DESK:
        raise NothingUsable("the pages are started by `teller ui`, not by themselves")
    return _DESK[0]


def _watched(workspace: Workspace, graph: Store) -> list[incidents.Watched]:
    entries = {entry.run_id: entry for entry in workspace.entries()}
    judged = {run: workspace.archive.was_judged(run) for run in entries}
    found = incidents.watched(
        queries.run(graph, "runs"), queries.run(graph, "all_findings"), judged
    )
    return [incidents.timed(w, entries.get(w.run)) for w in found]


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
