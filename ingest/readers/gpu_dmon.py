"""What `nvidia-smi dmon`, `nvidia-smi pmon` and `dcgmi dmon` print: a column a figure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_lines import Block, Lines, head_lines
from teller.ingest.readers.side_tables import Unread, joined, number, reading, rows, samples
from teller.ingest.readers.side_times import civil, of_day
from teller.ingest.records import SAMPLES, ClockKind, Records
from teller.ingest.source import Facts, Reading

FORMAT: Final = "gpu_dmon"

_MIB: Final = 1048576.0
# fmt: off
FIELDS: Final = {  # a column's word, its sample, what to multiply by, the sample's text
    "pwr": ("gpu.power_w", 1.0, ""), "power": ("gpu.power_w", 1.0, ""),
    "gtemp": ("gpu.temperature_c", 1.0, ""), "temp": ("gpu.temperature_c", 1.0, ""),
    "tmptr": ("gpu.temperature_c", 1.0, ""),
    "sm": ("gpu.utilisation_ratio", 0.01, ""), "gputl": ("gpu.utilisation_ratio", 0.01, ""),
    "mclk": ("gpu.mem_clock_mhz", 1.0, ""), "mmclk": ("gpu.mem_clock_mhz", 1.0, ""),
    "pclk": ("gpu.sm_clock_mhz", 1.0, ""), "smclk": ("gpu.sm_clock_mhz", 1.0, ""),
    "fb": ("gpu.memory_used_bytes", _MIB, ""), "fbusd": ("gpu.memory_used_bytes", _MIB, ""),
    "sbecc": ("gpu.ecc_errors", 1.0, "corrected"),
    "dbecc": ("gpu.ecc_errors", 1.0, "uncorrected"),
}
# fmt: on
_DEVICE: Final = ("gpu", "entity")
_HEADER: Final = re.compile(r"^\s*#\s*(?:date\s+time\s+|time\s+)?(?:gpu\b|Entity\b)", re.IGNORECASE)


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins with the header of a device monitor."""
    return any(_words(line) is not None for line in head_lines(head)[:20])


def read(path: Path) -> Reading:
    """Read one monitor's output: a sample for each figure in each row."""
    lines, unread, words = Lines(path), Unread(), None
    parts: list[pa.Table] = []
    clock: ClockKind = "none"
    for block in lines.blocks():
        words = words or _first(block.lines.slice(0, 64).to_pylist())
        if words is None:
            break
        monitor = _Rows(words, block)
        clock = monitor.clock
        unread.add(monitor.unread)
        parts.append(joined(SAMPLES, list(monitor.samples())))
    made = joined(SAMPLES, parts)
    options = {"day": "unknown"} if clock == "yearless" else {}
    facts = Facts(str(path), FORMAT, options=options, event_count=made.num_rows)
    return reading(lines, Records(facts, clock, samples=made), unread, "device figures")


def _first(lines: Sequence[str]) -> tuple[str, ...] | None:
    return next((words for line in lines if (words := _words(line))), None)


def _words(line: str) -> tuple[str, ...] | None:
    """Give the columns' words of a header, None of any other line."""
    if not _HEADER.match(line):
        return None
    words = tuple(word.lower() for word in line.replace("#", " ").split())
    figures = "pid" in words or any(word in FIELDS for word in words)
    return words if figures and any(word in words for word in _DEVICE) else None


@dataclass(slots=True)
class _Rows:
    """The rows of a block, in columns of words."""

    words: tuple[str, ...]
    block: Block

    @property
    def clock(self) -> ClockKind:
        """Tell what times the rows have."""
        if "time" not in self.words:
            return "none"
        return "local" if "date" in self.words else "yearless"

    @property
    def unread(self) -> pa.Array:
        """Give the numbers of the lines that are no rows and no headers."""
        comment = pc.match_substring_regex(self.block.lines, r"^\s*(?:#.*|ID\s*)?$")
        return self.block.numbers.filter(pc.invert(pc.or_(comment, self._whole())))

    def samples(self) -> Iterator[pa.Table]:
        """Give the samples of all columns that mean something."""
        keep = self._whole()
        cells = self._cells().filter(keep)
        column = {word: pc.list_element(cells, at) for at, word in enumerate(self.words)}
        device = next(column[word] for word in _DEVICE if word in column)
        who: dict[str, object] = {
            "line": self.block.numbers.filter(keep),
            "device_index": pc.cast(device, pa.int64()),
            "time_ns": self._times(column),
        }
        if "pid" in column:
            yield _processes(column, who)
            return
        for word in self.words:
            if word in FIELDS:
                sample, factor, text = FIELDS[word]
                value = pc.multiply(number(column[word]), factor)
                made = rows(
                    SAMPLES, len(value), {"name": sample, "value": value, "text": text} | who
                )
                yield made.filter(made["value"].is_valid())

    def _cells(self) -> pa.Array:
        # dcgmi writes "GPU 0" where the others write "0"
        line = pc.replace_substring_regex(self.block.lines, r"^\s*(?:GPU\s+)?", "")
        return pc.split_pattern_regex(pc.utf8_trim_whitespace(line), r"\s+")

    def _whole(self) -> pa.Array:
        """Tell which lines are rows: as many words as the header, or a command's more."""
        size = pc.list_value_length(self._cells())
        least = pc.greater_equal(size, len(self.words))
        most = pc.less_equal(size, len(self.words) + (64 if "command" in self.words else 0))
        at = next(i for i, word in enumerate(self.words) if word in _DEVICE)
        shape = r"^\s*(?:GPU\s+)?" + r"\S+\s+" * at + r"\d{1,4}\s"
        row = pc.match_substring_regex(self.block.lines, shape)
        return pc.and_(pc.and_(least, most), row)

    def _times(self, column: dict[str, pa.Array]) -> pa.Array | None:
        if "time" not in column:
            return None
        if "date" not in column:
            return of_day(column["time"])
        date = pc.replace_substring_regex(column["date"], r"^(\d{4})(\d\d)(\d\d)$", r"\1-\2-\3")
        return civil(pc.binary_join_element_wise(date, column["time"], " "))[0]


def _processes(column: dict[str, pa.Array], who: dict[str, object]) -> pa.Table:
    """Give one sample a device: how many processes used it in the block, and their names."""
    command = column.get("command", column["pid"])
    seen = pa.table({"device": who["device_index"], "pid": column["pid"], "command": command,
                     "line": who["line"]})  # fmt: skip
    seen = seen.filter(pc.match_substring_regex(seen["pid"], r"^\d+$"))
    once = seen.group_by(["device", "pid", "command"], use_threads=False).aggregate(
        [("line", "min")]
    )
    each = once.group_by("device", use_threads=False).aggregate(
        [("pid", "count"), ("command", "list"), ("line_min", "min")]
    )
    names = [" ".join(sorted(set(one))) for one in each["command_list"].to_pylist()]
    return samples("gpu.processes", each.num_rows, value=each["pid_count"].cast(pa.float64()),
                   text=names, device_index=each["device"], line=each["line_min_min"])  # fmt: skip
