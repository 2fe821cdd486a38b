"""What counters of engine and devices show: sampled at equal times, as exporters do."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from teller.lab.simulator.causes import Cause
from teller.lab.simulator.happened import Gauges, Ints, Transfer
from teller.lab.simulator.play import Done
from teller.lab.simulator.program import Floats
from teller.lab.simulator.scene import Scene

_SAMPLES: Final = (20, 400)  # fewest and most of a run
_PERIOD_NS: Final = 200_000_000
THERMAL, POWER = 0x40, 0x4  # reasons of a lower clock, as the driver counts


def gauges(
    scene: Scene, dones: Sequence[Done], causes: Sequence[Cause], end_ns: int,
    transfers: Sequence[Transfer] = (),
) -> Gauges:  # fmt: skip
    """Give the samples of a run."""
    count = int(np.clip(end_ns / _PERIOD_NS, *_SAMPLES))
    times = (np.arange(count) * (end_ns / count)).astype(np.int64)
    random = np.random.default_rng([scene.seed, 13])
    columns = _devices(scene, dones, causes, times, random)
    for replica in range(scene.dp):
        columns |= _engine(scene, replica, dones, times)
    for transfer in transfers if scene.engine == "vllm" else ():  # it counts them as waiting
        flying = (transfer.ready_ns <= times) & (times < transfer.end_ns)
        if (waiting := columns.get(f"engine {transfer.target} waiting")) is not None:
            waiting += flying
    return Gauges(times, columns)


def _engine(scene: Scene, replica: int, dones: Sequence[Done], times: Ints) -> dict[str, Floats]:
    """Hold the engine's own figures until its next step."""
    own = [d for d in dones if replica in d.plan.batches]
    began = np.array([d.planned_ns for d in own])
    at = np.clip(np.searchsorted(began, times, "right") - 1, 0, max(len(own) - 1, 0))
    batches = [d.plan.batches[replica] for d in own]
    slots = scene.pp
    figures = {
        "running": [b.running * slots for b in batches], "waiting": [b.waiting for b in batches],
        "kv_usage": [b.blocks_used / max(1, scene.load.kv_blocks // slots) for b in batches],
        "preemptions": np.cumsum([len(b.preempted) for b in batches]),
    }  # fmt: skip
    return {
        f"engine {replica} {name}": np.array(values, float)[at]
        for name, values in figures.items()
        if len(own)
    }


def _devices(
    scene: Scene, dones: Sequence[Done], causes: Sequence[Cause], times: Ints,
    random: np.random.Generator,
) -> dict[str, Floats]:  # fmt: skip
    columns: dict[str, Floats] = {}
    top, power = scene.gpu.clock_mhz, scene.gpu.power_w
    for place in scene.places:
        ratio, reasons = _throttled(place.rank, dones, causes, times)
        busy = _busy(place.rank, scene, dones, times)
        clock = top / ratio * (1 - 0.02 * random.random(len(times)) * busy)
        heat = 38 + 30 * busy + random.normal(0, 1.2, len(times)) + random.normal(0, 2)
        heat += np.where(reasons == THERMAL, 22.0, 0.0)
        name = f"gpu {place.rank}"
        columns |= {
            f"{name} sm_clock_mhz": np.round(clock / 15) * 15,
            f"{name} mem_clock_mhz": np.full(len(times), 2619.0),
            f"{name} power_w": np.round(power * (0.2 + 0.6 * busy / ratio), 2),
            f"{name} temperature_c": np.round(heat),
            f"{name} utilization_pct": np.round(100 * busy),
            f"{name} throttle_reasons": reasons,
        }
    return columns


def _throttled(
    rank: int, dones: Sequence[Done], causes: Sequence[Cause], times: Ints
) -> tuple[Floats, Floats]:
    ratio, reasons = np.ones(len(times)), np.zeros(len(times))
    for cause in causes:
        if cause.spec.kind == "gpu_throttle" and cause.rank == rank:
            acting = [d for d in dones if cause.acts(d.plan.index)]
            if acting:
                inside = (times >= acting[0].planned_ns) & (times <= acting[-1].end_ns)
                ratio[inside] = cause.severity
                reasons[inside] = THERMAL if cause.layer % 2 else POWER
    return ratio, reasons


def _busy(rank: int, scene: Scene, dones: Sequence[Done], times: Ints) -> Floats:
    """Give the share of time in which steps of the rank ran around each sample."""
    own = [d for d in dones if rank in d.ends]
    starts = np.array([d.begin_ns for d in own])
    ends = np.minimum([d.ends[rank] for d in own], float(times[-1]) if len(times) else 0.0)
    width = float(times[1] - times[0]) if len(times) > 1 else 1.0
    done = np.concatenate([[0.0], np.cumsum(np.maximum(ends - starts, 0))])
    edges = np.searchsorted(starts, np.append(times, times[-1] + width))
    return np.clip(np.diff(done[edges]) / width, 0.0, 1.0) if len(own) else np.zeros(len(times))
