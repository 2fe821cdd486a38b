"""How requests reach the schedulers of a cell: arrival, tokenizer, router, queue."""

from dataclasses import dataclass

import numpy as np

from teller.lab.simulator.batching import Scheduler, Work
from teller.lab.simulator.cells import Cell
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.scene import Scene

_GIANT = -2  # number of a request that no cache can hold


@dataclass(slots=True)
class Intake:
    """`pending` are requests that are still to come, the next one last."""

    scene: Scene
    cell: Cell
    schedulers: dict[tuple[int, int], Scheduler]
    pending: list[Work]
    _before_ns: float = 0.0
    _blocks: int = 0  # what the cache is cut to, 0 for not

    def next_ns(self) -> float | None:
        """Give when the next request reaches a queue; None for never."""
        return float(self.pending[-1].queued_ns) if self.pending else None

    def take(self, now: float, effects: Effects) -> None:
        """Give the schedulers what has arrived, under the effects of the moment."""
        self._arrive(now, effects)
        self._cut(effects.blocks)
        for scheduler in self.schedulers.values():
            scheduler.token_limit = int(scheduler.load.token_limit * effects.token_limit)
        self._block(now, effects)

    def _arrive(self, now: float, effects: Effects) -> None:
        self._hurry(now, effects.arrivals)
        self._before_ns = now
        while self.pending and self.pending[-1].arrival_ns <= now:
            one = self.pending[-1]
            if effects.queue_ns and one.queued_ns == one.arrival_ns:
                one.queued_ns = one.arrival_ns + int(effects.queue_ns)
            if one.queued_ns > now:
                break
            self.pending.pop()
            self._route(one, effects.skew)

    def _route(self, one: Work, skew: tuple[int, float] | None) -> None:
        replicas = self.cell.replicas
        slots = self.scene.pp
        one.replica = replicas[one.number % len(replicas)]
        if skew and one.number * 0.618 % 1 < skew[1]:  # evenly over requests, without a draw
            one.replica = skew[0]
        self.schedulers[one.replica, one.number // len(replicas) % slots].waiting.append(one)

    def _hurry(self, now: float, factor: float) -> None:
        """Let requests come sooner than they would have."""
        if factor <= 1 or now <= self._before_ns:
            return
        expected = (factor - 1) * self.scene.load.rate * (now - self._before_ns) / 1e9
        random = np.random.default_rng([self.scene.seed, 11, int(now)])
        for one in self.pending[-int(random.poisson(expected) + 1) :][1:]:
            one.arrival_ns = one.queued_ns = min(one.arrival_ns, int(now))
        self.pending.sort(key=lambda w: -w.arrival_ns)

    def _cut(self, share: float) -> None:
        """Leave a share of the blocks that are in use, or give all back."""
        for scheduler in self.schedulers.values():
            whole = scheduler.load.kv_blocks // self.scene.pp
            if not share:
                scheduler.blocks = whole
            elif scheduler.blocks == whole:
                scheduler.blocks = max(4, int(scheduler.used * share))

    def _block(self, now: float, effects: Effects) -> None:
        """Put a request at the head of a queue that no cache can hold; give it up in the end."""
        first = self.schedulers[self.cell.replicas[0], 0]
        if effects.giant:
            tokens = int(first.blocks * first.load.block_tokens * effects.giant)
            name = f"{'cmpl-' if self.scene.engine == 'vllm' else ''}{int(now):032x}"
            first.waiting.appendleft(
                Work(_GIANT, name, self.cell.replicas[0], int(now), int(now), tokens, 16)
            )
        elif not effects.held:
            for one in [w for w in first.waiting if w.number == _GIANT]:
                first.waiting.remove(one)
