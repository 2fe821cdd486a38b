"""What the watchdogs of ranks disagree on, where only their lines tell of a hang."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.disagreement import UNEVEN, Odd
from teller.ingest.readers.kineto_kinds import op_of
from teller.ingest.standing import Place, place_of

Row = dict[str, Any]
GROUP: Final = re.compile(r"(?:^| )group (\S+)$")
CALL: Final = re.compile(r"^(\w+) NumelIn=(\d+)")
# Numbers of two groups that no line names may differ; those of one group are near each other.
NEAR: Final = 8


@dataclass(frozen=True, slots=True)
class Told:
    """What watchdogs tell: who is odd, if anyone, else what timed out first; each with its line."""

    odd: Odd | None = None
    group: str = ""
    seq: int | None = None
    places: Mapping[int, Place] = field(default_factory=dict)


def told(samples: pa.Table) -> Told:
    """Give the first disagreement, or the first timeout where there is none."""
    late = samples.filter(
        pc.and_(pc.equal(samples["name"], "watchdog.timeout"), pc.is_valid(samples["rank"]))
    )
    groups: dict[str, dict[int, Row]] = {}
    for row in late.to_pylist():
        found = GROUP.search(row["text"] or "")
        ranks = groups.setdefault(found[1] if found else "", {})
        before = ranks.get(row["rank"])
        if before is None or _earlier(row, before):
            ranks[row["rank"]] = row
    for group, ranks in groups.items():
        odd = _odd(group, ranks)
        if odd is not None:
            return Told(odd, group, odd.seq, {rank: place_of(row) for rank, row in ranks.items()})
    if not groups:
        return Told()
    most, ranks = max(groups.items(), key=lambda pair: len(pair[1]))
    begin = min(int(row["value"]) for row in ranks.values())
    return Told(None, most, begin, {rank: place_of(row) for rank, row in ranks.items()})


def _earlier(row: Row, other: Row) -> bool:
    """Of what a rank reports, the lowest number counts, and of that the line with sizes."""
    return bool((row["value"], not CALL.match(row["text"] or "")) < (
        other["value"], not CALL.match(other["text"] or "")
    ))  # fmt: skip


def _odd(group: str, ranks: Mapping[int, Row]) -> Odd | None:
    numbers = {rank: int(row["value"]) for rank, row in ranks.items()}
    apart = max(numbers.values()) - min(numbers.values())
    if apart:
        if not group and apart > NEAR:
            return None
        odd, sure = _minority(list(numbers.items()))
        return Odd(group, min(numbers.values()), odd, sure, None)
    calls = [(rank, _call(row["text"] or "")) for rank, row in ranks.items()]
    if len({call for _, call in calls if call}) < 2:
        return None
    odd, sure = _minority([(rank, call) for rank, call in calls if call])
    return Odd(group, min(numbers.values()), odd, sure, None)


def _call(text: str) -> str:
    """Say what was called, as far as it must be the same on all ranks; "" where no line says it."""
    found = CALL.match(text)
    if found is None:
        return ""
    op = op_of(found[1])
    return op if op in UNEVEN else f"{op} {found[2]}"


def _minority(said: Sequence[tuple[int, object]]) -> tuple[tuple[int, ...], bool]:
    """Give who says something else than most; all of them where most is not more than the next."""
    counts = Counter(what for _, what in said).most_common(2)
    if counts[0][1] == counts[1][1]:
        return tuple(sorted(rank for rank, _ in said)), False
    return tuple(sorted(rank for rank, what in said if what != counts[0][0])), True
