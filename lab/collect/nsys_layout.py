"""Tables of an Nsight Systems export, as far as a recording without a GPU can fill them."""

from typing import Final

SCHEMA_VERSION: Final = "3.25.0"
CATEGORY, MARK, PUSH_POP, START_END, DOMAIN = 33, 34, 59, 60, 75  # types of events
TYPES: Final = (
    (CATEGORY, "NvtxCategory"), (MARK, "NvtxMark"), (39, "NvtxThread"),
    (PUSH_POP, "NvtxPushPopRange"), (START_END, "NvtxStartEndRange"),
    (DOMAIN, "NvtxDomainCreate"), (76, "NvtxDomainDestroy"),
)  # fmt: skip
INFO, WARNING = 1, 2  # severities
EVENT: Final = {
    "start": "INTEGER NOT NULL", "end": "INTEGER", "eventType": "INTEGER NOT NULL",
    "rangeId": "INTEGER", "category": "INTEGER", "color": "INTEGER", "text": "TEXT",
    "globalTid": "INTEGER", "endGlobalTid": "INTEGER", "textId": "INTEGER", "domainId": "INTEGER",
    "uint64Value": "INTEGER", "int64Value": "INTEGER", "doubleValue": "REAL",
    "uint32Value": "INTEGER", "int32Value": "INTEGER", "floatValue": "REAL",
    "jsonTextId": "INTEGER", "jsonText": "TEXT", "binaryData": "TEXT",
}  # fmt: skip
ENUM: Final = {"id": "INTEGER NOT NULL PRIMARY KEY", "name": "TEXT", "label": "TEXT"}
TABLES: Final[dict[str, dict[str, str]]] = {
    "StringIds": {"id": "INTEGER NOT NULL PRIMARY KEY", "value": "TEXT NOT NULL"},
    "ENUM_NSYS_EVENT_TYPE": ENUM,
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": ENUM,
    "META_DATA_CAPTURE": {"name": "TEXT NOT NULL", "value": "TEXT"},
    "META_DATA_EXPORT": {"name": "TEXT NOT NULL", "value": "TEXT"},
    "TARGET_INFO_SYSTEM_ENV": {
        "globalVid": "INTEGER", "devStateName": "TEXT NOT NULL", "name": "TEXT NOT NULL",
        "nameEnum": "INTEGER NOT NULL", "value": "TEXT NOT NULL",
    },
    "TARGET_INFO_SESSION_START_TIME": {
        "utcEpochNs": "INTEGER", "utcTime": "TEXT", "localTime": "TEXT", "systemClockNs": "INTEGER",
    },
    "ANALYSIS_DETAILS": {
        "globalVid": "INTEGER NOT NULL", "duration": "INTEGER NOT NULL",
        "startTime": "INTEGER NOT NULL", "stopTime": "INTEGER NOT NULL",
    },
    "PROCESSES": {"globalPid": "INTEGER", "pid": "INTEGER", "name": "TEXT"},
    "ThreadNames": {"nameId": "INTEGER NOT NULL", "priority": "INTEGER", "globalTid": "INTEGER"},
    "NVTX_EVENTS": EVENT,
    "NVTX_PAYLOAD_SCHEMAS": {
        "domainId": "INTEGER", "schemaId": "INTEGER", "name": "TEXT", "type": "INTEGER",
        "flags": "INTEGER", "numEntries": "INTEGER", "payloadSize": "INTEGER", "alignTo": "INTEGER",
    },
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": {
        "domainId": "INTEGER NOT NULL", "schemaId": "INTEGER NOT NULL", "idx": "INTEGER NOT NULL",
        "flags": "INTEGER", "type": "INTEGER", "name": "TEXT", "description": "TEXT",
        "arrayOrUnionDetail": "INTEGER", "offset": "INTEGER",
    },
    "DIAGNOSTIC_EVENT": {
        "timestamp": "INTEGER NOT NULL", "timestampType": "INTEGER NOT NULL",
        "source": "INTEGER NOT NULL", "severity": "INTEGER NOT NULL", "text": "TEXT NOT NULL",
        "globalPid": "INTEGER",
    },
}  # fmt: skip
