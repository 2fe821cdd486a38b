"""From named sources to runs in the archive: new ones, and those that sources join later."""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from teller.graph.archive import Archive, RunEntry
from teller.ingest import generation, runs, stored
from teller.ingest.assembly import InputRow, Part, assemble, run_key
from teller.ingest.discover import Candidate, Found
from teller.ingest.source import Facts, Remark
from teller.ingest.stored import Stored, StoredPart
from teller.ingest.who import RANK_REGEX, Identity


@dataclass(frozen=True, slots=True)
class Fresh:
    """A source that was read now."""

    candidate: Candidate
    part: Part


@dataclass(frozen=True, slots=True)
class _Kept:
    """A source of a run that is in the archive."""

    entry: RunEntry
    stored: Stored
    number: int

    @property
    def part(self) -> StoredPart:
        return self.stored.parts[self.number]


@dataclass(frozen=True, slots=True)
class Done:
    """What a commit leaves."""

    runs: tuple[RunEntry, ...]
    inputs: tuple[InputRow, ...]
    remarks: tuple[Remark, ...]


@dataclass(slots=True)
class _All:
    """Everything that runs can be made of, as captures and as what they stand for."""

    captures: list[runs.Capture] = field(default_factory=list)
    sources: list[Fresh | _Kept] = field(default_factory=list)
    known: list[runs.Membership] = field(default_factory=list)


def commit(
    fresh: Sequence[Fresh],
    found: Found,
    remarks: Sequence[Remark],
    archive: Archive,
    deployment: str,
    digest: str,
) -> Done:
    """Make runs of the sources, and commit each run that is new or has changed."""
    everything = _all(fresh, found, archive, deployment)
    touched = [m for m in runs.group(everything.captures, everything.known) if m.is_new or m.again]
    entries: list[RunEntry] = []
    inputs: list[InputRow] = []
    said = list(remarks)
    held = {f.candidate.name for f in fresh}
    unused = [
        InputRow(c.name, c.format, c.digest, None, "", 0, False, "nothing could be used")
        for c in found.candidates
        if c.name not in held
    ]
    for number, run in enumerate(touched):
        rows = _inputs(run, everything) + (unused if number == len(touched) - 1 else [])
        extra = list(_duplicates(run, everything))
        named = {r.path for r in rows}
        everywhere = held | {r.path for r in unused}
        about = [
            r
            for r in [*remarks, *extra]
            if r.path in named or (number == 0 and r.path not in everywhere)
        ]
        maker = _Maker(run, everything, found, archive, deployment, digest)
        entries.append(maker.make(rows, about))
        inputs += rows
        said += extra
    return Done(tuple(entries), tuple(inputs if touched else unused), tuple(dict.fromkeys(said)))


def holding(found: Found, archive: Archive, deployment: str) -> tuple[RunEntry, ...]:
    """Give the runs that hold all of these files already, under any name; none if one is new."""
    wanted = {c.digest for c in found.candidates}
    runs_of: dict[str, list[RunEntry]] = {}
    for entry in archive.runs():
        kept = stored.load(archive, entry)
        if kept is not None and (entry.deployment == deployment or kept.manifest):
            for row in kept.inputs:
                runs_of.setdefault(row.digest, []).append(entry)
    if not wanted or not wanted <= runs_of.keys():
        return ()
    return tuple({e.run_id: e for d in sorted(wanted) for e in runs_of[d]}.values())


def _all(fresh: Sequence[Fresh], found: Found, archive: Archive, deployment: str) -> _All:
    everything = _All()
    new = [
        _capture(
            f.part,
            f.part.shaped.facts,
            f.part.identity,
            next((m.run for m in found.manifests if m.names(f.candidate.name)), ""),
        )
        for f in fresh
    ]
    for entry in archive.runs():
        kept = stored.load(archive, entry)
        if kept is None or (entry.deployment != deployment and not kept.manifest):
            continue
        old = [_capture(p, p.facts, p.identity, kept.manifest) for p in kept.parts]
        if any(_near(a, b) for a in old for b in new):
            at = range(len(everything.captures), len(everything.captures) + len(old))
            everything.captures += old
            everything.sources += [_Kept(entry, kept, n) for n in range(len(old))]
            everything.known.append(runs.Membership(kept.key, list(at), known=frozenset(at)))
    everything.captures += new
    everything.sources += fresh
    return everything


def _near(one: runs.Capture, other: runs.Capture) -> bool:
    """Tell whether two captures could be of one run at all."""
    if one.head == other.head or (one.manifest and one.manifest == other.manifest):
        return True
    apart = max(one.first_ns, other.first_ns) - min(one.last_ns, other.last_ns)
    return one.anchored and other.anchored and apart <= runs.FIT_WITHIN_NS


def _capture(part: Part | StoredPart, facts: Facts, who: Identity, manifest: str) -> runs.Capture:
    one = part.shaped if isinstance(part, Part) else part
    epoch = facts.epoch_ns
    groups = frozenset(g.comm or f"{g.name}{g.ranks}" for g in facts.groups if len(g.ranks) > 1)
    return runs.Capture(
        rank=who.rank,
        first_ns=one.first_ns + (epoch or 0),
        last_ns=one.last_ns + (epoch or 0),
        anchored=epoch is not None,
        digest=part.digest,
        order=(part.head, part.digest, facts.pid or 0),
        world_size=facts.world_size,
        groups=groups,
        manifest=manifest,
        weight=one.span_count,
        head=part.head,
        alike=re.sub(r"\d+", "#", facts.path),
        told=who.rank_source == RANK_REGEX,
    )


def _name(source: Fresh | _Kept) -> str:
    return source.candidate.name if isinstance(source, Fresh) else source.part.facts.path


def _inputs(run: runs.Membership, everything: _All) -> list[InputRow]:
    twin = {
        out: kept
        for out, kept in run.duplicates
        if not _replaced(everything.sources[out], everything.sources[kept])
    }
    rows = []
    for i in dict.fromkeys([*run.captures, *twin]):
        source = everything.sources[i]
        part = source.part
        facts = part.shaped.facts if isinstance(part, Part) else part.facts
        note = f"the same capture as {_name(everything.sources[twin[i]])}" if i in twin else ""
        rows.append(
            InputRow(
                _name(source),
                facts.format,
                part.digest,
                part.identity.rank,
                part.identity.host,
                facts.event_count,
                i not in twin,
                note,
            )
        )
    return rows


def _replaced(out: Fresh | _Kept, kept: Fresh | _Kept) -> bool:
    """Tell whether a file took the place of another of its name."""
    return isinstance(out, _Kept) and isinstance(kept, Fresh) and _name(out) == _name(kept)


def _duplicates(run: runs.Membership, everything: _All) -> Iterator[Remark]:
    instead = dict(run.duplicates)
    for out, kept in run.duplicates:
        if _replaced(everything.sources[out], everything.sources[kept]):
            continue
        while kept in instead and instead[kept] != out:  # it gave way to another in its turn
            kept = instead[kept]
        rank = everything.captures[out].rank
        names = _name(everything.sources[out]), _name(everything.sources[kept])
        if everything.captures[out].digest == everything.captures[kept].digest:
            yield Remark(
                names[0],
                f"rank {rank}",
                f"duplicate: has the same bytes as {names[1]}, which is used; this file is not",
                "if it should be another rank, it was overwritten: copy that rank's file again",
            )
            continue
        spans = everything.captures[kept].weight, everything.captures[out].weight
        yield Remark(
            names[0],
            f"rank {rank}",
            f"duplicate: says rank {rank} like {names[1]}, in the same time; {names[1]} is used "
            f"({spans[0]} spans), this file is not ({spans[1]} spans)",
            "if it is another rank, say which: --rank-regex 'rank(?P<rank>[0-9]+)'",
        )


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes one run."""

    run: runs.Membership
    everything: _All
    found: Found
    archive: Archive
    deployment: str
    digest: str

    def make(self, rows: list[InputRow], remarks: list[Remark]) -> RunEntry:
        """Commit the run, unless nothing of it is new."""
        before = next(
            (s for i in self.run.known if isinstance(s := self.everything.sources[i], _Kept)), None
        )
        if before is not None and not self.run.is_new:
            return before.entry
        staged = self.archive.stage()
        parts = [self._part(i, staged) for i in self.run.captures]
        manifest = next((m for m in self.found.manifests if m.run == self.run.key), None)
        named = manifest.run if manifest else before.stored.manifest if before else ""
        key = before.stored.key if before else self._key(parts)
        engine = f"{manifest.engine.name} {manifest.engine.version}".strip() if manifest else ""
        old_rows, old = self._before(before, rows)
        assembly = assemble(
            parts,
            [*rows, *old_rows],
            list(dict.fromkeys([*old, *remarks])),
            key=key,
            name=before.entry.name if before else named or key[:8],
            deployment=(manifest.deployment if manifest else "") or self.deployment,
            engine=engine,
            t0_epoch_ns=before.stored.t0_epoch_ns if before else None,
        )
        generation.write(assembly, named, staged)
        entry = RunEntry(
            run_id=assembly.run_id,
            key=key,
            name=assembly.name,
            deployment=assembly.deployment,
            generation="",
            created_epoch_ns=before.entry.created_epoch_ns if before else time.time_ns(),
            inputs_digest=self.digest,
        )
        return self.archive.commit(entry, staged)

    def _key(self, parts: list[Part]) -> str:
        """Give a key that no other run has: two windows may begin with the same large header."""
        key = run_key(parts, self.run.key)
        taken = any(e.key == key for e in self.archive.runs()) and not self.run.key
        return run_key(parts, "", whole=True) if taken else key

    def _before(
        self, before: _Kept | None, rows: list[InputRow]
    ) -> tuple[list[InputRow], tuple[Remark, ...]]:
        """Give the unused inputs and the remarks that the run had before."""
        if before is None:
            return [], ()
        digests = {r.digest for r in rows}
        kept = before.stored
        # a file of that name was read again: what was wrong with the old one is gone with it
        anew = {r.path for r in rows} - {r.path for r in kept.inputs if r.digest in digests}
        unused = [r for r in kept.inputs if r.digest not in digests and not r.used]
        return (
            [r for r in unused if r.path not in anew],
            tuple(r for r in kept.remarks if r.path not in anew),
        )

    def _part(self, i: int, staged: Path) -> Part:
        source = self.everything.sources[i]
        if isinstance(source, Fresh):
            return source.part
        copy = staged / f"kept-{i}.parquet"
        return stored.part_of(self.archive, source.entry, source.stored, source.number, copy)
