"""What steps and collectives would have taken: fits to the healthy ones of the same life."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.lab.testbed.calls import Ints
from teller.lab.testbed.meetings import Floats, Meetings

Mask = npt.NDArray[np.bool_]

WARM_NS: Final = 1_200_000_000  # the first steps of a service are longer
REST_NS: Final = 700_000_000  # what a fault left behind
NEAR_NS: Final = 8_000_000_000  # how far the healthy steps may lie that are compared with
FEWEST: Final = 20  # healthy steps that a fit needs


@dataclass(frozen=True, slots=True)
class Steps:
    """The iterations as rank 0 saw them; columns of STEP_COLUMNS."""

    columns: dict[str, Ints]

    @property
    def number(self) -> Ints:
        """Give the step numbers."""
        return self.columns["step"]

    @property
    def start_ns(self) -> Ints:
        """Give the starts, UTC."""
        return self.columns["start_ns"]

    @property
    def end_ns(self) -> Ints:
        """Give the ends, UTC."""
        return self.columns["end_ns"]

    @property
    def length_ns(self) -> Ints:
        """Give how long each took."""
        return self.end_ns - self.start_ns

    @property
    def middle_ns(self) -> Ints:
        """Give the middles."""
        return (self.start_ns + self.end_ns) // 2

    def load(self) -> Floats:
        """Give what a step has to do: a constant, decodes, prefill tokens, context, any prefill."""
        told = self.columns
        prefill = told["prefill_tokens"]
        parts = (np.ones(len(prefill)), told["decodes"], prefill, told["context_tokens"],
                 prefill > 0)  # fmt: skip
        return np.stack([np.asarray(part, float) for part in parts], axis=1)


def inside(time_ns: Ints, windows: list[tuple[int, int]]) -> Mask:
    """Tell which moments lie in one of the windows."""
    found = np.zeros(len(time_ns), bool)
    for start, end in windows:
        found |= (time_ns >= start) & (time_ns < end)
    return found


def healthy_windows(
    disturbed: list[tuple[int, int]], start_ns: int, end_ns: int
) -> list[tuple[int, int]]:
    """Give the stretches between disturbances, without warm-up and recovery."""
    found, at = [], start_ns + WARM_NS
    for begin, end in [*sorted(disturbed), (end_ns, end_ns)]:
        if begin - at > REST_NS:
            found.append((at, begin))
        at = max(at, end + REST_NS)
    return found


def step_lengths(steps: Steps, healthy: Mask) -> Floats:
    """Give how long each step would be expected to take by its load, in ns.

    A linear fit to the healthy steps, the strangest left out, then scaled by the healthy steps
    near in time: a machine's speed drifts.
    """
    took = steps.length_ns.astype(float)
    load = steps.load()
    kept = healthy.copy()
    for _ in range(3):
        fit = np.linalg.lstsq(load[kept], took[kept], rcond=None)[0]
        rest = np.abs(took - load @ fit)
        kept = healthy & (rest <= 4 * np.median(rest[healthy]))
    told = np.maximum(load @ fit, 0.2 * np.median(took[healthy]))
    ratio, middle = took / told, steps.middle_ns
    order = np.flatnonzero(healthy)
    scale = np.ones(len(took))
    for i, at in enumerate(middle.tolist()):
        near = order[np.abs(middle[order] - at) <= NEAR_NS]
        if len(near) >= FEWEST:
            scale[i] = np.median(ratio[near])
    made: Floats = told * scale
    return made


def pure_times(met: Meetings, healthy: Mask) -> Floats:
    """Give how long each collective would take once all have arrived, in ns, by op and size."""
    told = met.pure_ns.astype(float)
    for op in np.unique(met.op):
        of = met.op == op
        good = of & healthy
        if good.sum() < FEWEST:
            continue
        size, took = met.size_bytes, met.pure_ns.astype(float)
        shape = np.stack([np.ones(len(size)), size], axis=1).astype(float)
        limit = np.percentile(took[good], 95)
        fit = np.linalg.lstsq(shape[good & (took <= limit)], took[good & (took <= limit)],
                              rcond=None)[0]  # fmt: skip
        told[of] = np.maximum((shape @ fit)[of], np.min(took[good]))
    return told


def noise_bound(share: Floats, healthy: Mask, count: int) -> float:
    """Give the mean excess share that 99 % of healthy stretches of `count` steps stay under."""
    good = share[healthy]
    count = max(1, min(count, len(good) // 2))
    if len(good) < FEWEST:
        return 1.0
    sums = np.concatenate([[0.0], np.cumsum(good)])
    return float(np.percentile((sums[count:] - sums[:-count]) / count, 99))


def auc(during: Floats, healthy: Floats) -> float | None:
    """Give the chance that a step of the fault is longer than a healthy one."""
    if min(len(during), len(healthy)) < 3:
        return None
    below = np.searchsorted(np.sort(healthy), during, "left")
    upto = np.searchsorted(np.sort(healthy), during, "right")
    return float((below + upto).sum() / 2 / (len(during) * len(healthy)))
