"""The loops of the ranks: rank 0 schedules and says the plan, the others follow it."""

import logging
import threading
import time
from collections import deque

import torch
import torch.distributed as dist

from teller.lab.testbed.runner import Runner
from teller.lab.testbed.scheduler import Request, Scheduler
from teller.lab.testbed.settings import Rank

log = logging.getLogger("testbed")


class Engine:
    """Rank 0. `steps` has a row a step: the columns of STEP_COLUMNS."""

    def __init__(self, me: Rank, runner: Runner) -> None:
        self.me, self.runner = me, runner
        self.scheduler = Scheduler(me.service)
        self.steps: list[tuple[int, ...]] = []
        self._inbox: deque[Request] = deque()
        self._news = threading.Condition()
        self._stopped = False
        self._told_s, self._read, self._written = time.time(), 0, 0

    def add(self, request: Request) -> None:
        """Take a request; from any thread."""
        with self._news:
            self._inbox.append(request)
            self._news.notify()

    def stop(self) -> None:
        """End the loop after the step that runs; from any thread."""
        with self._news:
            self._stopped = True
            self._news.notify()

    def loop(self) -> None:
        """Serve until stopped."""
        while not self._stopped:
            with self._news:
                while not (self._inbox or self._busy() or self._stopped):
                    self._news.wait(0.5)
            if not self._stopped:
                self.step()
        self.broadcast_plan([])

    def step(self) -> None:
        """Do one step of all ranks."""
        start = time.time_ns()
        while self._inbox:
            self.scheduler.waiting.append(self._inbox.popleft())
        chosen, plan = self.scheduler.schedule()
        if not chosen:
            return
        self.broadcast_plan(plan)
        context = sum(request.computed + new for request, new in chosen)
        decodes = sum(
            new == 1 and request.computed >= request.prompt_tokens for request, new in chosen
        )
        sampled = self.runner.execute_model(plan, len(self.steps))
        assert sampled is not None
        now_s = time.time()
        for request in self.scheduler.update(chosen, sampled.tolist(), now_s):
            self._finish(request, now_s)
        prefill = sum(new for _, new in chosen) - decodes
        self._read += prefill
        self._written += len(chosen)
        waiting, free = len(self.scheduler.waiting), len(self.scheduler.free)
        self.steps.append((
            len(self.steps), start, time.time_ns(), len(chosen), decodes, prefill, context,
            waiting, free,
        ))  # fmt: skip
        self._log_stats()

    def broadcast_plan(self, plan: list[int]) -> None:
        """Say the plan to all ranks, and its number; an empty one ends their loops."""
        if self.me.service.world == 1:
            return
        dist.broadcast(torch.tensor([len(plan), len(self.steps)]), 0)
        if plan:
            dist.broadcast(torch.tensor(plan), 0)

    def _busy(self) -> bool:
        return bool(self.scheduler.running or self.scheduler.waiting)

    def _finish(self, request: Request, now_s: float) -> None:
        log.info(
            "Finished request %s. prompt_tokens=%d output_tokens=%d ttft=%.3fs e2e=%.3fs "
            "preemptions=%d", request.name, request.prompt_tokens,
            len(request.tokens) - request.prompt_tokens, request.first_s - request.arrival_s,
            now_s - request.arrival_s, request.preemptions,
        )  # fmt: skip
        request.emit(None)

    def _log_stats(self) -> None:
        past = time.time() - self._told_s
        if past < self.me.service.stat_every_s:
            return
        used = 1 - len(self.scheduler.free) / (self.me.service.kv_blocks - 1)
        log.info(
            "Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f "
            "tokens/s, Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix "
            "cache hit rate: 0.0%%", self._read / past, self._written / past,
            len(self.scheduler.running), len(self.scheduler.waiting), 100 * used,
        )  # fmt: skip
        self._told_s, self._read, self._written = time.time(), 0, 0


class Worker:
    """Every other rank."""

    def __init__(self, me: Rank, runner: Runner) -> None:
        self.me, self.runner = me, runner

    def receive_plan(self) -> tuple[list[int], int]:
        """Give the plan and the number of the next step; an empty one is the end."""
        head = torch.empty(2, dtype=torch.int64)
        dist.broadcast(head, 0)
        plan = torch.empty(int(head[0]), dtype=torch.int64)
        if len(plan):
            dist.broadcast(plan, 0)
        return plan.tolist(), int(head[1])

    def loop(self) -> None:
        """Follow rank 0 until it ends."""
        while True:
            plan, step = self.receive_plan()
            if not plan:
                break
            self.runner.execute_model(plan, step)
