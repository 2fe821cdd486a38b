"""What files hold before a diagnosis: as what each was read, what was not, what is missing."""

from dataclasses import asdict, dataclass
from typing import Any

from teller.graph.finding import InputSummary, Quality, RunSummary
from teller.graph.store import Store


@dataclass(frozen=True, slots=True)
class FileSeen:
    """One file that a reader takes, and what came of it. Times are UTC epoch ns."""

    file: str
    format: str
    run: str  # name of its run, "" where nothing of it could be used
    rank: int | None
    host: str
    used: int  # events, lines, entries or rows
    first_epoch_ns: int | None
    last_epoch_ns: int | None
    unread: int  # lines that look like records and could not be read
    unread_example: str
    redacted: int  # lines in which a secret was left out
    note: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """Files of one kind that are no input of ours."""

    kind: str  # what they look like
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that a run lacks, what it would show, and how to record it."""

    run: str
    name: str
    record: str


@dataclass(frozen=True, slots=True)
class Survey:
    """All that is to be said of some paths."""

    runs: tuple[RunSummary, ...]
    files: tuple[FileSeen, ...]
    inputs: tuple[InputSummary, ...]
    data_quality: tuple[Quality, ...]
    foreign: tuple[Foreign, ...]
    missing: tuple[Layer, ...]

    def to_json(self) -> dict[str, Any]:
        """Give it as programs read it: ids and epochs are strings."""
        return {
            "runs": [run.to_json() for run in self.runs],
            "inputs": [asdict(item) for item in self.inputs],
            "files": [asdict(f) | _epochs(f) for f in self.files],
            "data_quality": [asdict(remark) for remark in self.data_quality],
            "others": [file for kind in self.foreign for file in kind.files],
            "foreign": [asdict(kind) for kind in self.foreign],
            "missing": [asdict(layer) for layer in self.missing],
        }


def _epochs(file: FileSeen) -> dict[str, str | None]:
    names = ("first_epoch_ns", "last_epoch_ns")
    return {n: None if (time := getattr(file, n)) is None else str(time) for n in names}


_FILES = """
MATCH (i:Input) WHERE i.run_id = $run
RETURN i.id AS id, i.path AS file, i.format AS format, i.rank AS rank, i.host AS host,
       i.event_count AS used, i.note AS note
ORDER BY file, id
"""
_LINES = """
MATCH (l:LogLine) WHERE l.run_id = $run
RETURN l.input_id AS id, min(l.time_ns) AS first, max(l.time_ns) AS last,
       sum(CASE WHEN l.text CONTAINS '<redacted>' THEN 1 ELSE 0 END) AS redacted
"""
_TIMES = (
    """
MATCH (s:Span) WHERE s.run_id = $run
RETURN s.input_id AS id, min(s.start_ns) AS first, max(s.end_ns) AS last
""",
    """
MATCH (q:Sample) WHERE q.run_id = $run AND q.time_ns IS NOT NULL
RETURN q.input_id AS id, min(q.time_ns) AS first, max(q.time_ns) AS last
""",
    """
MATCH (r:Rank)-[j:JOINED]->(c:Collective) WHERE r.run_id = $run AND j.arrival_ns IS NOT NULL
RETURN j.input_id AS id, min(j.arrival_ns) AS first, max(j.arrival_ns) AS last
""",
)
_UNREAD = """
MATCH (q:Sample) WHERE q.run_id = $run AND q.name = 'log.unread'
RETURN q.input_id AS id, sum(q.value) AS unread, min(q.text) AS example
"""


def files_of(store: Store, run: RunSummary) -> list[FileSeen]:
    """Give the files of a run that a store holds."""
    ask = {"run": run.id}
    spans: dict[int, list[int]] = {}
    lines = store.query(_LINES, ask).to_pylist()
    for row in [*lines, *(r for text in _TIMES for r in store.query(text, ask).to_pylist())]:
        known = [t for t in (row["first"], row["last"]) if t is not None]
        spans.setdefault(row["id"], []).extend(known)
    unread = {row["id"]: row for row in store.query(_UNREAD, ask).to_pylist()}
    redacted = {row["id"]: row["redacted"] for row in lines}
    found = []
    for row in store.query(_FILES, ask).to_pylist():
        times = spans.get(row["id"]) or []
        epoch = [t + run.t0_epoch_ns for t in (min(times), max(times))] if times else []
        first, last = epoch if epoch and run.t0_epoch_ns > 0 else (None, None)
        odd = unread.get(row["id"], {"unread": 0, "example": ""})
        found.append(
            FileSeen(
                row["file"], row["format"], run.name, row["rank"], row["host"] or "",
                row["used"] or 0, first, last, int(odd["unread"]), odd["example"] or "",
                int(redacted.get(row["id"], 0)), row["note"] or "",
            )
        )  # fmt: skip
    return found
