"""Faults inside a rank, on command: datagrams of JSON to the socket `agentR` of its folder.

Each answer says when the fault was on, or off. With `off` come the strikes: the moments at which
the fault itself took time, as [start_ns, end_ns, what was struck], in a file.
"""

import contextlib
import fnmatch
import functools
import gc
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import torch
from torch import nn
from torch.nn import functional

from teller.lab.testbed.capture import Capture
from teller.lab.testbed.engine import Engine
from teller.lab.testbed.model import Attention
from teller.lab.testbed.runner import Runner, log
from teller.lab.testbed.settings import Rank

HOG_PRIORITY: Final = 4  # under real-time scheduling: one below the rank, which waits for the GIL
Undo = Callable[[], object]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What to do: a kind with its parameters, on or off."""

    do: str  # on, off, kineto, look
    kind: str = ""
    parameters: dict[str, Any] = {}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    time_ns: int
    error: str = ""
    strikes: str = ""  # name of a file of the control folder
    step: int = 0  # that runs


class Agent(threading.Thread):
    """Waits for commands in a thread of its own."""

    def __init__(self, me: Rank, runner: Runner, engine: Engine | None, capture: Capture) -> None:
        super().__init__(daemon=True, name="Agent")
        self.me, self.runner, self.engine, self.capture = me, runner, engine, capture
        self.strikes: list[tuple[int, int, str]] = []
        self._undo: dict[str, Undo] = {}
        self._names = {id(part): name for name, part in runner.model.named_modules()}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(me.control / f"agent{me.rank}"))
        self._faults: dict[str, Callable[..., Undo]] = {
            "slow_op": self._slow_op, "mem_alloc": self._mem_alloc, "gc_pause": self._gc_pause,
            "gil_hog": self._gil_hog, "log_storm": self._more_log, "log_verbose": self._more_log,
            "kv_shrink": self._kv_shrink,
        }  # fmt: skip

    def run(self) -> None:
        """Answer commands for ever."""
        while True:
            data, sender = self._socket.recvfrom(65536)
            try:
                answer = self._obey(msgspec.json.decode(data, type=Command))
            except Exception as error:  # the orchestrator has to hear of it, whatever it is
                answer = Answer(time_ns=time.time_ns(), error=repr(error))
            with contextlib.suppress(OSError):  # who asked has gone
                self._socket.sendto(msgspec.json.encode(answer), sender)

    def _obey(self, command: Command) -> Answer:
        file = ""
        if command.do == "on":
            self.strikes = []
            self._undo[command.kind] = self._faults[command.kind](**command.parameters)
        elif command.do == "off":
            self._undo.pop(command.kind)()
            file = f"strikes{self.me.rank}.json"
            (self.me.control / file).write_bytes(msgspec.json.encode(self.strikes))
        elif command.do == "kineto":
            self.capture.ask_kineto(**command.parameters)
        return Answer(time_ns=time.time_ns(), strikes=file, step=self.capture.step)

    @contextlib.contextmanager
    def _strike(self, what: str) -> Iterator[None]:
        start = time.time_ns()
        yield
        self.strikes.append((start, time.time_ns(), what))

    def _before(self, module: nn.Module, act: Callable[[Any], object]) -> Undo:
        """Act on a module's input before each of its calls, inside its own range."""
        name = self._names[id(module)]

        def hook(_: nn.Module, args: Any) -> None:
            with self._strike(name):
                act(args[0])

        return module.register_forward_pre_hook(hook).remove

    def _slow_op(self, module: str, ms: float) -> Undo:
        def again(part: nn.Module, x: torch.Tensor) -> None:
            end = time.perf_counter() + ms / 1e3
            weight = getattr(part, "weight", None)
            while time.perf_counter() < end:
                if weight is not None:
                    functional.linear(x, weight)
                else:
                    torch.softmax(x, -1)

        struck = {
            name: part
            for name, part in self.runner.model.named_modules()
            if fnmatch.fnmatchcase(name, module)
        }
        if not struck:
            raise LookupError(f"no module {module} on rank {self.me.rank}")
        undo = [self._before(part, functools.partial(again, part)) for part in struck.values()]
        return lambda: [one() for one in undo]

    def _mem_alloc(self, mib: int, every: int) -> Undo:
        calls = [0]

        def hook(part: nn.Module, _: Any) -> None:
            calls[0] += 1
            if calls[0] % every == 0:
                with self._strike(self._names[id(part)]):
                    torch.empty(mib << 18).fill_(1.0)  # float32; so large that it is always mapped

        parts = [m for m in self.runner.model.modules() if isinstance(m, Attention)]
        undo = [part.register_forward_pre_hook(hook).remove for part in parts]
        return lambda: [one() for one in undo]

    def _gc_pause(self, objects: int, every_ms: float) -> Undo:
        graph = [{"i": i, "list": [i]} for i in range(int(objects))]
        began = [0]

        def seen(phase: str, _: Any) -> None:
            if phase == "start":
                began[0] = time.time_ns()
            else:
                self.strikes.append((began[0], time.time_ns(), "gc"))

        gc.callbacks.append(seen)
        stop = _repeat(lambda: gc.collect(), every_ms / 1e3)

        def undo() -> None:
            stop()
            gc.callbacks.remove(seen)
            graph.clear()

        return undo

    def _gil_hog(self, pct: float, period_ms: float) -> Undo:
        over = threading.Event()
        busy_s, rest_s = period_ms * pct / 1e5, period_ms * (100 - pct) / 1e5

        def hog() -> None:
            if os.sched_getscheduler(0) == os.SCHED_FIFO:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(HOG_PRIORITY))
            x = 0
            while not over.wait(rest_s):
                end = time.monotonic() + busy_s
                while time.monotonic() < end:
                    for _ in range(2000):
                        x = (x * 1103515245 + 12345) & 0x7FFFFFFF

        threading.Thread(target=hog, daemon=True, name="Worker").start()
        return over.set

    def _more_log(self, lines: int, sync: bool) -> Undo:
        usual = Runner.prepare_inputs

        def prepare_inputs(runner: Runner, plan: Any) -> Any:
            with self._strike("logging"):
                runner.log_tables(plan, lines)
                for handler in log.handlers if sync else ():
                    if isinstance(handler, logging.FileHandler) and handler.stream:
                        os.fsync(handler.stream.fileno())
            return usual(runner, plan)

        setattr(Runner, "prepare_inputs", prepare_inputs)  # noqa: B010 - to a checker methods are constants
        return lambda: setattr(Runner, "prepare_inputs", usual)

    def _kv_shrink(self, blocks: int) -> Undo:
        assert self.engine is not None
        free = self.engine.scheduler.free
        held: list[int] = []

        def take() -> None:
            with contextlib.suppress(IndexError):  # no more are free
                while len(held) < blocks:
                    held.append(free.popleft())

        stop = _repeat(take, 0.005)

        def undo() -> None:
            stop()
            free.extend(held)

        return undo


def _repeat(act: Callable[[], object], every_s: float) -> Undo:
    """Act again and again in a thread; give what ends it and waits for the end."""
    over = threading.Event()

    def loop() -> None:
        act()
        while not over.wait(every_s):
            act()

    thread = threading.Thread(target=loop, daemon=True, name="Worker")
    thread.start()

    def stop() -> None:
        over.set()
        thread.join()

    return stop
