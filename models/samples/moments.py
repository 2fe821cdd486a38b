"""What samples say of each rank-step: levels then, events within, and facts that hold all along."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.medians import Floats, Ints
from teller.models.archived import Archived, filled
from teller.models.samples.standing import rank_of
from teller.models.signals import RankSteps

# Levels are compared with what is high for the rank; queues stand for themselves.
LEVELS: Final = ("gpu.sm_clock_mhz", "gpu.mem_clock_mhz", "gpu.power_w")
QUEUES: Final = ("engine.running", "engine.waiting", "engine.kv_usage_ratio")
EVENTS: Final = (
    "silence", "gc.pause_ns", "gpu.xid", "host.pcie_error", "engine.preemptions",
    "nccl.async_event", "host.cpu_hot", "engine.error", "engine.health_failed",
)  # fmt: skip
STALLS: Final = ("pace.copy_stall_ns", "pace.alloc_stall_ns", "pace.sync_stall_ns")
FACTS: Final = (
    "nccl.gdr_disabled", "nccl.env", "host.nic_link", "process.died", "comm.held",
    "comm.first_stuck", "comm.suspect", "comm.waits", "comm.unrecorded", "engine.restart",
)  # fmt: skip
PATHS: Final = ("NET/Socket", "NET/IB", "GDRDMA", "SHM", "P2P")  # in the text of EDGE
THROTTLED: Final = "gpu.throttle_reasons"
PREEMPTED: Final = "engine.preemptions_total"
NAMES: Final = (
    *LEVELS, "throttled", *QUEUES, "preempted", *EVENTS, *STALLS,
    *(f"{n}/ever" for n in (*EVENTS[1:], *FACTS)), *PATHS,
)  # fmt: skip
EDGE: Final = "nccl.edge"
ANYONE: Final = -1  # a sample that names no rank is about all of them


class _Samples:
    """The samples of a run by name and rank, in order of time."""

    def __init__(self, run: Archived) -> None:
        table = run.table("Sample")
        self.name = table["name"].combine_chunks()
        self.value = table["value"].cast(pa.float64()).fill_null(float("nan")).to_numpy()
        self.time = filled(table["time_ns"], np.iinfo(np.int64).min)
        self.text = table["text"].combine_chunks()
        self.rank = rank_of(run, table)

    def rows(self, name: str) -> Ints:
        """Give the rows of a name by time."""
        at = np.flatnonzero(pc.equal(self.name, name).to_numpy(zero_copy_only=False))
        return at[np.argsort(self.time[at], kind="stable")]


def moments(run: Archived, steps: RankSteps, usual: Floats) -> Floats:
    """Give what is known of each rank-step, of shape (rank-steps, len(NAMES)); 0: nothing."""
    held = _Samples(run)
    found = np.zeros((len(steps), len(NAMES)))
    asked = (*LEVELS, *QUEUES, *EVENTS, *STALLS, *FACTS, THROTTLED, PREEMPTED, EDGE)
    told = {name: held.rows(name) for name in asked}
    for rank in np.unique(steps.rank).tolist():
        mine = np.flatnonzero(steps.rank == rank)
        own = {n: r[(held.rank[r] == rank) | (held.rank[r] == ANYONE)] for n, r in told.items()}
        columns = [
            *(_level(held, own[n], steps.end_ns[mine]) for n in LEVELS),
            np.minimum(_then(held, own[THROTTLED], steps.end_ns[mine]), 1.0),
            *(np.log1p(_then(held, own[n], steps.end_ns[mine])) / 2 for n in QUEUES),
            _grown(held, own[PREEMPTED], steps.start_ns[mine], steps.end_ns[mine]),
            *(_within(held, own[n], steps, mine, usual[mine]) for n in EVENTS),
            *(np.full(len(mine), _stalled(held, own[n], usual[mine])) for n in STALLS),
            *(np.full(len(mine), float(len(own[n]) > 0)) for n in (*EVENTS[1:], *FACTS)),
            *(np.full(len(mine), share) for share in _paths(held, own[EDGE])),
        ]
        found[mine] = np.stack(columns, axis=1)
    return np.nan_to_num(np.clip(found, -4, 4))


def _then(held: _Samples, rows: Ints, when: Ints) -> Floats:
    """Give the last value told before a time; 0 where there is none."""
    if not len(rows):
        return np.zeros(len(when))
    at = np.searchsorted(held.time[rows], when, side="right") - 1
    value = np.nan_to_num(held.value[rows])
    return np.where(at >= 0, value[np.maximum(at, 0)], 0.0)


def _level(held: _Samples, rows: Ints, when: Ints) -> Floats:
    value = held.value[rows]
    known = value[value > 0]
    if not len(known):
        return np.zeros(len(when))
    then = _then(held, rows, when)
    high = np.quantile(known, 0.9)
    ratio: Floats = np.where(then > 0, 5 * np.log(np.maximum(then, 1e-9) / high), 0.0)
    return ratio


def _grown(held: _Samples, rows: Ints, start: Ints, end: Ints) -> Floats:
    """Give by how much a total grew up to the end of a step since two steps before its start."""
    before = _then(held, rows, start - 2 * (end - start))
    grown: Floats = np.log1p(np.maximum(_then(held, rows, end) - before, 0.0))
    return grown


def _within(held: _Samples, rows: Ints, steps: RankSteps, mine: Ints, usual: Floats) -> Floats:
    """Give the events of each step: their sum as a share of the step where they last, else 1."""
    time = held.time[rows]
    first = np.searchsorted(time, steps.start_ns[mine])
    last = np.searchsorted(time, steps.end_ns[mine])
    sums = np.r_[0.0, np.cumsum(np.nan_to_num(held.value[rows]))]
    lasted: Floats = np.log1p(10 * np.maximum(sums[last] - sums[first], 0.0) / usual)
    some: Floats = np.maximum(lasted, (last > first) * 0.5)
    return some


def _stalled(held: _Samples, rows: Ints, usual: Floats) -> float:
    return float(np.log1p(10 * np.nansum(held.value[rows]) / max(usual.sum(), 1.0)))


def _paths(held: _Samples, rows: Ints) -> list[float]:
    """Give the share of a rank's channels over each kind of path."""
    text = held.text.take(pa.array(rows))
    return [
        float(pc.mean(pc.match_substring(text, path).cast(pa.float64())).as_py() or 0.0)
        for path in PATHS
    ]
