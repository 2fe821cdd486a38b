"""When a trouble began and ended: the steps of a series that stand above its quiet level."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

FLOOR_NS: Final = 20_000  # clocks and host jitter leave this much between ranks
BRIDGE: Final = 3  # steps that an episode may pause
WORTH: Final = 0.25  # of the largest stretch: smaller ones are not part of the episode


@dataclass(frozen=True, slots=True)
class Episode:
    """Steps that stand out, from `first` to `last`; `excess_ns` is their sum above zero."""

    first: int
    last: int
    steps: tuple[int, ...]
    excess_ns: int
    level_ns: int  # median excess of these steps
    noise_ns: int  # spread of the quiet steps

    @property
    def clarity(self) -> float:
        """Tell from 0 to 1 how far the episode stands above the quiet steps."""
        return float(1 - np.exp(-self.level_ns / (3 * max(self.noise_ns, FLOOR_NS))))


def find(step: Sequence[int], excess: Sequence[int]) -> Episode | None:
    """Give the episode of a series whose healthy level is zero; None where nothing stands out."""
    order = np.argsort(step, kind="stable")
    index, value = np.asarray(step, np.int64)[order], np.asarray(excess, np.int64)[order]
    if not len(index):
        return None
    noise = noise_of(value)
    high = value > max(4 * noise, FLOOR_NS)
    if not high.any():
        return None
    high &= value > 0.35 * np.median(value[high])
    at = np.flatnonzero(high)
    parts = np.split(at, np.flatnonzero(np.diff(at) > BRIDGE) + 1)
    sums = np.array([value[p].sum() for p in parts])
    kept = np.concatenate([p for p, s in zip(parts, sums, strict=True) if s >= WORTH * sums.max()])
    return Episode(
        int(index[kept[0]]),
        int(index[kept[-1]]),
        tuple(index[kept].tolist()),
        int(value[kept].sum()),
        int(np.median(value[kept])),
        noise,
    )


def noise_of(value: Ints) -> int:
    """Give the spread of the steps without the fault.

    The quieter half tells it unless the fault fills the run; then the spread about the middle does.
    """
    if len(value) < 8:
        return 0
    size = np.sort(np.abs(value))
    # The median of the quieter half is the 25 % point of |x|; for a normal that is .32 sigma.
    quiet = np.median(size[: (len(size) + 1) // 2]) / 0.32
    about = 1.4826 * np.median(np.abs(value - np.median(value)))
    return int(min(quiet, about))
