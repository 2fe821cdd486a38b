"""Pieces of trees that grow together: the state that training and encoding share."""

from typing import Final

import numpy as np
import numpy.typing as npt

from teller.models.tpe.shapes import Edges, Flags
from teller.models.tpe.trees import Ints

PLACE_BITS: Final = 22
TOKEN_BITS: Final = 20
MAX_SIZE: Final = 1 << PLACE_BITS  # spans in one token


def packed(left: Ints, right: Ints, at: Ints, sibling: Flags) -> Ints:
    """Give a pair as one number: upper token, lower token, the place above, and the kind of edge.

    Numbers order as the tuples do.
    """
    return ((left << TOKEN_BITS | right) << PLACE_BITS | at) << 1 | sibling


class Pieces:
    """All pieces: first each row is one; `merge` puts pieces to the ones they hang on.

    Places inside a piece count in the order of merging, upper before lower, so that merging moves
    no place of the upper piece. A piece's number stays; `gone` says which no longer stand alone.
    """

    def __init__(self, edges: Edges, base: Ints, sizes: Ints) -> None:
        """Start with single rows; `sizes` gives the number of spans in each token."""
        self.sizes = sizes
        self.row = np.arange(len(base))  # its first row
        self.up = edges.up.copy()  # the piece it hangs on; -1: none
        self.at = np.zeros(len(base), np.int64)  # place in that piece
        self.sibling = edges.sibling
        self.token = base.copy()
        self.gone = np.zeros(len(base), np.bool_)
        self.into = np.arange(len(base))  # by row: the first row of the piece it was merged into

    def keys(self, which: Ints) -> Ints:
        """Give the pairs that pieces make with the ones they hang on; -1 where there is none."""
        up = self.up[which]
        key = packed(self.token[up], self.token[which], self.at[which], self.sibling[which])
        return np.where(up >= 0, key, -1)

    def merge(self, lower: Ints, token: Ints) -> Ints:
        """Merge pieces into those they hang on, giving these their new tokens.

        No piece may take part twice. What comes back are the pieces whose pair is another one now.
        """
        upper = self.up[lower]
        self.into[self.row[lower]] = self.row[upper]
        self.gone[lower] = True
        touched = np.zeros(len(self.up) + 1, np.bool_)  # one more: `up` of -1 falls on it
        touched[lower] = touched[upper] = True
        hanging = np.flatnonzero(touched[self.up] & ~self.gone)
        above = self.up[hanging]
        moved = hanging[self.gone[above]]
        grown = np.zeros(len(self.up), np.int64)
        grown[lower] = self.sizes[self.token[upper]]
        self.at[moved] += grown[self.up[moved]]
        self.up[moved] = self.up[self.up[moved]]
        self.token[upper] = token
        touched[:] = False
        touched[hanging] = touched[upper] = True
        return np.flatnonzero(touched[:-1])

    def compact(self) -> Ints:
        """Forget pieces that are gone; what comes back are the old numbers of those that stay."""
        kept = np.flatnonzero(~self.gone)
        number = np.full(len(self.gone) + 1, -1)
        number[kept] = np.arange(len(kept))
        self.up = number[self.up[kept]]
        for name in ("row", "at", "sibling", "token", "gone"):
            setattr(self, name, getattr(self, name)[kept])
        return kept


def free_of_overlap(pieces: Pieces, wanted: Flags, rank: npt.NDArray[np.integer]) -> Ints:
    """Give the wanted pieces to merge now: in a chain of equal pairs, each second from the top.

    A chain under a pair of the same rank that is not wanted has to wait: its top may go.
    """
    lower = np.flatnonzero(wanted)
    above = pieces.up[lower]
    chained = rank[above] == rank[lower]
    if not chained.any():
        return lower
    number = np.full(len(wanted), -1)
    number[lower] = np.arange(len(lower))
    linked = chained & wanted[above]
    distance = linked.astype(np.int64)
    jump = np.where(linked, number[above], np.arange(len(lower)))
    while (further := distance[jump]).any():
        distance += further
        jump = jump[jump]
    waits = (chained & ~linked)[jump]
    free: Ints = lower[(distance % 2 == 0) & ~waits]
    return free
