"""Stream files as one SQLite file in the layout of an Nsight Systems export (schema 3.25.0).

What reads exports of Nsight Systems reads these: tables, columns, numbers of event types, global
ids and the relation of times to UTC are the same. Tables of what was not recorded are absent.
"""

import os
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_sqlite import dbapi

from teller.lab.collect import nsys_layout
from teller.lab.collect.nvtx_stream import Stream

PRODUCT: Final = "teller collect, Nsight Systems layout"

_MACHINE: Final = 1 << 48  # of a global id; below it 24 bits of pid and 24 of tid
_LOW: Final = (1 << 24) - 1

Rows = Iterable[tuple[Any, ...]]


def write(streams: Sequence[Stream], path: Path) -> None:
    """Write the processes of one host into a new file; one that is there is replaced.

    `streams` must not be empty. Times in the file are ns since the first session began.
    """
    path.unlink(missing_ok=True)
    base = min(stream.start_ns for stream in streams)
    ids: dict[str, int] = {}
    small = _small(streams, base, ids)
    events = [_events(stream, base, ids) for stream in streams]
    rows = pa.concat_tables([_domains(streams), *events])
    small["StringIds"] = [(number, text) for text, number in ids.items()]
    database = sqlite3.connect(path)
    try:
        database.execute("PRAGMA journal_mode=OFF")
        for table, columns in nsys_layout.TABLES.items():
            said = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            database.execute(f'CREATE TABLE "{table}" ({said})')
            marks = ",".join("?" * len(columns))
            database.executemany(f'INSERT INTO "{table}" VALUES ({marks})', small.get(table, ()))
        database.commit()
    finally:
        database.close()
    with dbapi.connect(f"file:{path.absolute().as_posix()}") as bulk, bulk.cursor() as cursor:
        cursor.adbc_ingest("NVTX_EVENTS", rows, mode="append")
        bulk.commit()


def _number(ids: dict[str, int], text: str) -> int:
    return ids.setdefault(text, len(ids) + 1)


def _global(pid: int, tid: int = 0) -> int:
    return _MACHINE | (pid & _LOW) << 24 | tid & _LOW


def _events(stream: Stream, base: int, ids: dict[str, int]) -> pa.Table:
    """Give the ranges and marks of a process as rows of NVTX_EVENTS."""
    have = stream.events.combine_chunks()
    count = have.num_rows
    name, registered = _whole(have["name"]), _whole(have["registered"])
    wanted = pc.unique(name.filter(registered).indices).drop_null().to_pylist()
    numbers: list[int | None] = [None] * len(name.dictionary)
    for code in wanted:
        numbers[code] = _number(ids, name.dictionary[code].as_py())
    kinds = np.array([nsys_layout.PUSH_POP, nsys_layout.START_END, nsys_layout.MARK])
    columns = {
        "start": pc.subtract(have["start_ns"], base),
        "end": pc.subtract(have["end_ns"], base),
        "eventType": pa.array(kinds[have["kind"].to_numpy()]),
        "rangeId": have["range_id"],
        "category": pc.if_else(pc.equal(have["category"], 0), None, have["category"]),
        "text": pc.if_else(registered, None, name.cast(pa.string())),
        "globalTid": _threads(stream, have["tid"]),
        "endGlobalTid": _threads(stream, have["end_tid"]),
        "textId": pc.if_else(registered, pa.array(numbers, pa.int64()).take(name.indices), None),
        "domainId": have["domain"],
        "jsonText": have["json"],
        **_values(have),
    }  # fmt: skip
    return _as_rows(columns, count)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _values(have: pa.Table) -> dict[str, pa.Array]:
    """Give the payload in the column of its type."""
    bits = pc.fill_null(have["payload"], 0).to_numpy()
    kind = pc.fill_null(have["payload_type"], 0).to_numpy()
    low = (bits & 0xFFFFFFFF).astype(np.uint32)
    typed = {
        "uint64Value": bits, "int64Value": bits, "doubleValue": bits.view(np.float64),
        "uint32Value": low, "int32Value": low.view(np.int32), "floatValue": low.view(np.float32),
    }  # fmt: skip
    return {
        column: pa.array(values, mask=kind != number)
        for number, (column, values) in enumerate(typed.items(), 1)
    }


def _threads(stream: Stream, tids: pa.ChunkedArray) -> pa.ChunkedArray:
    owner = _global(stream.pid)
    return pc.bit_wise_or(pc.bit_wise_and(tids.cast(pa.int64()), _LOW), owner)


def _as_rows(columns: dict[str, Any], count: int) -> pa.Table:
    kinds = {"TEXT": pa.string(), "REAL": pa.float64()}
    schema = pa.schema([(c, kinds.get(k, pa.int64())) for c, k in nsys_layout.EVENT.items()])
    return pa.table(
        [
            pa.chunked_array([pa.nulls(count, f.type)]) if (c := columns.get(f.name)) is None
            else pc.cast(c if isinstance(c, pa.ChunkedArray) else pa.chunked_array([c]), f.type)
            for f in schema
        ],
        schema=schema,
    )  # fmt: skip


def _domains(streams: Sequence[Stream]) -> pa.Table:
    """Give the rows that name domains and categories, ahead of all events."""
    said: list[tuple[int, int, int, int | None, str]] = [
        (nsys_layout.DOMAIN, _global(stream.pid, stream.pid), number, None, name)
        for stream in streams
        for number, name in sorted(stream.domains.items())
    ]
    said += [
        (nsys_layout.CATEGORY, _global(stream.pid, stream.pid), domain, number, name)
        for stream in streams
        for (domain, number), name in sorted(stream.categories.items())
    ]
    kind, thread, domain, category, text = zip(*said, strict=True) if said else ((),) * 5
    columns = {
        "start": pa.array([0] * len(said), pa.int64()), "eventType": pa.array(kind, pa.int64()),
        "globalTid": pa.array(thread, pa.int64()), "domainId": pa.array(domain, pa.int64()),
        "category": pa.array(category, pa.int64()), "text": pa.array(text, pa.string()),
    }  # fmt: skip
    return _as_rows(columns, len(said))


def _small(streams: Sequence[Stream], base: int, ids: dict[str, int]) -> dict[str, Rows]:
    """Give the rows of all tables but the events and the strings."""
    first, last = streams[0], max(stream.end_ns for stream in streams)
    boot = first.boot_minus_utc_ns
    levels = ("UnknownLevel", "Info", "Warning", "Error", "Verbose")
    return {
        "ENUM_NSYS_EVENT_TYPE": [(number, name, name) for number, name in nsys_layout.TYPES],
        "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": [(i, n, n) for i, n in enumerate(levels)],
        "META_DATA_CAPTURE": list(_capture(streams)),
        "META_DATA_EXPORT": list(_export(first, last)),
        "TARGET_INFO_SYSTEM_ENV": [
            (_MACHINE, "Local", name, number, value) for name, number, value in _machine(first)
        ],
        "TARGET_INFO_SESSION_START_TIME": [(base, _utc(base), _utc(base, local=True), base + boot)],
        "ANALYSIS_DETAILS": [(_MACHINE, last - base, base + boot, last + boot)],
        "PROCESSES": [(_global(s.pid), s.pid, s.process) for s in streams],
        "ThreadNames": [
            (_number(ids, name), 20, _global(s.pid, tid))
            for s in streams
            for tid, name in sorted(s.threads.items())
        ],
        "DIAGNOSTIC_EVENT": [row for s in streams for row in _diagnostics(s, base)],
        **_schemas(streams),
    }


def _schemas(streams: Sequence[Stream]) -> dict[str, Rows]:
    known = [(domain, schema) for s in streams for (domain, _), schema in sorted(s.schemas.items())]
    return {
        "NVTX_PAYLOAD_SCHEMAS": [
            (domain, schema.id, schema.name or None, 1, 0, len(schema.entries), schema.size, None)
            for domain, schema in known
        ],
        "NVTX_PAYLOAD_SCHEMA_ENTRIES": [
            (domain, schema.id, i, e.flags, e.type, e.name or None, None, e.detail, e.offset)
            for domain, schema in known
            for i, e in enumerate(schema.entries)
        ],
    }


def _capture(streams: Sequence[Stream]) -> Rows:
    yield "CAPTURE_EVENT_TYPE", "NvtxEvents"
    yield "DEVICE_DISPLAY_NAME", streams[0].host
    for number, stream in enumerate(streams):
        yield f"PROCESS_{number}:COMMAND", stream.process
        yield f"PROCESS_{number}:PID", str(stream.pid)
        yield f"PROCESS_{number}:COLLECT_NVTX_TRACE", "true"
        for name, value in sorted(stream.environment.items()):
            yield f"PROCESS_{number}:ENVIRONMENT_VARIABLE", f'{name}="{value}"'


def _export(first: Stream, last: int) -> Rows:
    from teller import __version__

    yield "EXPORT_PRODUCT_NAME", PRODUCT
    yield "EXPORT_PRODUCT_VERSION", __version__
    yield "EXPORT_SCHEMA_VERSION", nsys_layout.SCHEMA_VERSION
    for part, value in zip(
        ("MAJOR", "MINOR", "MICRO"), nsys_layout.SCHEMA_VERSION.split("."), strict=True
    ):
        yield f"EXPORT_SCHEMA_VERSION_{part}", value
    yield "EXPORT_TIME_UTC", _utc(last)
    yield "EXPORT_HOST", first.host
    yield "EXPORT_PARAM_EXPORT_TYPE", "SQLite"
    yield "EXPORT_PARAM_TIME_NORMALIZE", "false"
    yield "EXPORT_PARAM_TIME_SHIFT", "0"


def _machine(first: Stream) -> Iterable[tuple[str, int, str]]:
    """Give what is known of the machine; it is this one if it has the stream's name."""
    yield "Hostname", 619, first.host
    yield "NamespacePID", 722, first.pid_space
    yield "HasNvtxEvents", 809, "1"
    yield "HasCudaEvents", 812, "0"
    if first.host == platform.node():
        yield "CpuCores", 1, str(os.cpu_count() or 0)
        yield "CpuArchitecture", 3, platform.machine()
        yield "SoftwareReleaseVersion", 618, platform.release()


def _diagnostics(stream: Stream, base: int) -> Rows:
    """Give what the profiler says of a process, in the words of Nsight Systems where it has any."""
    info, warning, last = nsys_layout.INFO, nsys_layout.WARNING, stream.end_ns
    said = [(stream.start_ns, info, "Profiling has started.")]
    for jump in stream.jumps:
        moved = f"{jump.why}: UTC moved by {jump.by_ns / 1e9:+.6f} s against the times here"
        said.append((jump.at_ns, warning, moved))
    if stream.lost:
        text = f"Not all NVTX events have been kept: {stream.lost} records were lost."
        said.append((last, warning, text))
    if stream.damaged:
        text = f"{stream.damaged} bytes of the stream were damaged and are lost."
        said.append((last, warning, text))
    if not stream.ended:
        said.append((last, info, "The process was killed, or still runs: its end is missing."))
    said.append((last, info, f"Number of NVTX events collected: \t{stream.events.num_rows}."))
    said.append((last, info, "Profiling has stopped."))
    return [(at - base, 1, 1, level, text, _global(stream.pid)) for at, level, text in said]


def _utc(time_ns: int, *, local: bool = False) -> str:
    moment = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return (moment.astimezone() if local else moment).strftime("%Y-%m-%dT%H:%M:%S")
