"""A run assembled from its sources: all that its tables are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import ids
from teller.ingest import scores
from teller.ingest.cast import Cast, cast
from teller.ingest.facts import Fact, facts_of
from teller.ingest.iterations import Stepped, steps_of
from teller.ingest.parts import DatedRecords, Part, RecordPart
from teller.ingest.record_rows import Rows, rows_of
from teller.ingest.records import window_of
from teller.ingest.requests import Asking, ranges_of, settle, with_lines
from teller.ingest.shape import Shaped
from teller.ingest.source import Remark
from teller.ingest.ties import Ties, tie
from teller.ingest.timeline import Timeline, lay_out, renumber

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InputRow:
    """A file of the run, used or not."""

    path: str
    format: str
    digest: str
    rank: int | None
    host: str
    event_count: int
    used: bool
    note: str = ""
    of_host: str = ""  # tells files of equal content apart: the modules of two hosts


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything about one run; `parts` are in order of rank."""

    key: str
    name: str
    deployment: str
    engine: str
    parts: tuple[Part, ...]
    inputs: tuple[InputRow, ...]
    remarks: tuple[Remark, ...]
    line: Timeline
    stepped: Stepped
    shifts: tuple[int, ...]
    expected: pa.Table
    facts: tuple[Fact, ...]
    dated: tuple[DatedRecords, ...]
    cast: Cast
    rows: Rows
    asking: Asking
    ties: Ties
    baseline: bool = False

    @property
    def records(self) -> tuple[RecordPart, ...]:
        """Give the files of records."""
        return tuple(r.part for r in self.dated)

    @property
    def run_id(self) -> int:
        """Give the id of the run."""
        return ids.run_id(self.key)

    @property
    def ranks(self) -> Ints:
        """Give the rank of each part."""
        return np.array([p.identity.rank for p in self.parts], np.int64)

    def base(self, part: Part) -> int:
        """Give the id of place 0 of a part."""
        return ids.place_base(self.key, part.identity.rank, part.shaped.facts.format, part.head)

    def bases(self) -> Ints:
        """Give the bases of all parts."""
        return np.array([self.base(p) for p in self.parts], np.int64)

    def rank_ids(self, ranks: Ints) -> Ints:
        """Give the ids of ranks."""
        return ids.node_ids(self.key, "Rank", ranks)

    def step_ids(self, ranks: Ints, steps: Ints) -> Ints:
        """Give the ids of steps."""
        return ids.node_ids(self.key, "Step", ranks, steps)

    def input_id(self, digest: str, host: str = "") -> int:
        """Give the id of an input."""
        return input_id(self.key, digest, host)

    @property
    def anchored(self) -> bool:
        """Tell whether the run's zero has a UTC epoch."""
        return self.line.anchored or any(r.shift_ns is not None for r in self.dated)


def input_id(key: str, digest: str, host: str = "") -> int:
    """Give the id of an input, from its content; records of two hosts may be equal."""
    return ids.node_id(key, "Input", *((digest, host) if host else (digest,)))


def run_key(
    parts: Sequence[Part] | Sequence[RecordPart], manifest: str, *, whole: bool = False
) -> str:
    """Give a run's key: its manifest's name, else a hash of the contents it was first made of."""
    if manifest:
        return manifest
    contents = sorted({p.digest if whole else p.head for p in parts})
    return f"{ids.node_id('', 'Run', *contents):016x}"


def assemble(
    parts: Sequence[Part],
    inputs: Sequence[InputRow],
    remarks: Sequence[Remark],
    *,
    key: str,
    name: str,
    deployment: str,
    engine: str,
    t0_epoch_ns: int | None = None,
    records: Sequence[DatedRecords] = (),
    baseline: bool = False,
) -> Assembly:
    """Work out all that needs several sources."""
    parts = tuple(sorted(parts, key=lambda p: (p.identity.rank, p.head)))
    sources = [p.shaped for p in parts]
    ranks = [p.identity.rank for p in parts]
    if t0_epoch_ns is None and not parts:
        t0_epoch_ns = _first(records)
    line = lay_out(sources, ranks, t0_epoch_ns)
    shifts = renumber(sources, line.timed.members)
    stepped = steps_of(sources, ranks, line, shifts)
    sums = [_renumbered(s.operators, shift) for s, shift in zip(sources, shifts, strict=True)]
    loaded = zip(ranks, sources, sums, stepped.loads, strict=True)
    expected = scores.expected(
        [(i, rank, _scored(t, one), load) for i, (rank, one, t, load) in enumerate(loaded)]
    )
    facts = facts_of(sources, line, sums, shifts)
    kept = [r.part for r in records]
    who = cast(parts, kept)
    inputs_of = [input_id(key, r.digest, r.host) for r in kept]
    rows = rows_of(records, who, inputs_of, key, line, parts)
    ranges = ranges_of(parts, line.axes, shifts)
    asking = settle(rows, [r.records.facts for r in kept], ranges, stepped.iterations)
    rows = with_lines(rows, asking)
    return Assembly(
        key, name, deployment, engine, parts, tuple(inputs), tuple(remarks), line, stepped,
        tuple(shifts), expected, tuple(facts), tuple(records), who, rows,
        asking, tie(rows.lines, stepped.steps, asking.served), baseline,
    )  # fmt: skip


def _first(records: Sequence[DatedRecords]) -> int:
    """Give the earliest time of records; 0 where none has one."""
    shifted = [(window_of(r.part.records), r.shift_ns) for r in records]
    return min((w[0] + s for w, s in shifted if w is not None and s is not None), default=0)


def _renumbered(sums: pa.Table, shift: int) -> pa.Table:
    step = sums["step_index"].combine_chunks().to_numpy()
    moved = np.where(step >= 0, step + shift, step)
    return sums.set_column(sums.column_names.index("step_index"), "step_index", pa.array(moved))


def _scored(sums: pa.Table, source: Shaped) -> pa.Table:
    """Score what is inside steps; a capture without steps is scored as one whole."""
    if not source.steps.num_rows:
        return sums
    return sums.filter(pc.greater_equal(sums["step_index"], 0))
