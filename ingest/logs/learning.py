"""Show lines to those who know their program, and gather what they make of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.bounds import Bounds
from teller.ingest.logs.knowledge import SHOWN_LINES, Knowing, Knowledge, Meant
from teller.ingest.logs.meaning import whole
from teller.ingest.logs.shapes import SHAPE, compacted, holding, kept
from teller.ingest.logs.strings import Flags, Ints, flags, ints
from teller.ingest.records import Learned

# what a module can get wrong about content; anything else is a defect of the machinery
DEFECTS: Final = (ArithmeticError, LookupError, TypeError, ValueError, pa.ArrowException)
TOLD: Final = ("params", "step_index", "request", "rank", "host")
SHOWN: Final = (*SHOWN_LINES, SHAPE)
ORIGINS: Final = ("nccl", "vllm", "sglang", "trtllm", "triton", "torch", "ray", "kernel")


@dataclass(slots=True)
class Pupil:
    """One module at work on one file."""

    name: str
    marks: tuple[str, ...]
    knowing: Knowing


@dataclass(slots=True)
class Learning:
    """What all modules learned of one file."""

    pupils: list[Pupil]
    facts: Bounds = field(default_factory=Bounds)
    processes: dict[tuple[str, int | None], int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # "module: what happened"

    @classmethod
    def begin(cls, known: Iterable[Knowledge]) -> "Learning":
        """Begin a file."""
        return cls([
            Pupil(_name(module), tuple(module.MARKS), module.knowing()) for module in known
        ])  # fmt: skip

    def learn(self, lines: pa.Table) -> pa.Table:
        """Show the lines; give them with what was told set in them, and `understood`."""
        shown = lines.select(SHOWN)
        understood = np.zeros(len(lines), np.bool_)
        place, line = ints(lines["place"]), ints(lines["line"])
        fresh: list[Learned] = []
        lines = lines.append_column("params", pa.nulls(len(lines), pa.string()))
        for pupil in list(self.pupils):
            meant = self._show(pupil, shown)
            if meant is None:
                continue
            fresh.append(meant.learned)
            self.processes.update(meant.processes or {})
            told = meant.told
            if told is None or not told.num_rows:
                continue
            rows = np.searchsorted(place, ints(told["place"]))
            understood[rows] = True
            lines = _set(lines, told, rows)
            if pupil.name in ORIGINS:
                lines = _origin(lines, rows, pupil.name)
        for one in fresh:
            for facts in _tables(one):
                understood |= _spoken_of(line, ints(facts["line"].drop_null()))
            self.facts.add(one)
        return lines.append_column("understood", pa.array(understood))

    def _show(self, pupil: Pupil, shown: pa.Table) -> Meant | None:
        mine = holding(shown, *pupil.marks)
        if not mine.any():
            return None
        try:
            return pupil.knowing.learn(compacted(kept(shown, mine)))
        except DEFECTS as error:
            self.pupils.remove(pupil)
            self.failed.append(f"{pupil.name}: {type(error).__name__}")
            return None


def together(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Put parts of a table together."""
    return pa.concat_tables([schema.empty_table(), *(p.cast(schema) for p in parts)])


def names_of_facts() -> tuple[str, ...]:
    """Name the tables of facts."""
    return tuple(f.name for f in fields(Learned))


def _tables(one: Learned) -> list[pa.Table]:
    return [table for f in fields(one) if len(table := getattr(one, f.name))]


def _name(module: Knowledge) -> str:
    return str(getattr(module, "__name__", type(module).__name__)).rsplit(".", 1)[-1]


def _spoken_of(line: Ints, facts: Ints) -> Flags:
    """Tell of which lines facts speak; lines are in order."""
    first, last = int(line[0]), int(line[-1])
    spoken: Flags = np.zeros(last - first + 1, np.bool_)
    spoken[facts[(facts >= first) & (facts <= last)] - first] = True
    return spoken[line - first]


def _set(lines: pa.Table, told: pa.Table, rows: Ints) -> pa.Table:
    """Set what was told of some rows where it says something."""
    at: Ints = np.full(len(lines), len(told), np.int64)
    at[rows] = np.arange(len(told))
    for name in TOLD:
        if name not in told.column_names or told[name].null_count == len(told):
            continue
        index, kind = lines.schema.get_field_index(name), lines.schema.field(name).type
        value = pa.concat_arrays([whole(told[name].cast(kind)), pa.nulls(1, kind)]).take(
            pa.array(at)
        )
        lines = lines.set_column(index, name, pc.coalesce(value, lines[name]))
    return lines


def _origin(lines: pa.Table, rows: Ints, name: str) -> pa.Table:
    """Say who wrote the lines whose header does not tell."""
    silent: Flags = np.zeros(len(lines), np.bool_)
    silent[rows] = True
    silent &= flags(pc.is_in(lines["origin"], pa.array(["", "glog"])))
    if not silent.any():
        return lines
    origin = pc.if_else(pa.array(silent), name, lines["origin"].cast(pa.string()))
    at = lines.schema.get_field_index("origin")
    return lines.set_column(at, "origin", pc.dictionary_encode(origin))
