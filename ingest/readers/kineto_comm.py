"""Collectives as they are told in the arguments of host records and of device kernels."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from teller.ingest.readers.kineto_kinds import Says, op_of, says
from teller.ingest.readers.kineto_values import MISSING, coded, integers, ranks_of
from teller.ingest.readers.kineto_work import NONE, Flags, Ints, filled
from teller.ingest.source import CALLS, Group

NO_COLLECTIVE: Final = re.compile(r"wait|init|finalize|destroy|abort")
UNSIGNED: Final = (1 << 64) - 1
ITEM_BYTES: Final = {
    "byte": 1,
    "char": 1,
    "bool": 1,
    "short": 2,
    "half": 2,
    "int": 4,
    "float": 4,
    "long": 8,
    "double": 8,
    "complexfloat": 8,
    "complexdouble": 16,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}


class CommArgs(msgspec.Struct, gc=False):
    """Arguments of communication."""

    external: msgspec.Raw = msgspec.field(name="External id", default=MISSING)
    collective: msgspec.Raw = msgspec.field(name="Collective name", default=MISSING)
    group: msgspec.Raw = msgspec.field(name="Process Group Name", default=MISSING)
    number: msgspec.Raw = msgspec.field(name="Process Group ID", default=MISSING)
    desc: msgspec.Raw = msgspec.field(name="Process Group Description", default=MISSING)
    ranks: msgspec.Raw = msgspec.field(name="Process Group Ranks", default=MISSING)
    comm: msgspec.Raw = msgspec.field(name="Comms Id", default=MISSING)
    seq: msgspec.Raw = msgspec.field(name="Seq", default=MISSING)
    dtype: msgspec.Raw = MISSING
    elements: msgspec.Raw = msgspec.field(name="In msg nelems", default=MISSING)
    src: msgspec.Raw = msgspec.field(name="Src Rank", default=MISSING)
    dst: msgspec.Raw = msgspec.field(name="Dst Rank", default=MISSING)


COMM_ARGS: Final = msgspec.json.Decoder(list[CommArgs])
WORDS: Final = ("collective", "group", "number", "desc", "ranks", "comm", "dtype")
NUMBERS: Final = ("external", "seq", "elements", "src", "dst")


@dataclass(frozen=True, slots=True)
class CommSpans:
    """The spans that communicate, in the order of what they say of it."""

    place: Ints
    name: Ints
    lane: Ints
    start: Ints
    end: Ints
    device: Flags


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a document, the groups they name, and the bytes of each communicating span."""

    table: pa.Table  # CALLS
    groups: tuple[Group, ...]
    size_bytes: Ints


def calls(said: pa.Table, spans: CommSpans, names: Sequence[str], groups: Sequence[Group]) -> Calls:
    """Give the calls; what a span does not say itself comes from its host record."""
    texts = {key: coded(said[key].combine_chunks()) for key in WORDS}
    numbers = {key: filled(integers(said[key].combine_chunks())) for key in NUMBERS}
    told = _flags(texts["collective"], bool) | _flags(texts["group"], bool)
    giver = _givers(spans, told, numbers["external"])
    code = {key: codes[giver] for key, (codes, _) in texts.items()}
    value = {key: values for key, (_, values) in texts.items()}
    number = {key: numbers[key][giver] for key in NUMBERS}
    op = _ops(code["collective"], value["collective"], spans.name, names)
    item = np.array([_item_bytes(v) for v in value["dtype"]], np.int64)[code["dtype"]]
    known = (number["elements"] >= 0) & (item > 0)
    size = np.where(known, number["elements"] * item, NONE)
    comms = [_hex(v) for v in value["comm"]]
    peer = np.where(op == "send", number["dst"], number["src"])
    table = pa.table(
        {
            "place": pa.array(spans.place),
            "op": pa.array(op, pa.string()),
            "group_name": _group_names(code, value, groups),
            "comm": pa.array(comms, pa.string()).take(pa.array(code["comm"])),
            "seq": _maybe(number["seq"]),
            "size_bytes": _maybe(size),
            "dtype": pa.array([v or None for v in value["dtype"]], pa.string()).take(
                pa.array(code["dtype"])
            ),
            "peer": _maybe(peer),
        }
    ).cast(CALLS)
    idle = _flags((code["collective"], value["collective"]), _is_no_collective)
    used = np.unique(spans.name)
    waits = np.isin(spans.name, [n for n in used.tolist() if says(names[n]) & Says.WAIT])
    table = table.filter(pa.array(~(idle | waits)))
    return Calls(table, _groups(code, value, comms, groups), size)


def _givers(spans: CommSpans, told: Flags, external: Ints) -> Ints:
    """Give for each span the one that describes it: itself, its host record, or one near."""
    giver = np.arange(len(told))
    givers = np.flatnonzero(told & ~spans.device & (external != NONE))
    if len(givers):
        givers = givers[np.argsort(external[givers], kind="stable")]
        takers = np.flatnonzero(~told & spans.device & (external != NONE))
        at = np.searchsorted(external[givers], external[takers]).clip(max=len(givers) - 1)
        same = external[givers[at]] == external[takers]
        giver[takers[same]] = givers[at[same]]
    order = np.lexsort((-spans.end, spans.start, spans.lane))
    order = order[~spans.device[order]]
    position, gives = np.arange(len(order)), told[order]
    before = np.maximum.accumulate(np.where(gives, position, -1)) if len(order) else position
    after = np.minimum.accumulate(np.where(gives, position, len(order))[::-1])[::-1]
    for nearest, around in ((before, True), (after, False)):
        found = ~gives & (nearest >= 0) & (nearest < len(order))
        taker, other = order[found], order[nearest[found]]
        outer, inner = (other, taker) if around else (taker, other)
        fits = (
            (spans.lane[taker] == spans.lane[other])
            & (giver[taker] == taker)
            & (spans.start[outer] <= spans.start[inner])
            & (spans.end[inner] <= spans.end[outer])
        )
        giver[taker[fits]] = other[fits]
    return giver


def _flags(texts: tuple[Ints, list[str]], test: Callable[[str], bool]) -> Flags:
    codes, values = texts
    flags: Flags = np.array([test(value) for value in values], bool)[codes]
    return flags


def _ops(code: Ints, collectives: Sequence[str], name: Ints, names: Sequence[str]) -> Ints:
    by_collective = np.array([op_of(word) for word in collectives], object)[code]
    used, which = np.unique(name, return_inverse=True)
    by_name = np.array([op_of(names[n]) for n in used.tolist()] or ["unknown"], object)
    ops: Ints = np.where(by_collective == "unknown", by_name[which], by_collective)
    return ops


def _group_names(
    code: dict[str, Ints], value: dict[str, list[str]], groups: Sequence[Group]
) -> pa.StringArray:
    """Give the name of each call's group: its own, that of its ranks, the ranks, or its number."""
    by_ranks = {group.ranks: group.name for group in groups if group.ranks}
    ranks = [by_ranks.get(ranks_of(v), v if ranks_of(v) else "") for v in value["ranks"]]
    columns = [
        np.array(value["group"], object)[code["group"]],
        np.array(ranks, object)[code["ranks"]],
        np.array(value["number"], object)[code["number"]],
    ]
    name = np.where(columns[0] != "", columns[0], np.where(columns[1] != "", *columns[1:]))
    return pa.array(name, pa.string(), mask=np.equal(name, ""))


def _groups(
    code: dict[str, Ints],
    value: dict[str, list[str]],
    comms: Sequence[str | None],
    groups: Sequence[Group],
) -> tuple[Group, ...]:
    """Give the groups of the header with their communicators, and those that only calls name."""
    found = {group.name: group for group in groups}
    keys = np.stack([code[key] for key in ("group", "ranks", "desc", "comm")])
    for group, ranks, desc, comm in np.unique(keys, axis=1).T.tolist():
        name, tag = value["group"][group], comms[comm] or ""
        members = ranks_of(value["ranks"][ranks])
        known = found.get(name) or Group(name, members, value["desc"][desc], tag, len(members))
        if name and (name not in found or (tag and not known.comm)):
            found[name] = Group(name, known.ranks, known.desc, tag, known.size)
    return tuple(found.values())


def _is_no_collective(word: str) -> bool:
    return bool(NO_COLLECTIVE.search(word))


def _item_bytes(dtype: str) -> int:
    word = dtype.lower()
    return 1 if word.startswith("float8") else ITEM_BYTES.get(word, 0)


def _hex(word: str) -> str | None:
    try:
        return f"{int(word, 0) & UNSIGNED:x}" if word else None
    except ValueError:
        return word


def _maybe(values: Ints) -> pa.Int64Array:
    return pa.array(values, mask=values < 0)
