"""All sources that runs can be made of: read now, or kept in the archive."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from teller.graph.archive import Archive, RunEntry
from teller.ingest import runs, stored
from teller.ingest.companions import FAR_NS, Companion, Home, may_hold
from teller.ingest.dating import Dated, Timed, date
from teller.ingest.discover import Candidate, Found, begins_with
from teller.ingest.parts import Part, RecordPart
from teller.ingest.source import Facts
from teller.ingest.stored import Stored, StoredPart, StoredRecords
from teller.ingest.who import RANK_REGEX, Identity


@dataclass(frozen=True, slots=True)
class Fresh:
    """A source of spans that was read now."""

    candidate: Candidate
    part: Part


@dataclass(frozen=True, slots=True)
class FreshRecords:
    """Records that were read now."""

    candidate: Candidate
    part: RecordPart


@dataclass(frozen=True, slots=True)
class Kept:
    """A source of a run that is in the archive."""

    entry: RunEntry
    stored: Stored
    number: int

    @property
    def part(self) -> StoredPart:
        """Give what is known of it."""
        return self.stored.parts[self.number]


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """Records of a run that is in the archive."""

    entry: RunEntry
    stored: Stored
    number: int

    @property
    def part(self) -> StoredRecords:
        """Give what is known of them."""
        return self.stored.records[self.number]


Records = FreshRecords | KeptRecords


@dataclass(slots=True)
class All:
    """Everything that runs can be made of, as captures and as what they stand for."""

    captures: list[runs.Capture] = field(default_factory=list)
    sources: list[Fresh | Kept] = field(default_factory=list)
    known: list[runs.Membership] = field(default_factory=list)
    records: list[Records] = field(default_factory=list)
    holders: list[tuple[RunEntry, Stored, list[int]]] = field(default_factory=list)
    # a run that is there, with the indices of its records


def everything(
    fresh: Sequence[Fresh],
    records: Sequence[FreshRecords],
    found: Found,
    archive: Archive,
    deployment: str,
) -> All:
    """Gather what was read now, and the runs in the archive that it may belong to."""
    new = [
        _capture(f.part, f.part.shaped.facts, f.part.identity, _manifest(found, f.candidate.name),
                 baseline=f.candidate.baseline)
        for f in fresh
    ]  # fmt: skip
    whole = All()
    for entry in archive.runs():
        kept = stored.load(archive, entry)
        if kept is None or (entry.deployment != deployment and not kept.manifest):
            continue
        records = [_grown(r, kept) for r in records]
        old = [
            _capture(p, p.facts, p.identity, kept.manifest, baseline=kept.baseline)
            for p in kept.parts
        ]
        near = any(_near(a, b) for a in old for b in new) or _awaits(kept, new)
        if near or _meets(kept, old, records):
            _add(whole, entry, kept, old)
    whole.captures += new
    whole.sources += fresh
    whole.records += records
    return whole


def _grown(fresh: FreshRecords, kept: Stored) -> FreshRecords:
    """Give a file that was written further the name of its rows before: a short one has no head."""
    name = PurePath(fresh.candidate.name).name
    for old in kept.records:
        longer = fresh.candidate.size > old.size and PurePath(old.facts.path).name == name
        if longer and begins_with(fresh.candidate.path, old.size, old.digest):
            return replace(fresh, part=replace(fresh.part, head=old.head))
    return fresh


def _add(whole: All, entry: RunEntry, kept: Stored, old: list[runs.Capture]) -> None:
    at = range(len(whole.captures), len(whole.captures) + len(old))
    whole.captures += old
    whole.sources += [Kept(entry, kept, n) for n in range(len(old))]
    if old:
        whole.known.append(runs.Membership(kept.key, list(at), known=frozenset(at)))
    first = len(whole.records)
    whole.records += [KeptRecords(entry, kept, n) for n in range(len(kept.records))]
    whole.holders.append((entry, kept, list(range(first, len(whole.records)))))


def _manifest(found: Found, name: str) -> str:
    return next((m.run for m in found.manifests if m.names(name)), "")


def _meets(kept: Stored, old: Sequence[runs.Capture], records: Sequence[FreshRecords]) -> bool:
    """Tell whether new records could be of a run: the same file, or the same time."""
    heads = {r.head for r in kept.records}
    windows = [(c.first_ns, c.last_ns) for c in old if c.anchored]
    windows += [r.window for r in kept.records if r.window and r.clock in ("utc", "local")]
    for one in records:
        about = stored.about(one.part)
        if one.part.head in heads:
            return True
        mine = about.window if about.clock in ("utc", "local") else None
        if mine and any(max(mine[0], a) <= min(mine[1], b) for a, b in windows):
            return True
    return False


def _awaits(kept: Stored, new: Sequence[runs.Capture]) -> bool:
    """Tell whether a run of records alone may be about new captures: logs are there first."""
    if kept.parts:
        return False
    windows = [r.window for r in kept.records if r.window and r.clock in ("utc", "local")]
    return any(
        one.manifest == kept.manifest
        and (
            not windows
            or bool(one.manifest)
            or any(max(one.first_ns, a) - min(one.last_ns, b) <= FAR_NS for a, b in windows)
        )
        for one in new
    )


def _near(one: runs.Capture, other: runs.Capture) -> bool:
    """Tell whether two captures could be of one run at all."""
    if one.head == other.head or (one.manifest and one.manifest == other.manifest):
        return True
    apart = max(one.first_ns, other.first_ns) - min(one.last_ns, other.last_ns)
    return one.anchored and other.anchored and apart <= runs.FIT_WITHIN_NS


def _capture(
    part: Part | StoredPart, facts: Facts, who: Identity, manifest: str, *, baseline: bool
) -> runs.Capture:
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
        baseline=baseline,
    )


def companions(whole: All, found: Found) -> tuple[list[Companion], list[Dated]]:
    """Give what is to be known of each file of records, and how its times become UTC."""
    abouts = [
        stored.about(r.part) if isinstance(r, FreshRecords) else r.part for r in whole.records
    ]
    anchors = [(c.first_ns, c.last_ns) for c in whole.captures if c.anchored]
    dated = date(
        [
            Timed(a.clock, a.window, a.modified_ns, a.facts.options.get("day") == "unknown")
            for a in abouts
        ],
        anchors,
    )
    made = []
    for about, when, record in zip(abouts, dated, whole.records, strict=True):
        window = about.window
        if window is not None and when.shift_ns is not None:
            window = (window[0] + when.shift_ns, window[1] + when.shift_ns)
        manifest = (
            _manifest(found, about.facts.path)
            if isinstance(record, FreshRecords)
            else record.stored.manifest
        )
        made.append(
            Companion(
                about.facts.path, about.digest, about.head,
                window if when.shift_ns is not None else None,
                frozenset(about.comms), manifest, about.baseline, about.lasting,
            )
        )  # fmt: skip
    return made, dated


def homes(whole: All, members: Sequence[runs.Membership], made: Sequence[Companion]) -> list[Home]:
    """Give the runs that records can join: those of captures in their order, then the others."""
    given = []
    holder = {entry.key: (kept, at) for entry, kept, at in whole.holders}
    for run in members:
        captures = [whole.captures[i] for i in run.captures]
        home = Home(
            [(c.first_ns, c.last_ns) for c in captures if c.anchored],
            {str(PurePath(name_of(whole.sources[i])).parent) for i in run.captures},
            {g for c in captures for g in c.groups},
            captures[0].manifest,
            captures[0].baseline,
        )
        kept_at = holder.pop(run.key if run.known else _waiting(home, holder, made), None)
        home.known = {i: made[i].digest for i in kept_at[1]} if kept_at else {}
        home.captured = True
        given.append(home)
    for kept, at in holder.values():
        mine = [made[i] for i in at]
        given.append(
            Home(
                [c.window for c in mine if c.window and not c.lasting],
                {c.folder for c in mine},
                set().union(*(c.comms for c in mine)),
                kept.manifest,
                kept.baseline,
                {i: made[i].digest for i in at},
            )
        )
    return given


def _waiting(
    home: Home, holder: Mapping[str, tuple[Stored, list[int]]], made: Sequence[Companion]
) -> str:
    """Give the key of a run of records alone that new captures belong to; "" where none is."""
    fits = (
        key
        for key, (kept, at) in holder.items()
        if not kept.parts and at and may_hold(home, [made[i] for i in at])
    )
    return next(fits, "")


def name_of(source: Fresh | Kept) -> str:
    """Give the name of a source's file."""
    return source.candidate.name if isinstance(source, Fresh) else source.part.facts.path
