"""Remarks on an Nsight Systems export: what the profiler itself said, and what had to be mended."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from teller.ingest.readers.nsys_spans import Events, Failures
from teller.ingest.readers.nsys_tables import Tables, enum_ids, whole
from teller.ingest.source import Remark

MOST: Final = 10
_LONGEST: Final = 300
_LEVELS: Final = {"Warning": 2, "Error": 3}
_REMEDIES: Final = (
    (("dropped", "lost", "buffer", "not all", "overflow"),
     "events are missing: record a shorter window, or fewer kinds of events"),
    (("no nvtx",), "add nvtx to --trace, and switch the engine's annotations on"),
    (("no cuda", "cuda profiling might"),
     "add cuda to --trace, and profile the process that uses the GPU"),
    (("driver version",), "use a release of Nsight Systems that knows this driver"),
    (("scheduling information", "cpu ip", "perf event", "context switch"),
     "needed only for CPU sampling: lower perf_event_paranoid"),
    (("clock was set", "machine slept"),
     "later times of this file are off UTC by so much: let clocks be slewed (chrony), not set"),
)  # fmt: skip
_OTHER: Final = "see whether the traces that you need were recorded"
_MENDED: Final = {
    "without a start": "left out",
    "without a device or times": "left out",
    "beyond the largest place": "left out",
    "with an end before the start": "taken as instants",
    "without an end": "taken as open until the end of the capture",
}


def diagnostics(tables: Tables) -> list[Remark]:
    """Give warnings and errors of the profiler, each once with its count, errors first."""
    levels = enum_ids(tables, "ENUM_DIAGNOSTIC_SEVERITY_LEVEL", _LEVELS)
    rows = whole(tables, "DIAGNOSTIC_EVENT", ("severity", "text")).to_pylist()
    said = Counter(
        (row["severity"] != levels["Error"], " ".join(row["text"].split()))
        for row in rows
        if row["severity"] in (levels["Warning"], levels["Error"]) and row["text"]
    )
    ranked = sorted(said.items(), key=lambda one: (not _is_loss(one[0][1]), one[0][0], -one[1]))
    found = [_diagnostic(tables.path, text, milder, n) for (milder, text), n in ranked[:MOST]]
    if len(ranked) > MOST:
        more = f"{len(ranked) - MOST} other warnings of the profiler"
        found.append(Remark(tables.path, "DIAGNOSTIC_EVENT", more, _OTHER))
    return found


def _diagnostic(path: str, text: str, milder: bool, count: int) -> Remark:
    level = "warning" if milder else "error"
    times = f" ({count} times)" if count > 1 else ""
    cut = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    remedy = next((r for words, r in _REMEDIES if any(w in text.lower() for w in words)), _OTHER)
    return Remark(path, "DIAGNOSTIC_EVENT", f"{level} of the profiler: {cut}{times}", remedy)


def _is_loss(text: str) -> bool:
    return any(word in text.lower() for word in _REMEDIES[0][0])


def mended(path: str, events: Events) -> Iterator[Remark]:
    """Give what was wrong with rows, table by table."""
    for table, counts in events.spans.mended.items():
        for what, count in counts.items():
            rows = "row" if count == 1 else "rows"
            yield Remark(
                path, table, f"{count} {rows} {what}: {_MENDED[what]}",
                "harmless if few; else export the report again",
            )  # fmt: skip


def failed_calls(path: str, pid: int, failures: Failures) -> Remark:
    """Say how many API calls of a process failed."""
    calls = "call" if failures.count == 1 else "calls"
    return Remark(
        path, "CUPTI_ACTIVITY_KIND_RUNTIME",
        f"{failures.count} CUDA API {calls} of process {pid} failed, first: {failures.name}"
        f" returned {failures.code} at {failures.start_ns} ns",
        "look up the code among CUDA's errors",
    )  # fmt: skip


def no_device_rows(path: str, pid: int) -> Remark:
    """Say that a process used CUDA without any device work in the trace."""
    return Remark(
        path, "CUPTI_ACTIVITY_KIND_KERNEL",
        f"process {pid} made CUDA calls, but no work of a GPU was recorded",
        "record with cuda in --trace and the right to read GPU activity",
    )  # fmt: skip


def unread_payloads(path: str, pid: int, count: int) -> Remark:
    """Say how many payloads could not be read."""
    return Remark(
        path, "NVTX_EVENTS", f"{count} payloads of communication of process {pid} are no JSON",
        "those calls are matched by order instead of sequence number",
    )  # fmt: skip


def nothing_used(tables: Tables) -> Remark:
    """Say that no process left anything to use."""
    return Remark(
        tables.path, "tables", "no process has rows of NVTX, CUDA or OS runtime events",
        "record with --trace=cuda,nvtx,osrt around the process that runs the model",
    )  # fmt: skip
