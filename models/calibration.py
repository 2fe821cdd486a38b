"""From a rate of false alarms that a user wants to a threshold that keeps it.

Conformal risk control (Angelopoulos et al., 2022), by run, since the iterations of one run are
alike: with n calibration runs no rate below 1 / (n + 1) can be promised, and that is said.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from teller.graph.medians import Floats

PER_1000: Final = 10.0  # false alarms per 1,000 steps where a user says nothing
POINTS: Final = 200


class Curve(msgspec.Struct, frozen=True):
    """The mean rate of false alarms in calibration runs, by threshold, both ascending/descending.

    `rates` falls as `thresholds` rises; `runs` is how many runs it rests on.
    """

    runs: int
    thresholds: list[float]
    rates: list[float]  # mean over runs of the share of clean iterations at or above the threshold

    @property
    def least_per_1000(self) -> float:
        """Give the lowest rate per 1,000 steps that so many runs can promise."""
        return 1000 / (self.runs + 1)

    def threshold(self, per_1000: float = PER_1000) -> tuple[float, bool]:
        """Give the threshold for a rate, and whether it is promised (else the best there is).

        The bound is n / (n + 1) · rate + 1 / (n + 1), the loss of a run being at most 1.
        """
        if not self.runs:
            return 1.0, False
        wanted = per_1000 / 1000
        bound = (self.runs * np.array(self.rates) + 1) / (self.runs + 1)
        kept = np.flatnonzero(bound <= wanted)
        if len(kept):
            return self.thresholds[int(kept[0])], True
        loose = np.flatnonzero(np.array(self.rates) <= wanted)
        return (self.thresholds[int(loose[0])] if len(loose) else 1.0), False


def on_healthy(threshold: float, healthy: Floats, per_1000: float) -> tuple[float, bool]:
    """Give the threshold with a healthy run of the user's own, and whether that run can promise it.

    `healthy` are the chances of the run's iterations. The threshold rises until no more of them
    than the rate allows reach it (split conformal prediction, Vovk et al., 2005); it never falls.
    """
    size = len(healthy)
    place = int(np.ceil((size + 1) * (1 - per_1000 / 1000)))
    if not size:
        return threshold, False
    own = float(np.nextafter(np.sort(healthy)[min(place, size) - 1], 2.0))
    return max(threshold, own), place <= size


def curve(clean: Sequence[Floats]) -> Curve:
    """Give the curve of some runs, each the chances of its clean iterations."""
    held = [c for c in clean if len(c)]
    if not held:
        return Curve(0, [1.0], [0.0])
    everything = np.concatenate(held)
    grid = np.unique(np.quantile(everything, 1 - np.geomspace(1, 1e-5, POINTS)))
    grid = np.append(grid, np.nextafter(everything.max(), 2.0))
    rates = np.mean([(c[:, None] >= grid[None]).mean(axis=0) for c in held], axis=0)
    return Curve(len(held), grid.tolist(), rates.tolist())
