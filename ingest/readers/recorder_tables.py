"""Groups, counters and entries of one dump of PyTorch's flight recorder, as tables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import msgspec
import pyarrow as pa

from teller.ingest.readers.kineto_comm import ITEM_BYTES
from teller.ingest.readers.kineto_kinds import op_of
from teller.ingest.records import JOINS, MEMBERS
from teller.ingest.source import Group

MOST: Final = (1 << 63) - 1
MOST_TENSORS: Final = 4096  # of one entry; coalesced ones have hundreds
PEER: Final = re.compile(r"(?:->|<-)\s*(\d{1,9})")
NEEDED: Final = {"profiling_name", "state"}
COUNTERS: Final = {
    "last_enqueued": "last_enqueued_collective",
    "last_started": "last_started_collective",
    "last_completed": "last_completed_collective",
}
Entry = Mapping[str, object]

_text = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Dump:
    """One dump as it was written, as far as it has the form of one."""

    version: str
    library: str  # version of the communication library
    groups: tuple[Group, ...]
    status: Mapping[str, Mapping[str, object]]  # by the process's own number of a group
    entries: tuple[Entry, ...]  # each with at least a name and a state
    places: tuple[int, ...]  # number of each entry, from 1
    odd: int  # entries that are none


def dump_of(document: Mapping[object, object]) -> Dump:
    """Take what a document holds; what has another form is left out."""
    entries = document.get("entries")
    listed = entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ()
    good = [(n, e) for n, e in enumerate(listed, 1) if isinstance(e, Mapping) and set(e) >= NEEDED]
    library = document.get("nccl_version") or document.get("comm_lib_version") or ""
    groups = {g.name: g for g in _groups(_mapping(document.get("pg_config")))}
    used = {name: Group(name, desc=desc) for name, desc in (_group(e) for _, e in good)}
    return Dump(
        str(document.get("version") or ""),
        str(library),
        tuple((used | groups).values()),
        {str(key): _mapping(value) for key, value in _mapping(document.get("pg_status")).items()},
        tuple(e for _, e in good),
        tuple(n for n, _ in good),
        len(listed) - len(good),
    )


def _groups(config: Mapping[str, object]) -> list[Group]:
    groups = []
    for key, value in config.items():
        about = _mapping(value)
        told = about.get("ranks") if about else value
        ranks = tuple(map(int, re.findall(r"\d{1,9}", str(told))))
        name = str(about.get("name", key))
        groups.append(Group(name, ranks, str(about.get("desc") or ""), "", len(ranks)))
    return groups


def names_of(dump: Dump) -> tuple[dict[str, str], int]:
    """Give the group that each of the process's own numbers means, and how many mean none.

    `pg_config` is keyed by names, `pg_status` by numbers that each process counts itself, both in
    the order in which groups were made. Entries tell some pairs; equal counts tell the others.
    """
    known = {str(e.get("pg_id")): _group(e)[0] for e in dump.entries}
    names = [g.name for g in dump.groups]
    numbers = list(dump.status)
    if len(names) == len(numbers) and all(w.isdecimal() for w in [*names, *numbers]):
        pairs = zip(sorted(numbers, key=int), sorted(names, key=int), strict=True)
        ordered = dict(pairs)
        if all(ordered.get(number, name) == name for number, name in known.items()):
            known = ordered
    if all(number == name for number, name in known.items()) and set(numbers) <= set(names):
        known = {number: number for number in numbers}
    return known, sum(number not in known for number in numbers)


def members(dump: Dump, rank: int | None) -> pa.Table:
    """Give the rank's membership of each group, with the counters of the group."""
    by_number, _ = names_of(dump)
    status = {by_number[n]: counts for n, counts in dump.status.items() if n in by_number}
    rows = [
        {
            "group_name": group.name,
            "desc": group.desc,
            "world_size": group.size or None,
            "group_rank": group.ranks.index(rank) if rank in group.ranks else None,
            "rank": rank,
        }
        | {ours: _counter(status.get(group.name, {}).get(key)) for ours, key in COUNTERS.items()}
        for group in dump.groups
    ]
    return pa.Table.from_pylist(rows, MEMBERS)


def joins(dump: Dump, rank: int | None) -> pa.Table:
    """Give a row an entry."""
    entries = dump.entries
    labels = [str(e["profiling_name"]) for e in entries]
    sizes = [_sizes(e.get("input_sizes")) for e in entries]
    dtypes = [_words(e.get("input_dtypes")) for e in entries]
    columns = {
        "group_name": [_group(e)[0] for e in entries],
        "seq": [_seq(e) for e in entries],
        "op": [op_of(label) for label in labels],
        "label": labels,
        "size_bytes": [_bytes(*pair) for pair in zip(sizes, dtypes, strict=True)],
        "shape": [_shape(s) for s in sizes],
        "dtype": [", ".join(dict.fromkeys(d)) or None for d in dtypes],
        "peer": [int(m[1]) if (m := PEER.search(label)) else None for label in labels],
        "state": [str(e["state"]) for e in entries],
        "time_ns": [_time(e.get("time_created_ns")) for e in entries],
        "end_ns": [_time(e.get("time_discovered_completed_ns")) for e in entries],
        "rank": [rank] * len(entries),
        "line": list(dump.places),
    }
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(len(entries), field.type)
        for field in JOINS
    ]
    return pa.table(arrays, schema=JOINS)


def whole(value: object) -> int | None:
    """Give a whole number of 63 bits, also out of text; None for anything else."""
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"-?\d{1,19}", value) else None
    good = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST
    return value if good and isinstance(value, int) else None


def _counter(value: object) -> int | None:
    number = whole(value)
    return number if number is not None and number >= 0 else None


def _time(value: object) -> int | None:
    return whole(value) or None


def _seq(entry: Entry) -> int | None:
    p2p = entry.get("is_p2p") in (True, 1, "true")
    number = entry.get("p2p_seq_id" if p2p else "collective_seq_id", entry.get("seq_id"))
    return whole(number)


def _group(entry: Entry) -> tuple[str, str]:
    """Give name and description of an entry's group."""
    told = entry.get("process_group")
    if isinstance(told, list | tuple):
        name, desc = [*map(str, told[:2]), "", ""][:2]
        return name, desc
    return str(told if told is not None else entry.get("pg_name") or ""), ""


def _sizes(value: object) -> list[list[int]]:
    """Give the sizes of each tensor; none where they are not lists of numbers."""
    if not isinstance(value, list | tuple) or len(value) > MOST_TENSORS:
        return []
    if value and all(isinstance(v, int) for v in value):
        value = [value]
    good = all(
        isinstance(one, list | tuple) and all(whole(v) is not None for v in one) for one in value
    )
    return [[whole(v) or 0 for v in one] for one in value] if good else []


def _words(value: object) -> list[str]:
    return [str(v) for v in value[:MOST_TENSORS]] if isinstance(value, list | tuple) else []


def _bytes(sizes: list[list[int]], dtypes: list[str]) -> int | None:
    items = [ITEM_BYTES.get(d.lower(), 1 if d.lower().startswith("float8") else 0) for d in dtypes]
    if len(items) == 1:
        items *= len(sizes)
    if not sizes or len(items) != len(sizes) or not all(items):
        return None
    total = sum(prod(one) * item for one, item in zip(sizes, items, strict=True))
    return total if 0 <= total <= MOST else None


def _shape(sizes: list[list[int]]) -> str | None:
    return _text.encode(sizes).decode().replace(",", ", ") if sizes else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
