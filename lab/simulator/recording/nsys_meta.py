"""What an nsys export says of itself: versions, clock, host, devices, processes, diagnostics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from teller.lab.simulator.happened import HostKind
from teller.lab.simulator.recording.nsys_host import NCCL_DOMAIN
from teller.lab.simulator.recording.nsys_process import VM, Process, Rows
from teller.lab.simulator.recording.nsys_schema import NVTX, PRODUCTS, number
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.titles import thread_title, worker_title

_NOBODY: Final = -(1 << 57)  # no process, in diagnostics
_CHIPS: Final = {"H100": ("GH100", 132, 9), "H200": ("GH100", 132, 9), "A100": ("GA100", 108, 8)}
_FIELDS: Final = {  # of NCCL's ranges, by the number of their schema
    220: ((18, "NCCL communicator ID", None), (22, "Message size [bytes]", 8)),
    221: ((18, "NCCL communicator ID", None), (22, "Message size [bytes]", 8),
          (16777232, "Reduction operation", 16)),
    226: ((18, "NCCL communicator ID", None), (22, "Message size [bytes]", 8),
          (5, "Peer rank", 16)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Session:
    """One session of the profiler: its processes, all on one host."""

    recording: Recording
    processes: tuple[Process, ...]
    base_ns: int
    version: str

    @property
    def host(self) -> int:
        """Give the host."""
        first = self.processes[0]
        return first.happened.scene.places[first.rank].host

    def since(self, version: str) -> bool:
        """Tell whether this schema is of that version or younger."""
        return number(self.version) >= number(version)


def meta_rows(session: Session) -> Iterator[Rows]:
    """Give the rows of all tables that are no events; strings come last."""
    yield from _times(session)
    yield from _names(session)
    yield from _devices(session)
    yield from _domains(session)
    if session.since("3.13"):
        yield _diagnostics(session)
    yield _environment(session)
    yield from _settings(session)
    ids = session.processes[0].strings.ids
    yield _rows("StringIds", ("id", "value"), [(n, text) for text, n in ids.items()])


def _rows(table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]], **same: Any) -> Rows:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    varies = {n: pa.array(list(c)) for n, c in zip(names, columns, strict=True)}
    return Rows(table, varies, same)


def _times(session: Session) -> Iterator[Rows]:
    when = datetime.fromtimestamp(session.base_ns // 1_000_000_000, UTC)
    local = datetime.fromtimestamp(when.timestamp() + session.recording.zone_s, UTC)
    boot = session.base_ns % 10**15
    lasting = session.processes[0].seen.end_ns - session.base_ns + 800_000_000
    form = "%Y-%m-%dT%H:%M:%S"
    yield _rows(
        "TARGET_INFO_SESSION_START_TIME", ("utcEpochNs", "utcTime", "localTime", "systemClockNs"),
        [(session.base_ns, when.strftime(form), local.strftime(form), boot)],
    )  # fmt: skip
    yield _rows("ANALYSIS_DETAILS", ("globalVid", "duration", "startTime", "stopTime"),
                [(VM, lasting, boot, boot + lasting)])  # fmt: skip


def _names(session: Session) -> Iterator[Rows]:
    scene, strings = session.processes[0].happened.scene, session.processes[0].strings
    engine = session.processes[0].engine_pid
    processes = [(VM | engine << 24, engine, worker_title(scene, None))]
    threads = [(strings.of(thread_title(scene, None)), 20, VM | engine << 24 | engine)]
    for one in session.processes:
        processes.append((one.global_pid, one.pid, worker_title(scene, one.rank)))
        threads.append((strings.of(thread_title(scene, one.rank)), 20, one.global_pid | one.pid))
        threads += [(strings.of(f"cuda{one.pid:011x}"), 20, one.global_pid | one.pid + 21)]
        threads += [(strings.of("pt_nccl_watchdg"), 20, one.global_pid | one.pid + 61)]
    yield _rows("PROCESSES", ("globalPid", "pid", "name"), processes)
    yield _rows("ThreadNames", ("nameId", "priority", "globalTid"), threads)


def _devices(session: Session) -> Iterator[Rows]:
    first = session.processes[0]
    scene, host = first.happened.scene, first.happened.scene.hosts[session.host]
    chip, multiprocessors, major = next(
        (c for word, c in _CHIPS.items() if word in scene.gpu.name), ("AD102", 142, 8)
    )
    yield _rows(
        "TARGET_INFO_GPU",
        ("id", "name", "busLocation", "uuid", "cuDevice", "totalMemory", "memoryBandwidth",
         "clockRate", "smCount", "chipName", "computeMajor"),
        [(i, scene.gpu.name, bus, uuid.removeprefix("GPU-"), i, scene.gpu.memory_gib << 30,
          int(scene.gpu.memory), scene.gpu.clock_mhz * 1_000_000, multiprocessors, chip, major)
         for i, (bus, uuid) in enumerate(zip(host.bus, host.uuid, strict=True))],
        vmId=VM, isDiscrete=1, threadsPerWarp=32, maxThreadsPerBlock=1024,
    )  # fmt: skip
    on = [(scene.places[p.rank].device, p.pid) for p in session.processes]
    if session.since("3.17"):
        yield _rows("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid", "uuid"),
                    [(d, d, pid, host.uuid[d].removeprefix("GPU-")) for d, pid in on],
                    numMultiprocessors=multiprocessors)  # fmt: skip
    null = "CONTEXT_INFO" if session.since("3.6") else "NULL_STREAM"
    yield _rows(f"TARGET_INFO_CUDA_{null}", ("streamId", "nullStreamId", "deviceId", "processId"),
                [(7, 7, d, pid) for d, pid in on], hwId=0, vmId=1, contextId=1,
                isGreenContext=0, parentContextId=0)  # fmt: skip
    streams = [(int(s), p.pid) for p in session.processes
               for s in sorted(set(p.happened.device[p.rank].stream.tolist()))]  # fmt: skip
    yield _rows("TARGET_INFO_CUDA_STREAM", ("streamId", "processId"), streams, hwId=0, vmId=1,
                contextId=1, priority=0, flag=2)  # fmt: skip
    if session.since("3.1"):
        guid = "GUID" if session.since("3.6") else "globalId"
        nics = [(_guid(host.name, nic), i, nic) for i, nic in enumerate(host.nics)]
        yield _rows("TARGET_INFO_NIC_INFO", (guid, "nicId", "name"), nics,
                    stateName="Local (CLI)", deviceId=4129, vendorId=5555, linkLayer=1)  # fmt: skip


def _guid(host: str, nic: str) -> int:
    serial = int.from_bytes(f"{host}{nic}".encode()[-7:], "big")
    return -(1 << 63) + (0x1470FD << 39) + serial % (1 << 39)


def _domains(session: Session) -> Iterator[Rows]:
    """Give the rows in which NCCL's domain begins, and the fields of its payloads."""
    talking = [
        p for p in session.processes
        if (p.happened.host[p.rank].kind[p.seen.host] == HostKind.NCCL).any()
    ]  # fmt: skip
    begun = session.processes[0].seen.start_ns - session.base_ns - 900_000_000
    yield _rows(NVTX, ("start", "globalTid", "text"),
                [(max(0, begun), p.global_pid | p.pid, "NCCL") for p in talking],
                eventType=75, domainId=NCCL_DOMAIN)  # fmt: skip
    if not session.since("3.25"):
        return
    schemas = [(n, len(fields), 8 * len(fields)) for _ in talking for n, fields in _FIELDS.items()]
    yield _rows("NVTX_PAYLOAD_SCHEMAS", ("schemaId", "numEntries", "payloadSize"),
                [(16777000 + n, entries, size) for n, entries, size in schemas],
                domainId=NCCL_DOMAIN, type=1)  # fmt: skip
    entries = [(16777000 + n, i, kind, name, offset) for _ in talking
               for n, fields in _FIELDS.items()
               for i, (kind, name, offset) in enumerate(fields)]  # fmt: skip
    yield _rows("NVTX_PAYLOAD_SCHEMA_ENTRIES", ("schemaId", "idx", "type", "name", "offset"),
                entries, domainId=NCCL_DOMAIN)  # fmt: skip


def _diagnostics(session: Session) -> Rows:
    end = session.processes[0].seen.end_ns - session.base_ns
    said = [(0, 1, 3, 1, "Profiling has started.", _NOBODY)]
    for one in session.processes:
        calls = len(one.seen.host) + len(one.seen.device)
        said += [
            (13_778_616, 1, 1, 1, "Common injection library initialized successfully.",
             one.global_pid),
            (186_957_331, 1, 1, 1, "CUDA injection initialized successfully.", one.global_pid),
            (end, 2, 3, 1, f"Number of CUDA events collected: \t{calls:,}.", one.global_pid),
        ]  # fmt: skip
        if one.seen.lost:
            said.append((end, 2, 3, 2, "Not all CUDA events might have been collected.",
                         one.global_pid))  # fmt: skip
    said.append((end, 1, 3, 1, "Profiling has stopped.", _NOBODY))
    return _rows("DIAGNOSTIC_EVENT", ("timestamp", "timestampType", "source", "severity", "text",
                                      "globalPid"), said)  # fmt: skip


def _environment(session: Session) -> Rows:
    scene = session.processes[0].happened.scene
    said = [
        ("CpuCores", 1, "224"), ("CpuArchitecture", 3, "x86_64"),
        ("NvDriverVersion", 205, PRODUCTS[session.version][1]),
        ("OsDescription", 605, "Ubuntu 22.04.5 LTS"), ("CudaDriverVersion", 611, "12080"),
        ("Hostname", 619, scene.hosts[session.host].name), ("HasNvtxEvents", 809, "1"),
        ("HasCudaEvents", 812, "1"), ("HasOSRuntimeEvents", 815, "1"),
    ]  # fmt: skip
    return _rows("TARGET_INFO_SYSTEM_ENV", ("name", "nameEnum", "value"), said, globalVid=VM,
                 devStateName="Local (CLI)")  # fmt: skip


def _settings(session: Session) -> Iterator[Rows]:
    product = PRODUCTS[session.version][0]
    scene = session.processes[0].happened.scene
    exported = [
        ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"), ("EXPORT_PRODUCT_VERSION", product),
        ("EXPORT_SCHEMA_VERSION", session.version), ("EXPORT_PLATFORM", "linux-desktop"),
        ("EXPORT_ARCH", "x64"), ("EXPORT_HOST", scene.hosts[session.host].name),
        ("EXPORT_USER", "root"),
        *zip(("EXPORT_SCHEMA_VERSION_MAJOR", "EXPORT_SCHEMA_VERSION_MINOR",
              "EXPORT_SCHEMA_VERSION_MICRO"), session.version.split("."), strict=True),
        ("EXPORT_PARAM_LAZY" if session.since("3.4") else "EXPORT_LAZY", "true"),
    ]  # fmt: skip
    if not session.since("3.4"):
        yield _rows("EXPORT_META_DATA", ("name", "value"), exported)
        return
    exported += [
        ("EXPORT_PARAM_INCLUDE_JSON", str(session.recording.payload).lower()),
        ("EXPORT_PARAM_TIME_NORMALIZE", "false"),
        ("EXPORT_PARAM_TIME_SHIFT", "0"),
    ]
    yield _rows("META_DATA_EXPORT", ("name", "value"), exported)
    yield _rows("META_DATA_CAPTURE", ("name", "value"), _captured(session))


def _captured(session: Session) -> list[tuple[str, str]]:
    scene = session.processes[0].happened.scene
    mode = session.recording.graph_mode.capitalize()
    said = [
        ("DEVICE_ID", "Local (CLI)"), ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
        ("CAPTURE_EVENT_TYPE", "Cuda"), ("CAPTURE_EVENT_TYPE", "OSRuntime"),
        ("DEVICE_DISPLAY_NAME", scene.hosts[session.host].name),
        ("CUDA_GRAPH_TRACE_OPTIONS:MODE", mode), ("PROCESS_0:PID", "0"),
        ("PROCESS_0:COMMAND", scene.engine), ("PROCESS_0:COLLECT_NVTX_TRACE", "true"),
    ]  # fmt: skip
    if len(session.processes) == 1:
        rank, world = session.processes[0].rank, len(scene.places)
        variables = {"RANK": rank, "WORLD_SIZE": world,
                     "LOCAL_RANK": scene.places[rank].device}  # fmt: skip
        said += [("PROCESS_0:ENVIRONMENT_VARIABLE", f'{n}="{v}"') for n, v in variables.items()]
    return said
