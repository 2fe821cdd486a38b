"""Operations that plug-ins of NCCL's profiler recorded, as tables."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.nccl_words import BY_RANK, ITEM_BYTES, distinct, dtype_named, op_named
from teller.ingest.records import JOINS, MEMBERS

# One row an operation of one rank; times on the writer's own clock.
OPERATIONS: Final = pa.schema(
    [
        ("comm", pa.string()),
        ("own", pa.int64()),
        ("label", pa.string()),
        ("seq", pa.int64()),
        ("peer", pa.int64()),
        ("count", pa.int64()),
        ("dtype", pa.string()),
        ("algo", pa.string()),
        ("proto", pa.string()),
        ("pid", pa.int64()),
        ("line", pa.int64()),
        ("time_ns", pa.int64()),  # when the program called, else when it was launched
        ("began", pa.bool_()),  # a kernel of it began
        ("end_ns", pa.int64()),  # when its last kernel ended
    ]
)
# One row a rank of a communicator, as far as it is told.
RANKS: Final = pa.schema(
    [
        ("comm", pa.string()),
        ("own", pa.int64()),
        ("of", pa.int64()),
        ("pid", pa.int64()),
        ("line", pa.int64()),
    ]
)
Ints = npt.NDArray[np.int64]


def latest(said: pa.Array, said_at: Ints, asked: pa.Array, asked_at: Ints) -> Ints:
    """Give for each that is asked the last row of `said` with its key, not after it; else -1."""
    keys = pa.chunked_array([said, asked]).combine_chunks().dictionary_encode()
    key = pc.fill_null(keys.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    asks = np.arange(len(key)) >= len(said)
    order = np.lexsort((asks, np.concatenate([said_at, asked_at]), key))
    last = np.maximum.accumulate(np.where(asks[order], -1, np.arange(len(order))))
    answer = np.full(len(key), -1)
    answer[order] = np.where(last >= 0, order[last.clip(min=0)], -1)
    answer = answer[len(said) :]
    same = (answer >= 0) & (key[answer.clip(min=0)] == key[len(said) :]) & (key[len(said) :] >= 0)
    result: Ints = np.where(same, answer, -1)
    return result


def last_end(owner: Ints, ends: pa.Array, size: int) -> pa.Array:
    """Give the last end of what belongs to each of `size` owners; null where none is told."""
    last = np.zeros(size, np.int64)
    mine = owner >= 0
    np.maximum.at(last, owner[mine], pc.fill_null(ends, 0).to_numpy(zero_copy_only=False)[mine])
    return pa.array(last, mask=last == 0)


def joins(done: pa.Table, ranks: pa.Table) -> pa.Table:
    """Give a join an operation; `ranks` tells how many there are.

    Its state is told only where kernels end in the file: plug-ins can leave out both.
    """
    label = done["label"].combine_chunks()
    op = distinct(label, op_named)
    dtype = distinct(done["dtype"], dtype_named)
    item = distinct(dtype, ITEM_BYTES.get, pa.int64())
    count = done["count"].combine_chunks()
    shares = pc.if_else(pc.is_in(op, pa.array(BY_RANK)), _of(done, ranks), 1)
    rough = pc.multiply(pc.multiply(count.cast(pa.float64()), item), shares)
    safe = pc.if_else(pc.less(rough, float(1 << 62)), count, None)
    ended, began = done["end_ns"].combine_chunks().is_valid(), done["began"].combine_chunks()
    state = pc.if_else(ended, "completed", pc.if_else(began, "started", "scheduled"))
    same = ("comm", "seq", "peer", "algo", "proto", "pid", "line", "time_ns", "end_ns")
    made = {name: done[name] for name in same} | {
        "op": op,
        "label": label,
        "dtype": dtype,
        "size_bytes": pc.multiply(pc.multiply(safe, item), shares),
        "state": pc.if_else(pc.any(ended, min_count=0), state, None),
        "rank": _global(done),
    }
    return _table(made, done.num_rows, JOINS)


def members(done: pa.Table, ranks: pa.Table) -> pa.Table:
    """Give each rank of each communicator once."""
    used = done.select([n for n in RANKS.names if n != "of"])
    used = used.append_column("of", pa.nulls(len(used), pa.int64())).select(RANKS.names)
    both = pa.concat_tables([ranks, used])
    both = both.filter(pc.and_(both["comm"].is_valid(), both["own"].is_valid()))
    once = both.group_by(["comm", "own", "pid"]).aggregate([("of", "max"), ("line", "min")])
    once = once.sort_by("line_min")
    made = {
        "group_name": pa.array([""] * once.num_rows, pa.string()),
        "comm": once["comm"],
        "world_size": once["of_max"],
        "group_rank": once["own"],
        "pid": once["pid"],
        "line": once["line_min"],
        "rank": _global(once),
    }
    return _table(made, once.num_rows, MEMBERS)


def _of(done: pa.Table, ranks: pa.Table) -> pa.Array:
    sizes = dict(zip(ranks["comm"].to_pylist(), ranks["of"].to_pylist(), strict=True))
    return distinct(done["comm"], sizes.get, pa.int64())


def _global(rows: pa.Table) -> pa.Array:
    """Give the rank in the run: the communicator's own where one process has several of them.

    Such a process makes its communicators for all its devices together; for one device a process
    the communicator need not span the run.
    """
    ranks = rows.group_by(["comm", "pid"]).aggregate([("own", "count_distinct")])
    several = ranks.filter(pc.greater(ranks["own_count_distinct"], 1))
    keys = [_key(table) for table in (several, rows)]
    shared = pc.is_in(keys[1], keys[0])
    return pc.if_else(shared, rows["own"].combine_chunks(), None)


def _key(rows: pa.Table) -> pa.Array:
    words = [pc.fill_null(rows[n].cast(pa.string()), "").combine_chunks() for n in ("comm", "pid")]
    return pc.binary_join_element_wise(*words, " ")


def _table(made: dict[str, pa.Array], size: int, schema: pa.Schema) -> pa.Table:
    columns = [made.get(f.name, pa.nulls(size)).cast(f.type) for f in schema]
    return pa.table(columns, schema=schema)
