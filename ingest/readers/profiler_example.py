"""Events of NCCL's example plug-in: a list as Chrome has it, in older releases no valid JSON.

An event is a line that begins it and one that ends it, with all that belongs to it in between.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.nccl_words import comm_of, distinct, from_one
from teller.ingest.readers.json_records import LINE, NUMBER, nanoseconds, whole
from teller.ingest.readers.profiler_tables import OPERATIONS, Ints, last_end, latest

ARGS: Final = pa.struct(
    [
        ("SeqNum", NUMBER), ("CommHash", NUMBER), ("Rank", NUMBER), ("Peer", NUMBER),
        ("Count", NUMBER), ("Datatype", pa.string()), ("Algorithm", pa.string()),
        ("Protocol", pa.string()),
    ]
)  # fmt: skip
SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()), ("cat", pa.string()), ("ph", pa.string()), ("id", NUMBER),
        ("pid", NUMBER), ("ts", NUMBER), ("args", ARGS),
    ]
)  # fmt: skip
BARE: Final = r"(:\s*)(0x[0-9a-fA-F]+|nccl\w+|\(nil\)|-?nan|-?inf)(\s*[,}])"
NUMBERED: Final = r'("Datatype"\s*:\s*)(\d+)'
KINDS: Final = {
    "COLL": "operation", "P2P": "operation", "COLL_API": "call", "P2P_API": "call",
    "GPU": "kernel", "PROXY": "proxy", "NET": "proxy", "NET_IB": "proxy", "NET_SOCK": "proxy",
}  # fmt: skip
# One row a line of an event.
EVENTS: Final = pa.schema(
    [
        ("kind", pa.string()), ("key", pa.string()), ("begins", pa.bool_()),
        ("ts_ns", pa.int64()), ("pid", pa.int64()), ("line", pa.int64()), ("label", pa.string()),
        ("comm", pa.string()), ("own", pa.int64()), ("seq", pa.int64()), ("peer", pa.int64()),
        ("count", pa.int64()), ("dtype", pa.string()), ("algo", pa.string()),
        ("proto", pa.string()),
    ]
)  # fmt: skip


def valid(lines: pa.Array) -> pa.Array:
    """Put what is bare in older releases into quotes."""
    quoted = pc.replace_substring_regex(lines, BARE, r'\1"\2"\3')
    return pc.replace_substring_regex(quoted, NUMBERED, r'\1"\2"')


def events(found: pa.Table) -> pa.Table:
    """Give the lines of events, read by `SCHEMA`."""
    kind = distinct(found["cat"], KINDS.get)
    used = pc.and_(kind.is_valid(), pc.is_in(found["ph"], pa.array(["b", "e"])).combine_chunks())
    found, kind = found.filter(used), kind.filter(used)
    args, pid = found["args"].combine_chunks(), whole(found["pid"])
    key = pc.binary_join_element_wise(
        *(pc.fill_null(column.cast(pa.string()), "")
          for column in (found["cat"].combine_chunks(), found["name"].combine_chunks(),
                         whole(found["id"]), pid)),
        " ",
    )  # fmt: skip
    hashes = pc.struct_field(args, "CommHash")
    made = {
        "kind": kind,
        "key": key,
        "begins": pc.equal(found["ph"], "b"),
        "ts_ns": nanoseconds(found["ts"]),
        "pid": pid,
        "line": found[LINE],
        "label": found["name"],
        "comm": distinct(hashes, lambda word: comm_of(int(word.partition(".")[0]))),
        "own": whole(pc.struct_field(args, "Rank")),
        "seq": from_one(whole(pc.struct_field(args, "SeqNum"))),
        "peer": whole(pc.struct_field(args, "Peer")),
        "count": whole(pc.struct_field(args, "Count")),
        "dtype": pc.struct_field(args, "Datatype"),
        "algo": pc.struct_field(args, "Algorithm"),
        "proto": pc.struct_field(args, "Protocol"),
    }
    return pa.table([made[f.name].cast(f.type) for f in EVENTS], schema=EVENTS)


def operations(every: pa.Table) -> pa.Table:
    """Give the operations, each with the time of its call and the end of its kernels."""
    done, calls, kernels = (
        every.filter(pc.equal(every["kind"], kind)) for kind in ("operation", "call", "kernel")
    )
    done, until = _whole(done)
    calls, calls_until = _whole(calls)
    ends = kernels.filter(pc.invert(kernels["begins"]))
    call = _around(calls, calls_until, done)
    # some releases do not say when the call began
    called = pc.coalesce(calls["ts_ns"].combine_chunks(), calls_until.column("ts_ns"))
    owner = _around(done, until, ends)
    began = _around(done, until, kernels)
    made = {
        "time_ns": pc.coalesce(
            called.take(pa.array(call, mask=call < 0)), done["ts_ns"].combine_chunks()
        ),
        "began": pa.array(np.isin(np.arange(done.num_rows), began)),
        "end_ns": last_end(owner, ends["ts_ns"].combine_chunks(), done.num_rows),
    }
    columns = [made[n] if n in made else done[n] for n in OPERATIONS.names]
    return pa.table(columns, schema=OPERATIONS)


def _whole(rows: pa.Table) -> tuple[pa.Table, pa.RecordBatch]:
    """Give the lines that begin events, and line and time of the end of each, if it has one."""
    begins, ends = rows.filter(rows["begins"]), rows.filter(pc.invert(rows["begins"]))
    # an id may come again: the next end of that id, which in reverse is the latest
    at = latest(_key(ends), -_lines(ends), _key(begins), -_lines(begins))
    taken = ends.select(["line", "ts_ns"]).combine_chunks().take(pa.array(at, mask=at < 0))
    columns = [taken[name].combine_chunks() for name in ("line", "ts_ns")]
    return begins, pa.record_batch(columns, ["line", "ts_ns"])


def _around(outer: pa.Table, until: pa.RecordBatch, inner: pa.Table) -> Ints:
    """Give for each inner line the event around it, -1 where there is none."""
    line = _lines(inner)
    at = np.searchsorted(_lines(outer), line) - 1
    end = pc.fill_null(until.column("line"), 0).to_numpy(zero_copy_only=False)
    inside = (at >= 0) & (line < end[at.clip(min=0)]) if len(end) else at >= 0
    result: Ints = np.where(inside, at, -1)
    return result


def _key(rows: pa.Table) -> pa.Array:
    return rows["key"].combine_chunks()


def _lines(rows: pa.Table) -> Ints:
    values: Ints = rows["line"].to_numpy()
    return values
