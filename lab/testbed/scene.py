"""A life as it was measured: all that its episodes are held to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from teller.errors import NothingUsable
from teller.lab.testbed import expected
from teller.lab.testbed.calls import Ints
from teller.lab.testbed.expected import Mask, Steps
from teller.lab.testbed.held import own_times
from teller.lab.testbed.meetings import Floats, Meetings
from teller.lab.testbed.recorded import Ranges, Recorded, self_times


@dataclass(frozen=True, slots=True)
class Scene:
    """A life as it was measured: all that is the same for each of its episodes."""

    steps: Steps
    expected_ns: Floats  # of each step
    healthy: Mask
    met: Meetings
    met_expected_ns: Floats
    ranks: Sequence[Recorded]
    own: Sequence[tuple[Ranges, Ints]]  # of each rank: ranges of the model's thread, self times
    requests: Sequence[dict[str, Any]]
    own_step_ns: Floats  # (ranks, steps)
    tp: int


def scene(
    ranks: Sequence[Recorded], rows: Sequence[Sequence[int]], columns: Sequence[str],
    windows: list[tuple[int, int]], requests: Sequence[dict[str, Any]], met: Meetings,
    tp: int,
) -> Scene:  # fmt: skip
    """Measure a life; `rows` are rank 0's steps, `windows` the healthy stretches."""
    table = np.array(rows, np.int64).reshape(-1, len(columns))
    told = Steps({name: table[:, i] for i, name in enumerate(columns)})
    healthy = expected.inside(told.middle_ns, windows)
    if healthy.sum() < expected.FEWEST:
        raise NothingUsable(
            f"only {int(healthy.sum())} steps passed while nothing was done, too few to compare "
            "with: leave more time around faults, or use a machine with less other work"
        )
    good = expected.inside(met.arrived_ns, windows)
    own = []
    for one in ranks:
        thread = np.unique(one.ranges.thread[_is_step(one.ranges)])
        own.append(self_times(one.ranges, int(thread[0])))
    return Scene(told, expected.step_lengths(told, healthy), healthy, met,
                 expected.pure_times(met, good), ranks, own, requests,
                 own_times(ranks, met, len(table)), tp)  # fmt: skip


def _is_step(ranges: Ranges) -> Mask:
    named = np.array([name.startswith("step=") for name in ranges.names], bool)
    found: Mask = named[ranges.name]
    return found


def mean(values: Floats) -> float | None:
    """Give the mean for a truth file, None of nothing."""
    return round(float(values.mean()), 4) if len(values) else None
