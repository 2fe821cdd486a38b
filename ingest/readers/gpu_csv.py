"""What `nvidia-smi --query-gpu=… --format=csv` writes: clocks, power, temperature of devices."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_csv import Header, header, tables
from teller.ingest.readers.side_lines import Lines, head_lines
from teller.ingest.readers.side_tables import Unread, joined, number, reading, rows, samples
from teller.ingest.readers.side_times import civil, epoch
from teller.ingest.records import SAMPLES, ClockKind, Records
from teller.ingest.source import Facts, Gpu, Reading

FORMAT: Final = "gpu_csv"

_MIB: Final = 1048576.0
# fmt: off
# a query's field, its sample, what to multiply by, and the sample's text
FIELDS: Final = (
    (r"clocks\.(current\.)?sm", "gpu.sm_clock_mhz", 1.0, ""),
    (r"clocks\.(current\.)?mem(ory)?", "gpu.mem_clock_mhz", 1.0, ""),
    (r"clocks\.max\.sm", "gpu.sm_clock_max_mhz", 1.0, ""),
    (r"power\.draw(\.instant)?", "gpu.power_w", 1.0, ""),
    (r"(enforced\.)?power\.limit", "gpu.power_limit_w", 1.0, ""),
    (r"temperature\.gpu", "gpu.temperature_c", 1.0, ""),
    (r"utilization\.gpu", "gpu.utilisation_ratio", 0.01, ""),
    (r"memory\.used", "gpu.memory_used_bytes", _MIB, ""),
    (r"ecc\.errors\.corrected\.volatile\.total", "gpu.ecc_errors", 1.0, "corrected"),
    (r"ecc\.errors\.uncorrected\.volatile\.total", "gpu.ecc_errors", 1.0, "uncorrected"),
    (r"remapped_rows\.correctable", "gpu.remapped_rows", 1.0, "corrected"),
    (r"remapped_rows\.uncorrectable", "gpu.remapped_rows", 1.0, "uncorrected"),
    (r"pcie\.link\.gen\.(gpu)?current", "gpu.pcie_gen", 1.0, ""),
    (r"pcie\.link\.gen\.(gpu|host)?max", "gpu.pcie_gen_max", 1.0, ""),
    (r"pcie\.link\.width\.current", "gpu.pcie_width", 1.0, ""),
    (r"pcie\.link\.width\.max", "gpu.pcie_width_max", 1.0, ""),
)
ACTIVE: Final = r"clocks_(throttle|event)_reasons\.active"
# the bits of NVML, where each reason has a column of its own
REASONS: Final = {
    "gpu_idle": 0x1, "applications_clocks_setting": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8,
    "sync_boost": 0x10, "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80, "display_clocks_setting": 0x100,
}
# fmt: on
_IDENTITY: Final = {
    "host": r"host|hostname|node|node_name|instance",
    "index": r"index|gpu|gpu_index|gpu_id|device|device_index",
    "time": r"timestamp|time|date",
    "uuid": r"(gpu_)?uuid",
    "bus": r"pci\.bus_id|gpu_bus_id",
    "name": r"(gpu_)?name",
}


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins with the header of a query for devices."""
    return _header(head_lines(head)) is not None


def read(path: Path) -> Reading:
    """Read one table: a sample for each figure in each row."""
    lines, unread = Lines(path), Unread()
    block = next(iter(lines.blocks()), None)
    head = _header(block.lines[:64].to_pylist()) if block else None
    if head is None:
        return reading(lines, Records(Facts(str(path), FORMAT), "none"), unread, "device table")
    columns = _Columns(head)
    parts, gpus = [], set()
    clock: ClockKind = "local"
    for table in tables(lines, head, unread, quotes=False):
        who, clock = columns.who(table, clock)
        made = joined(SAMPLES, list(columns.samples(table, who)))
        none = pc.invert(pc.is_in(table["line"], pc.unique(made["line"])))
        unread.add(table["line"].filter(none))
        parts.append(made)
        gpus |= columns.gpus(table, who)
    samples = joined(SAMPLES, parts)
    facts = Facts(str(path), FORMAT, gpus=tuple(sorted(gpus, key=lambda g: (g.index, g.uuid))),
                  event_count=samples.num_rows)  # fmt: skip
    return reading(lines, Records(facts, clock, samples=samples), unread, "device figures")


def _header(lines: Sequence[str]) -> Header | None:
    return header(lines, lambda words: any(_field(word) for word in words))


def _plain(word: str) -> str:
    """Give a field's name without its unit and capitals."""
    return re.sub(r"\s*\[.*?\]\s*$", "", word).strip("# ").lower()


def _field(word: str) -> tuple[str, float, str] | None:
    """Give the sample that a column is, what to multiply by, and its text."""
    name = _plain(word)
    if re.fullmatch(ACTIVE, name):
        return "gpu.throttle_reasons", 1.0, ""
    fits = (field for field in FIELDS if re.fullmatch(field[0], name))
    field = next(fits, None)
    return field[1:] if field else None


@dataclass(frozen=True, slots=True)
class _Columns:
    """What the columns of a table with this header mean."""

    head: Header

    def samples(self, table: pa.Table, who: dict[str, object]) -> Iterator[pa.Table]:
        """Give the samples of all columns that mean something."""
        for at, word in enumerate(self.head.words):
            field = _field(word)
            if field is None:
                continue
            sample, factor, text = field
            cells = table[str(at)]
            if sample == "gpu.throttle_reasons":
                mask = _mask(cells)
                shown = pc.if_else(mask.is_valid(), pc.utf8_trim_whitespace(cells), None)
                yield samples(sample, len(cells), value=mask, text=shown, **who)
                continue
            value = pc.multiply(number(cells), factor)
            made = rows(SAMPLES, len(cells), {"name": sample, "value": value, "text": text} | who)
            yield made.filter(made["value"].is_valid())
        if (mask := self._reasons(table)) is not None:
            yield samples("gpu.throttle_reasons", table.num_rows, value=mask, **who)

    def who(self, table: pa.Table, clock: ClockKind) -> tuple[dict[str, object], ClockKind]:
        """Give host, device, time and line of the rows, and what clock it is."""
        who: dict[str, object] = {"line": table["line"]}
        if (host := self._identity("host", table)) is not None:
            who["host"] = pc.if_else(pc.equal(host, ""), None, host)
        if (index := self._identity("index", table)) is not None:
            whole = pc.if_else(pc.match_substring_regex(index, r"^\d{1,9}$"), index, None)
            who["device_index"] = pc.cast(whole, pa.int64())
        if (time := self._identity("time", table)) is not None:
            ns, zoned = civil(time)
            since = epoch(number(time))
            if ns.null_count == len(ns) and since.null_count < len(since):
                ns, clock = since, "utc"
            elif pc.any(zoned).as_py():
                clock = "utc"
            who["time_ns"] = ns
        return who, clock

    def gpus(self, table: pa.Table, who: dict[str, object]) -> set[Gpu]:
        """Give the devices that the rows describe, where they have an index and a name."""
        told = {name: self._identity(name, table) for name in ("name", "uuid", "bus")}
        if "device_index" not in who or all(column is None for column in told.values()):
            return set()
        empty = pa.repeat("", table.num_rows)
        columns = {n: empty if c is None else c for n, c in told.items()}
        one = pa.table({"index": who["device_index"]} | columns).group_by(
            ["index", "name", "uuid", "bus"]
        )
        return {Gpu(**row) for row in one.aggregate([]).to_pylist() if row["index"] is not None}

    def _identity(self, what: str, table: pa.Table) -> pa.Array | None:
        for at, word in enumerate(self.head.words):
            if re.fullmatch(_IDENTITY[what], _plain(word)):
                return pc.utf8_trim_whitespace(table[str(at)].combine_chunks())
        return None

    def _reasons(self, table: pa.Table) -> pa.Array | None:
        """Give the mask out of single columns of reasons, where there is no column for all."""
        mask = None
        for at, word in enumerate(self.head.words):
            reason = re.fullmatch(r"clocks_(?:throttle|event)_reasons\.(\w+)", _plain(word))
            if reason and reason[1] == "active":
                return None
            if reason and reason[1] in REASONS:
                cell = pc.utf8_trim_whitespace(table[str(at)])
                bit = pc.if_else(pc.equal(cell, "Active"), float(REASONS[reason[1]]), 0.0)
                bit = pc.if_else(pc.match_substring(cell, "Active"), bit, None)
                mask = bit if mask is None else pc.add(mask, bit)
        return mask


def _mask(cells: pa.ChunkedArray) -> pa.Array:
    """Give the numbers of hexadecimal masks; null for what is none."""
    # the distinct masks of a file are few
    words = cells.combine_chunks().dictionary_encode()
    found = (
        re.fullmatch(r"\s*(?:0x)?([0-9a-fA-F]{1,16})\s*", w) for w in words.dictionary.to_pylist()
    )
    values = pa.array([float(int(m[1], 16)) if m else None for m in found], pa.float64())
    return values.take(words.indices)
