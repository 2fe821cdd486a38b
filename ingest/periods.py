"""Repetition in a sequence of operators: where one round ends and the next begins, or that there is none.

An anchor is an operator that comes back at a regular ordinal distance. Its places cut the sequence
into rounds; the rounds are compared place by place with the round before, from both ends, so that
some more or fewer operators in the middle do no harm. Chance agreement is taken off, so that a
sequence without order is no repetition, however few operators it has.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LEAST_ROUNDS: Final = 3
SURE: Final = 0.6  # agreement beyond chance that makes a repetition
REGULAR: Final = 0.6  # share of an anchor's distances that are near their median
NEAR: Final = 0.1  # of the median distance
TRIED: Final = 8  # anchors that are compared in full
OWN_WORK: Final = 0.1  # of the inner round: less than this around it makes no outer round
OUTSTANDING: Final = 8  # times the median gap: a pause between groups of rounds
WHOLE: Final = 0.8  # of a round's length: a cut one at either end still counts


@dataclass(frozen=True, slots=True)
class Rounds:
    """Half-open ordinal ranges in order, and the share of all operators that repeat in them."""

    first: Ints
    last: Ints
    fit: float


@dataclass(frozen=True, slots=True)
class _Anchor:
    places: Ints
    length: float  # median distance
    agreement: float  # beyond chance
    fit: float


def find_rounds(codes: Ints, gaps: Ints) -> Rounds | None:
    """Give the rounds of a sequence of operator codes; `gaps[i]` is the pause before operator i."""
    if len(codes) < 2 * LEAST_ROUNDS:
        return None
    anchor = _best(codes)
    if anchor is None:
        return None
    cuts, length = anchor.places, anchor.length
    groups = _groups(gaps[cuts])
    if groups is not None:
        cuts = cuts[groups]
        length = float(np.median(np.diff(cuts)))
    cuts = _shift(cuts, length, gaps)
    first, last = _ends(cuts, round(length), len(codes))
    if len(first) < LEAST_ROUNDS:
        return None
    return Rounds(first, last, anchor.fit)


def _best(codes: Ints) -> _Anchor | None:
    """Give the anchor of the longest round that is more than a few rounds of a shorter one."""
    chosen: _Anchor | None = None
    for places in _candidates(codes):
        anchor = _judge(codes, places)
        if anchor.agreement < SURE:
            continue
        if chosen is None or _is_outer(anchor, chosen):
            chosen = anchor
    return chosen


def _is_outer(outer: _Anchor, inner: _Anchor) -> bool:
    inside = np.searchsorted(inner.places, outer.places)
    rounds = float(np.median(np.diff(inside)))
    if rounds <= 1:  # the same round from another anchor
        return outer.agreement > inner.agreement + OWN_WORK
    return outer.length - rounds * inner.length >= OWN_WORK * inner.length


def _candidates(codes: Ints) -> list[Ints]:
    """Give the places of the most regular anchors, those with the most rounds first."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts = np.concatenate(([0], np.cumsum(counts)))
    rated: dict[int, tuple[float, Ints]] = {}
    for code in np.flatnonzero(counts >= LEAST_ROUNDS):
        places = order[starts[code] : starts[code + 1]]
        distances = np.diff(places)
        median = np.median(distances)
        regular = float(np.mean(np.abs(distances - median) <= max(NEAR * median, 0)))
        best = rated.get(len(places))
        if median >= 2 and regular >= REGULAR and (best is None or regular > best[0]):
            rated[len(places)] = (regular, places)
    few = sorted(rated.values(), key=lambda r: -r[0] * (1 - 1 / len(r[1])))[:TRIED]
    return sorted((places for _, places in few), key=len, reverse=True)


def _judge(codes: Ints, places: Ints) -> _Anchor:
    """Compare each round with the one before, forward from its start and backward from its end."""
    length = float(np.median(np.diff(places)))
    end = min(len(codes), int(places[-1] + round(length)))
    bounds = np.append(places, end)
    at = np.arange(bounds[1], end)
    whose = np.searchsorted(places, at, side="right") - 1
    forward = at - places[whose] + places[whose - 1]
    backward = at - bounds[whose + 1] + places[whose]
    same = (codes[np.minimum(forward, places[whose] - 1)] == codes[at]) & (forward < places[whose])
    same |= (codes[np.maximum(backward, 0)] == codes[at]) & (backward >= places[whose - 1])
    shares = np.bincount(codes[places[0] : end]) / (end - places[0])
    chance = 1 - (1 - float(shares @ shares)) ** 2
    rate = float(np.mean(same)) if len(at) else 0.0
    agreement = (rate - chance) / (1 - chance) if chance < 1 else 0.0
    fitting = int(np.count_nonzero(same)) + (len(codes[places[0] : bounds[1]]) if rate else 0)
    return _Anchor(places, length, agreement, fitting / len(codes))


def _groups(gaps: Ints) -> Ints | None:
    """Give the rounds that follow an outstanding pause, if these come back regularly."""
    inner = gaps[1:]
    long = np.flatnonzero(inner > OUTSTANDING * max(float(np.median(inner)), 1.0)) + 1
    if len(long) < LEAST_ROUNDS - 1:
        return None
    starts = np.concatenate(([0], long))
    sizes = np.diff(starts)
    usual = float(np.median(sizes))
    rest = len(gaps) - starts[-1]
    if usual < 2 or rest > usual or np.mean(np.abs(sizes - usual) <= NEAR * usual) < WHOLE:
        return None
    return starts


def _shift(cuts: Ints, length: float, gaps: Ints) -> Ints:
    """Move the cuts to where the pause is usually longest."""
    reach = int(np.min(np.diff(cuts)))
    whole = cuts[cuts + reach <= len(gaps)]
    if len(whole) < LEAST_ROUNDS - 1 or reach < 2:
        return cuts
    usual = np.median(gaps[whole[1:, None] + np.arange(reach)], axis=0)
    best = int(np.argmax(usual))
    if usual[best] <= 2 * usual[0]:
        return cuts
    moved = cuts + best
    before = moved[0] - round(length)
    if before > -(1 - WHOLE) * length:
        moved = np.concatenate(([max(before, 0)], moved))
    return moved[moved < len(gaps)]


def _ends(cuts: Ints, length: int, total: int) -> tuple[Ints, Ints]:
    """Close each round at the next, and the last where a round of usual length would end."""
    last = np.append(cuts[1:], min(int(cuts[-1]) + length, total))
    whole = last - cuts >= WHOLE * length
    whole[:-1] = True  # a short round inside is a short step, at the end it is a cut one
    return cuts[whole], last[whole]
