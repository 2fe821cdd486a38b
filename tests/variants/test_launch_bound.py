"""A device that waits for launches, and what looks like it: a busy device, eager mode by choice."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

BENIGN = ("busy", "log_only", "busy", "log_only", "busy", "busy", "log_only")
LOGS = ("vllm", "vllm_words", "sglang", "none")
Event = dict[str, Any]


@dataclass
class Story:
    """A capture of launches one by one; copies of it are the ranks, with other names and times."""

    seed: int

    def __post_init__(self) -> None:
        self.random = random = Random(self.seed)
        self.benign = BENIGN[self.seed // 3 % len(BENIGN)] if self.seed % 3 == 2 else ""
        self.log = random.choice(LOGS) if not self.benign else random.choice(LOGS[:3])
        self.ranks = random.choice((1, 1, 2, 4))
        self.shrink = random.uniform(0.6, 1.0)
        self.pid = random.randint(200, 90000)
        self.moved = random.uniform(0, 9e6)
        self.host = random.choice(("gpu-17", "ip-10-0-3-4", "node-a"))

    def trace(self, source: dict[str, Any], rank: int) -> dict[str, Any]:
        """Give the capture of one rank."""
        work = sorted(
            (e for e in source["traceEvents"] if e.get("cat") == "kernel"), key=lambda e: e["ts"]
        )
        until = {id(e): n["ts"] for e, n in pairwise(work)}
        events = [self.event(e, rank, until.get(id(e))) for e in source["traceEvents"]]
        told = {k: v for k, v in source.items() if k != "traceEvents"} | {"traceEvents": events}
        if self.ranks > 1:
            told["distributedInfo"] = {"rank": rank, "world_size": self.ranks, "backend": "nccl"}
        return told

    def event(self, event: Event, rank: int, until: float | None) -> Event:
        made = dict(event)
        if event["ph"] != "M":
            made["ts"] = event["ts"] + self.moved + rank * 0.5
        if event["pid"] != 0:
            made["pid"] = self.pid + rank
            made["tid"] = self.pid + rank if event.get("tid") else event.get("tid", 0)
        if event.get("cat") == "kernel":
            made["dur"] = event["dur"] * self.shrink
            if self.benign == "busy" and until is not None and until - event["ts"] < 100:
                made["dur"] = (until - event["ts"]) * 0.97
        return made

    def lines(self) -> list[str]:
        """Give the lines of the engine's log."""
        if self.log == "sglang":
            return [
                "[2026-05-06 09:00:00] server_args=ServerArgs(model_path='/models/m8b', "
                "disable_cuda_graph=True, tp_size=1)",
                *(f"[2026-05-06 09:01:{n:02d} TP0] Decode batch. #running-req: 1, #token: 900, "
                  "token usage: 0.01, cuda graph: False, gen throughput (token/s): 513.1, "
                  "#queue-req: 0, " for n in range(0, 40, 2)),
            ]  # fmt: skip
        eager = "enforce_eager=True, " if self.log == "vllm" else ""
        head = "(EngineCore_DP0 pid=3000) "
        words = [
            f"{head}WARNING 05-06 09:00:01 [vllm.py:431] Cudagraph is disabled under eager mode"
        ]
        return [
            f"{head}INFO 05-06 09:00:00 [core.py:93] Initializing a V1 LLM engine (v0.11.0) with "
            f"config: model='/models/m8b', {eager}tensor_parallel_size=1, dtype=torch.bfloat16",
            *(words if self.log == "vllm_words" or self.seed % 2 else []),
            *(f"(APIServer pid=2990) INFO 05-06 09:01:{n}0 [loggers.py:271] Engine 000: Avg prompt "
              "throughput: 0.0 tokens/s, Avg generation throughput: 513.1 tokens/s, "
              "Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.6%"
              for n in range(6)),
        ]  # fmt: skip

    def write(self, source: dict[str, Any], folder: Path) -> None:
        """Write the files of the story."""
        folder.mkdir()
        if self.benign != "log_only":
            for rank in range(self.ranks):
                text = json.dumps(self.trace(source, rank)).encode()
                name = f"{self.host}_rank{rank}.pt.trace.json"
                if self.seed % 2:
                    (folder / f"{name}.gz").write_bytes(gzip.compress(text))
                else:
                    (folder / name).write_bytes(text)
        if self.log != "none":
            (folder / "engine.log").write_text("\n".join(self.lines()) + "\n", "utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_waiting_for_launches_is_told_from_a_busy_device(
    seed: int, tmp_path: Path, shared: Path, right: Callable[..., dict[str, Any]]
) -> None:
    path = next((shared / "cases").glob("o04_*/*.trace.json"))
    story = Story(seed)
    story.write(json.loads(path.read_text("utf-8")), tmp_path / "run")
    if story.benign:
        right(tmp_path / "run", "")
        return
    said = right(
        tmp_path / "run",
        "cpu_launch_bound",
        {"ranks": list(range(story.ranks))},
        never=("slow_operator", "slow_rank", "gpu_throttle", "slow_path", "graph_fallback"),
    )
    finding = said["findings"][0]
    assert finding["numbers"]["kernels_count"] == 320 * story.ranks
    if story.log != "none":
        read = [e["text"] for e in finding["evidence"] if e["source"].startswith("engine.log:")]
        assert any("eager" in text or "graph" in text for text in read)
