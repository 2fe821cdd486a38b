"""What heads of lines say, a row a distinct head: the same one stands before many lines."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.grammars import ANY_PREFIX, ANY_SURE, HEADERS, PREFIXES, WEAK, Grammar
from teller.ingest.logs.strings import Flags, Ints, cut, flags, ints
from teller.ingest.logs.times import NONE, Times, read_times

LEVELS: Final = {
    "debug": ("TRACE", "DEBUG", "D", "V", "VERBOSE", "CALL", "debug"),
    "info": ("INFO", "NOTICE", "SUCCESS", "I", "VERSION", "info", "notice"),
    "warning": ("WARNING", "WARN", "W", "warn", "warning"),
    "error": ("ERROR", "SEVERE", "E", "ABORT", "err", "error", "INTERNAL_ERROR"),
    "fatal": ("FATAL", "CRITICAL", "F", "C", "emerg", "alert", "crit"),
}
BY_PRIORITY: Final = ("fatal", "fatal", "fatal", "error", "warning", "info", "info", "debug")
_GIVEN: Final = pa.array([word for words in LEVELS.values() for word in words])
_MEANT: Final = pa.array([level for level, words in LEVELS.items() for _ in words])
TEXT: Final = ("process", "host", "level", "origin", "grammar", "stream")
MOST_PREFIXES: Final = 4


@dataclass(slots=True)
class Heads:
    """What each of some heads says: "" and -1 where it does not. `weak` is the part not sure."""

    text: dict[str, npt.NDArray[np.object_]]
    pid: Ints
    rank: Ints
    task: Ints
    times: Times
    weak: list[str]

    @classmethod
    def empty(cls, size: int) -> "Heads":
        """Give heads that say nothing."""
        text = {name: np.full(size, "", np.object_) for name in TEXT}
        pid, rank, task = (np.full(size, -1, np.int64) for _ in range(3))
        return cls(text, pid, rank, task, Times.none(size), [])


@dataclass(slots=True)
class HeadReader:
    """Reads heads; grammars that were met often are tried first."""

    met: dict[str, int] = field(default_factory=dict)

    def read(self, heads: pa.Array) -> Heads:
        """Read distinct heads."""
        said = Heads.empty(len(heads))
        rows = np.arange(len(heads))
        left = self._weakly(heads, rows, said)
        for _ in range(MOST_PREFIXES):
            there = np.flatnonzero(flags(pc.match_substring_regex(left, ANY_PREFIX)))
            if not len(there):
                break
            less = self._match(PREFIXES, left.take(pa.array(there)), there, said)
            left = pc.replace_with_mask(left, _mask(there, len(left)), less)
        said.text["stream"] = _streams(said)
        self._match(HEADERS, left, rows, said)
        return said

    def _weakly(self, heads: pa.Array, rows: Ints, said: Heads) -> pa.Array:
        """Take off what only a header behind it, or the same before other lines, makes sure."""
        open_rows = rows[~flags(pc.match_substring_regex(heads, ANY_SURE))]
        less = self._match(WEAK, heads.take(pa.array(open_rows)), open_rows, said)
        return pc.replace_with_mask(heads, _mask(open_rows, len(heads)), less)

    def _match(self, grammars: tuple[Grammar, ...], left: pa.Array, rows: Ints, said: Heads) -> Any:
        """Note what the grammars read in `left`, row n of which is `rows[n]`; give what is left."""
        behind = np.zeros(len(left), np.int64)
        open_rows, text = np.arange(len(left)), left
        for grammar in sorted(grammars, key=lambda g: -self.met.get(g.name, 0)):
            if not len(open_rows):
                break
            found = pc.extract_regex(text, f"^(?P<whole>{grammar.pattern})")
            good = found.is_valid().to_numpy(zero_copy_only=False)
            if not good.any():
                continue
            self.met[grammar.name] = self.met.get(grammar.name, 0) + int(good.sum())
            kept = found.filter(pa.array(good))
            groups = {name: kept.field(name) for name in grammar.groups}
            _note(grammar, groups, rows[open_rows[good]], said)
            whole = kept.field("whole")
            behind[open_rows[good]] = ints(pc.binary_length(whole))
            if grammar in WEAK:
                said.weak += pc.unique(whole).to_pylist()
            open_rows, text = open_rows[~good], text.filter(pa.array(~good))
        return cut(left, behind)[1]


def _mask(rows: Ints, size: int) -> pa.Array:
    mask: Flags = np.zeros(size, np.bool_)
    mask[rows] = True
    return pa.array(mask)


def _streams(said: Heads) -> npt.NDArray[np.object_]:
    """Name whose output each row is, as launchers say."""
    numbers = (pa.array(n) for n in (said.pid, said.rank, said.task))
    parts = (pa.array(said.text["process"], pa.string()), *numbers)
    return _words(pc.binary_join_element_wise(*(pc.cast(p, pa.string()) for p in parts), "/"))


def _note(grammar: Grammar, groups: dict[str, Any], rows: Ints, said: Heads) -> None:
    """Set what one grammar read; a launcher's word on time and rank stays."""
    times = read_times(groups, len(rows))
    fresh = (said.times.kind[rows] == NONE) & (times.kind != NONE)
    said.times.ns[rows[fresh]] = times.ns[fresh]
    said.times.kind[rows[fresh]] = times.kind[fresh]
    said.times.resolution[rows[fresh]] = times.resolution[fresh]
    for name, column in (("pid", said.pid), ("rank", said.rank), ("task", said.task)):
        if name in groups:
            number = _small(groups[name])
            column[rows] = np.where(number >= 0, number, column[rows])
    for name in ("process", "host"):
        if name in groups:
            value = _words(pc.utf8_trim_whitespace(groups[name]))
            if grammar.name == "nccl" and name == "process":  # a device; a launcher says more
                value = np.where(said.text[name][rows] == "", value, "")
            said.text[name][rows] = np.where(value == "", said.text[name][rows], value)
    if grammar.origin:
        said.text["origin"][rows] = grammar.origin
    said.text["grammar"][rows] = grammar.name
    _levels(groups, rows, said)


def _levels(groups: dict[str, Any], rows: Ints, said: Heads) -> None:
    if "level" in groups:
        meant = _MEANT.take(pc.index_in(groups["level"], _GIVEN))
        said.text["level"][rows] = _words(pc.fill_null(meant, ""))
    if "prio" in groups:
        number = _small(groups["prio"])
        said.text["level"][rows] = np.where(
            number >= 0, np.array(BY_PRIORITY, np.object_)[number & 7], ""
        )


def _small(text: Any) -> Ints:
    """Read whole numbers; what is none or has too many digits is -1."""
    good = pc.match_substring_regex(text, r"^\d{1,9}$")
    return ints(pc.cast(pc.if_else(good, text, "-1"), pa.int64()))


def _words(column: Any) -> npt.NDArray[np.object_]:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.object_)
