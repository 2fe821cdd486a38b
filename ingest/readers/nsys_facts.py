"""What an Nsight Systems export says of itself: versions, clock, host, GPUs, processes, ranks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.nsys_names import Names
from teller.ingest.readers.nsys_rows import PID_MASK, owners
from teller.ingest.readers.nsys_tables import Tables, whole
from teller.ingest.source import Gpu, Remark

# The only variables of an environment that are ever looked at.
RANK_VARIABLES: Final = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_VARIABLES: Final = (*RANK_VARIABLES, "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")
_VARIABLE: Final = re.compile(rf'^({"|".join(_VARIABLES)})="?([^"<>]*)"?$')
_NUMBER: Final = re.compile(r"^\d{1,7}$")

_OPTIONS: Final = re.compile(
    r"^(?:EXPORT_PRODUCT_(?:NAME|VERSION)|EXPORT_SCHEMA_VERSION|EXPORT_\w*TIME_(?:NORMALIZE|SHIFT))$"
)
_CAPTURE: Final = re.compile(r"^(?:PROCESS_(\d+):)?(CUDA_GRAPH_TRACE_OPTIONS:MODE|PID)$")
_ENVIRONMENT: Final = re.compile(r"^(?:PROCESS_(\d+):)?ENVIRONMENT_VARIABLE$")
YEAR_2001_NS: Final = 10**18  # no capture lasts that long: such times are UTC already


@dataclass(frozen=True, slots=True)
class Export:
    """What holds for the whole export."""

    product: str = ""
    host: str = ""
    host_source: str = ""
    epoch_ns: int | None = None
    graph_mode: str = ""
    environments: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)  # by pid
    remarks: tuple[Remark, ...] = ()


def read_export(tables: Tables, first_ns: int | None) -> Export:
    """Read what holds for the whole export; `first_ns` is the smallest time of an event."""
    options = _options(tables)
    capture, environments = _capture(tables)
    host, host_source = _host(tables, capture)
    epoch, remarks = _epoch(tables, options, first_ns)
    mode = next((v for (_, k), v in capture.items() if k.endswith("MODE")), "").lower()
    return Export(_product(options), host, host_source, epoch, mode, environments, tuple(remarks))


def _options(tables: Tables) -> dict[str, str]:
    found: dict[str, str] = {}
    for table in ("EXPORT_META_DATA", "META_DATA_EXPORT"):
        rows = whole(tables, table, ("name", "value")).to_pylist()
        found |= {r["name"]: r["value"] for r in rows if _OPTIONS.match(r["name"])}
    return found


def _product(options: Mapping[str, str]) -> str:
    version = options.get("EXPORT_PRODUCT_VERSION", "")
    schema = options.get("EXPORT_SCHEMA_VERSION", "")
    if not version and not schema:
        return "Nsight Systems"
    return f"Nsight Systems {version}".rstrip() + (f", schema {schema}" if schema else "")


def _capture(
    tables: Tables,
) -> tuple[dict[tuple[str, str], str], dict[int | None, dict[str, str]]]:
    """Give the wanted settings by (process number, name), and whitelisted variables by pid."""
    rows = whole(tables, "META_DATA_CAPTURE", ("name", "value"))
    if not rows.num_rows:
        return {}, {}
    starts = [pc.starts_with(rows["value"], f"{name}=") for name in _VARIABLES]
    wanted = pc.match_substring_regex(rows["name"], r"(?:OPTIONS:MODE|:PID|^DEVICE_DISPLAY_NAME)$")
    for start in starts:
        wanted = pc.or_(wanted, start)
    settings: dict[tuple[str, str], str] = {}
    variables: dict[str, dict[str, str]] = {}
    for row in rows.filter(wanted).to_pylist():
        name, value = row["name"], row["value"]
        if found := _ENVIRONMENT.match(name):
            if said := _VARIABLE.match(value):
                variables.setdefault(found[1] or "", {})[said[1]] = said[2]
        elif found := _CAPTURE.match(name):
            settings[found[1] or "", found[2]] = value
        elif name == "DEVICE_DISPLAY_NAME":
            settings["", name] = value
    by_pid: dict[int | None, dict[str, str]] = {}
    for number, said_there in variables.items():
        pid = settings.get((number, "PID"), "")
        by_pid[int(pid) if _NUMBER.match(pid) and int(pid) else None] = said_there
    return settings, by_pid


def _host(tables: Tables, capture: Mapping[tuple[str, str], str]) -> tuple[str, str]:
    rows = whole(tables, "TARGET_INFO_SYSTEM_ENV", ("name", "value"))
    named = rows.filter(pc.equal(rows["name"], "Hostname"))["value"]
    host = next(filter(None, named.to_pylist()), "")
    if host:
        return host, "Hostname"
    shown = capture.get(("", "DEVICE_DISPLAY_NAME"), "")
    return (shown, "device name") if re.match(r"^[\w.-]+$", shown) else ("", "")


def _epoch(
    tables: Tables, options: Mapping[str, str], first_ns: int | None
) -> tuple[int | None, list[Remark]]:
    """Give what to add to a time to get UTC; the export may have moved times already."""
    rows = whole(tables, "TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)).to_pylist()
    start = next((r["utcEpochNs"] for r in rows if r["utcEpochNs"]), None)
    shift = _shift(options)
    if any(v.lower() == "true" for k, v in options.items() if k.endswith("TIME_NORMALIZE")):
        if first_ns is not None and first_ns > YEAR_2001_NS:
            return -shift, []
        return None, [Remark(
            tables.path, "META_DATA_EXPORT", "times were normalised when it was exported, so they"
            " cannot be put on UTC", "export again without --ts-normalize",
        )]  # fmt: skip
    if start is None:
        return None, []
    return start - shift, []


def _shift(options: Mapping[str, str]) -> int:
    said = (v for k, v in options.items() if k.endswith("TIME_SHIFT"))
    moved = [int(v) for v in said if re.match(r"^-?\d{1,18}$", v)]
    return next(filter(None, moved), 0)


@dataclass(frozen=True, slots=True)
class Named:
    """Names of a process and its threads, as far as the export has them."""

    pid: int
    name: str = ""
    threads: tuple[str, ...] = ()  # main thread first


def read_names(tables: Tables, names: Names, wanted: Iterable[int]) -> dict[int, Named]:
    """Give the names of the wanted owners."""
    owners_wanted = pa.array(sorted(wanted), pa.int64())
    process = _of_owners(tables, "PROCESSES", ("globalPid", "pid", "name"), owners_wanted)
    thread = _of_owners(tables, "ThreadNames", ("globalTid", "nameId"), owners_wanted)
    found = {who: Named(who & PID_MASK) for who in owners_wanted.to_pylist()}
    for who, row in process:
        found[who] = Named(row["pid"] or who & PID_MASK, row["name"])
    by_owner: dict[int, list[tuple[bool, str]]] = {}
    ids = pa.array({row["nameId"] for _, row in thread if row["nameId"] is not None}, pa.int64())
    texts = dict(zip(ids.to_pylist(), names.texts(ids).to_pylist(), strict=True))
    for who, row in thread:
        other = (row["globalTid"] & PID_MASK) != (who & PID_MASK)
        by_owner.setdefault(who, []).append((other, texts.get(row["nameId"]) or ""))
    return {
        who: Named(one.pid, one.name, tuple(text for _, text in sorted(by_owner.get(who, []))))
        for who, one in found.items()
    }


def _of_owners(
    tables: Tables, table: str, columns: tuple[str, ...], wanted: pa.Array
) -> list[tuple[int, dict[str, Any]]]:
    rows = whole(tables, table, columns).combine_chunks()
    if not rows.num_rows:
        return []
    key = next(c for c in columns if c.startswith("global"))
    owner = pa.array(owners(rows[key].combine_chunks()))
    keep = pc.is_in(owner, wanted)
    return list(zip(owner.filter(keep).to_pylist(), rows.filter(keep).to_pylist(), strict=True))


def read_gpus(tables: Tables, pid: int) -> tuple[Gpu, ...]:
    """Give the devices of a process by its own count, all of the machine where none is mapped."""
    gpus = whole(
        tables, "TARGET_INFO_GPU", ("id", "name", "busLocation", "uuid", "cuDevice")
    ).to_pylist()
    mapped = whole(tables, "TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid")).to_pylist()
    index = {m["gpuId"]: m["cudaId"] for m in mapped if m["pid"] in (pid, pid & PID_MASK)}
    known = [
        (index[g["id"]] if index else _first(g["cuDevice"], g["id"], row), g)
        for row, g in enumerate(gpus)
        if not index or g["id"] in index
    ]
    return tuple(
        Gpu(number, g["name"], g["uuid"], g["busLocation"])
        for number, g in sorted(known, key=lambda one: one[0])
    )


def _first(*numbers: int | None) -> int:
    return next(n for n in numbers if n is not None)
