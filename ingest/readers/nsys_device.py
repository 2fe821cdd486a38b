"""Work that GPUs ran, out of the four tables of an Nsight Systems export that hold it."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.nsys_names import (
    CODE,
    Names,
    constant,
    kernel_dtype,
    kernel_op,
    words,
)
from teller.ingest.readers.nsys_raw_calls import RawCalls
from teller.ingest.readers.nsys_rows import (
    Collected,
    Flags,
    Ints,
    device_lanes,
    ints,
    owners,
    pair_names,
)
from teller.ingest.readers.nsys_tables import CUPTI, Tables, whole
from teller.ingest.source import COMM, DEVICE

KERNEL: Final = CUPTI + "KERNEL"
COPY: Final = CUPTI + "MEMCPY"
SET: Final = CUPTI + "MEMSET"
GRAPH: Final = CUPTI + "GRAPH_TRACE"
DEVICE_TABLES: Final = (KERNEL, COPY, SET, GRAPH)

_NAME: Final = "demangledName|shortName"
_SHARED: Final = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_OWN: Final = {
    KERNEL: (_NAME,), COPY: ("bytes", "copyKind"), SET: ("bytes",),
    GRAPH: ("graphId", "graphExecId"),
}  # fmt: skip
_COPY_KINDS: Final = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD",
    9: "HtoH", 10: "PtoP", 11: "UVM HtoD", 12: "UVM DtoH", 13: "UVM DtoD",
}  # fmt: skip
_COPY_PREFIX: Final = "CUDA_MEMCPY_KIND_"
_NO_DEVICE: Final = (1 << 31) - 1  # CUPTI's word for a launch by the device itself


def read_device(tables: Tables, names: Names, spans: Collected, calls: RawCalls) -> None:
    """Add all device work to `spans`, and what communicates to `calls`."""
    kinds = _copy_kinds(tables)
    for table in DEVICE_TABLES:
        own = _OWN[table]
        if table == KERNEL and "name" in tables.columns(table):
            own = (*own, "name")
        for batch in tables.batches(table, (*_SHARED, *own)):
            batch, place = spans.sound(table, batch, _ran(table, batch, spans))
            if len(place):
                _add(table, batch, place, _names(table, batch, names, kinds), spans, calls)


def _add(
    table: str,
    batch: pa.RecordBatch,
    place: Ints,
    name: pa.DictionaryArray,
    spans: Collected,
    calls: RawCalls,
) -> None:
    owner = owners(batch["globalPid"])
    layer = np.full(len(place), CODE[DEVICE], np.int32)
    if table == KERNEL:
        talks = _add_calls(batch, place, owner, name, calls)
        layer[talks] = CODE[COMM]
    size = {"size_bytes": batch["bytes"]} if "bytes" in batch.schema.names else {}
    spans.add(
        table, batch, place, owner, name=name, layer=layer,
        lane=device_lanes(batch["deviceId"], batch["streamId"]),
        stream=pc.fill_null(batch["streamId"], -1), device_index=batch["deviceId"],
        correlation=batch["correlationId"], **size,
    )  # fmt: skip


def _ran(table: str, batch: pa.RecordBatch, spans: Collected) -> Flags:
    """Tell the rows that ran on a device from records without substance."""
    device = ints(batch["deviceId"])
    empty = (ints(batch["start"], -1) == 0) & (ints(batch["end"]) == 0)
    nowhere: Flags = (device < 0) | (device >= _NO_DEVICE) | empty
    if nowhere.any():
        spans.mended[table]["without a device or times"] += int(nowhere.sum())
    return ~nowhere


def _names(
    table: str, batch: pa.RecordBatch, names: Names, kinds: Mapping[int, str]
) -> pa.DictionaryArray:
    if table == KERNEL:
        texts = batch["name"] if "name" in batch.schema.names else None
        return names.labels(texts, batch[_NAME], "unnamed kernel")
    if table == COPY:
        coded = batch["copyKind"].dictionary_encode()
        told = [f"Memcpy {kinds.get(k, '')}".rstrip() for k in coded.dictionary.to_pylist()]
        return words(coded.indices, pa.array(told, pa.string()), "Memcpy")
    if table == SET:
        return constant("Memset", batch.num_rows)
    return pair_names(batch["graphId"], batch["graphExecId"], "CUDA graph {} exec {}")


def _add_calls(
    batch: pa.RecordBatch, place: Ints, owner: Ints, name: pa.DictionaryArray, calls: RawCalls
) -> npt.NDArray[np.intp]:
    """Add the kernels that communicate and give their rows."""
    known = name.dictionary.to_pylist()
    ops = list(map(kernel_op, known))
    if not any(ops):
        return np.zeros(0, np.intp)
    codes = name.indices.to_numpy()
    rows = np.flatnonzero(np.array([op is not None for op in ops])[codes])
    some = pa.array(codes[rows])
    calls.add(
        owner[rows], place[rows], pa.array(ops, pa.string()).take(some),
        dtype=pa.array(map(kernel_dtype, known), pa.string()).take(some),
        correlation=batch["correlationId"].take(pa.array(rows)),
    )  # fmt: skip
    return rows


def _copy_kinds(tables: Tables) -> dict[int, str]:
    told = whole(tables, "ENUM_CUDA_MEMCPY_OPER", ("id", "name")).to_pylist()
    by_suffix = {kind.replace(" ", "_").upper(): kind for kind in _COPY_KINDS.values()}
    return _COPY_KINDS | {
        row["id"]: by_suffix[suffix]
        for row in told
        if (suffix := row["name"].removeprefix(_COPY_PREFIX)) in by_suffix
    }
