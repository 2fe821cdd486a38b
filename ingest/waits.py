"""Who waits for whom, out of how far each rank got in each group.

A rank waits where an operation is open that a member of its group has not entered. Who waits for
nobody itself, and is waited for, is missing; who only follows is a victim.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from teller.ingest.standing import Op, Stand, Standing

Node = int | Op  # a rank, or an operation of a group
NEARLY: Final = 0.75
MOST_OPEN: Final = 4096  # operations that one rank has open; a counter may claim any number
MOST_SUSPECTS: Final = 4  # more ranks without a dump than these cannot be told apart
ONE_SIDED: Final = ("broadcast", "reduce", "scatter", "gather")  # some may leave before all came


@dataclass(frozen=True, slots=True)
class Waits:
    """Who waits for whom: ranks for operations, operations for the ranks that are not in them."""

    sure: dict[Node, set[Node]] = field(default_factory=dict)
    soft: dict[Node, set[Node]] = field(default_factory=dict)  # held up together with others
    missed: dict[int, list[Op]] = field(default_factory=dict)  # what each rank has not entered
    waiters: dict[Op, set[int]] = field(default_factory=dict)


def waits_of(stand: Stand) -> Waits:
    """Give who waits for whom."""
    waits = Waits()
    older = _older(stand)
    fresh = _just_enqueued(stand)
    for group, ranks in stand.groups.items():
        _collectives(group, ranks, waits, older, fresh)
    _transfers(stand, waits, older)
    return waits


def _older(stand: Stand) -> set[int]:
    """Give ranks whose dump was taken earlier: others completed with them what they do not know."""
    found = set()
    for ranks in stand.groups.values():
        done = max(one.done for one in ranks.values())
        found |= {r for r, one in ranks.items() if one.enqueued < done}
    return found


def _just_enqueued(stand: Stand) -> set[int]:
    """Give ranks that had just enqueued the only thing that is open: nothing held it up yet."""
    opened: dict[int, list[Standing]] = {}
    for ranks in stand.groups.values():
        for rank, one in ranks.items():
            if one.is_open:
                opened.setdefault(rank, []).append(one)
    busy = {pair[1] for pair in stand.pairs}
    return {
        rank
        for rank, all_ in opened.items()
        if len(all_) == 1 and rank not in busy and all_[0].started is not None
        and all_[0].opened == all_[0].enqueued > all_[0].started
    }  # fmt: skip


def _collectives(
    group: str, ranks: dict[int, Standing], waits: Waits, older: set[int], fresh: set[int]
) -> None:
    """Let ranks with open work wait for those that are not as far."""
    levels = sorted({one.enqueued for one in ranks.values()})
    furthest = max(one.completed for one in ranks.values())
    waiting = {r: one for r, one in ranks.items() if one.is_open and r not in fresh}
    before: Op | None = None
    for low, high in pairwise(levels):
        behind = {r for r, one in ranks.items() if one.enqueued == low and r not in older}
        here = {r for r, one in waiting.items() if one.enqueued >= high}
        if furthest > low or not here or not behind:
            continue
        op = (group, max(low + 1, min(waiting[r].opened or 0 for r in here)))
        waits.sure.setdefault(op, set()).update(behind if before is None else {*behind, before})
        for rank in here:
            waits.sure.setdefault(rank, set()).add(op)
        waits.waiters.setdefault(op, set()).update(here)
        for rank in behind:
            waits.missed.setdefault(rank, []).append(op)
        before = op
    for rank in waiting:
        waits.soft.setdefault(rank, set()).add((group, 0))
        waits.soft.setdefault((group, 0), set()).add(rank)


def _transfers(stand: Stand, waits: Waits, older: set[int]) -> None:
    """Let a rank wait for the other side of a send or receive that it has not posted."""
    for (group, rank, peer, sends), (count, seq, time) in stand.pairs.items():
        if peer in older or peer not in stand.dumped:
            continue
        posted = stand.pairs.get((group, peer, rank, not sends), (0, 0, None))[0]
        op = (group, seq)
        if count > posted:
            waits.sure.setdefault(rank, set()).add(peer)
            waits.missed.setdefault(peer, []).append(op)
            waits.waiters.setdefault(op, set()).add(rank)
            stand.began.setdefault(op, time)
            stand.kinds.setdefault(op, "send" if sends else "recv")
        waits.soft.setdefault(rank, set()).add(peer)


def unnoticed(stand: Stand) -> dict[int, tuple[Op, int]]:
    """Give ranks whose own record lacks the end of what their peers completed with them.

    Their device, or the thread that watches it, answers no more.
    """
    found: dict[int, tuple[Op, int]] = {}
    for group, ranks in stand.groups.items():
        for rank, one in ranks.items():
            ends = [o.completed for r, o in ranks.items() if r != rank and o.enqueued]
            done = min(max(ends, default=0), one.enqueued)
            if one.opened is not None and done >= one.opened:
                ends_at = min(done + 1, one.opened + MOST_OPEN)
                kinds = [stand.kinds.get((group, n), "") for n in range(one.opened, ends_at)]
                count = sum(kind not in ONE_SIDED for kind in kinds)
                if count > found.get(rank, (("", 0), 0))[1]:
                    found[rank] = ((group, one.opened), count)
    return found


def missing(stand: Stand, waits: Waits, lost: dict[int, tuple[Op, int]]) -> dict[int, list[Op]]:
    """Give the ranks that are waited for, wait for nobody and have nothing open of their own."""
    opened = {r for ranks in stand.groups.values() for r, one in ranks.items() if one.is_open}
    opened |= {pair[1] for pair in stand.pairs}
    return {
        rank: ops
        for rank, ops in waits.missed.items()
        if (rank in lost and not _calls(rank, waits)) or rank not in opened
    }


def _calls(rank: int, waits: Waits) -> set[Op]:
    """Give the collectives that a rank waits in."""
    return {n for n in waits.sure.get(rank, ()) if not isinstance(n, int)}


def suspects(stand: Stand, waits: Waits) -> dict[int, list[Op]]:
    """Give the ranks without a dump that most of what stands still leads to."""
    sources: dict[int, list[Node]] = {}
    ops: dict[int, list[Op]] = {}
    for rank in stand.unrecorded:
        for group in (g for g, ranks in stand.members.items() if rank in ranks):
            held = {r: one for r, one in stand.groups.get(group, {}).items() if one.is_open}
            if held:
                op = (group, min(one.opened or 0 for one in held.values()))
                waits.waiters.setdefault(op, set()).update(held)
                ops.setdefault(rank, []).append(op)
            between = [r for g, r, peer, _ in stand.pairs if (g, peer) == (group, rank)]
            sources.setdefault(rank, []).extend([*held, *between])
    # first by all that is held up together, then by what waits for certain
    for graphs, share in (((waits.sure, waits.soft), 1.0), ((waits.sure,), NEARLY)):
        backwards = _reversed(*graphs)
        reached = {rank: len(_reach(begin, backwards)) for rank, begin in sources.items()}
        most = max(reached.values(), default=0)
        sources = {r: s for r, s in sources.items() if reached[r] >= max(share * most, 1)}
    found = {rank: ops[rank] for rank in sources if rank in ops}
    return found if len(found) <= MOST_SUSPECTS else {}


def _reversed(*graphs: dict[Node, set[Node]]) -> dict[Node, set[Node]]:
    turned: dict[Node, set[Node]] = {}
    for graph in graphs:
        for node, others in graph.items():
            for other in others:
                turned.setdefault(other, set()).add(node)
    return turned


def _reach(begin: Iterable[Node], graph: dict[Node, set[Node]]) -> set[int]:
    """Give the ranks that can be reached."""
    seen = set(begin)
    queue = deque(seen)
    while queue:
        for other in graph.get(queue.popleft(), ()):
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return {node for node in seen if isinstance(node, int)}


def ring(waits: Waits) -> dict[int, list[Op]]:
    """Give the ranks that wait for each other in a ring: what is left when all ends are off."""
    left = {n: set(o) for n, o in waits.sure.items()}
    while True:
        into = {o for others in left.values() for o in others}
        kept = {n: o & left.keys() for n, o in left.items() if n in into and o & left.keys()}
        if kept == left:
            break
        left = kept
    ranks = {n for n in left if isinstance(n, int)}
    ops = {r: [o for o in waits.missed.get(r, ()) if waits.waiters[o] & ranks] for r in ranks}
    return {r: missed for r, missed in ops.items() if missed}
