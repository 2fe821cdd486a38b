"""What NCCL's lines say of each collective: the calls, and the algorithm chosen for a size."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import WHO, matched, samples
from teller.ingest.logs.known.nccl_comms import Comms
from teller.ingest.logs.meaning import integers
from teller.ingest.nccl_words import (
    ALGORITHMS,
    BY_RANK,
    ITEM_BYTES,
    PROTOCOLS,
    distinct,
    dtype_named,
    from_one,
    hexadecimal,
    op_named,
)
from teller.ingest.records import JOINS, SAMPLES

CALL: Final = (
    r"^(?P<call>[A-Z]\w{2,24}): opCount (?P<sequence>[0-9a-fA-F]{1,16}) sendbuff \S+ recvbuff \S+ "
    r"count (?P<count>\d{1,18}) datatype (?P<datatype>\d{1,3}) op \d+ root (?P<root>-?\d{1,9}) "
    r"comm (?P<pointer>0x[0-9a-fA-F]+)(?: \[nranks=(?P<of>\d{1,7})\])?"
)
CHOICE: Final = (
    r"(?P<size>\d{1,18}) Bytes -> Algo (?P<algo>\w+) proto (?P<proto>\w+)"
    r"(?: time [\d.]+| channel\{Lo\.\.Hi\}=\{\d+\.\.\d+\})?"
)
MOST_BYTES: Final = float(1 << 62)


def calls(rows: pa.Table, comms: Comms) -> tuple[pa.Table, pa.Table]:
    """Give a join for each call, and the lines read."""
    told = matched(rows, CALL)
    comm = comms.by_pointer(told)
    op = distinct(told["call"], op_named)
    made = {who: told[who] for who in WHO} | {
        "comm": comms.column("comm", comm),
        "seq": from_one(_known(hexadecimal(told["sequence"]))),
        "op": op,
        "label": told["call"],
        "size_bytes": _sizes(told, op, comms.column("of", comm)),
        "dtype": distinct(told["datatype"], dtype_named),
        "peer": pc.if_else(pc.is_in(op, pa.array(["send", "recv"])), told["root"], None),
        "rank": comms.ranks(told, comm),
        "host": pc.coalesce(comms.column("host", comm), told["host"].combine_chunks()),
    }
    columns = [made.get(f.name, pa.nulls(told.num_rows)).cast(f.type) for f in JOINS]
    return pa.table(columns, schema=JOINS), told


def _sizes(told: pa.Table, op: pa.Array, of: pa.Array) -> pa.Array:
    """Give the bytes of each call's input, null where its type or number of ranks is unknown."""
    item = distinct(told["datatype"], lambda word: ITEM_BYTES.get(dtype_named(word)), pa.int64())
    shares = pc.is_in(op, pa.array(BY_RANK))
    printed = integers(told["of"])
    parts = pc.if_else(shares, pc.coalesce(printed, of), 1)
    # as floats first: what wraps is no size
    rough = pc.multiply(pc.multiply(told["count"].cast(pa.float64()), item), parts.cast("float64"))
    safe = pc.if_else(pc.less(rough, MOST_BYTES), integers(told["count"]), None)
    return pc.multiply(pc.multiply(safe, item), parts)


def choices(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Give the algorithm and protocol of each size, once for each process and choice."""
    told = matched(rows, CHOICE)
    algo = distinct(told["algo"], lambda word: _named(word, ALGORITHMS))
    proto = distinct(told["proto"], lambda word: _named(word, PROTOCOLS))
    text = pc.binary_join_element_wise(algo, proto, "/")
    found = samples("nccl.algorithm", told, value=integers(told["size"]), text=text)
    key = ["value", "text", "host", "pid"]
    first = found.append_column("at", pa.array(np.arange(found.num_rows)))
    kept = first.group_by(key).aggregate([("at", "min")])["at_min"]
    return found.take(kept.sort()) if found.num_rows else SAMPLES.empty_table(), told


def _named(word: str, names: tuple[str, ...]) -> str:
    if word.isdecimal():
        return names[int(word)] if int(word) < len(names) else word
    return word.upper()


def _known(numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> pa.Array:
    return pa.array(numbers, mask=numbers < 0)
