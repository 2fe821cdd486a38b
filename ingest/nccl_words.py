"""Words of NCCL in logs, plug-ins and traces: operations, data types, communicators."""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

DTYPES: Final = (  # by their number
    "int8", "uint8", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2",
)  # fmt: skip
ITEM_BYTES: Final = dict(zip(DTYPES, (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1), strict=True))
ALGORITHMS: Final = (
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT",
)  # fmt: skip
PROTOCOLS: Final = ("LL", "LL128", "SIMPLE")
OPS: Final = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "send": "send",
    "recv": "recv",
    "sendrecv": "send_recv",
}
BY_RANK: Final = ("reduce_scatter", "all_to_all", "scatter")  # their count is one rank's share
UNSIGNED: Final = (1 << 64) - 1
MOST: Final = (1 << 63) - 1
TEXT: Final = pa.string()

Ints = npt.NDArray[np.int64]


def op_named(word: str) -> str:
    """Give the kind of operation that a function's name means, one of `source.OPS`."""
    return OPS.get(word.lower().removeprefix("nccl").replace("_", ""), "unknown")


def dtype_named(word: str) -> str:
    """Give a data type by its name or number: ncclFloat32, 7 and float32 are one."""
    if word.isdecimal():
        return DTYPES[int(word)] if int(word) < len(DTYPES) else word
    return word.lower().removeprefix("nccl").replace("float8_", "float8")


def comm_of(word: str | int) -> str | None:
    """Give a communicator's id as it joins: hex in lower case, no 0x, no zeros in front.

    Text is read as hex, with or without 0x; a number is what it is. 0 and other words are none.
    """
    try:
        number = word if isinstance(word, int) else int(word.strip(), 16)
    except ValueError:
        return None
    return f"{number & UNSIGNED:x}" if number else None


def distinct(
    column: pa.Array | pa.ChunkedArray,
    meaning: Callable[[str], object],
    kind: pa.DataType = TEXT,
) -> pa.Array:
    """Give what each text means, asking once for each distinct one; null stays null."""
    coded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    coded = coded.cast(TEXT).dictionary_encode()
    meanings = pa.array([meaning(word) for word in coded.dictionary.to_pylist()], kind)
    return meanings.take(coded.indices)


def from_one(number: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Count a group's operations from 1, as PyTorch's `Seq` does; NCCL counts them from 0."""
    return pc.add(pc.if_else(pc.less(number, MOST), number, None), 1)


def hexadecimal(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Read hex numbers without 0x; -1 where it is none or beyond 63 bits."""
    texts = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    good = pc.fill_null(pc.match_substring_regex(texts, r"^[0-9a-fA-F]{1,16}$"), False)
    padded = pc.utf8_lpad(pc.if_else(good, pc.utf8_lower(texts), "0"), 16, "0")
    letters = np.frombuffer(padded.buffers()[2], np.uint8)[: len(padded) * 16].reshape(-1, 16)
    digits = np.where(letters >= ord("a"), letters - (ord("a") - 10), letters - ord("0"))
    value = np.zeros(len(letters), np.uint64)
    for place in digits.astype(np.uint64).T:
        value = (value << np.uint64(4)) | place
    fits = good.to_numpy(zero_copy_only=False) & (value <= MOST)
    number: Ints = np.where(fits, value.astype(np.int64), -1)
    return number
