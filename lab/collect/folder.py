"""A run folder out of what a recording left: traces made readable, and a manifest of all."""

import contextlib
import fcntl
import hashlib
import platform
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from teller.errors import NothingUsable
from teller.lab import manifest
from teller.lab.collect import nvtx_sqlite, nvtx_stream
from teller.lab.collect.nvtx_stream import Stream
from teller.lab.manifest import EngineEntry, FileEntry, HostEntry, Manifest, RankEntry

TOOL: Final = "teller collect"
_LOCK: Final = ".collecting"
_KINDS: Final = (
    (r"\.nsys\.sqlite$|\.sqlite$", "nsys_sqlite"), (r"\.nsys-rep$", "nsys_report"),
    (r"^nccl_trace_rank_", "flight_recorder"), (r"^nccl\..*\.log$", "nccl_log"),
    (r"\.json(\.gz)?$", "kineto"), (r"\.log$", "log"), (r"\.nvtx$", "nvtx_stream"),
)  # fmt: skip
_RANK: Final = re.compile(r"(?:^rank|[-_.]rank[-_]?)(\d{1,6})(?!\d)")
_PLACE: Final = re.compile(r"(?<![A-Za-z])(TP|PP|DP|EP)[-_ ]?(\d{1,5})(?!\d)")


@dataclass(frozen=True, slots=True)
class Finished:
    """What a folder holds now."""

    files: tuple[str, ...]
    notes: tuple[str, ...]  # what was left out, and why


@dataclass(frozen=True, slots=True)
class Known:
    """What the collector knows beside the files."""

    engine: str = ""
    ranks: int | None = None  # that were to be recorded
    begun_ns: int | None = None
    ended_ns: int | None = None


def finish(folder: Path, known: Known) -> Finished:
    """Convert streams, list the files, and write the manifest or add to the one that is there.

    Several hosts may finish into one folder, one after the other.
    """
    with _alone(folder):
        ranks, notes = _converted(folder)
        files = list(_files(folder))
        made = _manifest(folder, known, ranks, files)
        manifest.write_manifest(made, folder)
    return Finished(tuple(f.path for f in files), tuple(notes))


def taken(source: Path, folder: Path, *, since_ns: int) -> list[Path]:
    """Copy the traces that were written since a moment (UTC epoch ns) into a run folder."""
    found = [p for p in sorted(source.rglob("*.json*")) if p.stat().st_mtime_ns >= since_ns]
    if source.absolute() == folder.absolute():
        return found
    return [Path(shutil.copy2(path, folder / path.name)) for path in found]


def _converted(folder: Path) -> tuple[list[RankEntry], list[str]]:
    """Turn stream files into exports, one for each rank or process; give who was there."""
    streams: dict[tuple[str, str], list[Stream]] = defaultdict(list)
    ranks: list[RankEntry] = []
    notes: list[str] = []
    empty = 0
    for path in sorted(folder.glob(f"*{nvtx_stream.SUFFIX}")):
        try:
            stream = nvtx_stream.read(path)
        except NothingUsable as err:
            notes.append(str(err))
            continue
        if not stream.events.num_rows:
            empty += 1
            path.unlink()
            continue
        who = f"rank{stream.rank}" if stream.rank is not None else str(stream.pid)
        streams[stream.host, who].append(stream)
    for (host, who), group in streams.items():
        name = who if who.startswith("rank") else f"{host}.{who}"
        nvtx_sqlite.write(group, folder / f"{name}.nsys.sqlite")
        ranks += _rank_entry(group)
        for stream in group:
            notes += _lacks(stream)
            stream.path.unlink()
    if empty:
        notes.append(f"{empty} processes annotated nothing; their empty streams are gone")
    return ranks, notes


def _rank_entry(group: Sequence[Stream]) -> list[RankEntry]:
    """Give the rank of streams of one name: that of the process with most annotations."""
    most = max(group, key=lambda stream: stream.events.num_rows)
    if most.rank is None:
        return []
    places = {axis.lower(): int(number) for axis, number in _PLACE.findall(most.process)}
    return [RankEntry(rank=most.rank, host=most.host, pid=most.pid, **places)]


def _lacks(stream: Stream) -> Iterator[str]:
    who = f"process {stream.pid} on {stream.host}"
    if not stream.ended:
        yield f"{who} was killed or still runs: its last tenth of a second is missing"
    if stream.lost:
        yield f"{who}: {stream.lost} records were lost"
    for jump in stream.jumps:
        yield f"{who}: {jump.why}, by {jump.by_ns / 1e9:+.3f} s, while it was recorded"


def _files(folder: Path) -> Iterator[FileEntry]:
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.name in (manifest.NAME, _LOCK):
            continue
        kind = next((k for pattern, k in _KINDS if re.search(pattern, path.name)), "other")
        found = re.search(r"^nccl_trace_rank_(\d+)$", path.name) or _RANK.search(path.name)
        yield FileEntry(path=name, kind=kind, rank=int(found[1]) if found else None)


def _manifest(
    folder: Path, known: Known, ranks: Sequence[RankEntry], files: Sequence[FileEntry]
) -> Manifest:
    """Give the manifest, with what another host wrote before."""
    here = HostEntry(platform.node())
    before = _before(folder)
    model: dict[str, Any] = dict(before.model) if before else {}
    if known.ranks:
        model["ranks"] = max(known.ranks, int(model.get("ranks", 0)))
    if known.begun_ns is not None:
        windows = model.setdefault("windows", {})
        windows[here.name] = [str(known.begun_ns), str(known.ended_ns)]
    known_ranks = {r.rank: r for r in (*(before.ranks if before else ()), *ranks)}
    hosts = {h.name: h for h in (*(before.hosts if before else ()), here)}
    hosts |= {r.host: hosts.get(r.host, HostEntry(r.host)) for r in known_ranks.values()}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Manifest(
        run=before.run if before else _name(folder), created=before.created if before else now,
        tool=TOOL, hosts=tuple(hosts.values()),
        ranks=tuple(known_ranks[r] for r in sorted(known_ranks)),
        engine=EngineEntry(known.engine or (before.engine.name if before else "")),
        model=model, files=tuple(files),
    )  # fmt: skip


def _before(folder: Path) -> Manifest | None:
    try:
        return manifest.read_manifest(folder)
    except (OSError, ValueError):
        return None


def _name(folder: Path) -> str:
    """Give a name that tells nothing."""
    said = f"{platform.node()} {folder.absolute()} {time.time_ns()}"
    return hashlib.sha256(said.encode()).hexdigest()[:12]


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let hosts that share the folder finish one after the other, where its file system can."""
    lock = folder / _LOCK
    with lock.open("w") as file:
        with contextlib.suppress(OSError):  # network disks may have no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
