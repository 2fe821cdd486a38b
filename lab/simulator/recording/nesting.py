"""Which host span lies directly around another, for all spans of a rank at once."""

from typing import Final

import numpy as np

from teller.lab.simulator.happened import NEVER, HostSpans, Ints

_DEEPEST: Final = 64


def parents(spans: HostSpans) -> Ints:
    """Give the row of the span around each, NEVER where there is none; spans nest by thread."""
    found = np.full(len(spans.start_ns), NEVER)
    lane = spans.process.astype(np.int64) << 8 | spans.thread
    open_end = np.iinfo(np.int64).max
    end = np.where(spans.end_ns == NEVER, open_end, spans.end_ns)
    for one in np.unique(lane):
        rows = np.flatnonzero(lane == one)
        rows = rows[np.lexsort((-end[rows], spans.start_ns[rows]))]
        found[rows] = _around(rows, spans.start_ns[rows], end[rows])
    return found


def _around(rows: Ints, start: Ints, end: Ints) -> Ints:
    """Climb from the row before each to the first that has not ended, all rows together."""
    parent = np.arange(len(rows)) - 1
    # all between a row and its candidate have ended, so the candidate's own is the next to try
    for _ in range(_DEEPEST):
        over = (parent >= 0) & (end[parent] <= start)
        if not over.any():
            break
        parent = np.where(over, parent[parent.clip(min=0)], parent)
    return np.where(parent >= 0, rows[parent.clip(min=0)], NEVER)
