"""What a command costs: CPU time of all its processes, and their memory at the highest."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOOK_S: Final = 0.05  # between two looks at the memory of all processes
KIB: Final = 1 << 10
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a command came to; memory in MiB."""

    cpu_s: float  # user and system, with all children that were waited for
    wall_s: float
    largest_mib: float  # of the largest process
    summed_mib: float  # of all processes together
    code: int
    said: str  # what it wrote to stdout
    complaint: str  # its exit code, and the last line that it wrote to stderr


def of(command: list[str], log: Path) -> Cost:
    """Run a command and give what it cost. Where it fails, `log` holds what it said."""
    with log.open("wb") as err, log.with_suffix(".out").open("w+b") as out:
        begun = time.monotonic()
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        summed, pid = 0, 0
        while not pid:
            # by hand, since the module's own wait says nothing of the cost
            pid, status, used = os.wait4(running.pid, os.WNOHANG)
            if not pid:
                summed = max(summed, _summed(running.pid))
                time.sleep(LOOK_S)
        wall = time.monotonic() - begun
        running.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().decode(errors="replace")
    largest = used.ru_maxrss * KIB
    return Cost(
        used.ru_utime + used.ru_stime, wall, largest / MIB, max(largest, summed) / MIB,
        running.returncode, said, f"ended with {running.returncode}: {_last_line(log)}",
    )  # fmt: skip


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].replace("|", "/") if lines else "it said nothing"


def _summed(pid: int) -> int:
    """Give the bytes of a process and all below it, shared ones counted once; 0 for one alone."""
    family, waiting = [pid], _children(pid)
    while waiting:
        child = waiting.pop()
        family.append(child)
        waiting += _children(child)
    return sum(map(_own_bytes, family)) if len(family) > 1 else 0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # ended meanwhile
            continue
    return found


def _own_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * KIB
