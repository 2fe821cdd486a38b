"""The truth of a workspace: for each run one folder of Parquet files, and the findings about it.

    archive/runs.json                     which generation of each run is the current one
    archive/generations/<run>-<token>/    never changed once it is there
    archive/staging/<token>/              being written; swept away when left behind
    archive/findings/<run>/<ruleset>.jsonl

A commit moves a finished folder to its place and then replaces `runs.json`: cut off at any moment,
the old state or the new one is there.
"""

import secrets
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from teller.errors import BadUsage, UnknownName
from teller.graph.durable import move_whole, sync_folder, write_whole
from teller.graph.finding import Finding
from teller.graph.store import StoreUnreadable

VERSION: Final = 1


class RunEntry(msgspec.Struct, frozen=True):
    """One run: what it is, and the folder that holds it now."""

    run_id: int
    key: str
    name: str
    deployment: str
    generation: str  # set by `commit`
    created_epoch_ns: int
    inputs_digest: str
    baseline: bool = False  # its files say that it shows the healthy state
    targets: dict[str, int] = {}  # ns by name: what its requests are to keep to


class _Runs(msgspec.Struct, frozen=True):
    version: int
    runs: tuple[RunEntry, ...]


class Archive:
    """All runs of a workspace. With `write`, the caller holds the workspace's lock."""

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        """Open the archive; for writing, make it and sweep away what was left half done."""
        self.folder = folder
        self._write = write
        self._pointer = folder / "runs.json"
        self._generations = folder / "generations"
        self._staging = folder / "staging"
        self._findings = folder / "findings"
        if write:
            self._make()
            self._sweep()

    def runs(self) -> list[RunEntry]:
        """Give all runs, oldest first."""
        if not self._pointer.exists():
            if self._generations.is_dir() and any(self._generations.iterdir()):
                raise self._unreadable("it is missing")
            return []
        try:
            stored = msgspec.json.decode(self._pointer.read_bytes(), type=_Runs)
        except msgspec.DecodeError as err:
            raise self._unreadable(str(err)) from err
        if stored.version > VERSION:
            raise self._unreadable(f"version {stored.version} is newer than {VERSION}")
        return sorted(stored.runs, key=lambda e: (e.created_epoch_ns, e.run_id))

    def entry(self, run_id: int) -> RunEntry:
        """Give what is known of a run."""
        entries = {e.run_id: e for e in self.runs()}
        if run_id not in entries:
            raise UnknownName("run", str(run_id), map(str, entries))
        return entries[run_id]

    def folder_of(self, run_id: int) -> Path:
        """Give the folder with the run's current Parquet files; it must not be changed."""
        return self._generations / self.entry(run_id).generation

    def stage(self) -> Path:
        """Give a fresh folder to write a run into."""
        self._must_write()
        folder = self._staging / secrets.token_hex(8)
        folder.mkdir()
        return folder

    def commit(self, entry: RunEntry, staged: Path) -> RunEntry:
        """Make the staged folder the run's current generation; give the entry as it is kept."""
        self._must_write()
        if staged.parent != self._staging:
            raise BadUsage(f"{staged} does not come from stage()")
        kept = msgspec.structs.replace(entry, generation=f"{entry.run_id}-{staged.name}")
        move_whole(staged, self._generations / kept.generation)
        self._point([e for e in self.runs() if e.run_id != entry.run_id] + [kept])
        self._sweep_generations()
        return kept

    def remove(self, run_id: int) -> None:
        """Remove a run with its findings."""
        self._must_write()
        gone = self.entry(run_id)
        self._point([e for e in self.runs() if e != gone])
        self._sweep()

    def save_targets(self, runs: Collection[int], targets: Mapping[str, int]) -> None:
        """Keep what the requests of these runs are to keep to."""
        self._must_write()
        kept = dict(targets)
        self._point(
            [
                msgspec.structs.replace(e, targets=kept) if e.run_id in runs else e
                for e in self.runs()
            ]
        )

    def save_findings(self, run_id: int, ruleset: str, findings: Sequence[Finding]) -> None:
        """Keep what a rule set or model says of a run, in place of what it said before."""
        self._must_write()
        folder = self._findings / str(self.entry(run_id).run_id)
        if not folder.exists():
            folder.mkdir()
            sync_folder(folder.parent)
        lines = (msgspec.json.encode(f.to_json()) + b"\n" for f in findings)
        write_whole(folder / f"{quote(ruleset, safe='')}.jsonl", b"".join(lines))

    def was_judged(self, run_id: int) -> bool:
        """Tell whether anything spoke of a run, also where it found nothing."""
        return any((self._findings / str(run_id)).glob("*.jsonl"))

    def findings(self, run_id: int, ruleset: str | None = None) -> list[Finding]:
        """Give the findings about a run: of one rule set, or of all, by their names."""
        folder = self._findings / str(self.entry(run_id).run_id)
        pattern = f"{quote(ruleset, safe='')}.jsonl" if ruleset is not None else "*.jsonl"
        # no glob: a name may hold its signs
        paths = [folder / pattern] if ruleset is not None else sorted(folder.glob(pattern))
        return [f for path in paths if path.exists() for f in _read_findings(path)]

    def _make(self) -> None:
        for folder in (self._generations, self._staging, self._findings):
            folder.mkdir(parents=True, exist_ok=True)
        if not self.runs() and not self._pointer.exists():
            self._point([])  # from now on, a missing file is damage and not a new archive

    def _point(self, entries: Sequence[RunEntry]) -> None:
        stored = _Runs(version=VERSION, runs=tuple(entries))
        pretty = msgspec.json.format(msgspec.json.encode(stored), indent=1)
        write_whole(self._pointer, pretty + b"\n")

    def _sweep(self) -> None:
        for left in self._staging.iterdir():
            shutil.rmtree(left, ignore_errors=True)  # the next sweep has what stays
        self._sweep_generations()
        known = {str(e.run_id) for e in self.runs()}
        for folder in self._findings.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)  # the next sweep has what stays

    def _sweep_generations(self) -> None:
        current = {e.generation for e in self.runs()}
        for folder in self._generations.iterdir():
            if folder.name not in current:
                shutil.rmtree(folder, ignore_errors=True)  # the next sweep has what stays

    def _must_write(self) -> None:
        if not self._write:
            raise BadUsage(f"the archive {self.folder} is open for reading")

    def _unreadable(self, why: str) -> StoreUnreadable:
        return StoreUnreadable(
            f"{self._pointer}: {why}; bring the file back from a copy, or ingest into a new "
            "workspace"
        )


def _read_findings(path: Path) -> list[Finding]:
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            found.append(Finding.from_json(msgspec.json.decode(line)))
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as err:
            said = f"{path}, line {number}: not a finding ({err})"
            raise StoreUnreadable(f"{said}; diagnose the run again") from err
    return found
