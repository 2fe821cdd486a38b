"""What recording costs: the same work bare, annotated, and annotated and recorded, in turn.

Three processes do the same blocks of work one after the other, so that what else the machine does
falls on all of them; neighbours are compared. Processor time counts all threads of a process, so
the recorder's own thread is in it. Prints the tables of docs/overhead.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np

from teller.lab.collect import build

MODES: Final = ("bare", "annotated", "recorded")
RATES: Final = (10_000, 20_000)  # ranges a second that are aimed at
STEP_RANGES: Final = 101  # one around the step, 100 operators in it
STEPS: Final = 1  # of a block
HERE: Final = Path(__file__).parent


class Block(NamedTuple):
    """One block of work: wall and processor time, s."""

    wall: float
    cpu: float


def work(annotated: bool, times: int) -> None:
    """Do blocks of work as asked by lines on standard input, and say how long each took."""
    import nvtx

    x = np.ones((48, 48), np.float32)
    domain = nvtx.get_domain("model")
    step = domain.get_event_attributes(message="execute_context_0(0)_generation_8(8)")
    operators = [domain.get_event_attributes(message=f"layers.{i}.mlp") for i in range(100)]

    def operator() -> None:
        for _ in range(times):
            np.dot(x, x)

    def plain() -> None:
        for _ in range(STEPS):
            for _ in operators:
                operator()

    def with_ranges() -> None:
        push, pop = domain.push_range, domain.pop_range
        for _ in range(STEPS):
            push(step)
            for one in operators:
                push(one)
                operator()
                pop()
            pop()

    block = with_ranges if annotated else plain
    for _ in sys.stdin:
        begun, used = time.perf_counter(), time.process_time()
        block()
        sys.stdout.write(f"{time.perf_counter() - begun} {time.process_time() - used}\n")
        sys.stdout.flush()


def calibrated(rate: int) -> int:
    """Give how often to multiply in an operator, so that there are `rate` ranges a second."""
    x = np.ones((48, 48), np.float32)
    took = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(20_000):
            np.dot(x, x)
        took.append((time.process_time() - begun) / 20_000)
    return max(round(1 / rate / min(took)), 1)


def measured(rate: int, blocks: int, folder: Path) -> dict[str, list[Block]]:
    """Give the blocks of each mode, done in turn."""
    times = calibrated(rate)
    found: dict[str, list[Block]] = {mode: [] for mode in MODES}
    with ExitStack() as stack:
        asks = {mode: stack.enter_context(_worker(mode, times, folder)) for mode in MODES}
        for turn in range(blocks + 2):
            for mode in MODES if turn % 2 else reversed(MODES):
                block = _asked(asks[mode])
                if turn >= 2:  # the first ones warm up
                    found[mode].append(block)
        for one in asks.values():
            assert one.stdin
            one.stdin.close()
    return found


def _worker(mode: str, times: int, folder: Path) -> "subprocess.Popen[str]":
    more = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if mode == "recorded":
        more |= {"NVTX_INJECTION64_PATH": str(build.recorder()), "TELLER_NVTX_DIR": str(folder)}
    words = [sys.executable, __file__, "--work", "bare" if mode == "bare" else "ranges",
             "--times", str(times)]  # fmt: skip
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env=os.environ | more)  # fmt: skip


def _asked(worker: "subprocess.Popen[str]") -> Block:
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write("\n")
    worker.stdin.flush()
    return Block(*map(float, worker.stdout.readline().split()))


def _line(name: str, one: list[Block], other: list[Block], of: Callable[[Block], float]) -> str:
    """Give one row: the excess of `one` over its neighbour, %: median, quartiles."""
    excess = [(of(a) / of(b) - 1) * 100 for a, b in zip(one, other, strict=True)]
    low, middle, high = np.percentile(excess, [25, 50, 75])
    return f"| {name} | {middle:+.2f} | {low:+.2f} to {high:+.2f} |"


def table(rate: int, found: dict[str, list[Block]]) -> str:
    """Give the table of one rate."""
    busy = float(np.median([b.cpu for b in found["recorded"]]))
    ranges = STEP_RANGES * STEPS / busy
    wall, cpu = (lambda b: b.wall), (lambda b: b.cpu)
    bare, annotated, recorded = (found[mode] for mode in MODES)
    return "\n".join([
        f"{ranges:,.0f} ranges per second of processor time, {len(bare)} blocks a mode:", "",
        "| | median, % | middle half, % |", "|---|---|---|",
        _line("recording, processor time", recorded, annotated, cpu),
        _line("recording, wall time", recorded, annotated, wall),
        _line("annotating, nobody records, processor time", annotated, bare, cpu),
        _line("both, processor time", recorded, bare, cpu),
    ])  # fmt: skip


def loop(folder: Path) -> str:
    """Give what a pair of push and pop costs in C, ns: best, median, 90th percentile."""
    header = next(Path(str(f.locate())) for f in metadata.files("nvidia-nvtx") or []
                  if f.name == "nvToolsExt.h")  # fmt: skip
    made = folder / "loop"
    subprocess.run([build.compiler() or "cc", "-O2", f"-I{header.parents[1]}",
                    HERE / "nvtx_loop.c", "-o", made, "-ldl"], check=True)  # fmt: skip
    rows = ["| pair of push and pop, C, ns | best | median | 90 % |", "|---|---|---|---|"]
    more = {"NVTX_INJECTION64_PATH": str(build.recorder()), "TELLER_NVTX_DIR": str(folder)}
    for name, environment in (("nobody records", {}), ("recorded", more)):
        said = subprocess.run([made], env=os.environ | environment, check=True, text=True,
                              stdout=subprocess.PIPE).stdout  # fmt: skip
        rows += [f"| {what}, {name} | {' | '.join(numbers)} |"
                 for what, *numbers in map(str.split, said.splitlines())]  # fmt: skip
    return "\n".join(rows)


def main() -> None:
    """Measure as the command line says."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--blocks", type=int, default=60)
    said.add_argument("--work", choices=("bare", "ranges"), help=argparse.SUPPRESS)
    said.add_argument("--times", type=int, help=argparse.SUPPRESS)
    told = said.parse_args()
    if told.work:
        work(told.work == "ranges", told.times)
        return
    out: IO[str] = sys.stdout
    out.write(f"load average {os.getloadavg()[0]:.1f} at the start\n\n")
    with tempfile.TemporaryDirectory(prefix="teller-overhead-") as scratch:
        out.write(loop(Path(scratch)) + "\n\n")
        for rate in RATES:
            out.write(table(rate, measured(rate, told.blocks, Path(scratch))) + "\n\n")
    out.write(f"load average {os.getloadavg()[0]:.1f} at the end\n")


if __name__ == "__main__":
    main()
