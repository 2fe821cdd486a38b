"""The device's events of a Kineto trace, the flows to them, and steps as devices show them."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.lab.simulator.happened import NEVER, DeviceKind, DeviceSpans, HostKind, Ints
from teller.lab.simulator.recording import looks
from teller.lab.simulator.recording.columns import distinct, joined, number, picked
from teller.lab.simulator.recording.kineto_args import copy_name, quoted, shape
from teller.lab.simulator.recording.kineto_host import (
    Trace,
    chunks,
    comm_text,
    correlations,
    external,
)
from teller.lab.simulator.recording.seen import Flags, column

_CATEGORIES: Final = ("kernel", "gpu_memcpy", "gpu_memset")


def device_events(trace: Trace) -> Iterator[pa.Array]:
    """Give the events of the device as texts."""
    device = _device(trace)
    kind = device.kind[trace.seen.device]
    kernels = kind == DeviceKind.KERNEL
    for some in chunks(kernels):
        yield _kernels(trace, some)
    for some in chunks(~kernels):
        yield _moves(trace, some)
    if trace.recording.flows:
        yield from _flows(trace)
    if not trace.old:
        yield from _steps(trace)


def _device(trace: Trace) -> DeviceSpans:
    return trace.happened.device[trace.seen.rank]


def _times(trace: Trace, some: Flags) -> tuple[pa.Array, pa.Array]:
    start, end = trace.seen.device_start[some], trace.seen.device_end[some]
    if trace.times.whole:
        start, end = start // 1000 * 1000, end // 1000 * 1000
    return trace.times.text(start - trace.recording.early_ns), trace.times.lasting(end - start)


def _launched(trace: Trace, rows: Ints) -> Ints:
    """Give the number of the operator that launched each row; graphs hide theirs."""
    device, (known, calls) = _device(trace), trace.launches
    wanted = column(device, "correlation", rows)
    if not len(known):
        return np.full(len(rows), NEVER)
    at = np.searchsorted(known, wanted).clip(max=len(known) - 1)
    found = (known[at] == wanted) & (column(device, "graph", rows) == 0)
    numbers: Ints = np.where(found, trace.around[calls[at]], NEVER)
    return numbers


def _opened(trace: Trace, rows: Ints) -> tuple[pa.Array, pa.Array]:
    """Give how the events of device rows begin, and what their arguments share."""
    device, place = _device(trace), trace.happened.scene.places[trace.seen.rank]
    said = ("name", "kind", "copy", "pageable", "stream")
    each, which = distinct(*(column(device, one, rows) for one in said))
    begins, shared = [], []
    for name, kind, copy, pageable, stream in each:
        text = trace.happened.names[name]
        title, args = quoted(text), f', "queued": 0, {shape(looks.launch(text))}'
        if kind != DeviceKind.KERNEL:
            args = ""
            title = copy_name(copy, pageable=bool(pageable))
        if kind == DeviceKind.MEMSET:
            title = "Memset (Device)"
        lane = f'"stream {stream}"' if trace.old else str(stream)
        begins.append(
            f'  {{\n    "ph": "X", "cat": "{trace.category(_CATEGORIES[kind])}", '
            f'"name": "{title}", "pid": {place.device}, "tid": {lane},\n    "ts": '
        )
        shared.append(f'"device": {place.device}, "context": 1, "stream": {stream}{args}, '
                      '"correlation": ')  # fmt: skip
    return picked(begins, which), picked(shared, which)


def _kernels(trace: Trace, some: Flags) -> pa.Array:
    rows = trace.seen.device[some]
    start, lasting = _times(trace, some)
    begins, shared = _opened(trace, rows)
    launched = _launched(trace, rows)
    return joined(
        begins, start, ', "dur": ', lasting, ',\n    "args": {\n      ', shared,
        number(column(_device(trace), "correlation", rows)), external(trace, launched),
        _comms(trace, rows, launched), "\n    }\n  },\n",
    )  # fmt: skip


def _comms(trace: Trace, rows: Ints, launched: Ints) -> pa.Array:
    """Give what a kernel takes over from the record around its launch."""
    collective = column(_device(trace), "collective", rows)
    told = trace.recording.told and trace.generation >= "2024"
    talks = (collective >= 0) & (launched != NEVER) & told
    if not talks.any():
        return pa.repeat("", len(rows))
    said = joined(", ", comm_text(trace, collective[talks]))
    place = np.cumsum(talks) - 1
    return pc.if_else(pa.array(talks), said.take(pa.array(np.where(talks, place, 0))), "")


def _moves(trace: Trace, some: Flags) -> pa.Array:
    """Give copies and memory sets."""
    rows, device = trace.seen.device[some], _device(trace)
    start, lasting = _times(trace, some)
    begins, shared = _opened(trace, rows)
    size = column(device, "size_bytes", rows)
    ran = np.maximum(trace.seen.device_end[some] - trace.seen.device_start[some], 1)
    speed = pc.cast(pa.array(np.round(size / ran, 6)), pa.string())
    return joined(
        begins, start, ', "dur": ', lasting, ',\n    "args": {\n      ', shared,
        number(column(device, "correlation", rows)), external(trace, _launched(trace, rows)),
        ', "bytes": ', number(size), ', "memory bandwidth (GB/s)": ', speed, "\n    }\n  },\n",
    )  # fmt: skip


def _flows(trace: Trace) -> Iterator[pa.Array]:
    """Give the arrows from calls to device work; a graph's launch has one."""
    seen, device = trace.seen, _device(trace)
    calls = trace.calls
    rows = seen.host[calls]
    launches = column(device, "correlation", seen.device)
    category = "async" if trace.old else "ac2g"
    name = "launch" if trace.old else "ac2g"
    tail = f',\n    "cat": "{category}", "name": "{name}"'
    out = np.isin(column(trace.host, "correlation", rows), launches)
    threads = [str(trace.pid + (60 + n if n else 0)) for n in range(256)]
    yield joined(
        '  {\n    "ph": "s", "id": ', number(correlations(trace, rows)[out]),
        f', "pid": {trace.pid}, "tid": ',
        picked(threads, column(trace.host, "thread", rows[out])), ', "ts": ',
        trace.times.text(seen.host_start[calls][out]), tail + "\n  },\n",
    )  # fmt: skip
    _, first = np.unique(launches, return_index=True)
    stream = number(column(device, "stream", seen.device[first]))
    lane = joined('"stream ', stream, '"') if trace.old else stream
    place = trace.happened.scene.places[seen.rank]
    yield joined(
        '  {\n    "ph": "f", "id": ', number(launches[first]), f', "pid": {place.device}, "tid": ',
        lane, ', "ts": ', trace.times.text(seen.device_start[first] - trace.recording.early_ns),
        tail + ', "bp": "e"\n  },\n',
    )  # fmt: skip


def _steps(trace: Trace) -> Iterator[pa.Array]:
    """Give each step as it is shown on each stream: from its first work there to its last."""
    seen, device, host = trace.seen, _device(trace), trace.host
    step, stream = column(device, "step", seen.device), column(device, "stream", seen.device)
    kept = step >= 0
    if not kept.any():
        return
    key, which = np.unique(step[kept] << 24 | stream[kept], return_inverse=True)
    start = np.full(len(key), np.iinfo(np.int64).max)
    end = np.full(len(key), np.iinfo(np.int64).min)
    np.minimum.at(start, which, seen.device_start[kept])
    np.maximum.at(end, which, seen.device_end[kept])
    rows = seen.host[host.kind[seen.host] == HostKind.STEP]
    named = dict(zip(host.step[rows].tolist(), rows.tolist(), strict=True))
    row = np.array([named.get(k >> 24, NEVER) for k in key.tolist()])
    start, end, row, key = (values[row >= 0] for values in (start, end, row, key))
    edge = 0 if trace.times.whole else 1  # the writer lets it enclose what is inside
    names = [quoted(name) for name in trace.happened.names]
    place = trace.happened.scene.places[seen.rank]
    early = trace.recording.early_ns
    yield joined(
        '  {\n    "ph": "X", "cat": "gpu_user_annotation", "name": "',
        picked(names, column(host, "name", row)), f'", "pid": {place.device}, "tid": ',
        number(key & 0xFFFFFF), ',\n    "ts": ', trace.times.text(start - edge - early),
        ', "dur": ', trace.times.lasting(end - start + 2 * edge),
        ',\n    "args": {\n      "External id": ', number(1025 + 2 * row), "\n    }\n  },\n",
    )  # fmt: skip
