"""From named sources to runs in the archive: new ones, and those that sources join later."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from teller.graph.archive import Archive, RunEntry
from teller.ingest import members, runs, stored
from teller.ingest.assembly import InputRow
from teller.ingest.companions import Home, settle
from teller.ingest.dating import Dated
from teller.ingest.discover import Found
from teller.ingest.making import Maker, Planned
from teller.ingest.members import All, Fresh, FreshRecords, Kept
from teller.ingest.parts import Part
from teller.ingest.source import Remark


@dataclass(frozen=True, slots=True)
class Done:
    """What a commit leaves."""

    runs: tuple[RunEntry, ...]
    inputs: tuple[InputRow, ...]
    remarks: tuple[Remark, ...]


def commit(
    fresh: Sequence[Fresh],
    records: Sequence[FreshRecords],
    found: Found,
    remarks: Sequence[Remark],
    archive: Archive,
    deployment: str,
    digest: str,
) -> Done:
    """Make runs of the sources, and commit each run that is new or has changed."""
    whole = members.everything(fresh, records, found, archive, deployment)
    plans, dated = _plan(whole, found)
    entries: list[RunEntry] = []
    inputs: list[InputRow] = []
    said = list(remarks)
    held = {f.candidate.name for f in fresh} | {r.candidate.name for r in records}
    unused = [
        InputRow(c.name, c.format, c.digest, None, "", 0, False, "nothing could be used")
        for c in found.candidates
        if c.name not in held
    ]
    for number, plan in enumerate(plans):
        rows = _inputs(plan, whole) + (unused if number == len(plans) - 1 else [])
        extra = [*_duplicates(plan.run, whole), *_assumed(plan, whole, dated)]
        named = {r.path for r in rows}
        everywhere = held | {r.path for r in unused}
        about = [
            r
            for r in [*remarks, *extra]
            if r.path in named or (number == 0 and r.path not in everywhere)
        ]
        maker = Maker(plan, whole, dated, found, archive, deployment, digest)
        entries.append(maker.make(rows, about))
        inputs += rows
        said += extra
    return Done(tuple(entries), tuple(inputs if plans else unused), tuple(dict.fromkeys(said)))


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


def _plan(whole: All, found: Found) -> tuple[list[Planned], list[Dated]]:
    """Say which runs there are to be, of those with something new or asked for again."""
    grouped = runs.group(whole.captures, whole.known) if whole.captures else []
    made, dated = members.companions(whole, found)
    homes = settle(made, members.homes(whole, grouped, made))
    asked = {c.digest for c in found.candidates}
    plans = []
    for number, home in enumerate(homes):
        run = grouped[number] if number < len(grouped) else runs.Membership()
        before = _before(run, home, whole)
        again = bool(run.again) or any(d in asked for d in home.known.values())
        if run.is_new or home.is_new or again:
            plans.append(Planned(run, home, before))
    return plans, dated


def _before(run: runs.Membership, home: Home, whole: All) -> Kept | members.KeptRecords | None:
    """Give a source by which the run was known before."""
    known = [whole.sources[i] for i in sorted(run.known)]
    kept = [whole.records[i] for i in sorted(home.known)]
    return next((s for s in (*known, *kept) if not isinstance(s, (Fresh, FreshRecords))), None)


def _inputs(plan: Planned, whole: All) -> list[InputRow]:
    run = plan.run
    twin = {
        out: kept
        for out, kept in run.duplicates
        if not _replaced(whole.sources[out], whole.sources[kept])
    }
    rows = []
    for i in dict.fromkeys([*run.captures, *twin]):
        source = whole.sources[i]
        part = source.part
        facts = part.shaped.facts if isinstance(part, Part) else part.facts
        note = f"the same capture as {members.name_of(whole.sources[twin[i]])}" if i in twin else ""
        rows.append(
            InputRow(
                members.name_of(source),
                facts.format,
                part.digest,
                part.identity.rank,
                part.identity.host,
                facts.event_count,
                i not in twin,
                note,
            )
        )
    return rows + [_record_input(i, whole) for i in plan.home.records]


def _record_input(i: int, whole: All) -> InputRow:
    source = whole.records[i]
    about = stored.about(source.part) if isinstance(source, FreshRecords) else source.part
    facts = about.facts
    return InputRow(
        facts.path, facts.format, about.digest, facts.rank, about.host, facts.event_count, True,
        of_host=about.host,
    )  # fmt: skip


def _assumed(plan: Planned, whole: All, dated: Sequence[Dated]) -> Iterator[Remark]:
    """Say which year, zone or day was assumed where a file does not tell it."""
    for i in plan.home.records:
        if dated[i].said:
            row = _record_input(i, whole)
            remedy = "nothing to do if that is right; else log with the year and zone"
            yield Remark(row.path, "times", dated[i].said, remedy)


def _replaced(out: Fresh | Kept, kept: Fresh | Kept) -> bool:
    """Tell whether a file took the place of another of its name."""
    same_name = members.name_of(out) == members.name_of(kept)
    return isinstance(out, Kept) and isinstance(kept, Fresh) and same_name


def _duplicates(run: runs.Membership, whole: All) -> Iterator[Remark]:
    instead = dict(run.duplicates)
    for out, kept in run.duplicates:
        if _replaced(whole.sources[out], whole.sources[kept]):
            continue
        while kept in instead and instead[kept] != out:  # it gave way to another in its turn
            kept = instead[kept]
        rank = whole.captures[out].rank
        names = members.name_of(whole.sources[out]), members.name_of(whole.sources[kept])
        if whole.captures[out].digest == whole.captures[kept].digest:
            yield Remark(
                names[0],
                f"rank {rank}",
                f"duplicate: has the same bytes as {names[1]}, which is used; this file is not",
                "if it should be another rank, it was overwritten: copy that rank's file again",
            )
            continue
        spans = whole.captures[kept].weight, whole.captures[out].weight
        yield Remark(
            names[0],
            f"rank {rank}",
            f"duplicate: says rank {rank} like {names[1]}, in the same time; {names[1]} is used "
            f"({spans[0]} spans), this file is not ({spans[1]} spans)",
            "if it is another rank, say which: --rank-regex 'rank(?P<rank>[0-9]+)'",
        )
