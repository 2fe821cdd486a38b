"""CPUs of hosts: quotas that run out, and ranks bound to the wrong ones; and what looks alike."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

HOSTS = ("node-a", "node-12", "host-3", "node-b7")  # a file's prefix that is sure to be a host
Right = Callable[..., dict[str, Any]]


def log_of(random: Random, folder: Path, ranks: int) -> list[int]:
    """Write the log of an engine with some workers, and give their process ids."""
    pids = [random.randint(1000, 90000) + rank for rank in range(ranks)]
    lines = [
        f"(Worker_TP{r} pid={pid}) INFO 09-12 04:10:0{r % 10} [gpu_model_runner.py:2338] Starting "
        "to load model /models/m..."
        for r, pid in enumerate(pids)
    ]
    for ten in range(5):
        rate = random.uniform(990, 1010)
        lines.append(
            f"(APIServer pid=7) INFO 09-12 04:11:{ten}0 [loggers.py:123] Engine 000: Avg prompt "
            f"throughput: 0.0 tokens/s, Avg generation throughput: {rate:.1f} tokens/s, Running: 8 "
            "reqs, Waiting: 0 reqs, GPU KV cache usage: 21.0%, Prefix cache hit rate: 0.0%"
        )
    (folder / random.choice(("vllm.log", "server.log", "out.txt"))).write_text("\n".join(lines))
    return pids


@pytest.mark.parametrize("seed", range(8))
def test_a_quota_that_runs_out(seed: int, tmp_path: Path, right: Right) -> None:
    random = Random(seed)
    host, benign = random.choice(HOSTS), seed % 4 == 3
    folder = tmp_path / "run"
    folder.mkdir()
    log_of(random, folder, 2)
    share = random.uniform(0, 0.03) if benign else random.uniform(0.15, 0.9)
    periods = random.randint(2000, 90000)
    unit, name = random.choice(((1, "throttled_usec"), (1000, "throttled_time")))
    told = [
        f"nr_periods {periods}", f"nr_throttled {round(periods * share)}",
        f"{name} {round(periods * share * 40_000 * unit)}",
    ]  # fmt: skip
    if unit == 1:
        told = ["usage_usec 812345678", "user_usec 700000000", "system_usec 112345678", *told]
    (folder / f"{host}.cpu.stat.txt").write_text("\n".join(told) + "\n")
    if random.random() < 0.5:
        (folder / f"{host}.cpu.max.txt").write_text(f"{random.choice((200000, 800000))} 100000\n")
    right(folder, "" if benign else "cpu_quota", {} if benign else {"components": ["host"]})


def topology(gpus: int, cores: int) -> str:
    """Give what `nvidia-smi topo -m` prints of a host with two nodes."""
    heads = [f"GPU{g}" for g in range(gpus)]
    lines = ["\t" + "\t".join([*heads, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for g in range(gpus):
        node = g // (gpus // 2)
        paths = [" X " if o == g else "NV18" for o in range(gpus)]
        cpus = f"{node * cores}-{(node + 1) * cores - 1}"
        lines.append("\t".join([f"GPU{g}", *paths, cpus, str(node), "N/A"]))
    return "\n".join(lines) + "\n"


PLACES = ("crowded", "crossed", "unbound", "beside", "own")


@pytest.mark.parametrize("seed", range(10))
def test_ranks_that_are_bound_to_cpus(seed: int, tmp_path: Path, right: Right) -> None:
    random, place = Random(seed), PLACES[seed % len(PLACES)]
    host, gpus, cores = random.choice(HOSTS), random.choice((2, 4, 8)), random.choice((16, 48))
    folder = tmp_path / "run"
    folder.mkdir()
    pids = log_of(random, folder, gpus)
    nodes = [g // (gpus // 2) for g in range(gpus)]
    sets = {
        "crowded": ["0-1"] * gpus,
        "crossed": [f"{(1 - n) * cores}-{(2 - n) * cores - 1}" for n in nodes],
        "unbound": [f"0-{2 * cores - 1}"] * gpus,
        "beside": [f"{n * cores}-{(n + 1) * cores - 1}" for n in nodes],
        "own": [f"{4 * g}-{4 * g + 3}" for g in range(gpus)],
    }[place]
    lines = [f"pid {p}'s current affinity list: {s}" for p, s in zip(pids, sets, strict=True)]
    (folder / f"{host}.taskset.txt").write_text("\n".join(lines) + "\n")
    if place != "crowded":
        (folder / f"{host}.topo.txt").write_text(topology(gpus, cores))
    fault = place in ("crowded", "crossed")
    right(folder, "host_misplaced" if fault else "")
