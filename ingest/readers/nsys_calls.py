"""CALLS of one process of an Nsight Systems export, with what NVTX payloads say of each call."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.nsys_rows import Ints, ints
from teller.ingest.source import CALLS, Group

_Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_NESTED: Final = 16  # ranges that may have begun, and ended, since the one around a launch


class Payload(msgspec.Struct, frozen=True, gc=False):
    """What one range says of its communication, in the words of NCCL and of `c10d`."""

    group: str | int | None = msgspec.field(name="Process Group Name", default=None)
    ranks: tuple[int, ...] | str | None = msgspec.field(name="Process Group Ranks", default=None)
    seq: _Int64 | None = msgspec.field(name="Seq", default=None)
    size: _Int64 | None = msgspec.field(name="Message size [bytes]", default=None)
    peer: _Int64 | None = msgspec.field(name="Peer rank", default=None)
    root: _Int64 | None = msgspec.field(name="Root", default=None)
    rank: _Int64 | None = msgspec.field(name="Rank", default=None)
    world: _Int64 | None = msgspec.field(name="No. of ranks", default=None)
    comm: str | int | None = msgspec.field(name="NCCL communicator ID", default=None)


NO_PAYLOAD: Final = Payload()
_ONE: Final = msgspec.json.Decoder(Payload)
_ALL: Final = msgspec.json.Decoder(list[Payload])


@dataclass(frozen=True, slots=True)
class Called:
    """The calls of a process and what they tell of it."""

    calls: pa.Table  # CALLS
    groups: tuple[Group, ...] = ()
    rank: int | None = None  # own rank in the group that holds all ranks
    world: int | None = None
    unread: int = 0  # payloads that are no JSON object of ours


def build(raw: pa.Table, spans: pa.Table) -> Called:
    """Give the calls of a process; a kernel takes over the payload of the range it began in."""
    if not raw.num_rows:
        return Called(CALLS.empty_table())
    payloads, at, unread = _decoded(raw["payload"])
    own = _columns(payloads).take(at)
    op = raw["op"].combine_chunks()
    source = _launched_in(raw, spans)
    if source is not None:
        source = _fitting(op, source)
        own = _completed(own, own.take(source))
        op = pc.coalesce(op.take(source), op)
    calls = pa.table({
        "place": raw["place"], "op": op, "dtype": raw["dtype"],
        **{name: own[name] for name in own.schema.names},
    }).select(CALLS.names).cast(CALLS)  # fmt: skip
    rank, world = _world(payloads)
    return Called(calls, _groups(payloads), rank, world, unread)


def _fitting(op: pa.Array, source: pa.Array) -> pa.Array:
    """Keep the sources of the same operation, or of one that the kernel's name leaves open."""
    vague = pc.is_in(op, pa.array(["send_recv", "unknown"]))
    return pc.if_else(pc.or_(pc.equal(op.take(source), op), vague), source, None)


def _completed(own: pa.RecordBatch, taken: pa.RecordBatch) -> pa.RecordBatch:
    columns = [pc.coalesce(a, b) for a, b in zip(own.columns, taken.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=own.schema)


def _decoded(texts: pa.ChunkedArray) -> tuple[list[Payload], pa.Array, int]:
    """Read all distinct JSON at once; one by one only where some of it is broken."""
    coded = pc.fill_null(texts, "").combine_chunks().dictionary_encode()
    distinct = coded.dictionary.cast(pa.binary()).to_pylist()
    unread = 0
    try:
        found = _ALL.decode(b"[" + b",".join(text or b"{}" for text in distinct) + b"]")
        if len(found) != len(distinct):
            raise msgspec.DecodeError("a payload holds several objects")
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = list(map(_read, distinct))
        unread = sum(p is NO_PAYLOAD and t != b"" for p, t in zip(found, distinct, strict=True))
    return found, coded.indices, unread


def _read(text: bytes) -> Payload:
    try:
        return _ONE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NO_PAYLOAD


def _columns(payloads: list[Payload]) -> pa.RecordBatch:
    def ints(values: Iterable[int | None]) -> pa.Array:
        return pa.array(values, pa.int64())

    return pa.RecordBatch.from_pydict({
        "group_name": pa.array(map(_group_name, map(attrgetter("group"), payloads)), pa.string()),
        "comm": pa.array(map(hexed, map(attrgetter("comm"), payloads)), pa.string()),
        "seq": ints(map(attrgetter("seq"), payloads)),
        "size_bytes": ints(map(attrgetter("size"), payloads)),
        "peer": ints(map(_peer, map(attrgetter("peer", "root", "ranks"), payloads))),
    })  # fmt: skip


@lru_cache
def _group_name(group: str | int | None) -> str | None:
    return None if group is None else str(group)


@lru_cache
def hexed(comm: str | int | None) -> str | None:
    """Give a communicator id as plain hex, whether it came as a number or as text."""
    if isinstance(comm, str):
        try:
            return hexed(int(comm, 0))
        except ValueError:
            return comm or None
    return None if comm is None else f"{comm & ((1 << 64) - 1):x}"


@lru_cache(maxsize=1 << 12)
def _peer(said: tuple[int | None, int | None, tuple[int, ...] | str | None]) -> int | None:
    """Give the group rank of the other side: torch names it by its global rank, NCCL does not."""
    peer = said[1] if said[0] is None else said[0]
    ranks = global_ranks(said[2])
    return ranks.index(peer) if peer is not None and peer in ranks else peer


@lru_cache(maxsize=1 << 12)
def global_ranks(ranks: tuple[int, ...] | str | None) -> tuple[int, ...]:
    """Give the ranks of a group; none where a long list was cut short."""
    if isinstance(ranks, str):
        try:
            return msgspec.json.decode(ranks, type=tuple[int, ...])
        except msgspec.DecodeError:
            return ()
    return ranks or ()


def _groups(payloads: list[Payload]) -> tuple[Group, ...]:
    said = set(map(attrgetter("group", "ranks", "comm", "world"), payloads))
    found: dict[tuple[str, str], Group] = {}
    for group, ranks, comm, world in sorted(said, key=repr):
        if group is None and comm is None:
            continue
        members = global_ranks(ranks)
        name, tag = _group_name(group) or "", hexed(comm) or ""
        found[name, tag] = Group(name, members, comm=tag, size=world or len(members))
    return tuple(found.values())


def _world(payloads: list[Payload]) -> tuple[int | None, int | None]:
    """Give own rank and the number of ranks, by the group that torch makes first, of all ranks."""
    for group, ranks, rank, world in set(
        map(attrgetter("group", "ranks", "rank", "world"), payloads)
    ):
        members = global_ranks(ranks)
        if _group_name(group) == "0" and len(members) == world and members == tuple(range(world)):
            return rank if rank in members else None, world
    return None, None


def _launched_in(raw: pa.Table, spans: pa.Table) -> pa.Array | None:
    """Give the row of the range that each device call was launched in, null where there is none.

    A range with a payload goes before one inside it or around it that has none.
    """
    ranges = _rows(raw["lane"].is_valid())
    device = _rows(raw["correlation"].is_valid())
    if not len(ranges) or not len(device):
        return None
    launch = _launches(spans, _taken(raw["correlation"], device))
    lanes = _taken(raw["lane"], ranges)
    start, end = ints(_one(raw["start"])), ints(_one(raw["end"]), np.iinfo(np.int64).max)
    said = ints(pc.binary_length(pc.fill_null(_one(raw["payload"]), ""))) > 0
    source = np.full(raw.num_rows, -1)
    for lane in pc.unique(lanes).to_pylist():
        here = ranges[_rows(pc.equal(lanes, lane))]
        here = here[np.argsort(start[here], kind="stable")]
        rows = _rows(pc.equal(launch["lane"], lane))
        when = ints(launch["start_ns"].take(pa.array(rows)))
        found = _enclosing(when, here[said[here]], start, end)
        source[device[rows]] = np.where(found < 0, _enclosing(when, here, start, end), found)
    return pa.array(source, mask=source < 0)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _taken(column: pa.ChunkedArray, rows: Ints) -> pa.Array:
    return _one(column).take(pa.array(rows))


def _rows(flags: pa.Array | pa.ChunkedArray) -> Ints:
    plain = pc.fill_null(flags, False)
    return np.flatnonzero(plain.to_numpy(zero_copy_only=False) if isinstance(plain, pa.Array)
                          else plain.to_numpy())  # fmt: skip


def _enclosing(when: Ints, ranges: Ints, start: Ints, end: Ints) -> Ints:
    """Give the innermost range around each moment, -1 where there is none; `ranges` by start."""
    found = np.full(len(when), -1)
    if not len(ranges):
        return found
    at = np.searchsorted(start[ranges], when, "right") - 1
    for up in range(_NESTED):
        candidate = ranges[np.maximum(at - up, 0)]
        around = (found < 0) & (at >= up) & (end[candidate] >= when)
        found[around] = candidate[around]
    return found


def _launches(spans: pa.Table, correlation: pa.Array) -> pa.RecordBatch:
    """Give thread and start of the API call with each correlation id."""
    calls = spans.filter(pc.and_(
        pc.is_in(spans["correlation"], correlation), pc.is_null(spans["stream"])
    ))  # fmt: skip
    at = pc.index_in(correlation, calls["correlation"].combine_chunks())
    return pa.RecordBatch.from_arrays(
        [calls["lane"].cast(pa.string()).combine_chunks().take(at),
         calls["start_ns"].combine_chunks().take(at)], names=["lane", "start_ns"],
    )  # fmt: skip
