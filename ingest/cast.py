"""Who takes part in a run, over all its files: the rank of each process that records speak of.

Captures know their ranks. A flight recorder's file or a log's label tells one too; a communicator
tells places in itself, and the largest one counts the ranks of the run. Processes are known by
file, host and pid, since containers may give all nodes the same host name and pid.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.parts import Part, RecordPart
from teller.ingest.plausible import MOST_RANKS

Row = dict[str, Any]
SPEAKING: Final = ("members", "lines", "samples", "joins", "paths", "requests")


class Process(NamedTuple):
    """A process as records name it."""

    file: int
    host: str
    pid: int | None


@dataclass(slots=True)
class Person:
    """A rank that only records tell of, or what they add to one that is known."""

    rank: int
    host: str = ""
    pid: int | None = None
    device_index: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Cast:
    """All processes with their ranks, and the ranks of each communicator's places."""

    rank_of: Mapping[Process, int] = field(default_factory=dict)
    persons: Mapping[int, Person] = field(default_factory=dict)
    places: Mapping[tuple[str, int], int] = field(default_factory=dict)  # (comm, group rank)
    host_of: tuple[str, ...] = ()  # of each file of records

    def rank(self, file: int, host: str | None, pid: int | None) -> int | None:
        """Give the rank of a process, also where another file tells it."""
        own = Process(file, host or self.host_of[file], pid)
        if own in self.rank_of:
            return self.rank_of[own]
        others = {r for p, r in self.rank_of.items() if (p.host, p.pid) == own[1:]}
        return others.pop() if len(others) == 1 and pid is not None else None


def cast(parts: Sequence[Part], records: Sequence[RecordPart]) -> Cast:
    """Work out who is who."""
    hosts = _hosts(records)
    ranks: dict[Process, int] = {}
    traced = {
        (p.identity.host, p.shaped.facts.pid): p.identity.rank
        for p in parts
        if p.shaped.facts.pid is not None
    }
    members = list(_members(records, hosts))
    for process, row in members:
        if process.pid is None:
            continue  # a recorder's file speaks of all ranks of a group
        if row["rank"] is not None:
            ranks[process] = row["rank"]
        elif (known := traced.get((process.host, process.pid))) is not None:
            ranks.setdefault(process, known)
    for process, rank in _told(records, hosts):
        ranks.setdefault(process, rank)
    _by_largest(members, ranks)
    places = {
        (row["comm"], row["group_rank"]): ranks[process]
        for process, row in members
        if row["comm"] and row["group_rank"] is not None and process in ranks
    } | {
        (row["comm"], row["group_rank"]): row["rank"]
        for _, row in members
        if row["comm"] and row["group_rank"] is not None and row["rank"] is not None
    }
    return Cast(ranks, _persons(parts, records, members, ranks, hosts), places, tuple(hosts))


def _hosts(records: Sequence[RecordPart]) -> list[str]:
    """Give the host of each file; one that tells none is on the only host that others tell."""
    told = {r.host for r in records} | {
        h
        for r in records
        for name in SPEAKING
        for h in pc.unique(getattr(r.records, name)["host"]).to_pylist()
    }
    told -= {"", None}
    only = told.pop() if len(told) == 1 else ""
    return [r.host or only for r in records]


def _members(records: Sequence[RecordPart], hosts: Sequence[str]) -> Iterable[tuple[Process, Row]]:
    for number, part in enumerate(records):
        for row in part.records.members.to_pylist():
            yield Process(number, row["host"] or hosts[number], row["pid"]), row


def _told(records: Sequence[RecordPart], hosts: Sequence[str]) -> Iterable[tuple[Process, int]]:
    """Give processes of which any row tells a rank."""
    for number, part in enumerate(records):
        for name in ("lines", "samples", "joins"):
            table: pa.Table = getattr(part.records, name)
            known = table.filter(pc.and_(pc.is_valid(table["rank"]), pc.is_valid(table["pid"])))
            pairs = known.group_by(["host", "pid", "rank"]).aggregate([]).to_pylist()
            for pair in pairs:
                yield Process(number, pair["host"] or hosts[number], pair["pid"]), pair["rank"]


def _by_largest(members: Sequence[tuple[Process, Row]], ranks: dict[Process, int]) -> None:
    """Give what nothing else numbers a rank by its place in the largest communicators.

    Several of one size without a process in common are counted one after the other.
    """
    comms: dict[str, dict[int, Process]] = {}
    for process, row in members:
        if row["comm"] and row["group_rank"] is not None and process.pid is not None:
            comms.setdefault(row["comm"], {}).setdefault(row["group_rank"], process)
    sizes = {row["comm"]: row["world_size"] or 0 for _, row in members if row["comm"]}
    largest = max((sizes[c] for c in comms), default=0)
    start = 0
    seen: set[Process] = set()
    order = sorted(
        (c for c in comms if sizes[c] == largest),
        key=lambda c: (min((p.host, p.pid or 0) for p in comms[c].values()), c),
    )
    for comm in order:
        fresh = {place: p for place, p in comms[comm].items() if p not in seen}
        if not fresh:
            continue
        if not any(p in ranks for p in fresh.values()):
            taken = set(ranks.values())
            for place, process in sorted(fresh.items()):
                if start + place not in taken:
                    ranks[process] = start + place
        seen |= set(fresh.values())
        start += largest


def _persons(
    parts: Sequence[Part],
    records: Sequence[RecordPart],
    members: Sequence[tuple[Process, Row]],
    ranks: Mapping[Process, int],
    hosts: Sequence[str],
) -> dict[int, Person]:
    """Give each rank that records speak of; captures know their own ranks better."""
    found: dict[int, Person] = {}
    for process, rank in sorted(ranks.items(), key=lambda p: (p[1], p[0].file)):
        one = found.setdefault(rank, Person(rank, process.host, process.pid, source="records"))
        one.host = one.host or process.host
    for process, row in members:
        told = row["rank"] if row["rank"] is not None else ranks.get(process)
        if told is None:
            continue
        one = found.setdefault(told, Person(told, process.host, process.pid, source="records"))
        one.pid = one.pid if one.pid is not None else process.pid
        if one.device_index is None:
            one.device_index = row["device_index"]
    for rank, host in _spoken_of(records, hosts).items():
        one = found.setdefault(rank, Person(rank, host, source="records"))
        one.host = one.host or host
    for part in parts:
        found.setdefault(part.identity.rank, Person(part.identity.rank))
        found[part.identity.rank].host = part.identity.host
    return {rank: one for rank, one in found.items() if 0 <= rank < MOST_RANKS}


def _spoken_of(records: Sequence[RecordPart], hosts: Sequence[str]) -> dict[int, str]:
    """Give the ranks that rows name, each with the host that most of them give."""
    votes: dict[int, Counter[str]] = {}
    for number, part in enumerate(records):
        if part.records.facts.rank is not None:
            votes.setdefault(part.records.facts.rank, Counter())[hosts[number]] += 1
        for name in SPEAKING:
            table: pa.Table = getattr(part.records, name)
            counted = table.group_by(["rank", "host"]).aggregate([("line", "count")])
            for row in counted.filter(pc.is_valid(counted["rank"])).to_pylist():
                host = row["host"] or hosts[number]
                votes.setdefault(row["rank"], Counter())[host] += row["line_count"] or 1
    return {rank: count.most_common(1)[0][0] for rank, count in votes.items()}
