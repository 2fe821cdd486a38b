"""Spans out of events that say only where something begins or ends."""

from dataclasses import dataclass

import numpy as np

from teller.ingest.readers.kineto_work import Flags, Ints


@dataclass(frozen=True, slots=True)
class Pairs:
    """Beginnings and ends that belong together, as row numbers, and those that are alone."""

    begin: Ints
    end: Ints
    unended: Ints
    unbegun: Ints


def pairs(thread: Ints, time: Ints, begins: Flags) -> Pairs:
    """Pair beginnings and ends of each thread by nesting; rows of one time keep their order."""
    order = np.lexsort((np.arange(len(time)), time, thread))
    begin, end = [], []
    # an end right after a beginning is its own; with those gone, so is what was around them
    rows = order
    while True:
        together = np.flatnonzero(
            begins[rows[:-1]] & ~begins[rows[1:]] & (thread[rows[:-1]] == thread[rows[1:]])
        )
        if not len(together):
            break
        begin.append(rows[together])
        end.append(rows[together + 1])
        left = np.ones(len(rows), bool)
        left[together] = left[together + 1] = False
        rows = rows[left]
    none = np.zeros(0, np.int64)
    return Pairs(
        np.concatenate(begin or [none]),
        np.concatenate(end or [none]),
        rows[begins[rows]],
        rows[~begins[rows]],
    )
