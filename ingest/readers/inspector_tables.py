"""Records of the NCCL Inspector as tables, whether its fields are nested or flattened."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.nccl_words import BY_RANK, comm_of, distinct, from_one, op_named
from teller.ingest.readers.json_records import LINE, NUMBER, nanoseconds, whole
from teller.ingest.records import JOINS, MEMBERS, SAMPLES

HEADER: Final = {
    "id": pa.string(), "comm_name": pa.string(), "rank": NUMBER, "n_ranks": NUMBER,
}  # fmt: skip
METADATA: Final = {
    "inspector_output_format_version": pa.string(), "dump_timestamp_us": NUMBER,
    "hostname": pa.string(), "pid": NUMBER,
}  # fmt: skip
STOPS: Final = pa.list_(pa.struct([("kernel_stop_ts", NUMBER)]))
GIGA: Final = 1e9
SECOND: Final = 1_000_000_000


def _perf(kind: str) -> dict[str, pa.DataType]:
    trace = pa.struct([(f"{kind}_start_ts", NUMBER), ("kernel_events", STOPS)])
    return {
        kind: pa.string(), f"{kind}_sn": NUMBER, f"{kind}_peer": NUMBER,
        f"{kind}_msg_size_bytes": NUMBER, f"{kind}_exec_time_us": pa.float64(),
        f"{kind}_busbw_gbs": pa.float64(), "event_trace_ts": trace,
    }  # fmt: skip


PERF: Final = {kind: _perf(kind) for kind in ("coll", "p2p")}
NESTED: Final = {
    "header": HEADER, "metadata": METADATA, "coll_perf": PERF["coll"], "p2p_perf": PERF["p2p"],
}  # fmt: skip
FLAT: Final = {
    name: kind
    for fields in NESTED.values()
    for name, kind in fields.items()
    if name != "event_trace_ts"
}
SCHEMA: Final = pa.schema(
    [*FLAT.items(), *((name, pa.struct(list(fields.items()))) for name, fields in NESTED.items())]
)
# One row an operation that ended.
OPERATIONS: Final = pa.schema(
    [
        ("comm", pa.string()), ("comm_name", pa.string()), ("own", pa.int64()),
        ("of", pa.int64()), ("host", pa.string()), ("pid", pa.int64()), ("line", pa.int64()),
        ("version", pa.string()), ("label", pa.string()), ("op", pa.string()),
        ("seq", pa.int64()), ("peer", pa.int64()), ("size_bytes", pa.int64()),
        ("busbw_bytes_per_s", pa.float64()), ("dump_ns", pa.int64()),
        ("start_ns", pa.int64()), ("end_ns", pa.int64()),
    ]
)  # fmt: skip
WHO: Final = ("host", "pid", "line")


def operations(found: pa.Table) -> pa.Table:
    """Give the operations of records read by `SCHEMA`; records of no operation give none."""
    parts = [_of_kind(found, kind) for kind in PERF]
    return pa.concat_tables(parts).sort_by(LINE)


def _of_kind(found: pa.Table, kind: str) -> pa.Table:
    label = _field(found, f"{kind}_perf", kind)
    named = label.is_valid()
    found, label = found.filter(named), label.filter(named)
    op = distinct(label, op_named)
    of = whole(_field(found, "header", "n_ranks"))
    size = whole(_field(found, f"{kind}_perf", f"{kind}_msg_size_bytes"))
    shares = pc.if_else(pc.is_in(op, pa.array(BY_RANK)), of, 1)
    small = pc.less(pc.multiply(size.cast(pa.float64()), shares), float(1 << 62))
    trace = found[f"{kind}_perf"].combine_chunks().field("event_trace_ts")
    made = {
        "comm": distinct(_field(found, "header", "id"), _comm),
        "comm_name": _field(found, "header", "comm_name"),
        "own": whole(_field(found, "header", "rank")),
        "of": of,
        "host": _field(found, "metadata", "hostname"),
        "pid": whole(_field(found, "metadata", "pid")),
        "line": found[LINE],
        "version": _field(found, "metadata", "inspector_output_format_version"),
        "label": label,
        "op": op,
        "seq": from_one(whole(_field(found, f"{kind}_perf", f"{kind}_sn"))),
        "peer": whole(_field(found, f"{kind}_perf", f"{kind}_peer")),
        "size_bytes": pc.multiply(pc.if_else(small, size, None), shares),
        "busbw_bytes_per_s": pc.multiply(_field(found, f"{kind}_perf", f"{kind}_busbw_gbs"), GIGA),
        "dump_ns": nanoseconds(_field(found, "metadata", "dump_timestamp_us")),
        "start_ns": nanoseconds(pc.struct_field(trace, f"{kind}_start_ts")),
        "end_ns": _last_stop(pc.struct_field(trace, "kernel_events")),
    }
    return pa.table([made[f.name].cast(f.type) for f in OPERATIONS], schema=OPERATIONS)


def _field(found: pa.Table, outer: str, name: str) -> pa.Array:
    """Give a field from where it belongs, else from the top."""
    nested = pc.struct_field(found[outer].combine_chunks(), name)
    return pc.coalesce(nested, found[name].combine_chunks())


def _comm(word: str) -> str | None:
    """Read an id: hex as it is written, decimal where it was a bare number (marked by d)."""
    return comm_of(int(word[1:])) if word.startswith("d") else comm_of(word)


def _last_stop(events: pa.Array) -> pa.Array:
    """Give the end of the last kernel of each operation; null where none is told."""
    stops = nanoseconds(pc.struct_field(pc.list_flatten(events), "kernel_stop_ts"))
    owner = pc.list_parent_indices(events).to_numpy(zero_copy_only=False)
    last = np.zeros(len(events), np.int64)
    np.maximum.at(last, owner, pc.fill_null(stops, 0).to_numpy(zero_copy_only=False))
    return pa.array(last, mask=last == 0)


def joins(done: pa.Table) -> pa.Table:
    """Give a join an operation; the time of a dump is none of the operation's."""
    same = {name: done[name] for name in (*WHO, "comm", "seq", "op", "label", "size_bytes", "peer")}
    made = same | {
        "state": pa.array(["completed"] * done.num_rows, pa.string()),
        "time_ns": done["start_ns"],
        "end_ns": done["end_ns"],
    }
    return _table(made, done.num_rows, JOINS)


def members(done: pa.Table) -> pa.Table:
    """Give each rank of each communicator once."""
    key = ["comm", "comm_name", "own", "of", "host", "pid"]
    told = done.filter(done["comm"].is_valid())
    once = told.group_by(key).aggregate([("line", "min")]).sort_by("line_min")
    desc = once["comm_name"]
    made = {
        "group_name": pa.array([""] * once.num_rows, pa.string()),
        "desc": pc.if_else(pc.equal(desc, "unknown"), None, desc),
        "comm": once["comm"],
        "world_size": once["of"],
        "group_rank": once["own"],
        "host": once["host"],
        "pid": once["pid"],
        "line": once["line_min"],
    }
    return _table(made, once.num_rows, MEMBERS)


def bandwidths(done: pa.Table) -> pa.Table:
    """Give the mean bus bandwidth of each operation and size, one a second and process."""
    told = done.filter(done["busbw_bytes_per_s"].is_valid())
    told = told.append_column("second", pc.divide(told["dump_ns"], SECOND))
    key = ["host", "pid", "comm", "op", "size_bytes", "second"]
    mean = told.group_by(key).aggregate(
        [("busbw_bytes_per_s", "mean"), ("line", "min"), ("dump_ns", "min")]
    )
    mean = mean.sort_by("line_min")
    size = pc.fill_null(mean["size_bytes"].cast(pa.string()), "unknown")
    made = {
        "name": pa.array(["nccl.busbw_bytes_per_s"] * mean.num_rows, pa.string()),
        "value": mean["busbw_bytes_per_s_mean"],
        "text": pc.binary_join_element_wise(mean["op"], " ", size, " bytes", ""),
        "time_ns": mean["dump_ns_min"],
        "host": mean["host"],
        "pid": mean["pid"],
        "line": mean["line_min"],
    }
    return _table(made, mean.num_rows, SAMPLES)


def _table(made: dict[str, pa.Array], size: int, schema: pa.Schema) -> pa.Table:
    columns: Sequence[pa.Array] = [made.get(f.name, pa.nulls(size)).cast(f.type) for f in schema]
    return pa.table(columns, schema=schema)
