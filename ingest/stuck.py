"""Who is waited for where a run stands still: facts out of dumps of the flight recorder.

A rank waits where an operation is open that a member of its group has not entered. Who waits for
nobody itself, and is waited for, is missing; who only follows is a victim. A rank whose dump is not
there may be missing too: it is suspected only where nothing that is known explains the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import pyarrow as pa

from teller.ingest import disagreement
from teller.ingest.assembly import Assembly
from teller.ingest.disagreement import Odd
from teller.ingest.record_groups import PEER
from teller.ingest.record_rows import Rows
from teller.ingest.standing import Op, Place, Stand, standing_of
from teller.ingest.waits import Waits, missing, ring, suspects, unnoticed, waits_of
from teller.ingest.watchdogs import Told, told

LATE: Final = 1 << 62
EXPLAINED: Final = ("comm.missing", "comm.suspect", "comm.deadlock")


@dataclass(frozen=True, slots=True)
class Fact:
    """One sample that is to be: `place` tells whose file it is from."""

    name: str
    rank: int | None
    value: float
    text: str
    time_ns: int | None
    place: Place


def with_facts(run: Assembly) -> Rows:
    """Give the rows of a run's records with the facts among its samples."""
    made = [_row(fact) for fact in _facts(run.rows, standing_of(run.rows, run.dated))]
    known = run.rows.samples
    if not made:
        return run.rows
    table = pa.Table.from_pylist(made, known.schema)
    return replace(run.rows, samples=pa.concat_tables([known, table]))


def _row(fact: Fact) -> dict[str, Any]:
    said = {n: getattr(fact, n) for n in ("name", "rank", "value", "text", "time_ns")}
    return said | asdict(fact.place)


def _facts(rows: Rows, stand: Stand) -> Iterator[Fact]:
    for rank in stand.unrecorded:
        names = sorted(g for g, ranks in stand.members.items() if rank in ranks)
        place = next(iter(stand.places.values()))
        yield Fact("comm.unrecorded", rank, len(names), ", ".join(names), None, place)
    late = Told() if stand.dumped else told(rows.samples)
    odd = disagreement.first(rows.joins) if stand.dumped else late.odd
    if odd is not None:
        yield from _odd(odd, stand.places if stand.dumped else late.places)
        return
    facts = list(_waiting(stand)) if stand.places else []
    yield from facts
    if late.seq is not None and not any(f.name in EXPLAINED for f in facts):
        place = late.places[min(late.places)]
        yield Fact("comm.timeout", None, late.seq, late.group, None, place)


def _odd(odd: Odd, places: Mapping[int, Place]) -> Iterator[Fact]:
    name = "comm.odd" if odd.sure else "comm.unlike"
    for rank in odd.ranks:
        place = places.get(rank) or next(iter(places.values()))
        yield Fact(name, rank, odd.seq, odd.group, odd.time_ns, place)


def _waiting(stand: Stand) -> Iterator[Fact]:
    waits = waits_of(stand)
    lost = unnoticed(stand)
    for rank, (op, count) in lost.items():
        place = stand.places.get(rank) or next(iter(stand.places.values()))
        yield Fact("comm.unnoticed", rank, count, op[0], None, place)
    if found := missing(stand, waits, lost):
        yield from _told("comm.missing", found, waits, stand)
    elif found := suspects(stand, waits):
        yield from _told("comm.suspect", found, waits, stand)
    elif found := ring(waits):
        yield from _told("comm.deadlock", found, waits, stand)
    else:
        yield from _held(stand)


def _told(name: str, found: dict[int, list[Op]], waits: Waits, stand: Stand) -> Iterator[Fact]:
    """Say who is waited for and in which operation first, and who waits there."""
    firsts = {rank: min(ops, key=lambda o: _age(o, stand)) for rank, ops in found.items()}
    first = min(firsts.values(), key=lambda o: _age(o, stand))
    waiting = sorted(waits.waiters[first] - set(found))
    seen_by = next(stand.places[r] for r in (*waiting, *stand.places) if r in stand.places)
    for rank, ops in found.items():
        op = first if first in ops else firsts[rank]
        yield _at(name, rank, op, stand, stand.places.get(rank, seen_by))
    yield _at("comm.first_stuck", None, first, stand, seen_by)
    for rank in waiting:
        yield _at("comm.waits", rank, first, stand, stand.places.get(rank, seen_by))


def _at(name: str, rank: int | None, op: Op, stand: Stand, place: Place) -> Fact:
    return Fact(name, rank, op[1], op[0], stand.began.get(op), place)


def _age(op: Op, stand: Stand) -> tuple[int, int, Op]:
    """Order operations: collectives before transfers, then by the time of the first entry.

    A rank in a pipeline posts its transfers ahead; they stand still because its work does.
    """
    time = stand.began.get(op)
    between = stand.kinds.get(op) in PEER
    return (int(between), LATE if time is None else time, op)


def _held(stand: Stand) -> Iterator[Fact]:
    """Say the first operation that all ranks entered and none left."""
    ops: Sequence[Op] = [
        (group, one.opened)
        for group, ranks in stand.groups.items()
        for one in ranks.values()
        if one.opened is not None
    ]
    if ops:
        first = min(ops, key=lambda o: _age(o, stand))
        ranks = [r for r, one in stand.groups[first[0]].items() if one.is_open]
        places = [stand.places[r] for r in (*sorted(ranks), *stand.places) if r in stand.places]
        yield _at("comm.held", None, first, stand, places[0])
