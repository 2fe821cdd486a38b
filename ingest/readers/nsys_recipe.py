"""Results of the Nsight Systems recipe `nvtx_gpu_proj_trace`: NVTX ranges projected onto GPUs.

A zip file or a folder. Each range stands where the GPU work that it launched ran, not where the
host was. The recipe counts its input reports as ranks, so one report alone says nothing by that.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.ingest.readers.nsys_facts import RANK_VARIABLES, YEAR_2001_NS
from teller.ingest.readers.nsys_names import CODE, encoded, layers
from teller.ingest.readers.nsys_rows import ints, thread_lanes
from teller.ingest.readers.nsys_tables import typed
from teller.ingest.source import CALLS, COMM, ENGINE, SPANS, Facts, Gpu, Reading, Remark, Source

FORMAT: Final = "nsys_recipe"

_RESULT: Final = "nvtx_gpu_proj_trace/"
_TRACE: Final = "trace.parquet"
_START, _LENGTH = "Projected Start", "Projected Duration"
_AGAIN: Final = "copy the result again, or run the recipe again"
_UNNAMED: Final = "unnamed range"
_HLO: Final = re.compile(r"hlo_op=(all-reduce|all-gather|reduce-scatter|all-to-all)(?!-done)")
_VARIABLE: Final = re.compile(rf"(?:^|;)({'|'.join(RANK_VARIABLES)})=(\d{{1,7}})(?=;|$)")
_DEVICE_RANK: Final = re.compile(r"\bprocess=(\d{1,7})\b")  # in the name that JAX gives a device


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether this is a zip file or a folder with a result of the recipe."""
    if head.startswith(b"PK\x03\x04"):
        return _Pack(path).trace is not None or _RESULT.encode() in head
    return not head and path.is_dir() and _Pack(path).trace is not None


def read(path: Path) -> Reading:
    """Read one result: a source for each process of each report."""
    pack = _Pack(path)
    table = pack.table(pack.trace or _RESULT + _TRACE)
    if table is None or not {_START, _LENGTH} <= set(table.column_names):
        remark = Remark(str(path), _RESULT + _TRACE, "the projected ranges cannot be read",
                        _AGAIN)  # fmt: skip
        return Reading((), (*pack.remarks, remark))
    rows = _numbered(table)
    said = _said(pack)
    sources = tuple(_sources(str(path), rows, said))
    return Reading(sources, (*pack.remarks, *_dropped(str(path), table, sources)))


class _Pack:
    """The files of a zip file or a folder; what cannot be read goes into `remarks`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remarks: list[Remark] = []
        self.names = self._names()
        at = (n for n in self.names if n.endswith(_RESULT + _TRACE))
        self.trace = next(at, None) or self._bare()

    def _names(self) -> list[str]:
        if self.path.is_dir():
            nested = [*self.path.glob("*.*"), *self.path.glob(f"{_RESULT}*.*")]
            return sorted(str(p.relative_to(self.path)) for p in nested)
        try:
            with zipfile.ZipFile(self.path) as packed:
                return packed.namelist()
        except (zipfile.BadZipFile, OSError) as err:
            what = f"the zip file is broken: {err}"
            self.remarks.append(Remark(str(self.path), "end of file", what, "copy it again"))
            return []

    def _bare(self) -> str | None:
        """Find the trace of a folder that is the result itself."""
        whole = _TRACE in self.names and any(n.endswith(".nsys-analysis") for n in self.names)
        return _TRACE if whole else None

    def table(self, name: str) -> pa.Table | None:
        """Give a Parquet file of the result; None where it is not there or cannot be read."""
        if name not in self.names:
            return None
        try:
            return pq.read_table(io.BytesIO(self._content(name)))
        except (pa.ArrowException, zipfile.BadZipFile, OSError, RuntimeError) as err:
            self.remarks.append(Remark(str(self.path), name, f"cannot be read: {err}", _AGAIN))
            return None

    def _content(self, name: str) -> bytes:
        if self.path.is_dir():
            return (self.path / name).read_bytes()
        with zipfile.ZipFile(self.path) as packed:
            return packed.read(name)


@dataclass(frozen=True, slots=True)
class _Said:
    """What the metadata beside the trace say; only whitelisted names are looked at."""

    host: str = ""
    rank: int | None = None
    rank_source: str = ""
    gpus: tuple[Gpu, ...] = ()


def _said(pack: _Pack) -> _Said:
    system = pack.table("system-metadata.parquet")
    host, block = "", ""
    if system is not None and {"name", "value"} <= set(system.column_names):
        host, block = _value(system, "Hostname"), _value(system, "DeviceEnvironment")
    variables = dict(_VARIABLE.findall(block))
    device = pack.table("device-metadata.parquet")
    rows = device.to_pylist() if device is not None else []
    named = {m[1] for row in rows if (m := _DEVICE_RANK.search(" ".join(_texts(row))))}
    if found := next((variables[v] for v in RANK_VARIABLES if v in variables), None):
        return _Said(host, int(found), "environment", _gpus(rows))
    if len(named) == 1:
        return _Said(host, int(named.pop()), "device name", _gpus(rows))
    return _Said(host, gpus=_gpus(rows))


def _value(system: pa.Table, name: str) -> str:
    found = system.filter(pc.equal(system["name"], name))["value"].to_pylist()
    return str(found[0] or "") if found else ""


def _texts(row: dict[str, Any]) -> list[str]:
    return [value for value in row.values() if isinstance(value, str)]


def _gpus(rows: list[dict[str, Any]]) -> tuple[Gpu, ...]:
    plain = [{key.rsplit("'", 2)[-2] if "'" in key else key: value for key, value in row.items()
              if "NVTX_CUDA_DEVICE" not in key} for row in rows]  # fmt: skip
    return tuple(
        Gpu(row.get("cuDevice") or 0, str(row.get("name") or ""), str(row.get("uuid") or ""),
            str(row.get("busLocation") or ""))
        for row in plain
    )  # fmt: skip


def _numbered(table: pa.Table) -> pa.RecordBatch:
    """Give the columns that are read, with their place, as one batch."""
    renamed = {"start": _START, "length": _LENGTH, "pid": "PID", "tid": "TID", "rank": "Rank",
               "name": "Name"}  # fmt: skip
    have = {new: table[old].combine_chunks() for new, old in renamed.items()
            if old in table.column_names}  # fmt: skip
    batch = pa.RecordBatch.from_arrays(list(have.values()), names=list(have))
    rows = typed(batch, list(renamed))
    rows = rows.append_column("place", pa.array(np.arange(rows.num_rows)))
    return rows.filter(pc.and_(rows["start"].is_valid(), rows["length"].is_valid()))


def _sources(path: str, rows: pa.RecordBatch, said: _Said) -> Iterator[Source]:
    keys = pa.table({"rank": rows["rank"], "pid": rows["pid"]}).group_by(["rank", "pid"])
    processes = (
        keys.aggregate([]).sort_by([("rank", "ascending"), ("pid", "ascending")]).to_pylist()
    )
    reports = {key["rank"] for key in processes}
    for key in processes:
        mine = rows.filter(
            pc.and_(_same(rows["rank"], key["rank"]), _same(rows["pid"], key["pid"]))
        )
        alone = len(processes) == 1
        rank, source = (said.rank, said.rank_source) if alone else (None, "")
        if len(reports) > 1 and len(processes) == len(reports):
            rank, source = key["rank"], "report order"
        facts = Facts(
            path=path, format=FORMAT, pid=key["pid"], rank=rank, rank_source=source,
            host=said.host, host_source="Hostname" if said.host else "",
            epoch_ns=0 if pc.min(mine["start"]).as_py() > YEAR_2001_NS else None,
            device_index=said.gpus[0].index if len(said.gpus) == 1 else None, gpus=said.gpus,
            product="Nsight Systems recipe nvtx_gpu_proj_trace", event_count=mine.num_rows,
        )  # fmt: skip
        yield Source(facts, *_tables(mine))


def _same(column: pa.Array, value: int | None) -> pa.Array:
    return column.is_null() if value is None else pc.fill_null(pc.equal(column, value), False)


def _tables(rows: pa.RecordBatch) -> tuple[pa.Table, pa.Table]:
    """Give spans and calls of one process."""
    start, length = ints(rows["start"]), np.maximum(ints(rows["length"]), 0)
    name = encoded(rows["name"], _UNNAMED)
    ops = [_op(text) for text in name.dictionary.to_pylist()]
    op = pa.array(ops, pa.string()).take(name.indices)
    code = np.where(op.is_valid(), CODE[COMM], CODE[ENGINE]).astype(np.int32)
    size = rows.num_rows
    spans = pa.Table.from_arrays([
        rows["place"], name, layers(code), thread_lanes(rows["tid"], "projected {}"),
        pa.nulls(size, pa.int64()), pa.nulls(size, pa.int64()), pa.array(start),
        pa.array(start + length), pa.array(np.zeros(size, bool)),
        pa.nulls(size, pa.int64()), pa.nulls(size, pa.int64()),
    ], schema=SPANS)  # fmt: skip
    talks = op.is_valid()
    count = pc.sum(talks).as_py() or 0
    own = {"place": rows["place"].filter(talks), "op": op.filter(talks)}
    calls = pa.Table.from_arrays(
        [own.get(f.name, pa.nulls(count, f.type)) for f in CALLS], schema=CALLS
    )
    return spans, calls


def _op(name: str) -> str | None:
    found = _HLO.search(name)
    return found[1].replace("-", "_") if found else None


def _dropped(path: str, table: pa.Table, sources: tuple[Source, ...]) -> list[Remark]:
    lost = table.num_rows - sum(source.spans.num_rows for source in sources)
    if not lost:
        return []
    return [Remark(path, _TRACE, f"{lost} rows without a time are left out", "harmless if few")]
