"""When a trouble began and ended: the steps of a series that stand above its quiet level."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

FLOOR_NS: Final = 20_000  # clocks and host jitter leave this much between ranks
BRIDGE: Final = 3  # steps that an episode may pause
LASTING: Final = 2  # above the noise, from which on the middle of the run stands out
NOISES: Final = 4  # above the noise, from which on a step stands out
DENSE: Final = 3  # steps that make a stretch
TOWER: Final = 20  # above the noise, from which on a single step counts
SCATTERED: Final = 8  # low single steps that are an episode together
WORTH: Final = 0.03  # of the costliest stretch: smaller ones are left out
MOST: Final = 4  # stretches; more of one level are one trouble that comes and goes
ONE_LEVEL: Final = 4  # factor between the levels of what may be one trouble


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
    def density(self) -> float:
        """Tell which share of the steps from first to last stands out."""
        return len(self.steps) / (self.last - self.first + 1)

    @property
    def clarity(self) -> float:
        """Tell from 0 to 1 how far the episode stands above the quiet steps."""
        return float(1 - np.exp(-self.level_ns / (3 * max(self.noise_ns, FLOOR_NS))))


def find_all(step: Sequence[int], excess: Sequence[int]) -> list[Episode]:
    """Give the episodes of a series whose healthy level is zero, the costliest first.

    A stretch of steps above the noise is one episode; a trouble of one level that comes and goes in
    more than `MOST` stretches is one episode over all of them. Single steps count only where they
    tower.
    """
    order = np.argsort(step, kind="stable")
    index, value = np.asarray(step, np.int64)[order], np.asarray(excess, np.int64)[order]
    noise = max(noise_of(value), FLOOR_NS)
    middle = float(np.median(value)) if len(value) else 0.0
    # A trouble of most of the run is seen in the middle of the series, however it jitters.
    limit = min(NOISES * noise, 0.35 * middle) if middle > LASTING * noise else NOISES * noise
    at = np.flatnonzero(value > limit)
    if not len(at):
        return []
    parts = np.split(at, np.flatnonzero(np.diff(at) > BRIDGE) + 1)
    towers = [p for p in parts if len(p) >= DENSE or value[p].max() > TOWER * noise]
    low = [p for p in parts if len(p) < DENSE and value[p].max() <= TOWER * noise]
    groups = _joined(towers, value)
    if groups:
        most = max(value[g].sum() for g in groups)
        groups = [g for g in groups if value[g].sum() >= WORTH * most]
    if len(groups) > MOST:
        levels = [np.median(value[g]) for g in groups]
        if max(levels) < ONE_LEVEL * min(levels):  # one trouble that comes and goes
            groups = [np.concatenate(groups)]
    if sum(map(len, low)) >= SCATTERED:
        groups.append(np.concatenate(low))
    found = [_episode(index, value, group, noise) for group in groups]
    return sorted(found, key=lambda e: (-e.excess_ns, e.first))


def _joined(parts: list[Ints], value: Ints) -> list[Ints]:
    """Join neighbours of one level that lie closer than a fifth of their length."""
    joined: list[Ints] = []
    for part in parts:
        if joined:
            last = joined[-1]
            apart = part[0] - last[-1]
            levels = sorted((np.median(value[last]), np.median(value[part])))
            if apart <= (part[-1] - last[0]) / 5 and levels[1] < 2.5 * levels[0]:
                joined[-1] = np.concatenate([last, part])
                continue
        joined.append(part)
    return joined


def _episode(index: Ints, value: Ints, at: Ints, noise: int) -> Episode:
    return Episode(
        int(index[at[0]]),
        int(index[at[-1]]),
        tuple(index[at].tolist()),
        int(value[at].sum()),
        int(np.median(value[at])),
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
