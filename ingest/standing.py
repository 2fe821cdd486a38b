"""How far each rank got in each group, as dumps of the flight recorder and watchdogs tell it.

Counters of a group count its collectives, or its sends and receives where it has them: there only
the entries tell how far the collectives are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.parts import DatedRecords
from teller.ingest.readers import flight_recorder
from teller.ingest.record_groups import PEER, name_of
from teller.ingest.record_rows import Rows
from teller.ingest.source import Group

STATES: Final = ("scheduled", "started", "completed")
Op = tuple[str, int]  # name of the group, sequence number
Pair = tuple[str, int, int, bool]  # name of the group, waiting rank, its peer, whether it sends


@dataclass(slots=True)
class Standing:
    """How far one rank is in one group. Sequence numbers; 0 where it never did anything."""

    enqueued: int = 0
    completed: int = 0
    done: int = 0  # the last that an entry, not a counter, shows completed
    started: int | None = None  # None where the recorder does not watch starts
    opened: int | None = None  # the first that is enqueued and not completed

    @property
    def is_open(self) -> bool:
        """Tell whether something that it enqueued is not completed."""
        return self.opened is not None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank's own story was read; `line` where it is one line."""

    input_id: int
    base: int
    file: int
    host: str | None
    line: int | None = None


def place_of(row: Mapping[str, Any]) -> Place:
    """Give the place of a row of records."""
    return Place(row["input_id"], row["base"], row["file"], row["host"], row["line"])


@dataclass(frozen=True, slots=True)
class Stand:
    """All groups and ranks of a run that dumps or watchdogs tell of."""

    groups: dict[str, dict[int, Standing]] = field(default_factory=dict)
    members: dict[str, tuple[int, ...]] = field(default_factory=dict)  # also ranks without a dump
    began: dict[Op, int | None] = field(default_factory=dict)  # first time of what is open
    kinds: dict[Op, str] = field(default_factory=dict)  # operation of what is open
    pairs: dict[Pair, tuple[int, int, int | None]] = field(default_factory=dict)  # n, seq, time
    places: dict[int, Place] = field(default_factory=dict)
    dumped: frozenset[int] = frozenset()  # ranks that have a dump

    @property
    def unrecorded(self) -> list[int]:
        """Give the ranks of groups that no dump is of."""
        if not self.dumped:
            return []
        return sorted({r for ranks in self.members.values() for r in ranks} - self.dumped)


def standing_of(rows: Rows, dated: Sequence[DatedRecords]) -> Stand:
    """Read how far all ranks are; a run without dumps and watchdogs gives nothing."""
    dumps = {
        n for n, d in enumerate(dated) if d.part.records.facts.format == flight_recorder.FORMAT
    }
    joins = _named(rows.joins.filter(pc.is_in(rows.joins["state"], pa.array(STATES))))
    told = rows.members.filter(pc.is_valid(rows.members["rank"])).to_pylist()
    told = [m for m in told if m["last_enqueued"] is not None or m["file"] in dumps]
    if not told and not joins.num_rows:
        return Stand()
    between = pc.is_in(joins["op"].cast(pa.string()), pa.array(PEER))
    own, peers = joins.filter(pc.invert(between)), joins.filter(between)
    mixed = set(pc.unique(peers["name"]).to_pylist())
    members = _members(dated)
    stand = Stand(
        members=members,
        places=_places(told),
        dumped=frozenset(m["rank"] for m in told if m["file"] in dumps),
    )
    for row in told:
        one = stand.groups.setdefault(name_of(row), {}).setdefault(row["rank"], Standing())
        if name_of(row) not in mixed:
            _count(one, row, whole=row["file"] in dumps)
    _enter(stand, own)
    _pair(stand, peers)
    return stand


def _count(one: Standing, row: dict[str, Any], *, whole: bool) -> None:
    """Take counters: of a dump (`whole`) one that is not there is 0, of a log it is not known."""
    one.enqueued = max(one.enqueued, row["last_enqueued"] or 0)
    known = row["last_completed"] if not whole else row["last_completed"] or 0
    one.completed = max(one.completed, one.enqueued if known is None else known)
    one.started = row["last_started"] if one.started is None else one.started


def _named(joins: pa.Table) -> pa.Table:
    """Keep what has a rank and a number, with the name of its group."""
    joins = joins.filter(pc.and_(pc.is_valid(joins["rank"]), pc.is_valid(joins["seq"])))
    name = pc.fill_null(joins["group_name"].cast(pa.string()), "")
    comm = pc.fill_null(joins["comm"].cast(pa.string()), "")
    return joins.append_column("name", pc.if_else(pc.equal(name, ""), comm, name))


def _members(dated: Sequence[DatedRecords]) -> dict[str, tuple[int, ...]]:
    """Give the ranks of each group, as any dump lists them."""
    found: dict[str, tuple[int, ...]] = {}
    groups: Iterator[Group] = (g for d in dated for g in d.part.records.facts.groups)
    for group in groups:
        if len(group.ranks) > len(found.get(group.name, ())):
            found[group.name] = tuple(group.ranks)
    return found


def _places(told: list[dict[str, Any]]) -> dict[int, Place]:
    found: dict[int, Place] = {}
    for row in told:
        found.setdefault(row["rank"], place_of(row))
    return found


def _enter(stand: Stand, joins: pa.Table) -> None:
    """Add what entries tell: the furthest, the furthest completed, the first that is open."""
    joins = joins.set_column(
        joins.schema.get_field_index("op"), "op", joins["op"].cast(pa.string())
    )
    done = pc.equal(joins["state"], "completed")
    for table, closed in ((joins.filter(done), True), (joins.filter(pc.invert(done)), False)):
        spans = table.group_by(["name", "rank"]).aggregate([("seq", "min"), ("seq", "max")])
        for row in spans.to_pylist():
            one = stand.groups.setdefault(row["name"], {}).setdefault(row["rank"], Standing())
            one.enqueued = max(one.enqueued, row["seq_max"])
            if closed:
                one.completed = max(one.completed, row["seq_max"])
                one.done = row["seq_max"]
            else:
                one.opened = row["seq_min"]
    for ranks in stand.groups.values():
        for one in ranks.values():
            if one.opened is not None:
                one.completed = max(one.completed, one.opened - 1)
            elif one.enqueued > one.completed:
                one.opened = one.completed + 1
    opened = joins.filter(pc.invert(done))
    times = opened.group_by(["name", "seq"]).aggregate([("time_ns", "min"), ("op", "min")])
    for row in times.to_pylist():
        op = (row["name"], row["seq"])
        stand.began[op], stand.kinds[op] = row["time_ns_min"], row["op_min"]


def _pair(stand: Stand, joins: pa.Table) -> None:
    """Count the sends and receives that are open between two ranks."""
    opened = joins.filter(
        pc.and_(pc.not_equal(joins["state"], "completed"), pc.is_valid(joins["peer"]))
    )
    keys = ["name", "rank", "peer", "op"]
    counts = opened.group_by(keys).aggregate([("seq", "count"), ("seq", "max"), ("time_ns", "max")])
    for row in counts.to_pylist():
        ranks = stand.members.get(row["name"], ())
        peer = ranks[row["peer"]] if row["peer"] < len(ranks) else row["peer"]
        key = (row["name"], row["rank"], peer, row["op"] == "send")
        stand.pairs[key] = (row["seq_count"], row["seq_max"], row["time_ns_max"])
