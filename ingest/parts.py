"""What a run is made of: sources of spans and files of records, each with its identity."""

from dataclasses import dataclass

from teller.ingest.records import Records
from teller.ingest.shape import Shaped
from teller.ingest.who import Identity


@dataclass(frozen=True, slots=True)
class Part:
    """A source with its identity and its file."""

    shaped: Shaped
    identity: Identity
    head: str
    digest: str


@dataclass(frozen=True, slots=True)
class RecordPart:
    """A file's records with what is known of the file."""

    records: Records
    host: str  # of the whole file, "" where it speaks of several or of none
    host_source: str
    head: str
    digest: str
    modified_ns: int = 0
    size: int = 0
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class DatedRecords:
    """Records, and what to add to their times to reach UTC; None where nothing can."""

    part: RecordPart
    shift_ns: int | None
