"""Annotates a rank from outside: NVTX ranges of functions and modules, calls of communication.

What keeps the ranges is the tool that NVTX_INJECTION64_PATH names.
"""

import functools
import os
import platform
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import nvtx
import torch
import torch.distributed as dist
from torch import Tensor, nn

from teller.lab.testbed.calls import NOBODY, Calls
from teller.lab.testbed.engine import Engine, Worker
from teller.lab.testbed.frontend import ApiServer
from teller.lab.testbed.model import LlamaModel
from teller.lab.testbed.runner import Runner
from teller.lab.testbed.scheduler import Scheduler, rows
from teller.lab.testbed.settings import Rank

FUNCTIONS: Final = (
    ("engine", Engine, "broadcast_plan"), ("engine", Scheduler, "schedule"),
    ("engine", Scheduler, "update"), ("engine", Worker, "receive_plan"),
    ("runner", Runner, "prepare_inputs"), ("runner", Runner, "sample"),
    ("runner", LlamaModel, "compute_logits"), ("frontend", ApiServer, "encode"),
)  # fmt: skip


class Range:
    """An NVTX range, in the domain's own way of calling, which costs least."""

    def __init__(self, domain: str, name: str) -> None:
        self._domain = nvtx.get_domain(domain)
        self._said = self._domain.get_event_attributes(message=name)

    def __enter__(self) -> None:
        self._domain.push_range(self._said)

    def __exit__(self, *_: object) -> None:
        self._domain.pop_range()


class Capture:
    """What is recorded on one rank."""

    def __init__(self, me: Rank) -> None:
        self.me = me
        self.calls = Calls()
        self.kineto: torch.profiler.profile | None = None
        self._modules: dict[int, str] = {}
        self._marks: list[Any] = []  # open ranges of torch's own profiler
        self._ranges: dict[tuple[str, str], Range] = {}
        self._seq: Counter[Any] = Counter()
        self._asked = (0, 0)
        self._left = 0
        self._profile: Any = None  # the one that has ended
        self.step = 0

    def attach(self) -> None:
        """Wrap the functions that are recorded; before the service starts."""
        for domain, owner, name in FUNCTIONS:
            label = f"{owner.__name__}.{name}"
            setattr(owner, name, self._ranged(getattr(owner, name), domain, label))
        setattr(Runner, "execute_model", self._stepped(Runner.execute_model))  # noqa: B010 - to a checker methods are constants
        hooks = nn.modules.module
        hooks.register_module_forward_pre_hook(self._enter)
        hooks.register_module_forward_hook(self._leave, always_call=True)
        for op, sized, peer in CALLS:
            setattr(dist, op, self._communicated(getattr(dist, op), op, sized, peer))

    def name_modules(self, model: nn.Module) -> None:
        """Record the modules of a model under their names in it."""
        self._modules = {id(part): name or "model" for name, part in model.named_modules()}

    def ask_kineto(self, first: int, steps: int) -> None:
        """Have some steps recorded by torch's own profiler too; from any thread."""
        self._asked = (first, steps)

    def save(self) -> None:
        """Leave all in the control folder."""
        self._end_kineto()
        if self._profile is not None:
            file = self.me.control / f"kineto_rank{self.me.rank}.json"
            self._profile.export_chrome_trace(str(file))
        threads = {str(t.native_id): t.name for t in threading.enumerate()}
        self.calls.save(self.me.control / f"rank{self.me.rank}", {
            "rank": self.me.rank, "host": socket.gethostname(), "pid": os.getpid(),
            "process": self.me.process_name, "threads": threads, "cpus": os.cpu_count(),
            "machine": platform.machine(), "kernel": os.uname().release.split("-")[0],
            "python": platform.python_version(), "torch": torch.__version__.split("+")[0],
        })  # fmt: skip

    def range(self, domain: str, name: str) -> "Range":
        """Give a range that can be entered again and again."""
        made = self._ranges.get((domain, name))
        if made is None:
            made = self._ranges[domain, name] = Range(domain, name)
        return made

    def _ranged(self, inner: Callable[..., Any], domain: str, name: str) -> Callable[..., Any]:
        told = self.range(domain, name)

        @functools.wraps(inner)
        def outer(*args: Any, **kwargs: Any) -> Any:
            with told:
                return inner(*args, **kwargs)

        return outer

    def _stepped(
        self, inner: Callable[[Runner, Sequence[int], int], Tensor | None]
    ) -> Callable[[Runner, Sequence[int], int], Tensor | None]:
        """Name each step as vLLM does, with its number before."""

        @functools.wraps(inner)
        def outer(runner: Runner, plan: Sequence[int], step: int) -> Tensor | None:
            self.step = step
            self._begin_kineto(step)
            told = list(rows(plan))
            decodes = sum(row.decodes for row in told)
            prefill = sum(row.new for row in told) - decodes
            name = (
                f"step={step} execute_context_{len(told) - decodes}({prefill})"
                f"_generation_{decodes}({decodes})"
            )
            with Range("runner", name):
                if self.kineto is None:
                    return inner(runner, plan, step)
                with torch.profiler.record_function(name):
                    made = inner(runner, plan, step)
            self._left -= 1
            if not self._left:
                self._end_kineto()
            return made

        return outer

    def _enter(self, module: nn.Module, _: Any) -> None:
        name = self._modules.get(id(module), type(module).__name__)
        self.range("model", name).__enter__()
        mark = None
        if self.kineto is not None:
            mark = torch.profiler.record_function(name)
            mark.__enter__()
        self._marks.append(mark)

    def _leave(self, module: nn.Module, *_: Any) -> None:
        mark = self._marks.pop()
        if mark is not None:
            mark.__exit__(None, None, None)
        name = self._modules.get(id(module), type(module).__name__)
        self.range("model", name).__exit__()

    def _communicated(
        self,
        inner: Callable[..., Any],
        op: str,
        sized: Callable[..., Tensor],
        peer: Callable[..., int],
    ) -> Callable[..., Any]:
        """Record a call; calls of one group, or of one pair, have the same numbers everywhere."""
        told = self.range("c10d", op)

        @functools.wraps(inner)
        def outer(*args: Any, **kwargs: Any) -> Any:
            group = kwargs.get("group") or dist.group.WORLD
            name, other = group.group_name, peer(*args)
            if name not in self.calls.group_ranks:
                self.calls.group_ranks[name] = dist.get_process_group_ranks(group)
            pair = {"send": (self.me.rank, other), "recv": (other, self.me.rank)}.get(op)
            seq = self._seq[name, pair]
            self._seq[name, pair] += 1
            tensor = sized(*args)
            size = tensor.numel() * tensor.element_size()
            with told:
                start = time.time_ns()
                try:
                    return inner(*args, **kwargs)
                finally:
                    self.calls.add(start, op, name, seq, other, size)

        return outer

    def _begin_kineto(self, step: int) -> None:
        first, steps = self._asked
        if not steps or step < first:
            return
        self._left, self._asked = steps, (0, 0)
        activities = [torch.profiler.ProfilerActivity.CPU]
        self.kineto = torch.profiler.profile(activities=activities, record_shapes=True)
        self.kineto.__enter__()

    def _end_kineto(self) -> None:
        if self.kineto is not None:
            self._profile, self.kineto = self.kineto, None
            self._profile.__exit__(None, None, None)  # written out when the service ends


def _first(tensor: Tensor, *_: Any) -> Tensor:
    return tensor


def _second(_: Any, tensor: Tensor, *__: Any) -> Tensor:
    return tensor


def _nobody(*_: Any) -> int:
    return NOBODY


def _named(_: Any, rank: int, *__: Any) -> int:
    return rank


CALLS: Final = (
    ("all_reduce", _first, _nobody), ("all_gather", _second, _nobody),
    ("broadcast", _first, _named), ("send", _first, _named), ("recv", _first, _named),
)  # fmt: skip
