"""Two runs' figures at like load: medians in strata of load, and how sure their difference is.

Steps that follow each other are alike, so not steps but stretches of the run are drawn (a cluster
bootstrap): what wanders slowly within a run is not taken for a difference between runs.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.graph.difference import Told

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STRETCHES: Final = 40  # of a run, drawn with replacement
DRAWS: Final = 400
SURE: Final = 0.99
ALIKE: Final = 0.9  # likeness of neighbouring stretches that is reckoned with at most
LEAST: Final = 3  # figures of each run in a stratum that is compared
WIDE: Final = 2.0  # thresholds that the interval of "the same" may reach
FEW: Final = 8  # figures of each run below which nothing is told


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one run in order of time, each with the stratum of its load."""

    value: Floats
    stratum: Ints


@dataclass(frozen=True, slots=True)
class Contrast:
    """Medians at like load, the interval of now minus usual, and how many figures they rest on."""

    usual: float | None
    now: float | None
    low: float | None
    high: float | None
    usual_count: int
    now_count: int
    told: Told


def contrast(usual: Figures, now: Figures, threshold: float) -> Contrast:
    """Compare figures of two runs, stratum by stratum, each stratum weighed alike in both."""
    common, counts = _common(usual, now)
    if not common:
        few = min(len(usual.value), len(now.value)) < FEW
        return Contrast(None, None, None, None, *counts, "few" if few else "apart")
    weight = _weights(usual, now, common)
    before, after = (_medians(f, common, seed) @ weight for seed, f in enumerate((usual, now)))
    point = float(before[0]), float(after[0])
    if min(counts) < FEW:
        return Contrast(*point, None, None, *counts, "few")
    tail = 100 * (1 - SURE) / 2
    low, high = np.percentile(after[1:] - before[1:], [tail, 100 - tail]).tolist()
    return Contrast(*point, low, high, *counts, _told(point, low, high, threshold))


def medians(usual: Figures, now: Figures) -> tuple[float, float] | None:
    """Give the medians at like load alone; None where no load is alike."""
    common, _ = _common(usual, now)
    if not common:
        return None
    weight = _weights(usual, now, common)
    usual_at, now_at = (
        float(
            sum(w * np.median(f.value[f.stratum == s]) for w, s in zip(weight, common, strict=True))
        )
        for f in (usual, now)
    )
    return usual_at, now_at


def _common(usual: Figures, now: Figures) -> tuple[list[int], tuple[int, int]]:
    """Give the strata that both have, and how many figures of each run are in them."""
    common = [
        s
        for s in np.intersect1d(usual.stratum, now.stratum).tolist()
        if min((usual.stratum == s).sum(), (now.stratum == s).sum()) >= LEAST
    ]
    counts = [int(np.isin(f.stratum, common).sum()) for f in (usual, now)]
    return common, (counts[0], counts[1])


def _weights(usual: Figures, now: Figures, common: list[int]) -> Floats:
    pairs = np.array([[(f.stratum == s).sum() for s in common] for f in (usual, now)], float)
    weight = pairs[0] * pairs[1] / pairs.sum(axis=0)
    return np.asarray(weight / weight.sum(), np.float64)


def _told(point: tuple[float, float], low: float, high: float, threshold: float) -> Told:
    usual, now = point
    limit = threshold * abs(usual)
    if abs(now - usual) < limit or now == usual:
        return "same" if max(-low, high) <= WIDE * limit or low == high else "unsure"
    if low > 0:
        return "more"
    return "less" if high < 0 else "unsure"


def _medians(figures: Figures, common: list[int], seed: int) -> Floats:
    """Give a row a draw, the figures as they are first, and a column a stratum."""
    size = len(figures.value)
    stretches = min(STRETCHES, size)
    stretch = np.arange(size) * stretches // size
    drawn = np.random.default_rng(seed).multinomial(
        stretches, np.full(stretches, 1 / stretches), DRAWS
    )
    found = np.empty((DRAWS + 1, len(common)))
    for column, stratum in enumerate(common):
        here = np.flatnonzero(figures.stratum == stratum)
        order = here[np.argsort(figures.value[here], kind="stable")]
        value = figures.value[order]
        found[0, column] = np.median(value)
        below = np.cumsum(drawn[:, stretch[order]], axis=1)
        middle = (below * 2 >= np.maximum(below[:, -1:], 1)).argmax(axis=1)
        # a draw without a figure of this stratum tells nothing of it
        found[1:, column] = np.where(below[:, -1] > 0, value[middle], found[0, column])
    found[1:] = found[0] + (found[1:] - found[0]) * _wider(figures, common, stretch)
    return found


def _wider(figures: Figures, common: list[int], stretch: Ints) -> float:
    """Say by how much stretches that are alike, or few, leave less sure than drawing them shows.

    Neighbouring stretches that lie on one side of the median together count for fewer; the median
    knows of a figure only the side on which it lies.
    """
    side = np.zeros(len(figures.value))
    for stratum in common:
        here = figures.stratum == stratum
        side[here] = np.sign(figures.value[here] - np.median(figures.value[here]))
    inside = np.isin(figures.stratum, common)
    count = np.bincount(stretch[inside], minlength=1)
    mean = np.bincount(stretch[inside], side[inside]) / np.maximum(count, 1)
    mean = mean[count > 0]
    few = 1 + 2 / max(len(mean), 1)
    spread = float(np.sum(mean * mean))
    if len(mean) < FEW or not spread:
        return few
    alike = float(np.sum(mean[1:] * mean[:-1])) / spread + 1 / len(mean)
    alike = min(max(alike, 0.0), ALIKE)
    return few * float(np.sqrt((1 + alike) / (1 - alike)))


def buckets(value: Floats, per_octave: int) -> Ints:
    """Give the bucket of each load, so many in each doubling; -1 where it is not known, -2 for 0.

    With two in an octave: 1, 2, 3, 4 to 5, 6 to 7, 8 to 11, …
    """
    known = np.where(np.isnan(value) | (value <= 0), 1, value)
    bucket = np.floor(np.log2(known) * per_octave + 1e-9).astype(np.int64)
    return np.where(np.isnan(value), -1, np.where(value <= 0, -2, bucket))


def strata(usual: Ints, now: Ints) -> tuple[Ints, Ints]:
    """Give one number for each row of keys (a column a load), the same for equal rows of both."""
    _, code = np.unique(np.concatenate([usual, now]), axis=0, return_inverse=True)
    code = code.reshape(-1).astype(np.int64)
    return code[: len(usual)], code[len(usual) :]
