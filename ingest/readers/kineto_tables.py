"""The tables and the facts of one document, once all its events are columns."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from teller.ingest.readers.kineto_columns import BEGIN, END, FAR_NS, WHOLE, Columns
from teller.ingest.readers.kineto_comm import Calls, CommSpans, calls
from teller.ingest.readers.kineto_header import Header
from teller.ingest.readers.kineto_kinds import LAYERS
from teller.ingest.readers.kineto_pairs import pairs
from teller.ingest.readers.kineto_values import JOINT, ending_number
from teller.ingest.readers.kineto_work import NONE, Flags, Ints
from teller.ingest.source import RUNTIME, SPANS, Facts, Source

EPOCH_FROM: Final = 10**17  # 1973; times before are not since the epoch
LAST_BASE: Final = 4 * 10**18
CAPTURE: Final = re.compile(r"capture_\d|CUDAGraphNode\.record")
NEUTRAL: Final = re.compile(r"ProfilerStep#|## |\w+:|record_param_comms")
COORDINATE: Final = re.compile(r"_(TP|PP|DP|EP)(\d+)")


@dataclass(slots=True)
class Rows:
    """Spans as arrays; NONE is null."""

    start: Ints
    end: Ints
    open: Flags
    keep: Flags  # all but ends of others, and records whose time is broken


def source(path: str, columns: Columns, header: Header, processes: dict[str, str]) -> Source | None:
    """Give the document's one process; None where it has no span."""
    rows = _rows(columns)
    if not rows.keep.any():
        return None
    found = _calls(columns, header, rows)
    base = header.base_ns if abs(header.base_ns) < LAST_BASE else 0
    size = columns.column("bytes", last=True)
    if columns.comm_parts:
        told = found.size_bytes != NONE
        size[_comm_rows(columns)[told]] = found.size_bytes[told]
    _note_unlinked(columns)
    table = _spans(columns, rows, size, base)
    facts = _facts(path, columns, header, found, processes)
    epoch = int(np.median(rows.start[rows.keep])) + base >= EPOCH_FROM
    return Source(
        replace(facts, epoch_ns=0 if epoch else None),
        table if rows.keep.all() else table.filter(pa.array(rows.keep)),
        found.table,
    )


def _note_unlinked(columns: Columns) -> None:
    work = int((columns.column("stream") != NONE).sum())
    calls = (columns.column("layer") == LAYERS.index(RUNTIME)).any()
    if work and calls and (columns.column("correlation") == NONE).all():
        columns.damage.note("unlinked", 0, work)


def _rows(columns: Columns) -> Rows:
    start, end = columns.column("start", last=True), columns.column("end", last=True)
    is_open: Flags = columns.column("open", last=True).astype(bool)
    phase = columns.column("phase")
    keep: Flags = phase != END
    if len(start):
        middle = int(np.median(start))
        far = np.abs(start - middle) > FAR_NS
        if far.any():
            one = next(spot for time, spot in columns.extremes if abs(time - middle) > FAR_NS)
            at, value = one.look_up(columns.text, "ts")
            columns.damage.note("far", at, int((far & keep).sum()), value)
            keep &= ~far
    if (phase != WHOLE).any():
        _pair(columns, phase, start, end, is_open, keep)
    return Rows(start, end, is_open, keep)


def _pair(
    columns: Columns, phase: Ints, start: Ints, end: Ints, is_open: Flags, keep: Flags
) -> None:
    """Set the ends of spans that are told as two events."""
    marks = np.flatnonzero(phase != WHOLE)
    thread = columns.column("thread")
    found = pairs(thread[marks], start[marks], phase[marks] == BEGIN)
    end[marks[found.begin]] = start[marks[found.end]]
    is_open[marks[found.begin]] = False
    if len(found.unended) and keep.any():
        end[marks[found.unended]] = np.maximum(end[keep].max(), start[marks[found.unended]])
    if len(found.unbegun):
        columns.damage.note("unbegun", columns.extremes[0][1].at, len(found.unbegun))


def _comm_rows(columns: Columns) -> Ints:
    rows: Ints = pa.concat_tables(columns.comm_parts)["row"].to_numpy()
    return rows


def _calls(columns: Columns, header: Header, rows: Rows) -> Calls:
    said = pa.concat_tables(columns.comm_parts)
    row = said["row"].to_numpy()
    kept = rows.keep[row]
    said, row = said.filter(pa.array(kept)), row[kept]
    spans = CommSpans(
        columns.column("place")[row],
        columns.column("name")[row].astype(np.int64),
        columns.column("lane")[row].astype(np.int64),
        rows.start[row],
        rows.end[row],
        columns.column("stream")[row] != NONE,
    )
    columns.comm_parts[:] = [said]
    return calls(said, spans, columns.known["name"].values, header.groups)


def _spans(columns: Columns, rows: Rows, size: Ints, base: int) -> pa.Table:
    lanes = columns.lanes.names(columns.known["thread"].values)
    arrays = {
        "place": pa.array(columns.column("place", last=True)),
        "name": _words(columns.column("name", last=True), columns.known["name"].values),
        "layer": _words(columns.column("layer", last=True), LAYERS),
        "lane": _words(columns.column("lane", last=True), lanes),
        "stream": _maybe(columns.column("stream", last=True)),
        "device_index": _maybe(columns.column("device", last=True)),
        "start_ns": pa.array(rows.start + base),
        "end_ns": pa.array(rows.end + base),
        "open": pa.array(rows.open),
        "correlation": _maybe(columns.column("correlation", last=True)),
        "size_bytes": _maybe(size),
    }
    return pa.table(arrays, schema=SPANS)


def _words(codes: Ints, values: "list[str] | tuple[str, ...]") -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(values))


def _maybe(values: Ints) -> pa.Int64Array:
    return pa.array(values, mask=values < 0)


def _facts(
    path: str, columns: Columns, header: Header, found: Calls, processes: dict[str, str]
) -> Facts:
    pid_text = _busiest_process(columns)
    process = processes.get(pid_text, "")
    device = max(columns.devices, key=lambda d: (columns.devices[d], -d), default=NONE)
    notes = [columns.known["name"].values[n] for n in columns.notes]
    captures = [n for n in notes if CAPTURE.match(n)]
    only_captures = captures and all(CAPTURE.match(n) or NEUTRAL.match(n) for n in notes)
    return Facts(
        path=path,
        format="kineto",
        rank=header.rank,
        pid=ending_number(pid_text, NONE) if pid_text.isdecimal() else None,
        rank_source="header" if header.rank is not None else "",
        host=header.host,
        host_source="header" if header.host else "",
        world_size=header.world_size,
        places={key.lower(): int(value) for key, value in COORDINATE.findall(process)},
        device_index=device if device >= 0 else None,
        groups=found.groups,
        gpus=header.gpus,
        product=header.product,
        process_name=process,
        options={"role": "graph capture"} if only_captures else {},
        event_count=columns.events,
    )


def _busiest_process(columns: Columns) -> str:
    """Give the process with most spans on the host, the first of equals."""
    counts: Counter[str] = Counter()
    for code in sorted(columns.threads):
        counts[columns.known["thread"].values[code].split(JOINT)[0]] += columns.threads[code]
    return counts.most_common(1)[0][0] if counts else ""
