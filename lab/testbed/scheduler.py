"""Continuous batching: a token budget, prefills in chunks, a paged cache, preemption by recompute.

What a step does goes to all ranks as a flat list of integers, the plan: the number of requests,
then for each its new tokens, its context length after the step, whether it decodes, its number of
blocks, the blocks and the tokens. Prefills come first.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from teller.lab.testbed.settings import Service

log = logging.getLogger("testbed")

STEP_COLUMNS: Final = (  # of what rank 0 writes down of each step
    "step", "start_ns", "end_ns", "requests", "decodes", "prefill_tokens", "context_tokens",
    "waiting", "free_blocks",
)  # fmt: skip


@dataclass(eq=False)
class Request:
    """A request of a client; `emit` gets each token, and None at the end."""

    name: str
    prompt_tokens: int
    output_limit: int
    tokens: list[int]
    emit: Callable[[int | None], object]
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    arrival_s: float = field(default_factory=time.time)
    first_s: float = 0.0
    preemptions: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One request in a plan."""

    new: int
    context: int  # after the step
    decodes: bool
    blocks: list[int]
    tokens: list[int]


def rows(plan: Sequence[int]) -> Iterator[Row]:
    """Give the requests of a plan."""
    at = 1
    for _ in range(plan[0]):
        new, context, decodes, count = plan[at : at + 4]
        at += 4
        blocks, tokens = plan[at : at + count], plan[at + count : at + count + new]
        at += count + new
        yield Row(new, context, bool(decodes), list(blocks), list(tokens))


class Scheduler:
    """Decides what each step computes."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.free: deque[int] = deque(range(1, service.kv_blocks))
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.preemptions = 0

    def schedule(self) -> tuple[list[tuple[Request, int]], list[int]]:
        """Give the requests of the next step with their new tokens, and its plan."""
        budget, chosen = self.service.token_limit, list[tuple[Request, int]]()
        at, before = 0, self.preemptions
        while at < len(self.running) and budget > 0:
            request = self.running[at]
            new = min(len(request.tokens) - request.computed, budget)
            if self._make_room(request, new, chosen):
                chosen.append((request, new))
                budget -= new
                at += 1
        # who has just been put off does not come back into the room that it made
        while (
            self.preemptions == before
            and self.waiting
            and budget > 0
            and len(self.running) < self.service.batch_limit
        ):
            request = self.waiting[0]
            new = min(len(request.tokens) - request.computed, budget)
            if not self._allocate(request, new):
                break
            self.running.append(self.waiting.popleft())
            chosen.append((request, new))
            budget -= new
        chosen.sort(key=lambda one: _decodes(*one))
        plan = [len(chosen)]
        for request, new in chosen:
            end = request.computed + new
            plan += [new, end, int(_decodes(request, new)), len(request.blocks)]
            plan += [*request.blocks, *request.tokens[request.computed : end]]
        return chosen, plan

    def update(
        self, chosen: list[tuple[Request, int]], sampled: list[int], now_s: float
    ) -> list[Request]:
        """Take the sampled tokens; give the requests that are finished."""
        done = []
        for (request, new), token in zip(chosen, sampled, strict=True):
            request.computed += new
            if request.computed < len(request.tokens):
                continue
            request.tokens.append(token)
            request.first_s = request.first_s or now_s
            request.emit(token)
            written = len(request.tokens) - request.prompt_tokens
            if written >= request.output_limit or len(request.tokens) >= self.service.max_length:
                done.append(request)
        for request in done:
            self.running.remove(request)
            self._release(request)
        return done

    def _allocate(self, request: Request, new: int) -> bool:
        size = self.service.block_tokens
        lacking = -(-(request.computed + new) // size) - len(request.blocks)
        if lacking > len(self.free):
            return False
        request.blocks += [self.free.popleft() for _ in range(lacking)]
        return True

    def _make_room(self, request: Request, new: int, chosen: list[tuple[Request, int]]) -> bool:
        """Allocate, at the cost of those that came last; False where it is itself put off."""
        while not self._allocate(request, new):
            victim = self.running.pop()
            self._preempt(victim)
            chosen[:] = [one for one in chosen if one[0] is not victim]
            if victim is request:
                return False
        return True

    def _preempt(self, request: Request) -> None:
        self._release(request)
        request.computed = 0
        request.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(request)
        log.warning(
            "Request %s is preempted by PreemptionMode.RECOMPUTE because there is not enough KV "
            "cache space. total_cumulative_preemption_cnt=%d", request.name, self.preemptions,
        )  # fmt: skip

    def _release(self, request: Request) -> None:
        self.free.extend(request.blocks)
        request.blocks = []


def _decodes(request: Request, new: int) -> bool:
    return new == 1 and request.computed >= request.prompt_tokens
