"""Collectives joined over the ranks: who came late, and how long it took once all were there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teller.lab.testbed.calls import Ints
from teller.lab.testbed.recorded import Recorded

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Meetings:
    """One row a collective or message.

    `late_ns` and `left_ns` have a column a rank, -1 where it took no part: how long after the
    first it came, and how long after the first it left.
    """

    start_ns: Ints  # the first arrival
    arrived_ns: Ints  # the last
    end_ns: Ints  # the last return
    op: Ints  # place in `ops`
    size_bytes: Ints
    late_ns: Ints
    left_ns: Ints
    ops: tuple[str, ...]

    @property
    def pure_ns(self) -> Ints:
        """Give the time from the last arrival to the end."""
        return self.end_ns - self.arrived_ns


def waited(met: Meetings, rank: int) -> tuple[Ints, Ints]:
    """Give moments, and how long a rank had waited for others until then; linear between them.

    In that time nothing that holds the rank up costs anybody anything.
    """
    kept = met.late_ns[:, rank] >= 0
    start, end = (met.start_ns + met.late_ns[:, rank])[kept], met.arrived_ns[kept]
    at = np.stack([start, np.maximum(start, end)], axis=1).ravel()
    # calls of one rank follow each other, so their waits do not overlap
    sums = np.cumsum(np.stack([np.zeros(len(start), np.int64), at[1::2] - start], axis=1).ravel())
    return at, sums


def meetings(ranks: Sequence[Recorded]) -> Meetings:
    """Join calls by group, pair of ranks and number; those with one side only are left out.

    A send does not wait for its receiver, so a message has arrived when the sender begins or the
    receiver waits, whichever is later, and ends when it is received.
    """
    ops = sorted({"message", *(n for one in ranks for n in one.names)})
    groups = sorted({g for one in ranks for g in one.groups})
    parts = [_of_rank(i, one, ops, groups) for i, one in enumerate(ranks)]
    rows = np.concatenate(parts)
    keys, place = np.unique(rows[:, :5], axis=0, return_inverse=True)
    place = place.ravel()
    count = len(keys)
    first = np.full(count, np.iinfo(np.int64).max)
    last, end = np.zeros(count, np.int64), np.zeros(count, np.int64)
    late = np.full((count, len(ranks)), -1, np.int64)
    left, freed = late.copy(), np.full(count, np.iinfo(np.int64).max)
    size, taken = np.zeros(count, np.int64), np.bincount(place, minlength=count)
    np.minimum.at(first, place, rows[:, 5])
    np.maximum.at(last, place, rows[:, 5])
    np.maximum.at(end, place, rows[:, 6])
    np.minimum.at(freed, place, rows[:, 6])
    np.maximum.at(size, place, rows[:, 7])
    late[place, rows[:, 8]] = rows[:, 5] - first[place]
    left[place, rows[:, 8]] = rows[:, 6] - freed[place]
    whole = np.flatnonzero(taken > 1)
    whole = whole[np.argsort(last[whole], kind="stable")]
    return Meetings(first[whole], last[whole], end[whole], keys[whole, 4], size[whole],
                    late[whole], left[whole], tuple(ops))  # fmt: skip


def _of_rank(rank: int, one: Recorded, ops: list[str], groups: list[str]) -> Ints:
    """Give group, sender, receiver, seq, op, start, end, size, rank of each call."""
    calls = one.calls
    op_name = [one.names[i] for i in calls["op"]]
    group = [groups.index(one.names[i]) for i in calls["group"]]
    peer = calls["peer"]
    sends = np.array([name == "send" for name in op_name], bool)
    takes = np.array([name == "recv" for name in op_name], bool)
    shared = ["message" if name in ("send", "recv") else name for name in op_name]
    op = np.array([ops.index(name) for name in shared], np.int64)
    sender = np.where(sends, rank, np.where(takes, peer, -1))
    receiver = np.where(sends, peer, np.where(takes, rank, -1))
    end = np.where(sends, calls["start_ns"], calls["end_ns"])
    return np.stack([
        np.array(group, np.int64), sender, receiver, calls["seq"], op, calls["start_ns"], end,
        calls["size_bytes"], np.full(len(op), rank),
    ], axis=1)  # fmt: skip
