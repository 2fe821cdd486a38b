"""What one rank left when it ended: NVTX ranges, communication calls, and who it is."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from teller.errors import NothingUsable
from teller.lab.collect import nvtx_stream
from teller.lab.testbed.calls import COLUMNS, Ints

_STEP: Final = re.compile(r"step=(\d+) ")


@dataclass(frozen=True, slots=True)
class Ranges:
    """Closed push/pop ranges of one rank, by start and then the longer first; UTC ns."""

    start_ns: Ints
    end_ns: Ints
    thread: Ints
    name: Ints  # place in `names`
    names: tuple[str, ...]

    def number(self, name: str) -> int:
        """Give the place of a name, -1 where it never came."""
        return self.names.index(name) if name in self.names else -1

    def where(self, keep: "np.typing.NDArray[np.bool_]") -> "Ranges":
        """Give some of them."""
        return Ranges(self.start_ns[keep], self.end_ns[keep], self.thread[keep],
                      self.name[keep], self.names)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorded:
    """One rank. `calls` are columns of `COLUMNS`, in order of time; names are in `names`."""

    about: dict[str, Any]
    stream: nvtx_stream.Stream
    ranges: Ranges
    calls: dict[str, Ints]
    names: tuple[str, ...]
    groups: dict[str, list[int]]


def load(control: Path, rank: int) -> Recorded:
    """Read what a rank left in the control folder."""
    told = msgspec.json.decode((control / f"rank{rank}.json").read_bytes())
    with np.load(control / f"rank{rank}.npz") as kept:
        rows = kept["calls"]
    calls = {name: rows[:, i].copy() for i, name in enumerate(COLUMNS)}
    names, groups = tuple(told.pop("names")), told.pop("groups")
    streams = [nvtx_stream.read(p) for p in control.glob(f"nvtx{rank}/*{nvtx_stream.SUFFIX}")]
    stream = next((one for one in streams if one.pid == told["pid"]), None)
    if stream is None:
        raise NothingUsable(f"rank {rank} recorded no NVTX ranges")
    return Recorded(told, stream, _ranges(stream), calls, names, groups)


def _ranges(stream: nvtx_stream.Stream) -> Ranges:
    events = stream.events
    kept = events.filter((events["kind"].to_numpy() == nvtx_stream.PUSH_POP)
                         & events["end_ns"].is_valid().to_numpy())  # fmt: skip
    start, end = kept["start_ns"].to_numpy(), kept["end_ns"].to_numpy()
    order = np.lexsort((-end, start))
    name = kept["name"].combine_chunks()
    return Ranges(
        start[order], end[order], kept["tid"].to_numpy()[order].astype(np.int64),
        name.indices.to_numpy()[order].astype(np.int64),
        tuple(name.dictionary.to_pylist()),
    )  # fmt: skip


def steps(ranges: Ranges) -> tuple[Ints, Ints, Ints]:
    """Give the numbers of the steps, their starts and their ends, in order."""
    number = np.array([int(m[1]) if (m := _STEP.match(n)) else -1 for n in ranges.names], np.int64)
    found = ranges.where(number[ranges.name] >= 0)
    return number[found.name], found.start_ns, found.end_ns


def self_times(ranges: Ranges, thread: int) -> tuple[Ranges, Ints]:
    """Give the ranges of one thread and how long each lasted without those inside of it."""
    own = ranges.where(ranges.thread == thread)
    left = own.end_ns - own.start_ns
    open_: list[int] = []
    # a stack over some hundred thousand rows once a run; nesting has no vectorised form
    for at, (start, end) in enumerate(zip(own.start_ns.tolist(), own.end_ns.tolist(), strict=True)):
        while open_ and start >= own.end_ns[open_[-1]]:
            open_.pop()
        if open_:
            left[open_[-1]] -= end - start
        open_.append(at)
    return own, left
