"""Show lines to those who know their program, and gather what they make of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import Knowing, Knowledge, Meant
from teller.ingest.logs.strings import flags
from teller.ingest.records import LINES, Learned

# what a module can get wrong about content; anything else is a defect of the machinery
DEFECTS: Final = (ArithmeticError, LookupError, TypeError, ValueError, pa.ArrowException)
TOLD: Final = ("params", "step_index", "request", "rank", "host")
SHOWN: Final = tuple(n for n in LINES.names if n not in ("template", "params"))
ORIGINS: Final = ("nccl", "vllm", "sglang", "trtllm", "triton", "torch", "ray", "kernel")


@dataclass(slots=True)
class Pupil:
    """One module at work on one file."""

    name: str
    marks: str
    knowing: Knowing


@dataclass(slots=True)
class Learning:
    """What all modules learned of one file."""

    pupils: list[Pupil]
    learned: list[Learned] = field(default_factory=list)
    processes: dict[tuple[str, int | None], int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # "module: what happened"

    @classmethod
    def begin(cls, known: Iterable[Knowledge]) -> "Learning":
        """Begin a file."""
        return cls([
            Pupil(_name(module), "|".join(map(re.escape, module.MARKS)), module.knowing())
            for module in known
        ])  # fmt: skip

    def learn(self, lines: pa.Table) -> pa.Table:
        """Show the lines; give them with what was told set in them, and `understood`."""
        shown = lines.select(SHOWN)
        understood = pa.array(np.zeros(len(lines), np.bool_))
        before = len(self.learned)
        lines = lines.append_column("params", pa.nulls(len(lines), pa.string()))
        for pupil in list(self.pupils):
            told = self._show(pupil, shown)
            if told is None or not told.num_rows:
                continue
            at = pc.index_in(lines["place"], told["place"].combine_chunks()).combine_chunks()
            understood = pc.or_(understood, at.is_valid())
            lines = _set(lines, told, at)
            if pupil.name in ORIGINS:
                lines = _origin(lines, at, pupil.name)
        for facts in (t for one in self.learned[before:] for t in _tables(one)):
            understood = pc.or_(understood, pc.is_in(lines["line"], facts["line"]))
        return lines.append_column("understood", understood)

    def tables(self, name: str) -> list[pa.Table]:
        """Give all parts of one of the tables of facts."""
        return [getattr(one, name) for one in self.learned]

    def _show(self, pupil: Pupil, shown: pa.Table) -> pa.Table | None:
        mine = pc.match_substring_regex(shown["text"], pupil.marks)
        if not pc.any(mine).as_py():
            return None
        try:
            meant = pupil.knowing.learn(shown.filter(mine))
            return self._keep(meant)
        except DEFECTS as error:
            self.pupils.remove(pupil)
            self.failed.append(f"{pupil.name}: {type(error).__name__}")
            return None

    def _keep(self, meant: Meant) -> pa.Table | None:
        self.learned.append(meant.learned)
        self.processes.update(meant.processes or {})
        return meant.told


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


def _set(lines: pa.Table, told: pa.Table, at: pa.Array) -> pa.Table:
    """Set what was told where it says something."""
    for name in TOLD:
        if name not in told.column_names:
            continue
        index, kind = lines.schema.get_field_index(name), lines.schema.field(name).type
        value = told[name].cast(kind).take(at)
        lines = lines.set_column(index, name, pc.coalesce(value, lines[name]))
    return lines


def _origin(lines: pa.Table, at: pa.Array, name: str) -> pa.Table:
    """Say who wrote the lines whose header does not tell."""
    silent = flags(pc.is_in(lines["origin"], pa.array(["", "glog"]))) & flags(at.is_valid())
    if not silent.any():
        return lines
    origin = pc.if_else(pa.array(silent), name, lines["origin"])
    return lines.set_column(lines.schema.get_field_index("origin"), "origin", origin)
