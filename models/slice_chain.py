"""What made the last rank late: backwards from a collective, from rank to rank."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.models.slice_picks import (
    Floats,
    Ints,
    Picks,
    Role,
    expanded,
    first_of_each,
    places,
)
from teller.models.slice_reading import HOPS, Scene, ints, last_of

BEHIND: Final = 4  # spans that stand for the way to one collective


@dataclass(frozen=True, slots=True)
class Met:
    """Collectives that a slice speaks of: whose slice, the step that it cost time, how far back."""

    slot: Ints
    by: Ints
    collective: Ints
    hop: Ints


@dataclass(frozen=True, slots=True)
class _Marks:
    """Collectives that cost a step time, sorted by `key`, with who came last, row and slot."""

    key: Ints
    slot: Ints
    collective: Ints
    row: Ints
    late_slot: Ints


@dataclass(frozen=True, slots=True)
class _Meetings:
    """The collectives of every step, by step and arrival; `place` finds one by its sorted `key`."""

    key: Ints
    place: Ints
    slot: Ints
    own_key: Ints
    row: Ints
    arrival_ns: Ints
    host_ns: Ints
    end_ns: Ints


@dataclass(frozen=True, slots=True)
class _Work:
    """Own work of one side, device or host, sorted by step and start."""

    row: Ints
    at: Ints


def backwards(scene: Scene) -> tuple[Picks, Met]:
    """Give the work before the last arrivals, and the collectives that lead there."""
    names = np.unique(np.r_[_column(scene, "meetings"), _column(scene, "arrivals")])
    marks, meetings = _marks(scene, names), _meetings(scene, names)
    sides = [_work(scene, meetings, on_device) for on_device in (True, False)]
    mark = np.flatnonzero(np.isin(marks.slot, scene.asked))
    whose = marks.slot[mark]
    parts, seen = [Picks.of(whose[:0], whose[:0], 0)], []
    for hop in range(1, HOPS + 1):
        seen.append(Met(whose, marks.slot[mark], marks.collective[mark], np.full(len(mark), hop)))
        here = marks.row[mark] >= 0
        whose, mark = whose[here], mark[here]
        if not len(mark):
            break
        other = marks.late_slot[mark] != whose
        row = marks.row[mark]
        parts.append(Picks.of(whose[other], row[other], Role.COLLECTIVE_PEER, hop))
        key = marks.late_slot[mark] * len(names) + places(names, marks.collective[mark])
        met = meetings.place[places(meetings.key, key)]
        before = _before(meetings, met)
        for side, on_device in zip(sides, (True, False), strict=True):
            low, high = _window(scene, meetings, met, before, on_device=on_device)
            found, which = _within(scene, side, meetings.slot[met], low, high)
            parts.append(Picks.of(whose[which], found, Role.BEHIND_LATE_RANK, hop))
        whose, mark = _onward(marks, meetings, whose, before)
    met_all = (np.concatenate([getattr(m, f) for m in seen]) for f in Met.__slots__)
    return Picks.joined(parts), _nearest(Met(*met_all))


def _column(scene: Scene, table: str) -> Ints:
    return ints(getattr(scene, table), "collective_id")


def _marks(scene: Scene, names: Ints) -> _Marks:
    last = scene.arrivals.take(last_of(scene.arrivals))
    slot = places(scene.step_id, ints(last, "step_id"))
    collective = ints(last, "collective_id")
    key = slot * len(names) + places(names, collective)
    row = places(scene.id, ints(last, "span_id"))
    late_slot = np.where(row >= 0, scene.slot[row], -1)
    order = np.argsort(key, kind="stable")
    return _Marks(key[order], slot[order], collective[order], row[order], late_slot[order])


def _meetings(scene: Scene, names: Ints) -> _Meetings:
    table = scene.meetings
    slot = places(scene.step_id, ints(table, "step_id"))
    arrival, row = ints(table, "arrival_ns"), places(scene.id, ints(table, "span_id"))
    order = np.lexsort((row, arrival, slot))
    slot, arrival, row = slot[order], arrival[order], row[order]
    host = ints(table, "host_arrival_ns", np.iinfo(np.int64).min)[order]
    host = np.where(host == np.iinfo(np.int64).min, arrival, host)
    own_key = slot * len(names) + places(names, ints(table, "collective_id")[order])
    place = np.argsort(own_key, kind="stable")
    return _Meetings(
        own_key[place], place, slot, own_key, row, arrival, host, ints(table, "end_ns")[order]
    )


def _work(scene: Scene, meetings: _Meetings, on_device: bool) -> _Work:
    mine = (scene.own_ns > 0) & (scene.device == on_device)
    mine[meetings.row] = False
    row = np.flatnonzero(mine)
    at = _keyed(scene, scene.slot[row], scene.begin_ns[row])
    order = np.argsort(at, kind="stable")
    return _Work(row[order], at[order])


def _keyed(scene: Scene, slot: Ints, time_ns: Ints) -> Ints:
    """Give numbers that go by step first and then by time."""
    first = scene.begin_ns.min(initial=0)
    width = scene.begin_ns.max(initial=0) - first + 2
    keyed: Ints = slot * width + np.clip(time_ns - first, 0, width - 1)
    return keyed


def _before(meetings: _Meetings, met: Ints) -> Ints:
    """Give the meeting before in the same step, -1 before the first."""
    same = (met > 0) & (meetings.slot[met - 1] == meetings.slot[met])
    return np.where(same, met - 1, -1)


def _window(
    scene: Scene, meetings: _Meetings, met: Ints, before: Ints, *, on_device: bool
) -> tuple[Ints, Ints]:
    """Give from when to when work could delay an arrival, on the device or on the host.

    The host runs ahead: what it does between two launches delays the second.
    """
    start = scene.start_ns[meetings.slot[met]]
    if on_device:
        return np.where(before >= 0, meetings.end_ns[before], start), meetings.arrival_ns[met]
    launched = scene.device[meetings.row[met]]
    left = np.where(launched, meetings.host_ns[before], meetings.end_ns[before])
    high = np.where(launched, meetings.host_ns[met], meetings.arrival_ns[met])
    return np.where(before >= 0, left, start), high


def _within(scene: Scene, side: _Work, slot: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Give the most telling work of each window, and which window it is of."""
    first = np.searchsorted(side.at, _keyed(scene, slot, low))
    last = np.searchsorted(side.at, _keyed(scene, slot, high))
    at, which = expanded(first, last)
    row = side.row[at]
    excess: Floats | Ints = np.maximum(scene.excess_ns[row], 0)
    best = first_of_each([which], BEHIND, excess, scene.own_ns[row], -row)
    return row[best], which[best]


def _onward(marks: _Marks, meetings: _Meetings, whose: Ints, before: Ints) -> tuple[Ints, Ints]:
    """Give the collectives before in which the late rank waited for yet another one."""
    there = before >= 0
    whose, before = whose[there], before[there]
    mark = places(marks.key, meetings.own_key[before])
    waited: npt.NDArray[np.bool_] = mark >= 0
    waited &= marks.late_slot[mark] != meetings.slot[before]
    pairs = np.unique(np.stack([whose[waited], mark[waited]]), axis=1)
    return pairs[0], pairs[1]


def _nearest(met: Met) -> Met:
    """Give each collective of a slice once, with its nearest hop."""
    order = np.lexsort((met.by, met.hop, met.collective, met.slot))
    keys = np.stack([met.slot[order], met.collective[order]])
    _, first = np.unique(keys, axis=1, return_index=True)
    chosen = order[np.sort(first)]
    return Met(met.slot[chosen], met.by[chosen], met.collective[chosen], met.hop[chosen])
