"""Ingest: a plan of one task a file, then runs out of what the tasks leave.

Tasks are independent and return small tables; their spans go to Parquet in a staging folder of the
archive. One writer, the caller, makes runs of them and commits each as a whole.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

from teller.graph.archive import Archive, RunEntry
from teller.ingest import gather, plan
from teller.ingest.assembly import InputRow
from teller.ingest.discover import Candidate, Found, discover
from teller.ingest.members import Fresh, FreshRecords
from teller.ingest.parts import Part, RecordPart
from teller.ingest.readers import note
from teller.ingest.source import Remark
from teller.ingest.task import FileResult, Task
from teller.ingest.who import Told, identify, record_hosts, with_places

# Raised whenever what ingest derives from the same files changes, so that they are read again.
INGEST_VERSION: Final = 3


class Progress(Protocol):
    """Told how far long work is."""

    def start(self, what: str, total: int | None) -> None:
        """Begin a piece of work of so many parts."""

    def step(self, n: int = 1) -> None:
        """Hear that some parts are done."""

    def done(self) -> None:
        """Hear that the piece of work has ended."""


class Silent:
    """Says nothing."""

    def start(self, what: str, total: int | None) -> None:
        """Say nothing."""

    def step(self, n: int = 1) -> None:
        """Say nothing."""

    def done(self) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What came of an ingest: runs that are in the archive, and all inputs and remarks."""

    runs: tuple[RunEntry, ...]
    inputs: tuple[InputRow, ...]
    remarks: tuple[Remark, ...]
    others: tuple[str, ...] = ()  # files that are no input of ours


def ingest(
    paths: Sequence[Path],
    archive: Archive,
    told: Told,
    *,
    deployment: str,
    progress: Progress,
    scheduler: str = "threads",
    wanted: Callable[[Path], bool] | None = None,
) -> Ingested:
    """Bring the paths into the archive; what is there already stays as it is.

    Of many files, `wanted` picks those to look at: the others are as they were.
    """
    plan.check(scheduler)
    found = discover(paths, wanted)
    digest = _digest(found, told, deployment)
    known = tuple(e for e in archive.runs() if e.inputs_digest == digest)
    known = known or (gather.holding(found, archive, deployment) if told == Told() else ())
    if known:
        return Ingested(known, (), found.remarks, found.others)
    staged = archive.stage()
    try:
        read = _read_all(found.candidates, staged, progress, scheduler)
        sources, remarks = _collect(found, read.results, told)
        records = _records(found, read.results, told)
        done = gather.commit(
            sources, records, found, [*found.remarks, *remarks], archive, deployment, digest
        )
        said = (*done.remarks, *read.remarks)  # the latter are of today and not of the run
        return Ingested(done.runs, done.inputs, said, found.others)
    finally:
        shutil.rmtree(staged, ignore_errors=True)  # a scratch folder: what stays is no harm


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
) -> plan.Done:
    progress.start("reading", len(candidates))
    tasks = [Task.of(c, number) for number, c in enumerate(candidates)]
    done = plan.compute(tasks, staged, scheduler, progress.step)
    progress.done()
    return done


def _collect(
    found: Found, results: Sequence[FileResult], told: Told
) -> tuple[list[Fresh], list[Remark]]:
    """Bring all sources into an order that comes from their content alone, and name them."""
    sources, remarks = [], [r for result in results for r in result.remarks]
    pairs = [(c, s) for c, r in zip(found.candidates, results, strict=True) for s in r.shaped]
    pairs.sort(key=lambda p: (p[0].head, p[0].digest, p[1].facts.pid or 0, p[1].spans.name[-10:]))
    for identity, (candidate, shaped) in zip(
        identify([s for _, s in pairs], told, found.manifests), pairs, strict=True
    ):
        if identity is not None:
            facts = with_places(shaped.facts, identity.rank, found.manifests)
            part = Part(replace(shaped, facts=facts), identity, candidate.head, candidate.digest)
            sources.append(Fresh(candidate, part))
            continue
        remarks.append(
            Remark(
                candidate.name,
                f"process {shaped.facts.pid}",
                f"belongs to no rank ({shaped.facts.process_name or 'no name'}, "
                f"{shaped.span_count} spans, none on a device); it is left out",
                "nothing to do, unless it is a rank: then say which with --rank-regex",
            )
        )
    return sources, remarks


def _records(found: Found, results: Sequence[FileResult], told: Told) -> list[FreshRecords]:
    """Give the records of all files, in an order that comes from their content alone."""
    pairs = [(c, r) for c, one in zip(found.candidates, results, strict=True) for r in one.records]
    pairs.sort(key=lambda p: (p[0].head, p[0].digest, p[0].name))
    spoken = {s.facts.host for one in results for s in one.shaped} - {""}
    hosts = record_hosts([r for _, r in pairs], told, found.manifests, spoken)
    return [
        FreshRecords(c, RecordPart(r, *host, c.head, c.digest, c.modified_ns, c.size, _healthy(c)))
        for (c, r), host in zip(pairs, hosts, strict=True)
    ]


def _healthy(candidate: Candidate) -> bool:
    """Tell whether a file is of the healthy run; a note holds figures of both states."""
    return candidate.baseline and candidate.format != note.FORMAT
