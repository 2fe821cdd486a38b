"""The engine's scheduler: continuous batching over a cache of blocks, as vLLM and SGLang do it."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from teller.lab.simulator.scene import Load, Scene


@dataclass(slots=True)
class Work:
    """A request on its way. Times in ns, -1 where it is not there yet."""

    number: int
    name: str
    replica: int
    arrival_ns: int
    queued_ns: int
    prompt: int
    output: int
    prefilled: int = 0  # tokens of the prompt, and of what is computed again, in the cache
    target: int = 0  # tokens that a prefill must bring into the cache
    made: int = 0
    scheduled_ns: int = -1
    first_token_ns: int = -1
    end_ns: int = -1
    preemptions: int = 0
    steps: list[int] = field(default_factory=list)
    brought: bool = False  # its cache was made elsewhere, and is there when it is admitted

    @property
    def cached(self) -> int:
        """Give the tokens in the cache."""
        return self.prefilled + max(0, self.made - (self.target - self.prompt) - 1)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step of one replica does: the plan that a replay repeats."""

    contexts: int = 0
    generations: int = 0
    context_tokens: int = 0
    generation_tokens: int = 0
    cached: int = 0
    pairs: float = 0.0
    requests: tuple[int, ...] = ()
    preempted: tuple[int, ...] = ()
    running: int = 0
    waiting: int = 0
    blocks_used: int = 0

    @property
    def tokens(self) -> int:
        """Give all new tokens."""
        return self.context_tokens + self.generation_tokens


class Scheduler:
    """One replica's (or one slot of a pipeline's) queue, cache and running batch."""

    def __init__(self, scene: Scene, load: Load, share: int = 1) -> None:
        """Begin with an empty queue; `share` slots have a part of batch and cache each."""
        self._prefill_first = scene.engine == "sglang"
        self.load, self._share = load, share
        self.blocks = load.kv_blocks // share
        self.token_limit = load.token_limit
        self.waiting: deque[Work] = deque()
        self.running: list[Work] = []

    def plan(self) -> tuple[Batch, list[tuple[Work, int]]]:
        """Choose what the next step does; give it with the new tokens of each request."""
        preempted = self._make_room()
        chosen: list[tuple[Work, int]] = []
        budget = self.token_limit
        if not (self._prefill_first and self._can_prefill()):
            for one in self.running:
                left = one.target - one.prefilled
                new = min(left, budget) if left else 1
                if new > 0 and budget > 0:
                    chosen.append((one, new))
                    budget -= new
        budget = self._admit(chosen, budget, blocked=bool(preempted))
        return self._batch(chosen, preempted), chosen

    def _can_prefill(self) -> bool:
        partly = any(r.prefilled < r.target for r in self.running)
        return partly or bool(self.waiting and self._fits(self.waiting[0]))

    def _fits(self, one: Work) -> bool:
        limit = self.load.batch_limit // self._share
        return (
            len(self.running) < limit
            and self.used + self._needs(one.prompt + one.made) <= self.blocks
        )

    def _admit(self, chosen: list[tuple[Work, int]], budget: int, *, blocked: bool) -> int:
        if self._prefill_first:
            for one in self.running:
                if (
                    one.prefilled < one.target
                    and budget > 0
                    and not any(c is one for c, _ in chosen)
                ):
                    new = min(one.target - one.prefilled, budget)
                    chosen.append((one, new))
                    budget -= new
        while self.waiting and budget > 0 and not blocked and self._fits(self.waiting[0]):
            one = self.waiting.popleft()
            if one.brought:  # only the last token of the prompt is still to be computed
                one.brought, new = False, 1
            else:
                one.target = one.prompt + one.made
                new = min(one.target, budget)
            self.running.append(one)
            chosen.append((one, new))
            budget -= new
        return budget

    def _make_room(self) -> list[Work]:
        """Put the youngest back into the queue until the others can grow."""
        out = []
        while len(self.running) > 1 and self.used > self.blocks:
            one = self.running.pop()
            one.prefilled, one.target = 0, 0
            one.preemptions += 1
            self.waiting.appendleft(one)
            out.append(one)
        return out

    def _needs(self, tokens: int) -> int:
        return -(-(tokens + 1) // self.load.block_tokens)

    @property
    def used(self) -> int:
        """Give the blocks that running requests hold."""
        return sum(self._needs(max(r.cached, r.target)) for r in self.running)

    def _batch(self, chosen: list[tuple[Work, int]], preempted: list[Work]) -> Batch:
        context = [(w, n) for w, n in chosen if w.prefilled < w.target]
        generation = [w for w, n in chosen if w.prefilled >= w.target]
        return Batch(
            len(context), len(generation), sum(n for _, n in context), len(generation),
            sum(w.cached for w in generation) + sum(w.prefilled for w, _ in context),
            float(sum(n * (w.prefilled + n / 2) for w, n in context)),
            tuple(w.number for w, _ in chosen), tuple(w.number for w in preempted),
            len(self.running), len(self.waiting), self.used,
        )  # fmt: skip

    def finish(self, chosen: list[tuple[Work, int]], step: int, begin_ns: int, end_ns: int) -> None:
        """Take the step's tokens into account."""
        for one, new in chosen:
            one.steps.append(step)
            if one.scheduled_ns < 0:
                one.scheduled_ns = begin_ns
            if one.prefilled < one.target:
                one.prefilled += new
                if one.prefilled < one.target:
                    continue
            one.made += 1
            if one.first_token_ns < 0:
                one.first_token_ns = end_ns
            if one.made >= one.output:
                one.end_ns = end_ns
                self.running.remove(one)


def arrivals(scene: Scene, random: np.random.Generator, horizon_ns: int) -> list[Work]:
    """Draw the requests of a run in order of arrival; a few are there when it begins."""
    load = scene.load
    rate = load.rate * (1 + max(p.dp for p in scene.places))
    ready = 1 + int(random.integers(1, 4))
    count = int(rate * horizon_ns / 1e9 * 1.4) + 8
    gaps = random.exponential(1e9 / rate, count)
    gaps[random.random(count) < load.bursts] *= 0.02
    times = np.concatenate([np.zeros(ready), np.cumsum(gaps)]).astype(np.int64)
    prompts = np.clip(random.lognormal(load.prompt_mu, load.prompt_sigma, len(times)), 8, 16_000)
    outputs = np.clip(random.lognormal(load.output_mu, load.output_sigma, len(times)), 2, 2_000)
    prefix = {"vllm": "cmpl-", "sglang": "", "trtllm": "req-"}[scene.engine]
    return [
        Work(i, prefix + random.bytes(16).hex(), 0, int(t), int(t), int(p), int(o))
        for i, (t, p, o) in enumerate(zip(times, prompts, outputs, strict=True))
    ]
