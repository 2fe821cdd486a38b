"""Benchmarks: tables of nccl-tests, also broken ones, and steps that a run times itself."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import Meant, matched, number, samples
from teller.ingest.logs.meaning import having, integers, labelled, meant, told, whole, with_text
from teller.ingest.records import MEMBERS

_GIGA: Final = 1e9
_MILLI: Final = 1e6
_FORMAT: Final = "nccl-tests"

_HEAD: Final = r"^\s*(?P<size>\d+)\s+\d+\s+(?:u?int\d*|half|b?float\d*|fp8\w*|double|f8e\w+)\b"
_HALF: Final = r"\s+[\d.]+\s+(?P<alg{0}>[\d.]+)\s+(?P<bus{0}>[\d.]+)\s+(?:\d+|N/A|[\d.]+e[+-]\d+)"
_FULL: Final = (
    _HEAD + r"(?:\s+[a-z]\w*)?(?:\s+-?\d+)?" + _HALF.format("_out") + _HALF.format("_in") + r"\s*$"
)
_REST: Final = r"^\s*[\d.]+\s+\d+\.\d\d\s+(?P<bus>\d+\.\d\d)(?:\s|$)"
_RANK: Final = (
    r"Rank\s+(?P<member>\d+)\s+(?:Group\s+\d+\s+)?Pid\s+(?P<process_id>\d+) on\s+(?P<node>\S+)"
    r"\s+device\s+(?P<device>\d+) \["
)
_ITERATION: Final = (
    r"\biteration\s+(?P<step>\d+)/\s*\d+ \|.*elapsed time per iteration \(ms\): (?P<ms>[\d.]+)"
)
_LATENCY: Final = r"Latency of step (?P<step>\d+): (?P<ms>[\d.]+) ms"

MARKS: tuple[str, ...] = (
    "  ",  # columns of a table
    *("_perf", "Avg bus bandwidth", "Out of bounds values"),
    *("elapsed time per iteration", "Latency of step"),
)


class _Knowing:
    """What one file's tables mean; the operation and a row's left part stand lines before."""

    def __init__(self) -> None:
        self._operation = ""
        self._size = ""
        self._table = False

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines; a message may hold several of a table."""
        timed, known = _timed(lines)
        lines = _lines(lines)
        self._operation = _latest(lines, r"\b(?P<last>[a-z_]+)_perf\b") or self._operation
        full = matched(lines, _FULL)
        made = [self._full(full, side) for side in ("out", "in")]
        made += [self._rests(lines), _average(having(lines, "Avg bus bandwidth"))]
        wrong = matched(having(lines, "Out of bounds"), r"(?P<words>values : \d+ FAILED)")
        made.append(samples("nccl.error", wrong, text=wrong["words"]))
        return meant([*made, *timed], known, members=[_members(lines)])

    def _full(self, rows: pa.Table, side: str) -> pa.Table:
        place = "out-of-place" if side == "out" else "in-place"
        return self._bandwidth(rows, rows[f"bus_{side}"], whole(rows["size"]), place)

    def _rests(self, lines: pa.Table) -> pa.Table:
        """Read right halves of rows that other output tore: the size is the last one begun."""
        begun = pc.struct_field(pc.extract_regex(whole(lines["text"]), _HEAD), "size")
        size = pc.fill_null_forward(begun)
        if self._size:
            size = pc.coalesce(size, pa.scalar(self._size))
        if len(size) and size[-1].is_valid:
            self._size = size[-1].as_py()
        lines = lines.append_column("size", size)
        self._table |= pc.any(pc.match_substring(lines["text"], "busbw"), min_count=0).as_py()
        torn = begun.is_null() if self._table else pa.repeat(False, lines.num_rows)
        rows = matched(lines.filter(torn), _REST)
        return self._bandwidth(rows, rows["bus"], whole(rows["size"]), "torn row")

    def _bandwidth(self, rows: pa.Table, bus: pa.Array, size: pa.Array, place: str) -> pa.Table:
        """Give what a row states: its operation, its size in bytes, and in which buffers."""
        what = " ".join(filter(None, (self._operation, "{} bytes", place)))
        text = labelled(what, pc.coalesce(size, pa.scalar("unknown")))
        value = pc.round(pc.multiply(number(bus), _GIGA))
        return samples("nccl.busbw_bytes_per_s", rows, value=value, text=text)


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()


def _lines(lines: pa.Table) -> pa.Table:
    """Give one row a line of each message."""
    parts = whole(pc.split_pattern(lines["text"], "\n"))
    rows = lines.take(pc.list_parent_indices(parts))
    return with_text(rows, parts.flatten())


def _latest(lines: pa.Table, pattern: str) -> str:
    """Give the last of what a pattern finds, or ""."""
    found = matched(having(lines, "_perf"), pattern)["last"]
    return str(found[-1].as_py()) if len(found) else ""


def _average(lines: pa.Table) -> pa.Table:
    """Read the average over all sizes of a run."""
    rows = matched(lines, r"Avg bus bandwidth\s*: (?P<bus>[\d.]+)")
    value = pc.round(pc.multiply(number(rows["bus"]), _GIGA))
    return samples("nccl.busbw_bytes_per_s", rows, value=value, text="average")


def _members(lines: pa.Table) -> pa.Table:
    """Read which process on which host uses which device."""
    rows = matched(having(lines, " device "), _RANK)
    none = pa.scalar(None, pa.string())
    made = {
        "group_name": pa.repeat(_FORMAT, rows.num_rows),
        "desc": pa.repeat(_FORMAT, rows.num_rows),
        "group_rank": integers(rows["member"]),
        "rank": integers(rows["member"]),
        "host": pc.if_else(pc.equal(rows["node"], "localhost"), none, rows["node"]),
        "pid": integers(rows["process_id"]),
        "line": rows["line"],
        "device_index": integers(rows["device"]),
    }
    empty = pa.nulls(rows.num_rows)
    return pa.table([whole(made.get(f.name, empty)).cast(f.type) for f in MEMBERS], schema=MEMBERS)


def _timed(lines: pa.Table) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read steps whose time a run prints."""
    made, known = [], []
    for mark, pattern in (("elapsed time per", _ITERATION), ("Latency of step", _LATENCY)):
        rows = matched(having(lines, mark), pattern)
        value = pc.multiply(number(rows["ms"]), _MILLI)
        made.append(samples("step.host_ns", rows, value=value, text=rows["step"]))
        if rows.num_rows:
            known.append(told(rows, step_index=integers(rows["step"])))
    return made, known
