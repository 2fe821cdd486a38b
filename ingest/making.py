"""Makes one run: brings its parts together, assembles it, and commits it to the archive."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from teller.graph.archive import Archive, RunEntry
from teller.ingest import generation, runs, stored
from teller.ingest.assembly import InputRow, assemble, run_key
from teller.ingest.companions import Home
from teller.ingest.dating import Dated
from teller.ingest.discover import Found
from teller.ingest.members import All, Fresh, FreshRecords, Kept, KeptRecords
from teller.ingest.parts import DatedRecords, Part
from teller.ingest.source import Remark


@dataclass(frozen=True, slots=True)
class Planned:
    """A run that is to be: its captures, its records, and what knew it before."""

    run: runs.Membership
    home: Home
    before: Kept | KeptRecords | None


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes one run."""

    plan: Planned
    whole: All
    dated: Sequence[Dated]
    found: Found
    archive: Archive
    deployment: str
    digest: str

    def make(self, rows: list[InputRow], remarks: list[Remark]) -> RunEntry:
        """Commit the run, unless nothing of it is new."""
        plan, before = self.plan, self.plan.before
        if before is not None and not (plan.run.is_new or plan.home.is_new):
            return before.entry
        staged = self.archive.stage()
        parts = [self._part(i, staged) for i in plan.run.captures]
        records = [self._records(i) for i in plan.home.records]
        wanted = plan.home.manifest or plan.run.key
        manifest = next((m for m in self.found.manifests if wanted and m.run == wanted), None)
        named = manifest.run if manifest else before.stored.manifest if before else ""
        key = before.stored.key if before else self._key(parts, records, wanted)
        engine = f"{manifest.engine.name} {manifest.engine.version}".strip() if manifest else ""
        old_rows, old = self._before(rows)
        assembly = assemble(
            parts,
            [*rows, *old_rows],
            list(dict.fromkeys([*old, *remarks])),
            key=key,
            name=before.entry.name if before else named or key[:8],
            deployment=(manifest.deployment if manifest else "") or self.deployment,
            engine=engine,
            t0_epoch_ns=before.stored.t0_epoch_ns if before else None,
            records=records,
            baseline=plan.home.baseline,
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
            baseline=assembly.baseline,
            targets=before.entry.targets if before else {},
        )
        return self.archive.commit(entry, staged)

    def _key(self, parts: list[Part], records: list[DatedRecords], named: str) -> str:
        """Give a key that no other run has: two windows may begin with the same large header."""
        kept = [r.part for r in records]
        key = run_key(parts or kept, named)
        taken = any(e.key == key for e in self.archive.runs()) and not named
        return run_key(parts or kept, "", whole=True) if taken else key

    def _before(self, rows: list[InputRow]) -> tuple[list[InputRow], tuple[Remark, ...]]:
        """Give the unused inputs and the remarks that the run had before."""
        before = self.plan.before
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
        source = self.whole.sources[i]
        if isinstance(source, Fresh):
            return source.part
        copy = staged / f"kept-{i}.parquet"
        return stored.part_of(self.archive, source.entry, source.stored, source.number, copy)

    def _records(self, i: int) -> DatedRecords:
        source = self.whole.records[i]
        part = (
            source.part
            if isinstance(source, FreshRecords)
            else stored.records_of(self.archive, source.entry, source.stored, source.number)
        )
        return DatedRecords(part, self.dated[i].shift_ns)
