"""Repetition in a sequence of operators: where a round ends and the next begins, or none.

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
SIGNIFICANT: Final = 3.0  # standard deviations above chance: a few operators may agree by luck
REGULAR: Final = 0.6  # share of an anchor's distances that are near their median
NEAR: Final = 0.1  # of the median distance
TRIED: Final = 8  # anchors that are compared in full
OWN_WORK: Final = 0.1  # of the inner round: less than this around it makes no outer round
OUTSTANDING: Final = 8  # times the median pause: one between groups of rounds
PAUSED: Final = 4  # times the next longest pause inside a round: somebody waited for its end
WHOLE: Final = 0.8  # of a round's length: a cut one at either end still counts


@dataclass(frozen=True, slots=True)
class Rounds:
    """Half-open ordinal ranges in order, and the share of all operators that repeat in them."""

    first: Ints
    last: Ints
    fit: float
    nested: bool = False  # shorter rounds repeat inside
    paused: bool = False  # a pause stands out at the start of each


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
    anchor, nested = _best(codes)
    if anchor is None:
        return None
    groups = _groups(anchor.places, gaps)
    cuts = anchor.places if groups is None else groups
    length = float(np.median(np.diff(cuts)))
    cuts, paused = (cuts, True) if groups is not None else _shift(cuts, length, gaps)
    first, last = _ends(cuts, round(length), len(codes))
    if len(first) < LEAST_ROUNDS:
        return None
    return Rounds(first, last, anchor.fit, nested or groups is not None, paused)


def _best(codes: Ints) -> tuple[_Anchor | None, bool]:
    """Give the anchor of the longest round that is more than a few rounds of a shorter one."""
    chosen: _Anchor | None = None
    nested = False
    for places in _candidates(codes):
        anchor = _judge(codes, places)
        if anchor.agreement < SURE:
            continue
        if chosen is None:
            chosen = anchor
        elif _is_outer(anchor, chosen):
            nested = nested or len(chosen.places) > 2 * len(anchor.places)
            chosen = anchor
    return chosen, nested


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
        if median < 2 or regular < REGULAR:
            continue
        # of equals the first in time, which begins a round if the recording began with one
        if best is None or (regular, -places[0]) > (best[0], -best[1][0]):
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
    luck = float(np.sqrt(chance * (1 - chance) / max(len(at), 1)))
    agreement = (rate - chance) / (1 - chance) if rate - chance > SIGNIFICANT * luck else 0.0
    fitting = int(np.count_nonzero(same)) + (len(codes[places[0] : bounds[1]]) if rate else 0)
    return _Anchor(places, length, agreement, fitting / len(codes))


def _groups(places: Ints, gaps: Ints) -> Ints | None:
    """Cut at outstanding pauses that come back after the same number of rounds."""
    longest = np.maximum.reduceat(gaps[: places[-1] + 1], places[:-1] + 1)
    usual = max(float(np.median(longest)), 1.0)
    after = np.flatnonzero(longest > OUTSTANDING * usual)
    if len(after) < LEAST_ROUNDS - 1:
        return None
    cuts = np.array(
        [places[i] + 1 + np.argmax(gaps[places[i] + 1 : places[i + 1] + 1]) for i in after]
    )
    sizes = np.diff(cuts)
    length = float(np.median(sizes))
    regular = float(np.mean(np.abs(sizes - length) <= NEAR * length))
    if regular < WHOLE or length < 2 * float(np.median(np.diff(places))):
        return None
    return _with_head(cuts, length)


def _shift(cuts: Ints, length: float, gaps: Ints) -> tuple[Ints, bool]:
    """Move the cuts to where the pause is usually longest, and tell whether it stands out."""
    reach = int(np.min(np.diff(cuts)))
    whole = cuts[1:][cuts[1:] + reach <= len(gaps)]
    if len(whole) < LEAST_ROUNDS - 1 or reach < 2:
        return cuts, False
    usual = np.median(gaps[whole[:, None] + np.arange(reach)], axis=0)
    best = int(np.argmax(usual))
    paused = bool(usual[best] > PAUSED * max(float(np.max(np.delete(usual, best))), 1.0))
    if usual[best] <= 2 * usual[0]:
        return cuts, paused
    moved = _with_head(cuts + best, length)
    return moved[moved < len(gaps)], paused


def _with_head(cuts: Ints, length: float) -> Ints:
    """Put the round in front of the first cut, if most of it was recorded."""
    before = int(cuts[0]) - round(length)
    if before <= -(1 - WHOLE) * length:
        return cuts
    return np.concatenate(([max(before, 0)], cuts))


def _ends(cuts: Ints, length: int, total: int) -> tuple[Ints, Ints]:
    """Close each round at the next, and the last where a round of usual length would end."""
    last = np.append(cuts[1:], min(int(cuts[-1]) + length, total))
    whole = last - cuts >= WHOLE * length
    whole[:-1] = True  # a short round inside is a short step, at the end it is a cut one
    return cuts[whole], last[whole]
