"""What stands still: dumps of the flight recorder, watchdog lines and engine logs, made by seed."""

import gzip
import json
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

Right = Callable[..., dict[str, Any]]
SEEDS = range(20)
HOSTS = ("gpu-17", "ip-10-0-3-4", "worker3", "infer-0", "a1b2c3d4e5f6")
EPOCH = 1_779_702_000_000_000_000  # 2026-05-25 09:40 UTC: the logs are of that day too
STEP_NS = 4_000_000


@dataclass
class Dumps:
    """The dumps of one run, as its recorder writes them."""

    rng: Random
    world: int
    groups: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    entries: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[tuple[int, str], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Draw the dialect: version, pickle or JSON, names of files."""
        self.groups["0"] = ("default_pg", list(range(self.world)))
        self.entries = {rank: [] for rank in range(self.world)}
        self.pickled = self.rng.random() < 0.4
        self.packed = self.rng.random() < 0.3
        self.timed = self.rng.random() < 0.6  # whether starts are watched
        host = self.rng.choice(HOSTS)
        suffix = "" if self.pickled else self.rng.choice(("", ".json"))
        self.name = self.rng.choice(
            (f"nccl_trace_rank_{host}_{{}}{suffix}", "nccl_trace_rank_{}" + suffix, "_dump_{}")
        )
        self.version = self.rng.choice(("2.4", "2.9") if self.pickled else ("2.4", "2.5"))

    def call(
        self, rank: int, group: str, seq: int, op: str, shape: list[int], state: str,
        dtype: str = "BFloat16", p2p: bool = False,
    ) -> None:  # fmt: skip
        """Enter one operation in a rank's record."""
        at = EPOCH + seq % 10_000 * STEP_NS + rank * 9_000
        never = None if self.pickled else 0
        seen = state in ("started", "completed") and self.timed
        self.entries[rank].append({
            "record_id": len(self.entries[rank]), "pg_id": int(group),
            "process_group": [group, self.groups[group][0]], "collective_seq_id": seq,
            "p2p_seq_id": seq if p2p else 0, "op_id": seq, "profiling_name": f"nccl:{op}",
            "time_created_ns": at, "input_sizes": [shape], "input_dtypes": [dtype],
            "output_sizes": [shape], "output_dtypes": [dtype], "state": state,
            "time_discovered_started_ns": at + 90_000 if seen else never,
            "time_discovered_completed_ns": at + 400_000 if state == "completed" else never,
            "retired": state == "completed", "timeout_ms": 600_000, "is_p2p": p2p,
        })  # fmt: skip
        count = self.counts.setdefault((rank, group), [0, -1, 0])
        count[0] = max(count[0], seq)
        if seen:
            count[1] = max(count[1], seq)
        if state == "completed":
            count[2] = max(count[2], seq)

    def write(self, folder: Path, without: Iterable[int] = ()) -> None:
        """Write a file a rank, in any order."""
        ranks = [r for r in range(self.world) if r not in set(without)]
        self.rng.shuffle(ranks)
        plain = (lambda n: n) if self.pickled else str
        for rank in ranks:
            mine = {n: g for n, g in self.groups.items() if rank in g[1]}
            keys = (
                "last_enqueued_collective",
                "last_started_collective",
                "last_completed_collective",
            )
            dump: dict[str, Any] = {
                "version": self.version,
                "pg_config": {
                    n: {"name": n, "desc": d, "ranks": str(ranks)} for n, (d, ranks) in mine.items()
                },
                "pg_status": {
                    n: dict(zip(keys, map(plain, self.counts[rank, n]), strict=True))
                    for n in mine
                    if (rank, n) in self.counts
                },
            }
            if self.entries[rank] or self.pickled:
                dump["entries"] = self.entries[rank]
            data = pickle.dumps(dump, 2) if self.pickled else json.dumps(dump).encode()
            path = folder / self.name.format(rank)
            if self.packed:
                path, data = path.with_name(path.name + ".gz"), gzip.compress(data)
            path.write_bytes(data)


def tensor_parallel(rng: Random, world: int, last: int) -> Dumps:
    """Make a healthy past: decode steps of one tensor-parallel group, all completed."""
    dumps = Dumps(rng, world)
    dumps.groups["2"] = (rng.choice(("tp", "TENSOR_MODEL_PARALLEL_GROUP")), list(range(world)))
    late = rng.randrange(world)
    for rank in range(world):
        for seq in range(last - (3 if rank == late else 8), last + 1):
            gather = (last + 1 - seq) % 2 == 0
            op, shape = ("_all_gather_base", [12, 9000]) if gather else ("allreduce", [12, 4096])
            dumps.call(rank, "2", seq, op, shape, "completed")
    return dumps


def watchdog(rng: Random, folder: Path, seq: int, calls: dict[int, tuple[str, int]]) -> None:
    """Write the lines of watchdogs in one of their grammars."""
    style = rng.randrange(3)
    lines = []
    for rank, (op, size) in calls.items():
        head = (
            f"[rank{rank}]:[E525 09:51:2{rank % 10}.118254 ProcessGroupNCCL.cpp:685] [Rank {rank}]",
            f"[E ProcessGroupNCCL.cpp:474] [Rank {rank}]",
            f"[rank{rank}]:[E525 11:52:0{rank % 10}.332 ProcessGroupNCCL.cpp:632] "
            f"[PG ID 2 PG GUID 2(tp) Rank {rank}]",
        )[style]
        lines.append(
            f"{head} Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, "
            f"OpType={op}, NumelIn={size}, NumelOut={size * 8}, Timeout(ms)=600000) ran for "
            f"{600_010 + rank} milliseconds before timing out."
        )
    (folder / rng.choice(("watchdog.log", "stderr.txt", "torch.err"))).write_text("\n".join(lines))


def healthy(seed: int, rng: Random, folder: Path) -> None:
    """Make what looks alike and is none: done, in flight, of different times, uneven by nature."""
    world, last = rng.choice((2, 4, 8)), rng.randrange(100, 90_000)
    dumps = tensor_parallel(rng, world, last)
    if seed == 14:  # the next step has just begun, on some ranks
        dumps.timed = True
        for rank in range(world):
            dumps.counts[rank, "2"] = [last, last, last]
        for rank in range(rng.randrange(1, world)):
            dumps.call(rank, "2", last + 1, "_all_gather_base", [12, 9000], "scheduled")
    if seed == 15:  # all are in it
        for rank in range(world):
            dumps.call(rank, "2", last + 1, "_all_gather_base", [12, 9000], "started")
    if seed == 16:  # the others were asked later
        for rank in range(1, world):
            for seq in range(last + 1, last + 6):
                dumps.call(rank, "2", seq, "allreduce", [12, 4096], "completed")
            dumps.call(rank, "2", last + 6, "allreduce", [12, 4096], "started")
    if seed == 17:  # each rank sends what it has
        for rank in range(world):
            dumps.call(rank, "2", last + 1, "all_to_all", [100 + rank, 512], "started")
    if seed == 18:  # a pipeline of two, both sides posted
        dumps.groups["5"] = ("pp", [0, 1])
        dumps.call(0, "5", 7, "send 0->1", [4, 4096], "started", p2p=True)
        dumps.call(1, "5", 7, "recv 1<-0", [4, 4096], "started", p2p=True)
    dumps.write(folder)


@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_that_call_a_collective_unlike_the_others(
    seed: int, tmp_path: Path, right: Right
) -> None:
    rng, folder = Random(seed), tmp_path / "run"
    folder.mkdir()
    if 13 <= seed < 19:
        healthy(seed, rng, folder)
        right(folder, "")
        return
    world, last = rng.choice((2, 4, 8, 16)), rng.randrange(100, 90_000)
    dumps = tensor_parallel(rng, world, last)
    odd = sorted(rng.sample(range(world), 1 if world < 8 else rng.choice((1, 2))))
    usual = ("_all_gather_base", [12, 9000], "BFloat16")
    wrong = rng.choice(
        (
            ("_all_gather_base", [rng.choice((11, 13, 14)), 9000], "BFloat16"),
            ("_all_gather_base", [12, 9000], "Float"),
            ("allreduce", [12, 9000], "BFloat16"),
        )
        if world > 2
        else (("_all_gather_base", [13, 9000], "BFloat16"),)
    )
    calls = {}
    for rank in range(world):
        op, shape, dtype = wrong if rank in odd else usual
        if seed == 19 and rank in odd:
            continue  # it does not come at all
        dumps.call(rank, "2", last + 1, op, shape, "started", dtype)
        calls[rank] = (op.upper(), shape[0] * shape[1])
    if rng.random() < 0.6 or seed == 12:
        watchdog(rng, folder, last + 1, calls)
    if seed == 12 and world > 2:  # only the watchdogs tell
        sizes = {r: (op, 117_000 if r in odd else 108_000) for r, (op, _) in calls.items()}
        watchdog(rng, folder, last + 1, sizes)
    else:
        dumps.write(folder)
    never = "collective_mismatch" if seed == 19 else "collective_missing_rank"
    klass = "collective_missing_rank" if seed == 19 else "collective_mismatch"
    right(folder, klass, {"ranks": odd}, never=(never, "comm_library", "worker_crash"))


def engines(rng: Random, folder: Path, data: int, idle: int, serving: bool) -> None:
    """Write a log of data-parallel engines: one has nothing to do, the others work, then not."""
    lines, at = [], 40 * 60
    pid = rng.randrange(10, 9000)
    process = rng.choice((f"(APIServer pid={pid}) ", f"(ApiServer_0 pid={pid}) ", ""))
    for number in range(12):
        for engine in range(data):
            busy = engine != idle
            rate = rng.uniform(20, 60) if busy and (serving or number < 6) else 0.0
            source = f"[loggers.py:{rng.choice((116, 271))}]"
            lines.append(
                f"{process}INFO 05-25 11:{at // 60:02}:{at % 60:02} {source} Engine {engine:03}: "
                f"Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: {rate:.1f} "
                f"tokens/s, Running: {int(busy)} reqs, Waiting: 0 reqs, GPU KV cache usage: "
                f"{2.2 if busy else 0.0}%, Prefix cache hit rate: 0.0%"
            )
        at += 10
    (folder / rng.choice(("vllm.log", "serve.out", "api.txt"))).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_that_do_not_enter_a_collective(seed: int, tmp_path: Path, right: Right) -> None:
    rng, folder = Random(100 + seed), tmp_path / "run"
    folder.mkdir()
    data, tensor = rng.choice(((2, 1), (2, 2), (4, 2), (2, 4)))
    world, last = data * tensor, rng.randrange(500, 90_000)
    idle = rng.randrange(data)
    missing = list(range(idle * tensor, (idle + 1) * tensor))
    stuck = seed < 13
    dumps = Dumps(rng, world)
    dumps.groups["4"] = (rng.choice(("ep", "EXPERT_MODEL_PARALLEL_GROUP")), list(range(world)))
    if tensor > 1:
        for number in range(data):
            dumps.groups[str(10 + number)] = (
                "tp",
                list(range(number * tensor, (number + 1) * tensor)),
            )
    for rank in range(world):
        for seq in range(last - rng.choice((3, 7)), last + 1):
            dumps.call(rank, "4", seq, "_reduce_scatter_base", [512, 4096], "completed")
        if stuck and rank not in missing:
            dumps.call(rank, "4", last + 1, "_all_gather_base", [128, 4096], "started")
            if tensor > 1:  # what follows stands in the stream behind it
                dumps.call(rank, str(10 + rank // tensor), 77, "allreduce", [9, 9], "scheduled")
    if seed in (13, 14):  # all came, and a serving engine goes on
        for rank in range(world):
            dumps.call(rank, "4", last + 1, "_all_gather_base", [128, 4096], "started")
    log_only = seed in (11, 12)
    if (stuck and seed % 3 != 1) or log_only or seed in (13, 15, 17):
        engines(rng, folder, data, idle, serving=not stuck)
    gone = [rng.choice([r for r in range(world) if r not in missing])] if seed in (9, 10) else []
    if not log_only and seed not in (17,):
        dumps.write(folder, gone if world > 2 else ())
    if not stuck:
        right(folder, "")
        return
    culprit = {} if log_only else {"ranks": missing}
    never = ("slow_path", "packet_loss", "roce_gid_unroutable", "collective_mismatch")
    right(folder, "collective_missing_rank", culprit, never=never)
