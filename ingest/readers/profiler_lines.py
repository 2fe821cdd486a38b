"""Records of plug-ins that write a JSON record for each event or change of state."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.nccl_words import comm_of, distinct, from_one
from teller.ingest.readers.json_records import LINE, NUMBER, nanoseconds, whole
from teller.ingest.readers.profiler_tables import OPERATIONS, RANKS, Ints, last_end, latest

WHEN: Final = pa.struct([("ts", NUMBER), ("pid", NUMBER)])
DETAILS: Final = pa.struct(
    [
        ("func", pa.string()), ("seq", NUMBER), ("peer", NUMBER), ("count", NUMBER),
        ("dtype", pa.string()), ("algo", pa.string()), ("proto", pa.string()), ("nranks", NUMBER),
    ]
)  # fmt: skip
SCHEMA: Final = pa.schema(
    [
        ("type", pa.string()), ("recordType", pa.string()), ("commId", NUMBER), ("rank", NUMBER),
        ("start", WHEN), ("stop", WHEN), ("parentObj", pa.string()), ("eventAddr", pa.string()),
        ("details", DETAILS),
    ]
)  # fmt: skip
KINDS: Final = {
    "ncclProfileColl": "operation",
    "ncclProfileP2p": "operation",
    "ncclProfileCollApi": "call",
    "ncclProfileP2pApi": "call",
    "ncclProfileKernelCh": "kernel",
    "ncclProfileProxyOp": "proxy",
    "ncclProfileProxyStep": "proxy",
    "ncclProfileProxyCtrl": "proxy",
    "ProfilerLifecycle": "rank",
}
# One row an event that is used.
EVENTS: Final = pa.schema(
    [
        ("kind", pa.string()), ("comm", pa.string()), ("own", pa.int64()), ("of", pa.int64()),
        ("label", pa.string()), ("seq", pa.int64()), ("peer", pa.int64()), ("count", pa.int64()),
        ("dtype", pa.string()), ("algo", pa.string()), ("proto", pa.string()),
        ("start_ns", pa.int64()), ("stop_ns", pa.int64()), ("pid", pa.int64()),
        ("line", pa.int64()), ("address", pa.string()), ("parent", pa.string()),
    ]
)  # fmt: skip


def events(found: pa.Table) -> pa.Table:
    """Give the events of records read by `SCHEMA`."""
    kind = distinct(found["type"], KINDS.get)
    used = kind.is_valid()
    found, kind = found.filter(used), kind.filter(used)
    start, stop, details = (found[n].combine_chunks() for n in ("start", "stop", "details"))
    pid = whole(pc.struct_field(start, "pid"))
    words = {n: pc.struct_field(details, n) for n in ("dtype", "algo", "proto")}
    figures = {n: whole(pc.struct_field(details, n)) for n in ("seq", "peer", "count")}
    made = words | figures | {
        "kind": kind,
        "seq": from_one(figures["seq"]),
        "comm": distinct(found["commId"], lambda word: comm_of(int(word.partition(".")[0]))),
        "own": whole(found["rank"]),
        "of": whole(pc.struct_field(details, "nranks")),
        "label": pc.struct_field(details, "func"),
        "start_ns": nanoseconds(pc.struct_field(start, "ts")),
        "stop_ns": nanoseconds(pc.struct_field(stop, "ts")),
        "pid": pid,
        "line": found[LINE],
        "address": _place(pid, found["eventAddr"]),
        "parent": _place(pid, found["parentObj"]),
    }  # fmt: skip
    return pa.table([made[f.name].cast(f.type) for f in EVENTS], schema=EVENTS)


def operations(every: pa.Table) -> pa.Table:
    """Give the operations, each with the time of its call and the end of its kernels."""
    done, calls, kernels = (
        every.filter(pc.equal(every["kind"], kind)) for kind in ("operation", "call", "kernel")
    )
    start = _ints(done, "start_ns")
    # addresses are used again, so it is the latest one that counts
    call = latest(_word(calls, "address"), _ints(calls, "start_ns"), _word(done, "parent"), start)
    called = calls["start_ns"].combine_chunks().take(pa.array(call, mask=call < 0))
    owner = latest(
        _word(done, "address"), start, _word(kernels, "parent"), _ints(kernels, "start_ns")
    )
    made = {
        "time_ns": pc.coalesce(called, done["start_ns"].combine_chunks()),
        "began": pa.array(np.isin(np.arange(done.num_rows), owner)),
        "end_ns": last_end(owner, kernels["stop_ns"].combine_chunks(), done.num_rows),
    }
    columns = [made[n] if n in made else done[n] for n in OPERATIONS.names]
    return pa.table(columns, schema=OPERATIONS)


def ranks(every: pa.Table) -> pa.Table:
    """Give the ranks that the plug-in was begun for."""
    told = every.filter(pc.and_(pc.equal(every["kind"], "rank"), every["of"].is_valid()))
    return told.select(RANKS.names).cast(RANKS)


def _place(pid: pa.Array, address: pa.ChunkedArray) -> pa.Array:
    word = address.combine_chunks()
    return pc.binary_join_element_wise(pid.cast(pa.string()), word, " ")


def _word(rows: pa.Table, name: str) -> pa.Array:
    return rows[name].combine_chunks()


def _ints(rows: pa.Table, name: str) -> Ints:
    values: Ints = pc.fill_null(rows[name], 0).to_numpy()
    return values
