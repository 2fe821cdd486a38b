"""Names of an Nsight Systems export: texts by id, the layer of a label, the operation it names."""

import re
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.nsys_tables import Tables, clean
from teller.ingest.source import COMM, DEVICE, ENGINE, FRAMEWORK, OPS, OS, RUNTIME

LAYERS: Final = pa.array([ENGINE, FRAMEWORK, RUNTIME, DEVICE, COMM, OS])
CODE: Final = {layer: code for code, layer in enumerate(LAYERS.to_pylist())}
COMM_DOMAINS: Final = frozenset(("nccl", "c10d"))

_FRAMEWORK_STARTS: Final = (
    "aten::",
    "autograd::",
    "c10d::",
    "c10d_functional::",
    "_c10d_functional::",
    "prim::",
    "torch::",
    "sgl_kernel::",
    "vllm::",
)
_FRAMEWORK_INSIDE: Final = ", op_id = "  # torch.autograd.profiler.emit_nvtx


class Names:
    """Texts by id, each fetched once and only when a row refers to it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[int, str | None] = {}

    def of(self, ids: pa.Array, other: str) -> pa.DictionaryArray:
        """Give the names of ids as words; `other` stands for ids without a text."""
        coded = ids.dictionary_encode()
        texts = self.texts(coded.dictionary)
        return words(coded.indices, pc.fill_null(texts, other), other)

    def labels(self, texts: pa.Array | None, ids: pa.Array, other: str) -> pa.DictionaryArray:
        """Give the names of rows: the text where there is one, else the text of the id."""
        own = None if texts is None else filled(texts)
        if texts is None or own is None or not own.any():
            return self.of(ids, other)
        if own.all() or ids.null_count == len(ids):
            return encoded(texts, other)
        return joined(own, encoded(texts, ""), self.of(ids, other))

    def texts(self, ids: pa.Array) -> pa.Array:
        """Give the texts of distinct ids, null where there is none."""
        wanted = ids.to_pylist()
        missing = [i for i in wanted if i not in self._known]
        if missing:
            found = self._tables.strings(pa.array(missing, pa.int64())).to_pylist()
            self._known.update(zip(missing, found, strict=True))
        return pa.array(map(self._known.__getitem__, wanted), pa.string())


def filled(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Tell which texts are not empty."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32) if len(texts) else np.zeros(1, np.int32)
    some: npt.NDArray[np.bool_]
    some = np.diff(offsets[texts.offset : texts.offset + len(texts) + 1]) > 0
    return some


def words(codes: pa.Array, texts: pa.Array, other: str) -> pa.DictionaryArray:
    """Give words from codes of texts; each text once in the dictionary, null codes are `other`."""
    codes = codes.cast(pa.int32())
    if codes.null_count:
        codes = pc.fill_null(codes, pa.scalar(len(texts), pa.int32()))
        texts = pa.concat_arrays([texts, pa.array([other])])
    once = texts.dictionary_encode()
    if len(once.dictionary) < len(texts):
        codes, texts = once.indices.take(codes), once.dictionary
    return pa.DictionaryArray.from_arrays(codes, texts)


def encoded(texts: pa.Array, other: str) -> pa.DictionaryArray:
    """Give texts as words; `other` stands for the empty one."""
    coded = texts.dictionary_encode()
    cleaned = clean(coded.dictionary)
    same = cleaned is coded.dictionary
    if other and pc.index(cleaned, "").as_py() >= 0:
        same = same and pc.index(cleaned, other).as_py() < 0
        cleaned = pc.if_else(pc.equal(cleaned, ""), other, cleaned)
    if same:
        return pa.DictionaryArray.from_arrays(coded.indices, cleaned)
    return words(coded.indices, cleaned, other)


def joined(
    first: npt.NDArray[np.bool_], one: pa.DictionaryArray, two: pa.DictionaryArray
) -> pa.DictionaryArray:
    """Give the words of `one` where `first` says so, else those of `two`, each once."""
    count = len(one.dictionary)
    codes = np.where(first, one.indices.to_numpy(), count + two.indices.to_numpy())
    texts = pa.concat_arrays([one.dictionary, two.dictionary])
    if pc.any(pc.is_in(one.dictionary, two.dictionary)).as_py():
        return words(pa.array(codes), texts, "")
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), texts)


def constant(text: str, rows: int) -> pa.DictionaryArray:
    """Give one word for all rows."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([text]))


def layers(codes: npt.NDArray[np.int32]) -> pa.DictionaryArray:
    """Give layers from their codes."""
    return pa.DictionaryArray.from_arrays(codes, LAYERS)


def label_layers(labels: pa.Array) -> npt.NDArray[np.int32]:
    """Give the layer code of each NVTX label, as far as the label alone tells it."""
    torch = pc.match_substring(labels, _FRAMEWORK_INSIDE)
    for start in _FRAMEWORK_STARTS:
        torch = pc.or_(torch, pc.starts_with(labels, start))
    nccl = pc.starts_with(labels, "nccl")
    code = np.where(_flags(torch), CODE[FRAMEWORK], CODE[ENGINE]).astype(np.int32)
    code[_flags(nccl)] = CODE[COMM]
    return code


def _flags(values: pa.Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_]
    flags = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return flags


_BY_START: Final = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all", "broadcast": "broadcast", "bcast": "broadcast",
    "reduce": "reduce", "gather": "gather", "scatter": "scatter", "barrier": "barrier",
    "sendrecv": "send_recv", "send": "send", "recv": "recv", "isend": "send", "irecv": "recv",
}  # fmt: skip
_NCCL_KERNEL: Final = re.compile(r"^(?:void )?(?:nccl|rccl)(?:Sym)?k?(?:Dev)?Kernel_?(\w*)")
_OWN_KERNEL: Final = re.compile(
    r"cross_device_(reduce)|(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)", re.IGNORECASE
)
_FUNCTION: Final = re.compile(r"^[^<(]*")
_CALL: Final = re.compile(r"^(?:nccl|mpi)?[:_]*(.*)$", re.IGNORECASE)
_DTYPES: Final = frozenset((
    "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2", "u8", "u32", "u64", "i8", "i32", "i64",
    "half", "float", "double",
))  # fmt: skip


@lru_cache(maxsize=1 << 16)
def kernel_op(name: str) -> str | None:
    """Give the operation of a communication kernel, None for other kernels."""
    if found := _NCCL_KERNEL.match(name):
        return _op(found[1]) or "unknown"
    own = _OWN_KERNEL.search(_FUNCTION.match(name)[0])  # type: ignore[index]  # matches anything
    if own is None:
        return None
    return "all_reduce" if own[1] else _op(own[2])


@lru_cache(maxsize=1 << 16)
def kernel_dtype(name: str) -> str | None:
    """Give the element type that the name of an NCCL kernel holds."""
    tokens = re.split(r"[_(<]", name)
    return next((token for token in tokens if token in _DTYPES), None)


@lru_cache(maxsize=1 << 16)
def call_op(label: str) -> str | None:
    """Give the operation of a host call's label: `ncclAllReduce`, `nccl:all_reduce`, `send`."""
    return _op(_CALL.match(label)[1])  # type: ignore[index]  # matches anything


def _op(text: str) -> str | None:
    squeezed = text.replace("_", "").lower()
    for start, op in _BY_START.items():
        if squeezed.startswith(start):
            return op
    return text if text in OPS else None
