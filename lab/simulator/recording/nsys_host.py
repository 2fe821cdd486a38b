"""The host's rows of an nsys export: ranges, NCCL's ranges, calls and waits."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.lab.simulator.happened import NEVER, OPS, HostKind, Ints, Tiny
from teller.lab.simulator.recording import looks
from teller.lab.simulator.recording.columns import distinct
from teller.lab.simulator.recording.nsys_process import Process, Rows, texts
from teller.lab.simulator.recording.nsys_schema import NVTX, OVERHEAD, RUNTIME, SYNC, number
from teller.lab.simulator.recording.seen import Flags, column

NCCL_DOMAIN: Final = 1
_SYNCS: Final = {
    "cudaEventSynchronize": 1, "cudaStreamWaitEvent": 2, "cudaStreamSynchronize": 3,
    "cudaDeviceSynchronize": 4,
}  # fmt: skip
_NO_STREAM: Final = (1 << 32) - 1
_FLUSH_EVERY: Final = 20_000  # calls
_WITH_COMM: Final = (2, 25)  # the release that names the communicator


def host_rows(process: Process) -> Iterator[Rows]:
    """Give all rows of the host."""
    kind = process.happened.host[process.rank].kind[process.seen.host]
    yield _ranges(process, kind)
    yield _nccl(process, kind == HostKind.NCCL)
    yield from _calls(process, kind == HostKind.RUNTIME)
    yield _os(process, kind == HostKind.OS)


def _ends(end: Ints, base: int) -> pa.Array:
    return pa.array(end - base, mask=end == NEVER)


def _ranges(process: Process, kind: Tiny) -> Rows:
    """Give the ranges of engine, model and interpreter."""
    left_out = [HostKind.RUNTIME, HostKind.NCCL, HostKind.OS]
    if not process.recording.operators:
        left_out += [HostKind.MODULE, HostKind.OPERATOR]
    if not process.recording.python:
        left_out.append(HostKind.PYTHON)
    some = ~np.isin(kind, left_out)
    rows, seen = process.seen.host[some], process.seen
    host = process.happened.host[process.rank]
    return Rows(NVTX, {
        "start": seen.host_start[some] - process.base_ns,
        "end": _ends(seen.host_end[some], process.base_ns),
        "text": texts(process.happened.names, column(host, "name", rows)),
        "globalTid": process.threads(rows),
    }, {"eventType": 59, "domainId": 0})  # fmt: skip


def _nccl(process: Process, some: Flags) -> Rows:
    """Give the ranges that NCCL makes, with their payloads where these are exported."""
    rows, seen = process.seen.host[some], process.seen
    host = process.happened.host[process.rank]
    names = column(host, "name", rows)
    varies: dict[str, Any] = {
        "start": seen.host_start[some] - process.base_ns,
        "end": _ends(seen.host_end[some], process.base_ns),
        "textId": process.strings.column(process.happened.names, names, str),
        "globalTid": process.threads(rows),
    }
    if process.recording.payload:
        varies["jsonText"] = _payloads(process, column(host, "collective", rows))
    return Rows(NVTX, varies, {"eventType": 59, "domainId": NCCL_DOMAIN})


def _payloads(process: Process, joined: Ints) -> pa.Array:
    """Give what NCCL tells of each call; each distinct text is made once."""
    joins, scene = process.happened.joins[process.rank], process.happened.scene
    columns = (joins.group, joins.op, joins.size_bytes, joins.peer)
    each, which = distinct(*(values.astype(np.int64)[joined] for values in columns))
    with_comm = number(process.recording.nccl) >= _WITH_COMM
    texts = [
        _payload(scene.groups[g].comm if with_comm else None, OPS[op], size, peer)
        for g, op, size, peer in each
    ]
    said = pa.array(texts, pa.string()).take(pa.array(which))
    return pc.if_else(pa.array(joined >= 0), said, None)


def _payload(comm: int | None, op: str, size: int, peer: int) -> str:
    said: dict[str, int | str] = {} if comm is None else {"NCCL communicator ID": comm}
    said["Message size [bytes]"] = size
    if op in ("all_reduce", "reduce_scatter"):
        said["Reduction operation"] = "Sum"
    if op in ("send", "recv"):
        said["Peer rank"] = peer
    if op == "broadcast":
        said["Root"] = max(peer, 0)
    return msgspec.json.encode(said).decode()


def _calls(process: Process, some: Flags) -> Iterator[Rows]:
    """Give the calls of CUDA, the waits among them once more, and what the profiler cost."""
    rows, seen, names = process.seen.host[some], process.seen, process.happened.names
    host = process.happened.host[process.rank]
    name = column(host, "name", rows)
    given = column(host, "correlation", rows)
    above = int(max(given.max(initial=0), process.happened.device[process.rank]
                    .correlation.max(initial=0))) + 1  # fmt: skip
    correlation = np.where(given > 0, given, above + np.arange(len(given)))
    start, end = seen.host_start[some] - process.base_ns, seen.host_end[some] - process.base_ns
    thread = process.threads(rows)
    driver = np.array([looks.is_driver(n) for n in names], np.int64)[name]
    shared = {"start": start, "end": end, "correlationId": correlation}
    yield Rows(RUNTIME, shared | {
        "eventClass": driver, "globalTid": thread,
        "nameId": process.strings.column(names, name, looks.versioned),
    }, {"returnValue": 0})  # fmt: skip
    kind = np.array([_SYNCS.get(n, 0) for n in names], np.int64)[name]
    waits = kind > 0
    yield Rows(SYNC, {key: values[waits] for key, values in shared.items()} | {
        "syncType": kind[waits], "streamId": np.where(kind[waits] == 4, _NO_STREAM, 7),
    }, process.own() | {"eventId": _NO_STREAM, "eventSyncId": 0})  # fmt: skip
    flushed = np.arange(_FLUSH_EVERY // 2, len(start), _FLUSH_EVERY)
    for table, same in ((OVERHEAD, {"eventClass": 103, "overheadType": 3}),
                        ("PROFILER_OVERHEAD", {"overheadType": 1, "returnValue": 0})):  # fmt: skip
        yield Rows(table, {"start": end[flushed], "end": end[flushed] + 41_000 + flushed % 977,
                           "globalTid": thread[flushed] + 21},
                   same | {"nameId": process.strings.of("Activity buffer flush")})  # fmt: skip


def _os(process: Process, some: Flags) -> Rows:
    rows, seen = process.seen.host[some], process.seen
    name = column(process.happened.host[process.rank], "name", rows)
    closed = seen.host_end[some]
    end = np.where(closed == NEVER, seen.end_ns, closed)
    return Rows("OSRT_API", {
        "start": seen.host_start[some] - process.base_ns, "end": end - process.base_ns,
        "globalTid": process.threads(rows),
        "nameId": process.strings.column(process.happened.names, name, str),
    }, {"eventClass": 27, "returnValue": 0, "nestingLevel": 0, "callchainId": 0,
        "argumentsId": 0})  # fmt: skip
