"""From prefill to decode: caches that go over a link before their requests are admitted.

Prefill instances do not hear of those that decode, so they are played only as far as these have
come. Between two replicas one cache passes after the other; the time of each is its bytes, by rank,
over the bandwidth that a connector reaches, and a part that does not depend on bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from teller.lab.simulator.batching import Work
from teller.lab.simulator.catalog import numbers
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.happened import Transfer
from teller.lab.simulator.intake import Intake
from teller.lab.simulator.motion import NEVER_NS
from teller.lab.simulator.scene import DTYPE_BYTES, Scene

if TYPE_CHECKING:
    from teller.lab.simulator.play import Done

_STUCK: Final = NEVER_NS / 2
_ROUNDED_NS: Final = 1.0  # moments are floats, and sums of them not exact


def cache_bytes(scene: Scene, tokens: int) -> int:
    """Give the bytes of the cache of some tokens on one rank; heads are shared out over ranks."""
    model = scene.model
    heads = max(model.kv_heads / scene.tp, 1.0)
    return int(2 * model.layers * heads * model.head * DTYPE_BYTES * tokens)


def host_of(scene: Scene, replica: int) -> int:
    """Give the host of a replica's first rank."""
    return next(p.host for p in scene.places if p.dp == replica)


def pairs(scene: Scene) -> tuple[tuple[int, int], ...]:
    """Give the hosts between which caches go over the network: (prefill, decode), ordered."""
    sources = {host_of(scene, r) for r in range(scene.prefill)}
    targets = {host_of(scene, r) for r in range(scene.prefill, scene.dp)} if sources else set()
    return tuple(sorted((a, b) for a in sources for b in targets if a != b))


@dataclass(slots=True)
class _Line:
    """What carries caches between two replicas: when it is free, and would be without a cause."""

    free_ns: float = 0.0
    usual_ns: float = 0.0


@dataclass(slots=True)
class Instance:
    """A prefill instance: its requests by number, its steps to come, and how far it is played."""

    requests: dict[int, Work]
    steps: Iterator["Done"]
    at_ns: float = 0.0


@dataclass(slots=True)
class Handover:
    """Hands requests over from `instances`, one a replica that prefills."""

    scene: Scene
    instances: Sequence[Instance]
    outputs: dict[int, int]  # tokens that each request asks for, by number
    limit_ns: float = NEVER_NS
    transfers: list[Transfer] = field(default_factory=list)
    received: dict[int, Work] = field(default_factory=dict)  # by number, once it is sent
    _ready: dict[int, list[tuple[float, int, int]]] = field(default_factory=dict)
    _lines: dict[tuple[int, int], _Line] = field(default_factory=dict)

    def play(self, until_ns: float) -> None:
        """Play the prefill instances past a moment, if they go on so long."""
        for source, one in enumerate(self.instances):
            while one.at_ns <= min(until_ns, self.limit_ns):
                self._step(source, one)

    def _step(self, source: int, one: Instance) -> None:
        done = next(one.steps, None)
        if done is None:
            one.at_ns = inf  # later than any limit
            return
        one.at_ns = done.end_ns
        replicas = self.scene.dp - self.scene.prefill
        for number in done.plan.batches[source].requests:
            work = one.requests.get(number)
            if work and 0 <= work.end_ns < _STUCK:
                target = self.scene.prefill + number % replicas
                heappush(self._ready.setdefault(target, []), (work.end_ns, number, source))

    def next_ns(self, target: int) -> float | None:
        """Give when the next request for a replica is prefilled; None for never."""
        ready = self._ready.setdefault(target, [])
        while not ready and (behind := min(i.at_ns for i in self.instances)) <= self.limit_ns:
            self.play(behind)
        if not ready:
            return None
        self.play(ready[0][0])  # another instance may have one before
        return ready[0][0]

    def waiting_ns(self, target: int) -> float | None:
        """Give when the first cache was ready that is still to be sent to a replica."""
        ready = self._ready.get(target)
        return ready[0][0] if ready else None

    def send(self, target: int, effects: Effects) -> Work:
        """Send the first cache that is ready for a replica; give its request."""
        ready_ns, number, source = heappop(self._ready[target])
        work = self.instances[source].requests[number]
        line = self._lines.setdefault((source, target), _Line())
        link = (host_of(self.scene, source), host_of(self.scene, target))
        fixed, moving = self._costs(link, work)
        start = max(ready_ns, line.free_ns)
        line.free_ns = start + fixed + moving * effects.transfers.get(link, 1.0)
        line.usual_ns = max(ready_ns, line.usual_ns) + fixed + moving
        there = round(line.free_ns)
        self.transfers.append(Transfer(
            work.name, source, target, int(ready_ns), round(start), there,
            cache_bytes(self.scene, work.prompt) * self.scene.tp,
            round(line.free_ns - line.usual_ns),
        ))  # fmt: skip
        self.received[number] = Work(
            number, work.name, target, int(ready_ns), there, work.prompt, self.outputs[number],
            prefilled=work.prompt, target=work.prompt, brought=True,
        )  # fmt: skip
        return self.received[number]

    def requests(self) -> Iterator[Work]:
        """Give all requests as their client knows them: from the prefill's queue to the last token.

        The first token is there when the replica that decodes has it.
        """
        for instance in self.instances:
            for number, first in instance.requests.items():
                rest = self.received.get(number)
                if rest is None:
                    yield replace(first, made=0, first_token_ns=-1, end_ns=-1)
                else:
                    yield replace(
                        rest, arrival_ns=first.arrival_ns, queued_ns=first.queued_ns,
                        scheduled_ns=first.scheduled_ns,
                    )  # fmt: skip

    def _costs(self, link: tuple[int, int], work: Work) -> tuple[float, float]:
        """Give the ns of a transfer that do not depend on bytes, and those that do."""
        scene, law = self.scene, numbers()["transfer"]
        library = numbers()["nccl"]
        network = library["nic"] / scene.nuisance.network_speed
        inside = scene.gpu.nvlink * library["reached"]
        bandwidth = law["reached"] * (inside if link[0] == link[1] else network)
        random = np.random.default_rng([scene.seed, 15, work.number])
        varied = float(np.exp(random.normal(0, law["sigma"])))
        moving = cache_bytes(scene, work.prompt) / bandwidth * 1e9
        return law["fixed_us"] * 1e3 * scene.nuisance.host_speed, moving * varied


@dataclass(slots=True)
class Received(Intake):
    """How requests reach a replica that decodes: each once its cache is there."""

    handover: Handover = field(kw_only=True)
    _flying: list[tuple[int, int]] = field(default_factory=list)  # when it is there, number
    _effects: Effects | None = None

    @property
    def _replica(self) -> int:
        return self.cell.replicas[0]

    def next_ns(self) -> float | None:
        """Give when the next cache is there; None for never."""
        if not self._flying:
            if self.handover.next_ns(self._replica) is None or self._effects is None:
                return None
            self._send(self._effects)
        return float(self._flying[0][0])

    def _arrive(self, now: float, effects: Effects) -> None:
        self._effects = effects
        self.handover.play(now)
        while (ready := self.handover.waiting_ns(self._replica)) is not None and ready <= now:
            self._send(effects)
        while self._flying and self._flying[0][0] <= now + _ROUNDED_NS:
            self._route(self.handover.received[heappop(self._flying)[1]], None)

    def _send(self, effects: Effects) -> None:
        work = self.handover.send(self._replica, effects)
        heappush(self._flying, (work.queued_ns, work.number))
