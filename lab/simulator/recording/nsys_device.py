"""The device's rows of an nsys export: kernels, copies, memory sets, and graphs as a whole."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from teller.lab.simulator.happened import CopyKind, DeviceKind
from teller.lab.simulator.recording import looks
from teller.lab.simulator.recording.nsys_process import Process, Rows
from teller.lab.simulator.recording.nsys_schema import GRAPH, KERNEL, MEMCPY, MEMSET
from teller.lab.simulator.recording.seen import Flags, column

_PINNED, _PAGEABLE, _ON_DEVICE = 1, 0, 2
_NODE_BITS: Final = 32


def device_rows(process: Process) -> Iterator[Rows]:
    """Give device work; graphs that are traced as a whole hide theirs."""
    seen, device = process.seen, process.happened.device[process.rank]
    graph = column(device, "graph", seen.device)
    whole = (graph > 0) & (process.recording.graph_mode == "graph")
    kind = device.kind[seen.device]
    for number, make in (
        (DeviceKind.KERNEL, _kernels), (DeviceKind.MEMCPY, _copies), (DeviceKind.MEMSET, _sets)
    ):  # fmt: skip
        yield make(process, (kind == number) & ~whole)
    yield _graphs(process, whole)


def _shared(process: Process, some: Flags) -> dict[str, Any]:
    seen, device = process.seen, process.happened.device[process.rank]
    rows = seen.device[some]
    graph = column(device, "graph", rows)
    node = graph << _NODE_BITS | column(device, "node", rows) + 1
    return {
        "start": seen.device_start[some] - process.base_ns,
        "end": seen.device_end[some] - process.base_ns,
        "streamId": column(device, "stream", rows),
        "correlationId": column(device, "correlation", rows),
        "graphNodeId": pa.array(node, mask=graph == 0),
    }


def _kernels(process: Process, some: Flags) -> Rows:
    device, names = process.happened.device[process.rank], process.happened.names
    rows = process.seen.device[some]
    name = column(device, "name", rows)
    look = [looks.launch(n) for n in names]
    by_name = {
        "registersPerThread": [one.registers for one in look],
        "gridX": [one.grid for one in look],
        "blockX": [one.block for one in look],
        "dynamicSharedMemory": [one.shared for one in look],
    }
    strings = process.strings
    return Rows(KERNEL, _shared(process, some) | {
        "demangledName": strings.column(names, name, looks.demangled),
        "shortName": strings.column(names, name, looks.short),
        "mangledName": strings.column(names, name, looks.mangled),
        "gridId": np.arange(1, len(rows) + 1), "graphId": column(device, "graph", rows),
    } | {key: np.array(values, np.int64)[name] for key, values in by_name.items()},
        process.own() | {
            "launchType": 1, "cacheConfig": 1, "gridY": 1, "gridZ": 1, "blockY": 1, "blockZ": 1,
            "staticSharedMemory": 0, "localMemoryPerThread": 0, "localMemoryTotal": 250871808,
            "sharedMemoryExecuted": 32768, "sharedMemoryLimitConfig": 0, "clusterX": 0,
            "clusterY": 0, "clusterZ": 0, "clusterSchedulingPolicy": 0,
            "maxPotentialClusterSize": 0, "maxActiveClusters": 0,
            "tensorSizeMinusOneElements": "[]",
        })  # fmt: skip


def _copies(process: Process, some: Flags) -> Rows:
    device = process.happened.device[process.rank]
    rows = process.seen.device[some]
    copy = column(device, "copy", rows)
    host = np.where(device.pageable[rows], _PAGEABLE, _PINNED)
    return Rows(MEMCPY, _shared(process, some) | {
        "bytes": column(device, "size_bytes", rows), "copyKind": copy,
        "srcKind": np.where(copy == CopyKind.H2D, host, _ON_DEVICE),
        "dstKind": np.where(copy == CopyKind.D2H, host, _ON_DEVICE),
    }, process.own() | {"copyCount": 1})  # fmt: skip


def _sets(process: Process, some: Flags) -> Rows:
    device = process.happened.device[process.rank]
    size = column(device, "size_bytes", process.seen.device[some])
    return Rows(MEMSET, _shared(process, some) | {"bytes": size},
                process.own() | {"value": 0, "memKind": _ON_DEVICE})  # fmt: skip


def _graphs(process: Process, some: Flags) -> Rows:
    """Give one row a launch of a graph, from its first work to its last."""
    shared = _shared(process, some)
    graph = column(process.happened.device[process.rank], "graph", process.seen.device[some])
    launches, first, which = np.unique(
        shared["correlationId"], return_index=True, return_inverse=True
    )
    start = np.full(len(launches), np.iinfo(np.int64).max)
    end = np.full(len(launches), np.iinfo(np.int64).min)
    np.minimum.at(start, which, shared["start"])
    np.maximum.at(end, which, shared["end"])
    return Rows(GRAPH, {
        "start": start, "end": end, "correlationId": launches,
        "streamId": shared["streamId"][first], "graphId": graph[first],
        "graphExecId": graph[first] + 1,
    }, process.own())  # fmt: skip
