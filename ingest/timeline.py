"""All sources of a run on one time axis: UTC by their anchors, one clock, and t0 = 0."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest import clocks, collectives
from teller.ingest.clocks import Clock
from teller.ingest.collectives import RankCalls, Timed
from teller.ingest.shape import Shaped

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Axis:
    """How one source's times become times of the run."""

    shift_ns: int  # source clock to UTC
    clock: Clock
    t0_ns: int

    def run_time(self, time: Ints) -> Ints:
        """Put source times on the run's axis."""
        return self.clock.common(time + self.shift_ns) - self.t0_ns

    def moment(self, time: int) -> int:
        """Put one time on the run's axis."""
        return int(self.run_time(np.array([time]))[0])


@dataclass(frozen=True, slots=True)
class Timeline:
    """Axes by source, the collectives on the run's axis, and the UTC epoch of its zero."""

    axes: tuple[Axis, ...]
    timed: Timed
    t0_epoch_ns: int
    anchored: bool


def lay_out(sources: Sequence[Shaped], ranks: Sequence[int], t0_epoch_ns: int | None) -> Timeline:
    """Match collectives, align clocks, and put everything on one axis.

    `t0_epoch_ns` is the zero of a run that is already known; None takes the first event.
    """
    shifts = _shifts(sources)
    calls = [
        RankCalls(
            i, rank, _moved(one.calls, shift),
            numbered=one.confidence >= 1, places=one.facts.places,
        )
        for i, (one, rank, shift) in enumerate(zip(sources, ranks, shifts, strict=True))
    ]  # fmt: skip
    members = collectives.members(calls)
    found = clocks.align(members, len(sources))
    firsts = [
        int(clock.common(np.array([one.first_ns + shift]))[0])
        for one, clock, shift in zip(sources, found, shifts, strict=True)
    ]
    t0 = t0_epoch_ns if t0_epoch_ns is not None else min(firsts)
    axes = tuple(Axis(s, c, t0) for s, c in zip(shifts, found, strict=True))
    return Timeline(
        axes,
        collectives.timed(_common(members, axes)),
        t0,
        any(s.facts.epoch_ns is not None for s in sources),
    )


def _shifts(sources: Sequence[Shaped]) -> list[int]:
    """Anchors; a source without one begins with the earliest that has one, or at 0."""
    begins = [s.first_ns + s.facts.epoch_ns for s in sources if s.facts.epoch_ns is not None]
    begin = min(begins, default=0)
    return [
        s.facts.epoch_ns if s.facts.epoch_ns is not None else begin - s.first_ns for s in sources
    ]


TIMES = ("start_ns", "end_ns", "host_start_ns")


def _moved(calls: pa.Table, shift: int) -> pa.Table:
    for name in TIMES:
        at = calls.column_names.index(name)
        calls = calls.set_column(at, name, pc.add(calls[name], shift))
    return calls


def _common(members: pa.Table, axes: Sequence[Axis]) -> pa.Table:
    source = members["source"].to_numpy()
    for name in TIMES:
        column = members[name].combine_chunks()
        time = pc.fill_null(column, 0).to_numpy().copy()
        for i, axis in enumerate(axes):
            own = source == i
            time[own] = axis.clock.common(time[own]) - axis.t0_ns
        values = pa.array(time, mask=pc.is_null(column).to_numpy(zero_copy_only=False))
        members = members.set_column(members.column_names.index(name), name, values)
    return members


def renumber(sources: Sequence[Shaped], members: pa.Table) -> list[int]:
    """Give what to add to each source's step numbers, so that equal numbers are the same iteration.

    Steps that carry their own number keep it. Others were counted from each capture's start; the
    collectives that they share with the first source say how far the counts are apart.
    """
    shifts = [0] * len(sources)
    counted = [s.confidence < 1 for s in sources]
    if not any(counted) or len(sources) < 2:
        return shifts
    number, source = members["number"].to_numpy(), members["source"].to_numpy()
    step = pc.fill_null(members["step_index"], -1).to_numpy()
    known = step >= 0
    settled = {0}
    for i in range(1, len(sources)):
        other = np.isin(source, list(settled)) & known
        own = (source == i) & known
        moved = step + np.array([shifts[s] for s in source], np.int64) if len(source) else step
        _, a, b = np.intersect1d(number[other], number[own], return_indices=True)
        if not counted[i] or not len(a):
            continue
        apart, votes = np.unique(moved[other][a] - step[own][b], return_counts=True)
        shifts[i] = int(apart[np.argmax(votes)])
        settled.add(i)
    low = min(shifts)
    return [s - low for s in shifts]
