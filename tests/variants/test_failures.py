"""Devices that fail and processes that end, as kernels, watchdogs and engines say it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

XID = "NVRM: Xid (PCI:0000:9b:00): "
DIED = (
    "(EngineCore_DP0 pid=41) ERROR 05-23 01:10:00 [multiproc_executor.py:220] Worker proc "
    "VllmWorker-3 died unexpectedly, shutting down executor."
)
STATS = (
    "(APIServer pid=11) INFO 05-23 01:0{}:00 [loggers.py:127] Engine 000: Avg prompt throughput: "
    "12.0 tokens/s, Avg generation throughput: 640.2 tokens/s, Running: 4 reqs, Waiting: 0 reqs, "
    "GPU KV cache usage: 8.8%, Prefix cache hit rate: 41.0%"
)
LATE = (
    "[rank{0}]:[E525 10:00:0{0}.332 ProcessGroupNCCL.cpp:632] [PG ID 2 PG GUID 2(tp) Rank {0}] "
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, "
    "NumelIn={2}, NumelOut={2}, Timeout(ms)=600000) ran for 600015 milliseconds before timing out."
)
KERNEL = "May 25 10:00:0{} node-b kernel: [ 1234.56{}] {}"
FATAL = "48, pid=77, name=python, DBE (double bit error) at 0x1"
REMAP = "63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping"
BUS = "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
USER = "13, pid=77, name=python, Graphics SM Warp Exception on (GPC 9, TPC 1, SM 1)"
PULSE = (
    "(EngineCore_DP0 pid=9) INFO 05-23 01:01:22 [shm_broadcast.py:705] No available shared memory "
    "broadcast block found in 60 seconds."
)
WARM = (
    "(Worker_TP0 pid=20) INFO 05-23 01:00:02 [backends.py:164] Directly load the compiled graph(s) "
    "for dynamic shape from the cache, took 3.2 s"
)
COLD = (
    "(Worker_TP{0} pid=2{0}) INFO 05-23 01:00:40 [backends.py:215] Compiling a graph for dynamic "
    "shape takes 38.1 s"
)


def kernel(*lines: str) -> str:
    return "\n".join(KERNEL.format(n, n, f"{XID}{line}") for n, line in enumerate(lines)) + "\n"


def late(*calls: tuple[int, int, int]) -> str:
    return "\n".join(LATE.format(*call) for call in calls) + "\n"


STORIES: dict[str, tuple[dict[str, str], str, dict[str, Any]]] = {
    "memory that cannot be corrected": (
        {"dmesg.txt": kernel(FATAL)}, "gpu_memory_fault", {"hosts": ["node-b"]},
    ),
    "a row that is remapped": (
        {"kern.log": kernel(REMAP, REMAP)}, "gpu_memory_fault", {"hosts": ["node-b"]},
    ),
    "a device that fell off the bus": (
        {"kern.log": kernel(BUS)}, "gpu_memory_fault", {"hosts": ["node-b"]},
    ),
    "an error of the program": ({"dmesg.txt": kernel(USER)}, "", {}),
    "a worker that died": (
        {"vllm.log": f"{STATS.format(1)}\n{STATS.format(2)}\n{DIED}\n"},
        "worker_crash", {"components": ["worker"]},
    ),
    "a service that was asked to end": (
        {"vllm.log": f"{STATS.format(1)}\n{STATS.format(2)}\n(EngineCore pid=41) INFO 05-23 "
                     "01:10:00 [core.py:1214] [shutdown] EngineCore: trigger received "
                     "signal=SIGTERM\n"},
        "", {},
    ),
    "a rank with another size": (
        {"err.log": late((0, 77, 4096), (1, 77, 4096), (2, 77, 8192), (3, 77, 4096))},
        "collective_mismatch", {"ranks": [2]},
    ),
    "a rank at another number": (
        {"err.log": late((0, 77, 4096), (1, 76, 4096), (2, 77, 4096))},
        "collective_mismatch", {"ranks": [1]},
    ),
    "two ranks that disagree": (
        {"err.log": late((0, 77, 4096), (1, 77, 8192))}, "collective_mismatch", {"ranks": []},
    ),
    "a timeout that is the same on all": (
        {"err.log": late((0, 77, 4096), (1, 77, 4096), (2, 77, 4096))},
        "collective_missing_rank", {"ranks": [], "groups": ["2"]},
    ),
    "a timeout after a device was lost": (
        {"kern.log": kernel(BUS), "err.log": late((0, 77, 4096), (1, 77, 4096))},
        "gpu_memory_fault", {"hosts": ["node-b"]},
    ),
    "a start that is warm on one rank": (
        {"vllm.log": "\n".join((WARM, COLD.format(1), COLD.format(2), PULSE, PULSE)) + "\n"},
        "rank_asymmetric_warmup", {},
    ),
    "a start that is warm on one rank and ends": (
        {"vllm.log": "\n".join((WARM, COLD.format(1), PULSE, STATS.format(2))) + "\n"}, "", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", sorted(STORIES))
def test_what_failed_is_named(
    story: str, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    files, klass, culprit = STORIES[story]
    folder = tmp_path / "run"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    known = any(STATS[:20] in text for text in files.values())
    right(folder, klass, culprit, verdict="" if klass or known else "not_visible")
