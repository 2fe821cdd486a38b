"""PyTorch's traces of every generation: times, keys and categories as its profiler wrote them."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from isal import igzip

from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording.columns import text_of
from teller.lab.simulator.recording.kineto_device import device_events
from teller.lab.simulator.recording.kineto_host import Trace, host_events
from teller.lab.simulator.recording.kineto_times import Times
from teller.lab.simulator.recording.plan import Recording, Window
from teller.lab.simulator.recording.seen import seen
from teller.lab.simulator.recording.titles import worker_title
from teller.lab.simulator.scene import Group, Scene

_QUARTER_NS: Final = 7_889_238 * 1_000_000_000  # of a year: the base is a multiple of it
_BASED: Final = "2025"  # since when times count from a base
_LEVEL: Final = 1  # of compression


def write(path: Path, happened: Happened, recording: Recording, rank: int, window: Window) -> int:
    """Write the trace of one rank, packed if its name ends so; give the number of its events."""
    generation = recording.kineto
    assert generation is not None
    view = seen(happened, recording, rank, window)
    based, whole = generation >= _BASED, generation <= "2023"
    base_ns = view.start_ns // _QUARTER_NS * _QUARTER_NS if based else 0
    trace = Trace(happened, recording, view, Times(base_ns, whole), generation)
    count = 0
    with ExitStack() as stack:
        file: Any = stack.enter_context(path.open("wb"))
        if path.suffix == ".gz":
            file = stack.enter_context(igzip.IGzipFile("", "wb", _LEVEL, file, 0))  # type: ignore[no-untyped-call] # its types are partial
        file.write(_head(trace, base_ns))
        file.write(_marks(trace).encode())
        for events in (*host_events(trace), *device_events(trace)):
            count += len(events)
            file.write(text_of(events))
        file.write(_tail(trace, path.name.removesuffix(".gz")).encode())
    return count


def _head(trace: Trace, base_ns: int) -> bytes:
    """Give what stands before the events."""
    scene = trace.happened.scene
    host = scene.hosts[scene.places[trace.seen.rank].host]
    said: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": _devices(scene, len(host.bus))}
    if not trace.old:
        said |= {"cupti_version": 26, "cuda_runtime_version": 12080, "cuda_driver_version": 12080}
        said |= {"distributedInfo": _distributed(trace), "record_shapes": 0, "with_stack": 0}
    if trace.generation >= "2024":
        said["displayTimeUnit"] = "ms"
    if trace.generation >= "2026":
        said["host_name"] = host.name
    if base_ns:
        said["baseTimeNanoseconds"] = base_ns
    text = msgspec.json.format(msgspec.json.encode(said), indent=2)
    return text[:-2] + b',\n  "traceEvents": [\n'


def _devices(scene: Scene, count: int) -> list[dict[str, int | str]]:
    return [
        {"id": n, "name": scene.gpu.name, "totalGlobalMem": scene.gpu.memory_gib << 30,
         "computeMajor": 9 if "H" in scene.gpu.name.split()[-1][:1] else 8, "computeMinor": 0,
         "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32,
         "numSms": 132}
        for n in range(count)
    ]  # fmt: skip


def _distributed(trace: Trace) -> dict[str, Any]:
    scene = trace.happened.scene
    said: dict[str, Any] = {
        "backend": "nccl", "rank": trace.seen.rank, "world_size": len(scene.places),
    }  # fmt: skip
    if trace.generation >= "2024":
        mine = [g for g in scene.groups if trace.seen.rank in g.ranks]
        said |= {"pg_count": len(mine), "pg_config": [_config(g, trace.generation) for g in mine]}
    if trace.generation >= "2025":
        said["nccl_version"] = trace.recording.nccl
    return said


def _config(group: Group, generation: str) -> dict[str, Any]:
    desc = "default_pg" if group.desc == "world" else group.desc
    told = {"pg_desc": desc} if generation >= "2025" else {"uid": f"{group.comm:x}"}
    return {"pg_name": group.name} | told | {
        "backend_config": "cuda:nccl", "pg_size": len(group.ranks), "ranks": list(group.ranks)
    }  # fmt: skip


def _marks(trace: Trace) -> str:
    """Give the names of processes and threads."""
    scene, pid = trace.happened.scene, trace.pid
    device = scene.places[trace.seen.rank].device
    title = worker_title(scene, trace.seen.rank)
    ts = trace.times.text(np.array([trace.seen.start_ns]))[0].as_py()
    rows = [
        ("process_name", pid, "0", f'"name": "{title}"'),
        ("process_labels", pid, "0", '"labels": "CPU"'),
        ("process_sort_index", pid, "0", f'"sort_index": {pid}'),
        ("process_name", device, "0", f'"name": "{title}"'),
        ("process_labels", device, "0", f'"labels": "GPU {device}"'),
        ("process_sort_index", device, "0", '"sort_index": 16777216'),
        ("thread_name", pid, trace.thread(0), f'"name": "thread {pid} ({title[:15]})"'),
    ]
    return "".join(
        f'  {{\n    "name": "{name}", "ph": "M", "ts": {ts}, "pid": {where}, "tid": {thread},\n'
        f'    "args": {{\n      {args}\n    }}\n  }},\n'
        for name, where, thread, args in rows
    )


def _tail(trace: Trace, name: str) -> str:
    """Give what stands behind the events."""
    start, end = trace.times.text(np.array([trace.seen.start_ns, trace.seen.end_ns])).to_pylist()
    lasting = trace.times.lasting(np.array([trace.seen.end_ns - trace.seen.start_ns]))[0].as_py()
    return (
        f'  {{\n    "ph": "X", "cat": "Trace", "ts": {start}, "dur": {lasting},\n'
        '    "pid": "Spans", "tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n'
        '    "args": {\n      "Op count": 0\n    }\n  },\n'
        '  {\n    "name": "Iteration Start: PyTorch Profiler", '
        '"ph": "i", "s": "g",\n    "pid": "Traces", "tid": "Trace PyTorch Profiler", '
        f'"ts": {start}\n  }},\n  {{\n    "name": "Record Window End", "ph": "i", "s": "g",\n'
        f'    "pid": "", "tid": "", "ts": {end}\n  }}\n  ],\n  "traceName": "/tmp/{name}"\n}}\n'
    )
