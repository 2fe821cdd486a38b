"""Tables of Nsight Systems' SQLite exports, by the version of their schema.

A column is written `name:type@since`, or `@-until` for one that was dropped (exclusive); without a
type it holds integers, `!` says NOT NULL.
"""

import re
from functools import cache
from typing import Final

CUPTI: Final = "CUPTI_ACTIVITY_KIND_"
KERNEL, RUNTIME = CUPTI + "KERNEL", CUPTI + "RUNTIME"
MEMCPY, MEMSET = CUPTI + "MEMCPY", CUPTI + "MEMSET"
SYNC, GRAPH, OVERHEAD = CUPTI + "SYNCHRONIZATION", CUPTI + "GRAPH_TRACE", CUPTI + "OVERHEAD"
NVTX: Final = "NVTX_EVENTS"

PRODUCTS: Final = {  # of the release that writes a schema: its version, and the driver it met
    "2.9.1": ("2022.2.1.31-5fe97ab", "515.65.01"),
    "3.4.0": ("2023.3.1.92-233133147223v0", "535.104.05"),
    "3.7.4": ("2024.1.1.59-241133802077v0", "545.23.08"),
    "3.13.2": ("2024.5.1.113-245134619542v0", "550.90.07"),
    "3.17.2": ("2025.1.3.140", "570.86.15"),
    "3.24.0": ("2025.5.2.266", "580.65.06"),
    "3.24.14": ("2026.1.1.204", "580.95.05"),
    "3.25.0": ("2026.2.1.210", "580.105.08"),
}

_DEVICE: Final = (
    "start! end! deviceId! contextId! greenContextId{} streamId! correlationId globalPid "
)
_TABLES: Final = {
    "StringIds": "id#! value:T!",
    "ANALYSIS_FILE": (
        "id#!@3.0 filename:T!@-3.16 filename:T@3.16 content:T!@-3.16 contentId@3.16 globalPid!"
    ),
    "ProcessStreams": "globalPid! filenameId! contentId!",
    "TARGET_INFO_SYSTEM_ENV": (
        "globalVid!@-3.1 globalVid@3.1 devStateName:T! name:T! nameEnum! value:T!"
    ),
    "TARGET_INFO_NIC_INFO": (
        "globalId!@-3.6 GUID!@3.6 stateName:T! nicId! name:T! deviceId! vendorId! linkLayer!"
    ),
    "TARGET_INFO_SESSION_START_TIME": (
        "utcEpochNs utcTime:T localTime:T systemClockNs@3.24.14"
    ),
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "PROCESSES": "globalPid pid name:T",
    "ThreadNames": "nameId! priority globalTid",
    "TARGET_INFO_GPU": (
        "vmId! id! name:T busLocation:T isDiscrete l2CacheSize totalMemory memoryBandwidth"
        " clockRate smCount pwGpuId uuid:T luid chipName:T cuDevice ctxswDevPath:T ctrlDevPath:T"
        " revision nodeMask constantMemory maxIPC maxRegistersPerBlock maxShmemPerBlock"
        " maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines"
        " maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ"
        " maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor smMinor"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid! uuid:T@3.24.14 numMultiprocessors@3.24.14",
    "TARGET_INFO_CUDA_NULL_STREAM": "streamId! hwId! vmId! processId! deviceId! contextId!",
    "TARGET_INFO_CUDA_CONTEXT_INFO": (
        "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext"
        " numMultiprocessors@3.24.14"
    ),
    "TARGET_INFO_CUDA_STREAM": "streamId! hwId! vmId! processId! contextId! priority! flag!",
    "META_DATA_CAPTURE": "name:T! value:T",
    "META_DATA_EXPORT": "name:T! value:T",
    "EXPORT_META_DATA": "name:T! value:T",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text:T! globalPid",
    KERNEL: _DEVICE.format("@3.13") + (
        "demangledName! shortName! mangledName launchType cacheConfig registersPerThread! gridX!"
        " gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory!"
        " localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId"
        " sharedMemoryLimitConfig qmdBulkReleaseDone@3.24 qmdPreexitDone@3.24 qmdLastCtaDone@3.24"
        " graphId@3.24 clusterX@3.24 clusterY@3.24 clusterZ@3.24 clusterSchedulingPolicy@3.24"
        " maxPotentialClusterSize@3.24 maxActiveClusters@3.24"
        " sharedMemoryRequestedPercentage@3.24.14 tensorSizeMinusOneElements:T!@3.25"
    ),
    MEMCPY: _DEVICE.format("@3.13") + (
        "bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId"
        " dstContextId migrationCause graphNodeId virtualAddress copyCount@3.17"
    ),
    MEMSET: _DEVICE.format("@3.16") + "value! bytes! graphNodeId memKind",
    SYNC: _DEVICE.format("@3.6") + (
        "deprecatedSyncType@3.17 syncType! eventId! eventSyncId@3.17"
    ),
    GRAPH: _DEVICE.format("@3.13") + "graphId! graphExecId!",
    RUNTIME: "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
    OVERHEAD: "start! end! eventClass! globalTid correlationId nameId overheadType!",
    "PROFILER_OVERHEAD": (
        "start! end! globalTid nameId! returnValue!@-3.24 overheadType!@3.24"
    ),
    "OSRT_API": (
        "start! end! eventClass! globalTid nameId! returnValue! nestingLevel"
        " callchainId! argumentsId!@3.24"
    ),
    NVTX: (
        "start! end eventType! rangeId category color text:T globalTid endGlobalTid textId domainId"
        " uint64Value int64Value doubleValue:R uint32Value int32Value floatValue:R jsonTextId"
        " jsonText:T binaryData:T@3.16"
    ),
    "NVTX_PAYLOAD_SCHEMAS": (
        "domainId schemaId name:T type flags numEntries payloadSize alignTo"
    ),
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": (
        "domainId! schemaId! idx! flags type name:T description:T arrayOrUnionDetail offset"
    ),
}  # fmt: skip
_KINDS: Final = {"": "INTEGER", "T": "TEXT", "R": "REAL"}
_COLUMN: Final = re.compile(r"(\w+)(#?)(?::([TR]))?(#?)(!?)(?:@(-?)([\d.]+))?")

ENUMS: Final = {
    "ENUM_NSYS_EVENT_TYPE": {
        33: "NvtxCategory", 34: "NvtxMark", 39: "NvtxThread", 59: "NvtxPushPopRange",
        60: "NvtxStartEndRange", 75: "NvtxDomainCreate", 76: "NvtxDomainDestroy",
    },
    "ENUM_NSYS_EVENT_CLASS": {
        0: "TRACE_PROCESS_EVENT_CUDA_RUNTIME", 1: "TRACE_PROCESS_EVENT_CUDA_DRIVER",
        27: "TRACE_PROCESS_EVENT_OS_RUNTIME",
    },
    "ENUM_CUDA_MEMCPY_OPER": {
        0: "CUDA_MEMCPY_KIND_UNKNOWN", 1: "CUDA_MEMCPY_KIND_HTOD", 2: "CUDA_MEMCPY_KIND_DTOH",
        8: "CUDA_MEMCPY_KIND_DTOD", 9: "CUDA_MEMCPY_KIND_HTOH", 10: "CUDA_MEMCPY_KIND_PTOP",
    },
    "ENUM_CUDA_MEM_KIND": {
        0: "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", 1: "CUDA_MEMOPR_MEMORY_KIND_PINNED",
        2: "CUDA_MEMOPR_MEMORY_KIND_DEVICE", 3: "CUDA_MEMOPR_MEMORY_KIND_ARRAY",
    },
    "ENUM_CUPTI_SYNC_TYPE": {
        1: "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE",
        2: "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT",
        3: "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE",
        4: "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE",
    },
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": {
        0: "UnknownLevel", 1: "Info", 2: "Warning", 3: "Error", 4: "Verbose",
    },
    "ENUM_DIAGNOSTIC_SOURCE_TYPE": {1: "Injection", 2: "Daemon", 3: "Analysis"},
}  # fmt: skip


def number(version: str) -> tuple[int, ...]:
    """Give the numbers of a version, to be compared."""
    return tuple(map(int, re.findall(r"\d+", version)))


@cache
def columns(table: str, version: str) -> dict[str, str]:
    """Give the columns of a table in this schema, each with its type and constraint, in order."""
    own, found = number(version), {}
    for word in _TABLES[table].split():
        name, key, kind, _, needed, until, since = _COLUMN.fullmatch(word).groups()  # type: ignore[union-attr]  # all are
        if since and (own < number(since)) != bool(until):
            continue
        said = _KINDS[kind or ""] + (" NOT NULL" if needed else "")
        found[name] = said + (" PRIMARY KEY" if key else "")
    return found


def ddl(table: str, version: str) -> str:
    """Give the statement that makes a table."""
    lines = (f"    {name:<28}{said}" for name, said in columns(table, version).items())
    return f"CREATE TABLE {table} (\n" + ",\n".join(lines) + "\n)"
