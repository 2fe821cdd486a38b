"""Ingest: a plan of one task a file, then runs out of what the tasks leave.

Tasks are independent and return small tables; their spans go to Parquet in a staging folder of the
archive. One writer, the caller, makes runs of them and commits each as a whole.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

from teller.graph.archive import Archive, RunEntry
from teller.ingest import generation, quality, runs
from teller.ingest.assembly import Assembly, InputRow, Part, assemble, run_key
from teller.ingest.discover import Candidate, Found, discover, reader_named
from teller.ingest.plan import compute
from teller.ingest.shape import Shaped, shape
from teller.ingest.source import Remark
from teller.ingest.who import Identity, Told, identify

# Raised whenever what ingest derives from the same files changes, so that they are read again.
INGEST_VERSION: Final = 1


class Progress(Protocol):
    """Told how far long work is."""

    def start(self, what: str, total: int | None) -> None:
        """Begin a piece of work of so many parts."""

    def step(self, n: int = 1) -> None:
        """Some parts are done."""

    def done(self) -> None:
        """The piece of work has ended."""


class Silent:
    """Says nothing."""

    def start(self, what: str, total: int | None) -> None:
        """Say nothing."""

    def step(self, n: int = 1) -> None:
        """Say nothing."""

    def done(self) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What a task leaves of one file."""

    shaped: tuple[Shaped, ...]
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What came of an ingest: runs that are in the archive, and all inputs and remarks."""

    runs: tuple[RunEntry, ...]
    inputs: tuple[InputRow, ...]
    remarks: tuple[Remark, ...]
    others: tuple[str, ...] = ()  # files that are no input of ours
    fresh: tuple[int, ...] = ()  # runs that were not there, or have changed


@dataclass(slots=True)
class _Read:
    """All sources of an ingest, in one order, with what is known of each."""

    candidates: list[Candidate] = field(default_factory=list)
    shaped: list[Shaped] = field(default_factory=list)
    identities: list[Identity] = field(default_factory=list)


def ingest(
    paths: Sequence[Path], archive: Archive, told: Told, *, deployment: str,
    progress: Progress, scheduler: str = "threads",
) -> Ingested:
    """Bring the paths into the archive; what is there already stays as it is."""
    found = discover(paths)
    digest = _digest(found, told, deployment)
    known = tuple(e for e in archive.runs() if e.inputs_digest == digest)
    if known:
        return Ingested(known, (), found.remarks, found.others)
    staged = archive.stage()
    try:
        results = _read_all(found.candidates, staged, progress, scheduler)
        read, remarks = _collect(found, results, told)
        return _commit(read, found, [*found.remarks, *remarks], archive, deployment, digest)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _digest(found: Found, told: Told, deployment: str) -> str:
    """Hash what the result depends on: contents, not names, unless a name tells rank or host."""
    state = blake2b(digest_size=16)
    parts = [f"{INGEST_VERSION} {told} {deployment}"]
    parts += sorted(f"{c.digest} {c.name}" for c in found.candidates)
    parts += [str(m) for m in found.manifests]
    state.update("\n".join(parts).encode())
    return state.hexdigest()


def _read_all(
    candidates: Sequence[Candidate], staged: Path, progress: Progress, scheduler: str
) -> list[FileResult]:
    progress.start("reading", len(candidates))
    tasks: list[Callable[[], FileResult]] = [
        _Task(c, staged, number) for number, c in enumerate(candidates)
    ]
    results = compute(tasks, scheduler, progress.step)
    progress.done()
    return results


@dataclass(frozen=True, slots=True)
class _Task:
    """Read and shape one file; can be sent to another process."""

    candidate: "Candidate"
    staged: Path
    number: int

    def __call__(self) -> FileResult:
        return read_and_shape(self.candidate, self.staged, self.number)


def read_and_shape(candidate: Candidate, staged: Path, number: int) -> FileResult:
    """Read one file and give structure to each process in it."""
    reader = reader_named(candidate.format)
    try:
        reading = reader.read(candidate.path)
    except OSError as error:
        return FileResult((), (Remark(candidate.name, "", f"cannot be read: {error}",
                                      "check the file and its permissions"),))
    shaped = []
    for part, source in enumerate(reading.sources):
        source = replace(source, facts=replace(source.facts, path=candidate.name))
        shaped.append(shape(source, staged / f"{number:05d}-{part}.parquet"))
    remarks = tuple(replace(r, path=candidate.name) for r in reading.remarks)
    if not shaped and not remarks:
        remarks = (Remark(candidate.name, "", "holds nothing that can be used",
                          "check how it was recorded"),)
    return FileResult(tuple(shaped), remarks)


def _collect(
    found: Found, results: Sequence[FileResult], told: Told
) -> tuple[_Read, list[Remark]]:
    """Bring all sources into an order that comes from their content alone, and name them."""
    read, remarks = _Read(), []
    pairs = [(c, s) for c, r in zip(found.candidates, results, strict=True) for s in r.shaped]
    for result in results:
        remarks += result.remarks
    pairs.sort(key=lambda p: (p[0].head, p[0].digest, p[1].facts.pid or 0, p[1].spans.name[-10:]))
    for identity, (candidate, shaped) in zip(
        identify([s for _, s in pairs], told, found.manifests), pairs, strict=True
    ):
        if identity is None:
            remarks.append(Remark(
                candidate.name, f"process {shaped.facts.pid}",
                f"belongs to no rank ({shaped.facts.process_name or 'no name'}, "
                f"{shaped.span_count} spans, none on a device); it is left out",
                "nothing to do, unless it is a rank: then say which with --rank-regex"))
            continue
        read.candidates.append(candidate)
        read.shaped.append(shaped)
        read.identities.append(identity)
    return read, remarks


def _commit(
    read: _Read, found: Found, remarks: Sequence[Remark], archive: Archive, deployment: str,
    digest: str,
) -> Ingested:
    captures = [_capture(read, found, i) for i in range(len(read.shaped))]
    entries, inputs, all_remarks, used = [], [], list(remarks), set()
    memberships = runs.group(captures)
    for number, run in enumerate(memberships):
        own = [*run.captures, *(i for i, _ in run.duplicates)]
        used |= {read.candidates[i].name for i in own}
        extra = list(_membership_remarks(read, run, captures))
        rows = _inputs(read, run)
        if number == len(memberships) - 1:
            rows += _unused(found, read)
        names = {r.path for r in rows}
        about = [r for r in [*remarks, *extra] if r.path in names]
        if number == 0:  # remarks on files that no run holds
            held = {c.name for c in read.candidates} | {r.path for r in _unused(found, read)}
            about += [r for r in remarks if r.path not in held]
        assembly = _assemble(read, run, rows, about, found, deployment)
        entries.append(_store(assembly, archive, digest))
        inputs += rows
        all_remarks += extra
    if not memberships:
        inputs = _unused(found, read)
    return Ingested(tuple(entries), tuple(inputs), tuple(dict.fromkeys(all_remarks)),
                    found.others, tuple(e.run_id for e in entries))


def _capture(read: _Read, found: Found, i: int) -> runs.Capture:
    candidate, one = read.candidates[i], read.shaped[i]
    facts = one.facts
    epoch = facts.epoch_ns
    manifest = next((m.run for m in found.manifests if m.names(candidate.name)), "")
    groups = frozenset(g.comm or f"{g.name}{g.ranks}" for g in facts.groups if len(g.ranks) > 1)
    return runs.Capture(
        rank=read.identities[i].rank, first_ns=one.first_ns + (epoch or 0),
        last_ns=one.last_ns + (epoch or 0), anchored=epoch is not None, digest=candidate.digest,
        order=(candidate.head, candidate.digest, facts.pid or 0), world_size=facts.world_size,
        groups=groups, manifest=manifest, weight=one.span_count,
    )


def _inputs(read: _Read, run: runs.Membership) -> list[InputRow]:
    twin = dict(run.duplicates)
    return [
        InputRow(
            read.candidates[i].name, read.shaped[i].facts.format, read.candidates[i].digest,
            read.identities[i].rank, read.identities[i].host, read.shaped[i].facts.event_count,
            i not in twin,
            f"the same capture as {read.candidates[twin[i]].name}" if i in twin else "",
        ) for i in [*run.captures, *twin]
    ]


def _unused(found: Found, read: _Read) -> list[InputRow]:
    """Give the files that were recognised and gave nothing."""
    held = {c.name for c in read.candidates}
    return [InputRow(c.name, c.format, c.digest, None, "", 0, False, "nothing could be used")
            for c in found.candidates if c.name not in held]


def _membership_remarks(
    read: _Read, run: runs.Membership, captures: Sequence[runs.Capture]
) -> Iterator[Remark]:
    for out, kept in run.duplicates:
        names = read.candidates[out].name, read.candidates[kept].name
        yield Remark(
            names[0], f"rank {captures[out].rank}",
            f"duplicate: says rank {captures[out].rank} like {names[1]}, in the same time; "
            f"{names[1]} is used ({read.shaped[kept].span_count} spans), this file is not "
            f"({read.shaped[out].span_count} spans)",
            "if it is another rank, say which: --rank-regex 'rank(?P<rank>[0-9]+)'")


def _assemble(
    read: _Read, run: runs.Membership, rows: list[InputRow], remarks: list[Remark], found: Found,
    deployment: str,
) -> Assembly:
    parts = [
        Part(read.shaped[i], read.identities[i], read.candidates[i].head,
             read.candidates[i].digest) for i in run.captures
    ]
    manifest = next((m for m in found.manifests if m.run == run.key), None)
    key = run_key(parts, run.key)
    engine = f"{manifest.engine.name} {manifest.engine.version}".strip() if manifest else ""
    assembly = assemble(
        parts, rows, remarks, key=key, name=manifest.run if manifest else key[:8],
        deployment=(manifest.deployment if manifest else "") or deployment, engine=engine)
    return replace(assembly, remarks=(*assembly.remarks, *quality.remarks(assembly)))


def _store(assembly: Assembly, archive: Archive, digest: str) -> RunEntry:
    staged = archive.stage()
    generation.write(assembly, staged)
    entry = RunEntry(
        run_id=assembly.run_id, key=assembly.key, name=assembly.name,
        deployment=assembly.deployment, generation="", created_epoch_ns=time.time_ns(),
        inputs_digest=digest)
    return archive.commit(entry, staged)
