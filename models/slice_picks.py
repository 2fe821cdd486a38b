"""What a slice picks: rows of spans with the reasons, kept as columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Role(IntFlag):
    """Why a span is in a slice; several may hold."""

    EXCESS = 1  # it, or all calls of its operator together, took too long
    LATE = 2  # it came late to a collective
    GAP = 4  # nothing ran in its lane for long before it
    COUNT = 8  # its operator ran more or less often than on the other ranks
    WAITED = 16  # it waited for others in a collective
    ANCESTOR = 32  # it called or launched one of the others, at any distance
    NEIGHBOUR = 64  # just before or behind a seed, in its lane
    LAUNCHER = 128  # it launched a seed
    WAITED_FOR = 256  # a seed waited for it
    COLLECTIVE_PEER = 512  # the last to arrive where the step's rank waited
    BEHIND_LATE_RANK = 1024  # work that the last to arrive did on its way there
    ROOT = 2048  # the first span of the step that calls others and is called by none


SEEDS = Role.EXCESS | Role.LATE | Role.GAP | Role.COUNT | Role.WAITED


@dataclass(frozen=True, slots=True)
class Picks:
    """For each pick: whose slice (number of the asked step), which row, why, how far backwards."""

    slot: Ints
    row: Ints
    why: Ints
    hop: Ints

    @classmethod
    def of(cls, slot: Ints, row: Ints, why: int, hop: int = 0) -> Self:
        """Give picks that have one reason."""
        return cls(slot, row, np.full(len(row), why), np.full(len(row), hop))

    @classmethod
    def joined(cls, parts: Sequence["Picks"]) -> Self:
        """Give each pair of slice and row once, sorted: all its reasons and its nearest hop."""
        slot, row, why, hop = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("slot", "row", "why", "hop")
        )
        order = np.lexsort((row, slot))
        slot, row = slot[order], row[order]
        first = np.flatnonzero(starts(slot, row))
        if not len(first):
            return cls(slot, row, why, hop)
        return cls(
            slot[first],
            row[first],
            np.bitwise_or.reduceat(why[order], first),
            np.minimum.reduceat(hop[order], first),
        )

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Picks":
        """Give the chosen ones."""
        return Picks(self.slot[chosen], self.row[chosen], self.why[chosen], self.hop[chosen])


def starts(*keys: Ints) -> npt.NDArray[np.bool_]:
    """Tell where sorted keys begin anew."""
    size = len(keys[0])
    new = np.zeros(size, bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


def first_of_each(groups: Sequence[Ints], most: int, *best: Floats | Ints) -> Ints:
    """Give the places of the `most` rows of each group with the largest `best`, first key first."""
    order = np.lexsort((*(-key for key in reversed(best)), *reversed(groups)))
    begin = np.flatnonzero(starts(*(group[order] for group in groups)))
    counts = np.diff(np.r_[begin, len(order)])
    place = np.arange(len(order)) - np.repeat(begin, counts)
    return order[place < most]


def expanded(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Give all numbers of the half-open ranges, and beside each the number of its range."""
    counts = np.maximum(high - low, 0)
    which = np.repeat(np.arange(len(low)), counts)
    begin = np.cumsum(counts) - counts
    return np.arange(len(which)) - begin[which] + low[which], which


def places(have: Ints, wanted: Ints) -> Ints:
    """Give where ids are in sorted ids, -1 where they are not."""
    if not len(have):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(have, wanted), len(have) - 1)
    return np.where(have[at] == wanted, at, -1)


def across(have: Ints, other: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Join by sorted `have`: give what stands beside it in `other`, and which wanted row asked."""
    at, which = expanded(np.searchsorted(have, wanted), np.searchsorted(have, wanted, "right"))
    return other[at], which
