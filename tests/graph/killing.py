"""A program that is killed at a moment, which what it has done so far tells."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from teller.graph.neo4j_address import PASSWORD, USER, Address

CLI = "from teller.cli import run; run()"


def moments(whole: int, number: int, seed: int) -> list[int]:
    """Give so many amounts of what is done, one at random in each part of the whole."""
    drawn, part = random.Random(seed), whole / number
    return [int(part * (n + drawn.random())) for n in range(number)]


def started(at: Address, code: str, *words: str) -> subprocess.Popen[str]:
    """Start a Python program that may use the server."""
    env = {**os.environ, USER: at.user, PASSWORD: at.password}
    command = [sys.executable, "-c", code, *words]
    return subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def wait_for(limit: int, done: Callable[[], int], process: subprocess.Popen[str]) -> None:
    """Ask until so much is done, or the program has ended."""
    while process.poll() is None and done() < limit:
        pass


def killed(limit: int, done: Callable[[], int], process: subprocess.Popen[str]) -> bool:
    """Kill the program when so much is done; tell whether it was not at its end before."""
    with ended(process):
        wait_for(limit, done, process)
    return process.returncode == -9


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """See to it that a program is gone afterwards, also where the test fails or is skipped."""
    try:
        yield
    finally:
        process.kill()
        process.wait()
        assert process.stderr
        process.stderr.close()
