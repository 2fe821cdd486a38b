"""What causes on one rank, its device or its host do to a step."""

from teller.lab.simulator.acting import MS, Now, act
from teller.lab.simulator.causes import Cause
from teller.lab.simulator.effects import Effects, Pause


@act("late_rank")
def _late(cause: Cause, now: Now, out: Effects) -> None:
    ns = cause.severity * MS * now.random.uniform(0.8, 1.25)
    out.pauses.append(Pause(cause.rank, 0.02, ns))


@act("rotating_straggler")
def _rotating(cause: Cause, now: Now, out: Effects) -> None:
    here = [p.rank for p in now.scene.places if p.host == cause.host]
    ns = cause.severity * MS * now.random.uniform(0.6, 1.5)
    out.pauses.append(
        Pause(here[int(now.random.integers(len(here)))], now.random.random() * 0.6, ns)
    )


@act("slow_rank")
def _slow_rank(cause: Cause, now: Now, out: Effects) -> None:
    for factors in (out.device, out.memory):
        factors[cause.rank] *= cause.severity


@act("gpu_throttle")
def _throttle(cause: Cause, now: Now, out: Effects) -> None:
    ratio = cause.severity * now.random.uniform(0.97, 1.03)
    out.device[cause.rank] *= ratio
    out.memory[cause.rank] *= 1 + (ratio - 1) * 0.75


@act("gpu_memory_fault")
def _memory(cause: Cause, now: Now, out: Effects) -> None:
    length = max(1, min(cause.last, 10**6) - cause.first)
    grown = 1 + (cause.severity - 1) * min(1.0, (now.step - cause.first + 1) / length)
    out.memory[cause.rank] *= grown
    out.role("attention")[cause.rank] *= grown
    if now.step == cause.first:
        out.pauses.append(Pause(cause.rank, 0.3, now.random.uniform(20, 200) * MS))


@act("gpu_shared")
def _shared(cause: Cause, now: Now, out: Effects) -> None:
    burst = now.random.random() < 0.65
    f = 1 + (cause.severity - 1) * (now.random.uniform(0.6, 1.5) if burst else 0.0)
    out.device[cause.rank] *= f
    out.memory[cause.rank] *= f


@act("pcie_degraded")
def _pcie(cause: Cause, now: Now, out: Effects) -> None:
    out.copies[cause.rank] *= cause.severity


@act("host_pause")
def _pause(cause: Cause, now: Now, out: Effects) -> None:
    if now.step == cause.first or now.random.random() < 0.3:
        out.pauses.append(Pause(cause.rank, now.random.random(), cause.severity * MS))


@act("isolated_spike")
def _spike(cause: Cause, now: Now, out: Effects) -> None:
    if now.step == cause.first:
        out.pauses.append(Pause(cause.rank, now.random.random(), cause.severity * MS))


@act("gil_contention")
def _gil(cause: Cause, now: Now, out: Effects) -> None:
    for _ in range(int(now.random.poisson(1.5))):
        ns = now.random.exponential(cause.severity) * MS
        out.pauses.append(Pause(cause.rank, now.random.random(), ns))


@act("host_contention")
def _contention(cause: Cause, now: Now, out: Effects) -> None:
    out.host[cause.rank] *= 1 + (cause.severity - 1) * now.random.uniform(0.7, 1.3)
    for _ in range(int(now.random.poisson(0.4 * cause.severity))):
        ns = now.random.exponential(1.5) * MS
        out.pauses.append(Pause(cause.rank, now.random.random(), ns))


@act("cpu_quota")
def _quota(cause: Cause, now: Now, out: Effects) -> None:
    """Stop the rank for the rest of each period of 100 ms once its share is used up."""
    period = 100 * MS
    if (now.time_ns % period) / period > 1 - cause.severity:
        left = period - now.time_ns % period
        out.pauses.append(Pause(cause.rank, 0.01, left))
    elif now.random.random() < 0.25:
        out.pauses.append(Pause(cause.rank, now.random.random(), cause.severity * period))


@act("host_misplaced")
def _misplaced(cause: Cause, now: Now, out: Effects) -> None:
    for place in now.scene.places:
        if place.host == cause.host:
            out.host[place.rank] *= cause.severity


@act("cpu_launch_bound")
def _launch_bound(cause: Cause, now: Now, out: Effects) -> None:
    out.host *= cause.severity
