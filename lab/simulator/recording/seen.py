"""What a profiler saw of one rank in one window: rows by the host's clock, less those it lost."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.lab.simulator.happened import (
    NEVER,
    DeviceSpans,
    Happened,
    HostKind,
    HostSpans,
    Ints,
    Joins,
)
from teller.lab.simulator.recording.plan import Recording, Window

Flags = npt.NDArray[np.bool_]
BURST: Final = 200  # rows of a buffer that is dropped as a whole


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows of one rank by numbers of `Happened`'s tables; times are ns since the epoch.

    A host span that was open when the window closed has NEVER for an end.
    """

    rank: int
    host: Ints  # rows of `Happened.host[rank]`
    host_start: Ints
    host_end: Ints
    device: Ints  # rows of `Happened.device[rank]`
    device_start: Ints
    device_end: Ints
    start_ns: int  # of the window
    end_ns: int
    lost: bool


def windows(happened: Happened, recording: Recording) -> tuple[Window, ...]:
    """Give when profilers ran: shares of the time in which anything began.

    A profiler that runs to the end also sees the silence of a hang.
    """
    begun = [one.start_ns for one in happened.host] + [one.start_ns for one in happened.device]
    active = 1 + max(int(start.max(initial=0)) for start in begun)
    return tuple(
        Window(int(a * active), happened.end_ns if b == 1 else int(b * active))
        for a, b in recording.shares
    )


def seen(
    happened: Happened, recording: Recording, rank: int, window: Window, *, engine: bool = False
) -> Seen:
    """Give what a window holds of a rank, and of its engine's process if that was profiled too.

    The same arguments give the same rows.
    """
    place = happened.scene.places[rank]
    clock, epoch = recording.clocks[place.host], happened.scene.t0_epoch_ns
    host, device = happened.host[rank], happened.device[rank]
    end_ns = min(window.end_ns, happened.end_ns)
    calls = host.kind == HostKind.RUNTIME
    kept = _within(host, window.start_ns, end_ns, calls)
    if not engine:
        kept &= host.process == 0
    ran = (device.start_ns >= window.start_ns) & (device.end_ns <= end_ns) & (device.end_ns >= 0)
    if recording.lost:
        random = np.random.default_rng((recording.seed, rank, window.start_ns))
        kept &= ~(calls & _dropped(random, len(calls), recording.lost))
        ran &= ~_dropped(random, len(ran), recording.lost)
    rows, work = np.flatnonzero(kept), np.flatnonzero(ran)
    end = host.end_ns[rows]
    open_ = (end == NEVER) | (end > end_ns)
    return Seen(
        rank, rows, epoch + clock.at(host.start_ns[rows]),
        np.where(open_, NEVER, epoch + clock.at(end)),
        work, epoch + clock.at(device.start_ns[work]), epoch + clock.at(device.end_ns[work]),
        epoch + clock.one(window.start_ns), epoch + clock.one(end_ns), bool(recording.lost),
    )  # fmt: skip


def _within(host: HostSpans, start_ns: int, end_ns: int, calls: Flags) -> Flags:
    """Give the spans that began in the window; calls must have come back in it."""
    begun = (host.start_ns >= start_ns) & (host.start_ns < end_ns)
    back: Flags = (host.end_ns >= 0) & (host.end_ns <= end_ns)
    return begun & (back | ~calls)


def _dropped(random: np.random.Generator, rows: int, share: float) -> Flags:
    """Draw which rows are lost: half of them one by one, half of them by whole buffers."""
    alone = random.random(rows) < share / 2
    buffers = random.random(rows // BURST + 1) < share / 2
    lost: Flags = alone | np.repeat(buffers, BURST)[:rows]
    return lost


def column(spans: HostSpans | DeviceSpans | Joins, name: str, rows: Ints) -> Ints:
    """Give a column of some rows as int64."""
    values: Ints = getattr(spans, name)[rows].astype(np.int64)
    return values
