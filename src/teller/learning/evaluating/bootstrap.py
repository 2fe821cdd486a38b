"""Intervals by drawing root seeds anew: iterations of a run, and runs of a root, are alike."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import numpy as np
from scipy.stats import beta

from teller.graph.medians import Floats, Ints

DRAWS: Final = 400
AT_ONCE: Final = 40  # draws worked out together: memory stays bounded
SIDE: Final = 0.95


class Interval(msgspec.Struct, frozen=True):
    """A figure with its 95 % interval; `bound` is the one-sided 95 % bound of a rate.

    None where nothing is asked.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    bound: float | None = None


def drawn(root: Ints, draws: int, seed: int = 7) -> Iterator[Floats]:
    """Give weights of iterations in blocks of draws; the very first draw is the data as it is."""
    known, at = np.unique(root, return_inverse=True)
    random = np.random.default_rng(seed)
    count = len(known)
    often = np.ones((draws + 1, count))
    if count:
        often[1:] = random.multinomial(count, np.full(count, 1 / count), size=draws)
    for first in range(0, draws + 1, AT_ONCE):
        yield often[first : first + AT_ONCE][:, at]


def interval(figure: Callable[[Floats], Floats], root: Ints, draws: int = DRAWS) -> Interval:
    """Give a figure, a function of weights (draws, iterations), with its interval."""
    return spread(np.concatenate([figure(w) for w in drawn(root, draws)]))


def spread(values: Floats) -> Interval:
    """Give the interval of a figure's values, the first of which is that of the data."""
    known = values[1:][~np.isnan(values[1:])]
    point = float(values[0])
    if np.isnan(point):
        return Interval(None)
    if not len(known):
        return Interval(point)
    low, high = np.quantile(known, [(1 - SIDE) / 2, (1 + SIDE) / 2]).tolist()
    # A percentile interval may leave the point out where the data are few: it is widened to it.
    return Interval(point, min(low, point), max(high, point))


def bounded(values: Floats, hits: int, of: int) -> Interval:
    """Give a rate with an upper bound that is not nothing where nothing was seen.

    It is the larger of the bootstrap's and of the exact one for independent iterations.
    """
    found = spread(values)
    if found.value is None:
        return found
    exact = float(beta.ppf(SIDE, hits + 1, of - hits)) if of > hits else 1.0
    known = values[~np.isnan(values)]
    return msgspec.structs.replace(found, bound=max(float(np.quantile(known, SIDE)), exact))
