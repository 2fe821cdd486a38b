"""Puts a fault on and takes it off again, from outside the ranks or by the agent inside one."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from teller.errors import BadUsage
from teller.lab.testbed.faults import Planned, kind_named
from teller.lab.testbed.net import Loopback, Namespaces
from teller.lab.testbed.settings import More

Strike = tuple[int, int, str]  # start and end in UTC ns, what was struck
Fault = Callable[..., contextlib.AbstractContextManager[None]]

ANSWER_S: Final = 20.0
LOOK_S: Final = 0.2  # to see how fast steps follow each other
SOON_S: Final = 0.5  # until all ranks have been told
PERIOD_S: Final = 0.02  # of a CPU quota
# spins for 3 ms and yields, so that processes of one real-time priority take turns
_SPIN: Final = """
import os, time
while os.getppid() != 1:
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end: pass
    os.sched_yield()
"""
_WRITE: Final = """
import os, sys
data = os.urandom(int(sys.argv[2]) << 20)
while os.getppid() != 1:
    with open(sys.argv[1], 'wb', buffering=0) as file:
        file.write(data); os.fsync(file.fileno())
"""


@dataclass(frozen=True, slots=True)
class Done:
    """An episode as it went; times are UTC ns, `ask` before and `on` after the fault came on."""

    planned: Planned
    ask_ns: int
    on_ns: int
    clear_ns: int
    off_ns: int
    strikes: tuple[Strike, ...]


@dataclass
class Site:
    """The service that is disturbed."""

    net: Loopback | Namespaces
    pids: list[int]
    control: Path
    load: Path  # the client's socket
    real_time: bool
    disk: Path  # a folder whose disk may be written to
    strikes: list[Strike] = field(default_factory=list)

    def episode(self, planned: Planned) -> Done:
        """Put one fault on, hold it, and take it off."""
        kind = kind_named(planned.kind)
        self.strikes = []
        ask = time.time_ns()
        held = self._on_core(planned.rank) if kind.held else contextlib.nullcontext()
        with held, self._fault(planned):
            on = time.time_ns()
            time.sleep(planned.hold_s)
            clear = time.time_ns()
        return Done(planned, ask, on, clear, time.time_ns(), tuple(self.strikes))

    def profile(self, steps: int) -> None:
        """Have torch's profiler record some steps that are about to come, the same on all ranks."""
        before = self.ask(0, "look", "")
        time.sleep(LOOK_S)
        now = self.ask(0, "look", "")
        a_second = (now["step"] - before["step"]) / (now["time_ns"] - before["time_ns"]) * 1e9
        first = now["step"] + 2 + round(a_second * SOON_S)
        for rank in range(len(self.pids)):
            self.ask(rank, "kineto", "", first=first, steps=steps)

    def end_load(self) -> None:
        """Have the client end, and with it the service."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            one.sendto(msgspec.json.encode(More(count=0)), str(self.load))

    def ask(self, rank: int, do: str, kind: str, **parameters: Any) -> Any:
        """Send a command to the agent of a rank and give its answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            mine = self.control / f"asks{time.time_ns()}"
            one.bind(str(mine))
            one.settimeout(ANSWER_S)
            command = {"do": do, "kind": kind, "parameters": parameters}
            try:
                one.sendto(msgspec.json.encode(command), str(self.control / f"agent{rank}"))
                answer = msgspec.json.decode(one.recv(65536))
            finally:
                mine.unlink()
        if answer["error"]:
            raise BadUsage(f"{kind} on rank {rank}: {answer['error']}")
        return answer

    def _fault(self, planned: Planned) -> contextlib.AbstractContextManager[None]:
        outside: dict[str, Fault] = {
            "net_delay": self._net_delay, "net_bw": self._net_bw, "net_loss": self._net_loss,
            "freeze": self._freeze, "cpu_quota": self._quota,
            "cpu_contention": self._contention, "disk_storm": self._disk_storm,
            "tokenizer_stall": self._odd_words, "long_prompts": self._long_prompts,
            "more_arrivals": self._more_arrivals, "healthy": self._nothing,
        }  # fmt: skip
        if planned.kind in outside:
            return outside[planned.kind](planned.rank, **planned.parameters)
        return self._inside(planned)

    @contextlib.contextmanager
    def _inside(self, planned: Planned) -> Iterator[None]:
        self.ask(planned.rank, "on", planned.kind, **planned.parameters)
        try:
            yield
        finally:
            answer = self.ask(planned.rank, "off", planned.kind)
            told = (self.control / answer["strikes"]).read_bytes()
            self.strikes += msgspec.json.decode(told, type=list[Strike])

    @contextlib.contextmanager
    def _nothing(self, rank: int, nothing: int) -> Iterator[None]:
        yield

    def _net_delay(self, rank: int, us: int) -> contextlib.AbstractContextManager[None]:
        return self._namespaces().delayed(rank, us, self.real_time)

    def _net_bw(self, rank: int, mbit: int) -> contextlib.AbstractContextManager[None]:
        return self._namespaces().limited(rank, mbit)

    def _net_loss(self, rank: int, pct: float) -> contextlib.AbstractContextManager[None]:
        return self._namespaces().lossy(rank, pct)

    def _freeze(
        self, rank: int, ms: float, every_ms: float
    ) -> contextlib.AbstractContextManager[None]:
        return self._stopped(rank, ms / 1e3, every_ms / 1e3)

    def _quota(self, rank: int, pct: float) -> contextlib.AbstractContextManager[None]:
        return self._stopped(rank, PERIOD_S * (1 - pct / 100), PERIOD_S * pct / 100)

    @contextlib.contextmanager
    def _stopped(self, rank: int, still_s: float, run_s: float) -> Iterator[None]:
        """Stop the process for a while again and again."""
        over, pid = threading.Event(), self.pids[rank]

        def loop() -> None:
            if self.real_time:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(8))
            while not over.is_set():
                start = time.time_ns()
                os.kill(pid, signal.SIGSTOP)
                time.sleep(still_s)
                os.kill(pid, signal.SIGCONT)
                self.strikes.append((start, time.time_ns(), "process"))
                over.wait(run_s)

        with _thread(loop, over):
            yield

    @contextlib.contextmanager
    def _contention(self, rank: int, processes: int) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for _ in range(processes):
                words = ["taskset", "-c", str(_core(rank)), sys.executable, "-c", _SPIN]
                stack.enter_context(_process([*self._priority(5), *words]))
            yield

    @contextlib.contextmanager
    def _disk_storm(self, rank: int, mib: int) -> Iterator[None]:
        file = self.disk / f".written-{os.getpid()}"
        try:
            with _process([sys.executable, "-c", _WRITE, str(file), str(mib)]):
                yield
        finally:
            file.unlink(missing_ok=True)

    def _odd_words(
        self, rank: int, characters: int, per_s: float, keep: int
    ) -> contextlib.AbstractContextManager[None]:
        return self._requests(More(count=1, characters=characters, keep=keep), per_s)

    def _long_prompts(
        self, rank: int, words: int, per_s: float
    ) -> contextlib.AbstractContextManager[None]:
        return self._requests(More(count=1, words=words, output_tokens=12), per_s)

    def _more_arrivals(self, rank: int, per_s: float) -> contextlib.AbstractContextManager[None]:
        return self._requests(More(count=1, words=27, output_tokens=50), per_s)

    @contextlib.contextmanager
    def _requests(self, more: More, per_s: float) -> Iterator[None]:
        """Have the client send more, evenly spread."""
        over = threading.Event()

        def loop() -> None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                while not over.is_set():
                    one.sendto(msgspec.json.encode(more), str(self.load))
                    over.wait(1 / per_s)

        with _thread(loop, over):
            yield

    @contextlib.contextmanager
    def _on_core(self, rank: int) -> Iterator[None]:
        """Hold a rank on one core: else it would move away from what disturbs it."""
        _bind(self.pids[rank], {_core(rank)})
        try:
            yield
        finally:
            _bind(self.pids[rank], os.sched_getaffinity(0))

    def _priority(self, level: int) -> list[str]:
        return ["chrt", "-f", str(level)] if self.real_time else []

    def _namespaces(self) -> Namespaces:
        if isinstance(self.net, Loopback):
            raise BadUsage("faults of the network need network namespaces")
        return self.net


def _core(rank: int) -> int:
    cores = sorted(os.sched_getaffinity(0))
    return cores[rank % len(cores)]


def _bind(pid: int, cores: set[int]) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(int(thread), cores)


@contextlib.contextmanager
def _thread(loop: Callable[[], None], over: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def _process(words: list[str]) -> Iterator[None]:
    started = subprocess.Popen(words)
    try:
        yield
    finally:
        started.kill()
        started.wait()
