"""Collectives over the ranks of a run: matched, then arrival, wait and pure time on one clock."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest import match

Ints = npt.NDArray[np.int64]
NONE: Final = np.iinfo(np.int64).min

LEAVE_TOGETHER: Final = ("all_reduce", "all_gather", "reduce_scatter", "barrier")
WAIT_FOR_ALL: Final = (*LEAVE_TOGETHER, "all_to_all")
PAIRWISE: Final = ("send", "recv", "send_recv")

# One row a (collective, rank). `number` counts collectives; `source` is the rank's source.
MEMBERS: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("source", pa.int64()),
        ("rank", pa.int64()),
        ("place", pa.int64()),
        ("step_index", pa.int64()),
        ("group", pa.string()),
        ("op", pa.string()),
        ("seq", pa.int64()),
        ("size_bytes", pa.int64()),
        ("dtype", pa.string()),
        ("matched_by", pa.string()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("host_start_ns", pa.int64()),
        ("operator", pa.string()),
        ("device", pa.bool_()),
        ("parent", pa.int64()),
        ("launched_by", pa.int64()),
        ("covered_ns", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class RankCalls:
    """The calls of one rank, with UTC times (or source times where nothing has an anchor)."""

    source: int
    rank: int
    calls: pa.Table  # as ingest.shape leaves them, times shifted
    numbered: bool = False  # its steps carry their own numbers, which mean the same on all ranks
    places: Mapping[str, int] = field(default_factory=dict)  # tp, pp, dp, ep, as far as known


def members(ranks: Sequence[RankCalls]) -> pa.Table:
    """Match the calls of all ranks and give MEMBERS."""
    by_group: dict[str, list[tuple[RankCalls, pa.Table]]] = defaultdict(list)
    for one, nameless in zip(ranks, _stands(ranks), strict=True):
        for group, calls in _groups(one.calls, nameless):
            by_group[group].append((one, calls))
    parts, number = [], 0
    for group in sorted(by_group):
        for table, count in _match_group(group, _one_kind(by_group[group])):
            parts.append(table.set_column(0, "number", pc.add(table["number"], number)))
            number += count
    return pa.concat_tables(parts) if parts else MEMBERS.empty_table()


def _groups(calls: pa.Table, nameless: str) -> list[tuple[str, pa.Table]]:
    """Split by group: its name, else its communicator, else `nameless` where all leave together."""
    if not calls.num_rows:
        return []
    key = pc.coalesce(calls["group_name"], calls["comm"])
    together = pc.is_in(calls["op"], pa.array(LEAVE_TOGETHER))
    key = pc.coalesce(key, pc.if_else(together, nameless, "")).combine_chunks()
    named = [(g.as_py(), calls.filter(pc.equal(key, g))) for g in pc.unique(key)]
    return [(group, _outermost(part)) for group, part in named]


def _stands(ranks: Sequence[RankCalls]) -> list[str]:
    """Name the ranks that each stands among, for calls that name no group.

    Ranks of other pipeline stages or replicas do not leave an all-reduce with it; what goes from
    each to each, or between two, may cross them. "" where there is one such group, or not all tell.
    """
    found = [
        " ".join(f"{kind}{one.places[kind]}" for kind in ("dp", "pp") if kind in one.places)
        for one in ranks
    ]
    several = len(set(found)) > 1 and all(found)
    return [f"tp of {where}" if several else "" for where in found]


def _outermost(calls: pa.Table) -> pa.Table:
    """Drop host calls inside host calls, a library's in the framework's; sort by time."""
    calls = calls.take(pc.sort_indices(calls, [("start_ns", "ascending"), ("place", "ascending")]))
    device = calls["device"].to_numpy()
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    host = np.flatnonzero(~device)
    keep = np.ones(len(start), bool)
    if len(host) > 1:
        before = np.maximum.accumulate(end[host][:-1])
        keep[host[1:]] = end[host][1:] > before
    return calls.filter(pa.array(keep))


def _one_kind(parts: list[tuple[RankCalls, pa.Table]]) -> list[tuple[RankCalls, pa.Table]]:
    """Keep device rows where any rank has them, else host rows: never a mix of both."""
    if any(pc.any(calls["device"]).as_py() for _, calls in parts):
        parts = [(one, calls.filter(calls["device"])) for one, calls in parts]
    return [(one, calls) for one, calls in parts if calls.num_rows]


def _match_group(group: str, parts: list[tuple[RankCalls, pa.Table]]) -> list[tuple[pa.Table, int]]:
    """Give (members, number of collectives) for calls of all ranks together and for pairs."""
    found = []
    together, pairs = [], []
    for one, calls in parts:
        pairwise = pc.is_in(calls["op"], pa.array(PAIRWISE))
        together.append((one, calls.filter(pc.invert(pairwise))))
        pairs.append((one, calls.filter(pairwise)))
    for some in (together, pairs):
        some = [(one, calls) for one, calls in some if calls.num_rows]
        if not some:
            continue
        numbered = all(calls["seq"].null_count == 0 for _, calls in some)
        by = "seq" if numbered else "order"
        keys = [_seq_key(calls) for _, calls in some] if numbered else _order_keys(some)
        found.append(_number(group, some, keys, by))
    return found


def _seq_key(calls: pa.Table) -> Ints:
    """Give sequence numbers, which count a group's collectives or the messages of a pair."""
    pairwise = pc.is_in(calls["op"], pa.array(PAIRWISE)).to_numpy()
    peer = pc.fill_null(calls["peer"], -1).to_numpy()
    seq: Ints = calls["seq"].to_numpy()
    return np.where(pairwise, seq * 4096 + np.maximum(peer, 0) % 4096, seq)


def _order_keys(some: list[tuple[RankCalls, pa.Table]]) -> list[Ints]:
    """Align every rank with the one that has most calls; what fits nowhere stays alone."""
    tokens = _tokens([calls for _, calls in some])
    ref = max(range(len(some)), key=lambda i: (some[i][1].num_rows, -some[i][0].rank))
    ref_end = some[ref][1]["end_ns"].to_numpy()
    spare = len(ref_end)
    keys: list[Ints] = []
    for i, (_, calls) in enumerate(some):
        if i == ref:
            keys.append(np.arange(len(ref_end)))
            continue
        steps = _step_numbers(some[ref], some[i])
        at = match.align(ref_end, tokens[ref], calls["end_ns"].to_numpy(), tokens[i], steps)
        lost = np.flatnonzero(at < 0)
        at[lost] = spare + np.arange(len(lost))
        spare += len(lost)
        keys.append(at)
    return keys


def _step_numbers(
    ref: tuple[RankCalls, pa.Table], own: tuple[RankCalls, pa.Table]
) -> tuple[Ints, Ints] | None:
    """Give the step of each call of both ranks, where the numbers can be compared."""
    if not (ref[0].numbered and own[0].numbered):
        return None
    one, other = (pc.fill_null(calls["step_index"], -1).to_numpy() for _, calls in (ref, own))
    return one, other


def _tokens(tables: list[pa.Table]) -> list[Ints]:
    """Give a number to what the calls could be: operation and size."""
    words = [
        pc.binary_join_element_wise(
            t["op"], pc.fill_null(t["size_bytes"], -1).cast(pa.string()), " "
        ).combine_chunks()
        for t in tables
    ]
    known = pc.unique(pa.chunked_array(words))
    return [pc.index_in(w, known).to_numpy().astype(np.int64) for w in words]


def _number(
    group: str, some: list[tuple[RankCalls, pa.Table]], keys: list[Ints], by: str
) -> tuple[pa.Table, int]:
    distinct, inverse, seen = np.unique(
        np.concatenate(keys), return_inverse=True, return_counts=True
    )
    tables, at = [], 0
    for (one, calls), key in zip(some, keys, strict=True):
        number = inverse[at : at + len(key)]
        at += len(key)
        size = len(key)
        given = {
            "number": pa.array(number),
            "source": pa.array(np.full(size, one.source)),
            "rank": pa.array(np.full(size, one.rank)),
            "group": pa.repeat(pa.scalar(group), size),
            "matched_by": pa.array(np.where(seen[number] > 1, by, "single")),
        }
        tables.append(
            pa.table(
                [given.get(f.name) if f.name in given else calls[f.name] for f in MEMBERS],
                schema=MEMBERS,
            )
        )
    return pa.concat_tables(tables), len(distinct)


@dataclass(frozen=True, slots=True)
class Timed:
    """Members with arrival, wait and pure time, and one row a collective."""

    members: pa.Table  # MEMBERS + arrival_ns, wait_ns, pure_ns, arrival_order, late_ns
    collectives: pa.Table  # number, group, op, seq, …, skew_ns, pure_ns, last_rank


def timed(found: pa.Table) -> Timed:
    """Work out arrival, wait and pure time; times are on the common clock."""
    by = [("number", "ascending"), ("start_ns", "ascending"), ("rank", "ascending")]
    found = found.take(pc.sort_indices(found, by))
    number = found["number"].to_numpy()
    if not len(number):
        return Timed(_with(found, *[np.zeros(0, np.int64)] * 5), _COLLECTIVES.empty_table())
    start, end = found["start_ns"].to_numpy(), found["end_ns"].to_numpy()
    first = np.flatnonzero(np.r_[True, number[1:] != number[:-1]])
    count = np.diff(np.r_[first, len(number)])
    row = np.repeat(np.arange(len(first)), count)
    last_arrival = start[first + count - 1]
    all_wait = pc.is_in(found["op"], pa.array(WAIT_FOR_ALL)).to_numpy() & (count[row] > 1)
    wait = np.where(all_wait, np.minimum(last_arrival[row], end) - start, 0)
    # The last to arrive did not wait: what its own operation took is pure. Ends of the others
    # differ from it only by what the clocks leave.
    pure = np.maximum(np.maximum.reduceat(end, first) - last_arrival, 0)
    middle = (start[first + (count - 1) // 2] + start[first + count // 2]) // 2
    late = np.where(count[row] > 1, start - middle[row], 0)
    arrival_order = np.arange(len(number)) - first[row]
    table = _with(
        found, start, np.maximum(wait, 0), np.where(all_wait, pure[row], 0), arrival_order, late
    )
    return Timed(table, _one_row_each(found, first, count, pure, all_wait[first]))


def _one_row_each(
    found: pa.Table, first: Ints, count: Ints, pure: Ints, all_wait: npt.NDArray[np.bool_]
) -> pa.Table:
    """Give one row a collective; rows of `found` are in order of arrival from `first` on."""
    start, end = found["start_ns"].to_numpy(), found["end_ns"].to_numpy()
    last = first + count - 1
    columns = {
        "size_bytes": _biggest(found, first),
        "ranks_seen": pa.array(count),
        "start_ns": pa.array(start[first]),
        "end_ns": pa.array(np.maximum.reduceat(end, first)),
        "skew_ns": pa.array(start[last] - start[first]),
        "pure_ns": pa.array(pure, mask=~all_wait),
        "last_rank": pa.array(found["rank"].to_numpy()[last], mask=count < 2),
    }
    head = found.take(pa.array(first))
    return pa.table(
        [columns[f.name] if f.name in columns else head[f.name] for f in _COLLECTIVES],
        schema=_COLLECTIVES,
    )


_COLLECTIVES: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("group", pa.string()),
        ("op", pa.string()),
        ("seq", pa.int64()),
        ("size_bytes", pa.int64()),
        ("dtype", pa.string()),
        ("ranks_seen", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("skew_ns", pa.int64()),
        ("pure_ns", pa.int64()),
        ("last_rank", pa.int64()),
        ("matched_by", pa.string()),
    ]
)


def _biggest(found: pa.Table, first: Ints) -> pa.Array:
    """Give the largest size that a rank told; null where none told one."""
    most = np.maximum.reduceat(pc.fill_null(found["size_bytes"], -1).to_numpy(), first)
    return pa.array(most, mask=most < 0)


def _with(found: pa.Table, *columns: Ints) -> pa.Table:
    for name, values in zip(
        ("arrival_ns", "wait_ns", "pure_ns", "arrival_order", "late_ns"), columns, strict=True
    ):
        found = found.append_column(name, pa.array(values, pa.int64()))
    return found
