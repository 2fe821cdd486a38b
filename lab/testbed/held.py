"""How long a rank was held up in each step, against those who do the same work beside it.

Ranks that share their layers have the same load in the same step, so that what one of them takes
longer than the others is neither load nor the drift of the machine.
"""

from collections.abc import Sequence

import numpy as np

from teller.lab.testbed.calls import Ints
from teller.lab.testbed.meetings import Floats, Meetings
from teller.lab.testbed.recorded import Recorded, steps


def own_times(ranks: Sequence[Recorded], met: Meetings, count: int) -> Floats:
    """Give (ranks, steps): a rank's time in a step outside of communication, in ns.

    Leaving a collective after the first counts too: the rank had what it waited for.
    """
    made = np.zeros((len(ranks), count))
    for rank, one in enumerate(ranks):
        number, start, end = steps(one.ranges)
        fits = number < count
        number, start, end = number[fits], start[fits], end[fits]
        at, within = _step_of(one.calls["start_ns"], start, end)
        spent = (one.calls["end_ns"] - one.calls["start_ns"])[within]
        took = end - start - np.bincount(at, spent, minlength=len(start))
        took_part = met.left_ns[:, rank] >= 0
        at, within = _step_of(met.arrived_ns[took_part], start, end)
        took += np.bincount(at, met.left_ns[took_part, rank][within], minlength=len(start))
        made[rank, number] = took
    return made


def against_peers(own: Floats, rank: int, tp: int) -> Floats:
    """Give how much longer a rank took in each step than the mean of those with its layers."""
    first = rank // tp * tp
    peers = [one for one in range(first, first + tp) if one != rank]
    more: Floats = own[rank] - own[peers].mean(axis=0)
    return more


def _step_of(time_ns: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Give the places of the steps that moments lie in, and which moments lie in any."""
    at = np.searchsorted(start, time_ns, "right") - 1
    within = np.flatnonzero((at >= 0) & (time_ns < end[np.maximum(at, 0)]))
    return at[within], within
