"""Captures that hold CUDA graphs as whole rows, and captures that hold their kernels."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

HOSTS = ("node-a", "gpu-17", "ip-10-0-3-4", "infer-7f9c-0")
GRAPH, KERNEL = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_KERNEL"


def change(path: Path, random: Random, *, whole: bool) -> None:
    """Give a capture another host, rank, speed and length."""
    path.chmod(0o644)
    slower = random.choice((1, 2, 3))
    with sqlite3.connect(path) as db:
        db.execute(
            "UPDATE StringIds SET value = replace(value, 'TP0', ?)", (f"TP{random.randrange(8)}",)
        )
        db.execute(
            "UPDATE TARGET_INFO_SYSTEM_ENV SET value = ? WHERE name = 'Hostname'",
            (random.choice(HOSTS),),
        )
        known = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        timed = sorted(known & {GRAPH, KERNEL, "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"})
        for table in timed:
            db.execute(f'UPDATE "{table}" SET start = start * {slower}, end = end * {slower}')
        if whole:  # a shorter capture
            last = db.execute(f'SELECT max(end) * ? / 100 FROM "{GRAPH}"',
                              (random.choice((50, 75, 100)),)).fetchone()[0]  # fmt: skip
            for table in timed:
                db.execute(f'DELETE FROM "{table}" WHERE end > ?', (last,))


@pytest.mark.parametrize("seed", range(20))
def test_whole_graphs_are_said_and_nobody_is_blamed(
    seed: int, shared: Path, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    random = Random(seed)
    whole = seed % 3 != 2
    source = sorted((shared / "cases").glob("o10_*"))[0]
    folder = tmp_path / "run"
    folder.mkdir()
    name = random.choice(("capture.sqlite", "rank0.sqlite", "worker-3.nsys.sqlite"))
    shutil.copyfile(source / ("rank0.sqlite" if whole else "rank0_node.sqlite"), folder / name)
    change(folder / name, random, whole=whole)
    if whole:
        said = right(folder, "trace_granularity", verdict="data_quality",
                     never=("cpu_launch_bound", "corrupt_file", "graph_fallback"))  # fmt: skip
        [found] = [f for f in said["findings"] if f["class"] == "trace_granularity"]
        assert found["numbers"]["busy_union_ratio"] > 0.9
        assert found["numbers"]["busy_kernel_table_ratio"] < 0.1
    else:
        said = right(folder, "")
    assert not [f for f in said["findings"] if f["culprit"]["kind"] != "none"]
