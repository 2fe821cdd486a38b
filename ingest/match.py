"""Which call on one rank is which on another: by sequence number, else by order, size and time.

Calls of two ranks are aligned with gaps allowed: first the shift of the whole sequence that makes
operations agree and the ends differ by the steadiest amount, then each call by its nearest end.
In steady decoding every operation looks like the next, so that only the ends tell a shift apart.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

LARGEST_SHIFT = 2048  # calls that one rank's window may hold before the other's begins
SPARE_SHIFT = 256  # tried beyond the difference of the two lengths
LONGEST_TRIAL = 2_000  # calls that decide about a shift
SYNCED_NS = 5_000_000  # clocks nearer than this are kept by NTP or better: they tell steps apart
STEADY_NS = 20_000  # ends of one collective differ by about this much on aligned clocks
AS_STEADY = 0.995  # of the most ends in step: one call off loses those at the borders of steps


@dataclass(frozen=True, slots=True)
class _Shift:
    """The other sequence moved by `by` rows; `offset` is reference end minus other end."""

    by: int
    matched: int
    offset: float
    spread: float
    steady: int  # ends that differ by the offset, as near as its spread


def align(
    ref_end: Ints, ref_token: Ints, end: Ints, token: Ints, steps: tuple[Ints, Ints] | None = None
) -> Ints:
    """Give each row of the other sequence its row in the reference; -1: none.

    Both are in order of time. Tokens are equal where the operations could be the same. `steps` are
    the step numbers of both, -1 outside; they decide where clocks are too far apart to tell.
    """
    none = np.full(len(end), -1)
    best = _best_shift(ref_end, ref_token, end, token, steps)
    if best is None:
        return none
    left = np.arange(len(end))
    at = left + best.by
    ok = (at >= 0) & (at < len(ref_end))
    ok[ok] = ref_token[at[ok]] == token[ok]
    if len(end) < 3:
        return np.where(ok, at, -1)
    fit = _line(end[ok], ref_end[at[ok]] - end[ok])
    guess = end + np.polyval(fit, end - end[0]).astype(np.int64)
    return _nearest(ref_end, ref_token, guess, token, best.spread)


def _best_shift(
    ref_end: Ints, ref_token: Ints, end: Ints, token: Ints, steps: tuple[Ints, Ints] | None
) -> _Shift | None:
    lengths = len(ref_end), len(end)
    if not min(lengths):
        return None
    reach = min(LARGEST_SHIFT, abs(lengths[0] - lengths[1]) + SPARE_SHIFT, max(lengths) - 1)
    found = [
        s
        for by in range(-reach, reach + 1)
        if (s := _try(by, ref_end, ref_token, end, token)) is not None
    ]
    if not found:
        return None
    most = max(s.matched for s in found)
    found = [s for s in found if s.matched >= 0.6 * most]
    steadiest = min(s.spread for s in found)
    same = [s for s in found if s.spread <= 2 * steadiest + STEADY_NS]
    steady = max(s.steady for s in same)
    same = [s for s in same if s.steady >= AS_STEADY * steady]
    nearest = min(same, key=lambda s: (abs(s.offset), -s.matched))
    if steps is None or abs(nearest.offset) <= SYNCED_NS:
        return nearest
    numbered = max(same, key=lambda s: _agreeing(s.by, *steps))
    return numbered if _agreeing(numbered.by, *steps) >= 0.9 else nearest


def _agreeing(by: int, ref_step: Ints, step: Ints) -> float:
    """Give the share of rows that have the same step number when moved, as far as both reach."""
    low, high = max(0, -by), min(len(step), len(ref_step) - by)
    own = step[low:high]
    return float(np.mean((ref_step[low + by : high + by] == own) & (own >= 0)))


def _try(by: int, ref_end: Ints, ref_token: Ints, end: Ints, token: Ints) -> _Shift | None:
    low, high = max(0, -by), min(len(end), len(ref_end) - by)
    overlap = high - low
    if overlap < max(1, min(len(end), len(ref_end)) // 2):
        return None
    high = min(high, low + LONGEST_TRIAL)
    overlap = high - low
    same = ref_token[low + by : high + by] == token[low:high]
    matched = int(same.sum())
    # Records lost in the middle leave only one side of them in step at any shift.
    if matched < max(1, 0.25 * overlap):
        return None
    apart = (ref_end[low + by : high + by] - end[low:high])[same]
    middle = float(np.median(apart))
    off = np.abs(apart - middle)
    spread = float(np.median(off))
    # a drift alone spreads ends evenly, none further off than twice the median
    steady = int((off <= max(3 * spread, 2 * STEADY_NS)).sum())
    return _Shift(by, matched, middle, spread, steady)


def _line(end: Ints, apart: Ints) -> npt.NDArray[np.float64]:
    """Fit offset and drift by the medians of the first and last third."""
    third = len(end) // 3
    if third < 7:
        return np.array([float(np.median(apart))])
    first, last = slice(0, third), slice(-third, None)
    run = float(np.median(end[last]) - np.median(end[first]))
    slope = float(np.median(apart[last]) - np.median(apart[first])) / run if run else 0.0
    if abs(slope) > 1e-3:  # no clock drifts by a part in a thousand: this is no line
        return np.array([float(np.median(apart))])
    return np.array([slope, float(np.median(apart - slope * (end - end[0])))])


def _nearest(ref_end: Ints, ref_token: Ints, guess: Ints, token: Ints, spread: float) -> Ints:
    found = np.full(len(guess), -1)
    for word in np.unique(token):  # few: one for each operation and size
        ref = np.flatnonzero(ref_token == word)
        own = np.flatnonzero(token == word)
        if not len(ref):
            continue
        order = ref[np.argsort(ref_end[ref], kind="stable")]
        ends = ref_end[order]
        right = np.clip(np.searchsorted(ends, guess[own]), 0, len(ends) - 1)
        left = np.maximum(right - 1, 0)
        closer = np.abs(ends[left] - guess[own]) <= np.abs(ends[right] - guess[own])
        pick = np.where(closer, left, right)
        miss = np.abs(ends[pick] - guess[own])
        spacing = np.median(np.diff(ends)) if len(ends) > 1 else np.inf
        limit = max(8 * spread, min(0.45 * spacing, 50 * STEADY_NS), STEADY_NS)
        good = miss <= limit
        found[own[good]] = order[pick[good]]
        _drop_twins(found, own[good], miss[good])
    return found


def _drop_twins(found: Ints, rows: Ints, miss: Ints) -> None:
    """Where two rows chose the same reference row, keep the nearer one."""
    order = rows[np.argsort(miss, kind="stable")]
    _, first = np.unique(found[order], return_index=True)
    loser = np.ones(len(order), bool)
    loser[first] = False
    found[order[loser]] = -1
