"""Ranks that call a collective with another size, type or operation than the others."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.record_groups import PEER

# Ranks may give these inputs of their own size: each to each, and from or to one rank.
UNEVEN: Final = ("all_to_all", "scatter", "gather", "unknown", *PEER, "send_recv")
KEYS: Final = ["name", "seq"]


@dataclass(frozen=True, slots=True)
class Odd:
    """The first collective that ranks disagree on, and who is alone with what it called.

    `sure` is false where neither side is the smaller one, nor does what they called before tell:
    then `ranks` are all that disagree.
    """

    group: str
    seq: int
    ranks: tuple[int, ...]
    sure: bool
    time_ns: int | None


def first(joins: pa.Table) -> Odd | None:
    """Give the first disagreement of a run's records, if there is any."""
    known = pc.and_(pc.is_valid(joins["rank"]), pc.is_valid(joins["seq"]))
    known = pc.and_(known, pc.is_valid(joins["state"]))
    rows = joins.filter(pc.and_(known, pc.invert(pc.is_in(joins["op"], pa.array(PEER)))))
    if not rows.num_rows:
        return None
    rows = rows.append_column("called", _called(rows)).append_column("name", _group(rows))
    done = pc.equal(rows["state"], "completed").cast(pa.int8())
    asked = (
        rows.append_column("done", done)
        .group_by(KEYS)
        .aggregate([("called", "count_distinct"), ("done", "min"), ("time_ns", "min")])
    )
    # what all ranks completed went well, whatever its sizes
    unlike = asked.filter(
        pc.and_(pc.greater(asked["called_count_distinct"], 1), pc.equal(asked["done_min"], 0))
    )
    if not unlike.num_rows:
        return None
    # of one group the first number; of several the first that was called
    one = unlike.sort_by([("seq", "ascending")]).group_by("name", use_threads=False)
    begin = one.aggregate([("seq", "first"), ("time_ns_min", "first")])
    where = begin.sort_by([("time_ns_min_first", "ascending")]).slice(0, 1).to_pylist()[0]
    return _odd(rows, where["name"], where["seq_first"], where["time_ns_min_first"])


def _group(rows: pa.Table) -> pa.ChunkedArray:
    name = pc.fill_null(rows["group_name"].cast(pa.string()), "")
    comm = pc.fill_null(rows["comm"].cast(pa.string()), "")
    return pc.if_else(pc.equal(name, ""), comm, name)


def _called(rows: pa.Table) -> pa.ChunkedArray:
    """Say what each rank called, as far as it must be the same on all."""
    op = rows["op"].cast(pa.string())
    label = pc.fill_null(rows["label"].cast(pa.string()), "")
    name = pc.if_else(pc.equal(op, "unknown"), label, op)
    dtype = pc.fill_null(rows["dtype"].cast(pa.string()), "")
    size = pc.coalesce(rows["size_bytes"].cast(pa.string()), rows["shape"], pa.scalar(""))
    even = pc.if_else(pc.is_in(op, pa.array(UNEVEN)), "", size)
    dtype = pc.if_else(pc.is_in(op, pa.array(("barrier", "unknown"))), "", dtype)
    return pc.binary_join_element_wise(name, dtype, even, "|")


def _odd(rows: pa.Table, group: str, seq: int, time_ns: int | None) -> Odd:
    mine = rows.filter(pc.equal(rows["name"], group))
    now = _by_rank(mine.filter(pc.equal(mine["seq"], seq)))
    counts = Counter(now.values())
    (usual, most), (_, next_) = counts.most_common(2)
    if most == next_:
        before = _before(mine, seq, now)
        kept = {now[r] for r in now if before.get(r) == now[r]}
        if len(kept) != 1 or not all(r in before for r in now):
            return Odd(group, seq, tuple(sorted(now)), False, time_ns)
        usual = kept.pop()
    return Odd(group, seq, tuple(sorted(r for r in now if now[r] != usual)), True, time_ns)


def _by_rank(rows: pa.Table) -> dict[int, str]:
    return dict(zip(rows["rank"].to_pylist(), rows["called"].to_pylist(), strict=True))


def _before(rows: pa.Table, seq: int, now: Mapping[int, str]) -> dict[int, str]:
    """Give what each rank called the last time that it called the same operation."""
    found: dict[int, Any] = {}
    for rank, called in now.items():
        op = called.split("|")[0]
        same = pc.and_(pc.equal(rows["rank"], rank), pc.less(rows["seq"], seq))
        old = rows.filter(pc.and_(same, pc.starts_with(rows["called"], f"{op}|")))
        if old.num_rows:
            last = int(np.argmax(old["seq"].to_numpy()))
            found[rank] = old["called"][last].as_py()
    return found
