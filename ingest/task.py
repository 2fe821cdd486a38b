"""Reads and shapes one file: what any thread, process or worker can do by itself."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from teller.ingest.discover import Candidate, is_seen, reader_named
from teller.ingest.guard import guarded
from teller.ingest.plausible import plausible
from teller.ingest.records import Records
from teller.ingest.shape import Shaped, shape
from teller.ingest.source import Reading, Remark
from teller.ingest.walk import unreadable


@dataclass(frozen=True, slots=True)
class FileResult:
    """What a task leaves of one file."""

    shaped: tuple[Shaped, ...] = ()
    remarks: tuple[Remark, ...] = ()
    records: tuple[Records, ...] = ()

    def moved(self, folder: Path) -> Self:
        """Give the same with its spans in another folder, under the same names."""
        shaped = tuple(replace(s, spans=folder / s.spans.name) for s in self.shaped)
        return replace(self, shaped=shaped)


@dataclass(frozen=True, slots=True)
class Task:
    """One file to read; `number` tells its spans from those of others."""

    candidate: Candidate
    number: int

    @classmethod
    def of(cls, candidate: Candidate, number: int) -> "Task":
        """Give the task for a file, wherever it is done: its path says all."""
        path = Path(os.path.abspath(candidate.path))
        return cls(replace(candidate, path=path), number)

    def can_be_done(self) -> bool:
        """Tell whether the file that was found is seen from this machine."""
        return is_seen(self.candidate)

    def __call__(self, folder: Path) -> FileResult:
        """Read the file and give structure to each process in it; spans are put into the folder."""
        try:
            reading = reader_named(self.candidate.format).read(self.candidate.path)
        except OSError as error:
            return FileResult(remarks=(unreadable(self.candidate.name, error),))
        try:
            return self._shaped(guarded(reading), folder)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # a defect of ours, met in this file alone: the others are still worth an answer
            what = f"holds what cannot be worked on: {type(error).__name__}: {error}"
            return self.lost(what, "the other files are used; please report this line")

    def lost(self, what: str, remedy: str) -> FileResult:
        """Give the result of a file of which nothing can be used."""
        return FileResult(remarks=(Remark(self.candidate.name, "", what, remedy),))

    def _shaped(self, reading: Reading, folder: Path) -> FileResult:
        name, shaped, said = self.candidate.name, [], list(reading.remarks)
        for part, source in enumerate(reading.sources):
            facts, doubted = plausible(replace(source.facts, path=name))
            said += doubted
            to = folder / f"{self.number:05d}-{part}.parquet"
            shaped.append(shape(replace(source, facts=facts), to))
        remarks = tuple(replace(r, path=name) for r in said)
        records = tuple(replace(r, facts=replace(r.facts, path=name)) for r in reading.records)
        if not shaped and not records and not remarks:
            return self.lost("holds nothing that can be used", "check how it was recorded")
        return FileResult(tuple(shaped), remarks, records)
