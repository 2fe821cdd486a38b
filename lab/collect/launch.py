"""Run what was composed: output kept and shown, signals passed on, the exit code given back."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Final

from teller.errors import BadUsage
from teller.lab.collect.command import Plan

LOG: Final = "service.{}.log"  # by host
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE: Final = 3  # signals after which the program is killed
_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended. Times are UTC epoch ns."""

    code: int  # of a shell: 128 and the signal where one ended it
    pid: int
    begun_ns: int
    ended_ns: int
    interrupted: bool


def run(plan: Plan, out: Path, host: str) -> Ran:
    """Run a plan to its end, with its output on the screen and in a log of the folder.

    A signal that comes here goes to the program and all that it started; this returns only when
    the program is gone. Raises `BadUsage` where it cannot be started.
    """
    environment = os.environ | dict(plan.environment)
    begun = time.time_ns()
    children: list[int] = []
    with (out / LOG.format(host)).open("ab") as log, _passed_on(children) as got:
        try:
            child = subprocess.Popen(
                plan.words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as err:
            raise BadUsage(f"{plan.words[0]}: cannot be started: {err.strerror}") from err
        children.append(child.pid)
        assert child.stdout
        shower = threading.Thread(target=_copy, args=(child.stdout, log), daemon=True)
        shower.start()
        code = child.wait()
        # What a grandchild that lives on would write is not waited for.
        shower.join(timeout=2)
        if not shower.is_alive():
            child.stdout.close()
    return Ran(128 - code if code < 0 else code, child.pid, begun, time.time_ns(), bool(got))


def _copy(source: IO[bytes], log: IO[bytes]) -> None:
    """Show what the program says, and keep it."""
    with contextlib.suppress(ValueError, OSError):  # closed at the end
        while chunk := os.read(source.fileno(), _CHUNK):
            log.write(chunk)
            log.flush()
            with contextlib.suppress(
                OSError, ValueError
            ):  # nobody listens any more: the log has it
                sys.stdout.buffer.write(chunk)
                sys.stdout.flush()


@contextlib.contextmanager
def _passed_on(children: Sequence[int]) -> Iterator[list[int]]:
    """Send the signals that come here to the sessions of programs; give those that came."""
    got: list[int] = []

    def send(number: int, _: FrameType | None) -> None:
        got.append(number)
        for child in children:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.killpg(child, number if len(got) < _PATIENCE else signal.SIGKILL)

    if threading.current_thread() is not threading.main_thread():
        yield got
        return
    before = {number: signal.signal(number, send) for number in _SIGNALS}
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def finish(commands: Sequence[Sequence[str]]) -> list[str]:
    """Run what makes files readable, one after the other; give what went wrong."""
    wrong = []
    for words in commands:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            wrong.append(f"{' '.join(words)}: {said[-1] if said else 'failed without a word'}")
    return wrong
