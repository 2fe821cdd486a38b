"""The dependency engine: when each thing of a step happens, given what it costs.

Host work is in order; device work starts when it is launched and its stream is free; a collective
ends when its last rank is there and its pure time is over; a host that waits for its device goes on
when that is done. All follows from these four, so that delays travel by themselves. Rows are ranks;
all times are float64 ns.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from teller.lab.simulator import catalog
from teller.lab.simulator.program import Bools, Floats, Ints, Program, Wait

NEVER_NS: Final = 1e15  # later than all that can be: stuck
_GONE: Final = -1e18  # before all: a kernel that is not there launches nothing


class Meeting:
    """Which rows meet in one kind of group."""

    def __init__(self, groups: Ints) -> None:
        """Take the number of the group of each row."""
        self._order = np.argsort(groups, kind="stable")
        ordered = groups[self._order]
        self._starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        self._sizes = np.diff(np.r_[self._starts, len(groups)])
        self._one = len(self._starts) == 1

    def last(self, arrival: Floats) -> Floats:
        """Give the latest arrival of each row's group."""
        if self._one:
            return np.full(len(arrival), arrival.max())
        latest = np.maximum.reduceat(arrival[self._order], self._starts)
        out = np.empty_like(arrival)
        out[self._order] = np.repeat(latest, self._sizes)
        return out


@dataclass(frozen=True, slots=True)
class Costs:
    """What a step costs on each rank. `ready` says when a "recv" has its data."""

    host: Floats  # (ranks, ticks)
    device: Floats  # (ranks, work); 0 for collectives
    there: Bools | None  # (ranks, work), None: all of it
    pure: Floats  # (ranks, collectives)
    leave: Floats  # (ranks, collectives)
    ready: Floats  # (ranks,) when the stage before has sent; for "recv"


@dataclass(frozen=True, slots=True)
class Moved:
    """When it happened."""

    tick: Floats  # (ranks, ticks) the moment of each tick, waits included
    start: Floats  # (ranks, work)
    end: Floats
    arrival: Floats  # (ranks, collectives)
    left: Floats
    waited: Floats  # (ranks,) time that the host stood still for its device


def advance(
    program: Program, costs: Costs, meetings: dict[str, Meeting], begin: Floats, free: Floats
) -> Moved:
    """Give when all happens on hosts that begin and devices that are free at these times."""
    base = begin[:, None] + np.cumsum(costs.host, axis=1)
    latency = catalog.host("launch_to_start")
    launched = base[:, program.device.launched] + latency
    if costs.there is not None:
        launched = np.where(costs.there, launched, _GONE)
    done = np.cumsum(costs.device, axis=1)
    arrival, left, shifts = _meet(program, costs, meetings, base, launched, done, free)
    moved = base + _shift_of_ticks(program, shifts, base.shape)
    work = costs.device.copy()
    work[:, program.collectives.device] = left - arrival
    launched = np.where(launched == _GONE, _GONE, moved[:, program.device.launched] + latency)
    start, end = _in_order(launched, work, free)
    total = np.zeros(len(begin))
    for _, lag in shifts:
        total += lag
    return Moved(moved, start, end, arrival, left, total)


def _in_order(launched: Floats, work: Floats, free: Floats) -> tuple[Floats, Floats]:
    """Give start and end of work that is done in order, each part once it is launched."""
    done = np.cumsum(work, axis=1)
    slack = np.maximum.accumulate(launched - (done - work), axis=1)
    end = done + np.maximum(slack, free[:, None])
    return end - work, end


def _meet(
    program: Program, costs: Costs, meetings: dict[str, Meeting], base: Floats, launched: Floats,
    done: Floats, free: Floats,
) -> tuple[Floats, Floats, list[tuple[int, Floats]]]:  # fmt: skip
    """Walk over the places where something waits; between them all is known at once."""
    latest = _latest_launch(program, launched - (done - costs.device))
    ranks, count = len(free), len(program.collectives.op)
    arrival, left = np.empty((ranks, count)), np.empty((ranks, count))
    ahead, shift = free.copy(), np.zeros(ranks)  # ahead: device time beyond `done`
    shifts: list[tuple[int, Floats]] = []
    number = 0
    for i, (wait, row, tick) in enumerate(program.waits):
        held = latest[i]
        if held is not None:
            ahead = np.maximum(ahead, held + shift)
        now = done[:, row] + ahead
        if wait is Wait.COLLECTIVE:
            op, group = program.collectives.op[number], program.collectives.group[number]
            together = _together(op, meetings.get(group), now, costs.ready)
            end = together + costs.pure[:, number] + costs.leave[:, number]
            arrival[:, number], left[:, number] = now, end
            ahead = end - done[:, row]
            number += 1
        else:
            lag = np.maximum(0.0, now - (base[:, tick] + shift))
            shift = shift + lag
            shifts.append((tick, lag))
    return arrival, left, shifts


def _together(op: str, meeting: Meeting | None, now: Floats, ready: Floats) -> Floats:
    if op == "recv":
        return np.maximum(now, ready)
    return now if meeting is None or op == "send" else meeting.last(now)


def _latest_launch(program: Program, key: Floats) -> list[Floats | None]:
    """Give for each stretch between waits the launch that holds it up most; None for no work."""
    out: list[Floats | None] = []
    first = 0
    for _, row, _ in program.waits:
        out.append(key[:, first : row + 1].max(axis=1) if row >= first else None)
        first = max(first, row + 1)
    return out


def _shift_of_ticks(
    program: Program, shifts: list[tuple[int, Floats]], shape: tuple[int, ...]
) -> Floats:
    out = np.zeros(shape)
    for tick, lag in shifts:
        out[:, tick:] += lag[:, None]
    return out
