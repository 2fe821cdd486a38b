"""Host work of each iteration that grew with a version, and what looks like it."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

BENIGN = ("same", "device", "batch", "one_rank", "noise", "hidden", "alone")


@dataclass
class Story:
    """Iterations of two versions; in the second the host's part is longer on all ranks."""

    seed: int

    def __post_init__(self) -> None:
        self.random = random = Random(self.seed)
        self.benign = BENIGN[self.seed // 3 % len(BENIGN)] if self.seed % 3 == 2 else ""
        self.ranks = random.choice((1, 2, 4, 8, 16))
        self.steps = random.choice((32, 64, 120))
        self.batch = random.choice((8, 64, 256))
        self.device = random.uniform(9, 40)
        self.usual = self.device * random.uniform(1.02, 1.08)
        self.growth = self.device * random.uniform(0.2, 0.6)
        self.dialect = random.choice(("rank", "rank", "plain", "newer", "stats"))
        if self.dialect == "stats":
            self.ranks = 1
        self.lone = not self.benign and self.seed % 7 == 4  # no baseline at all
        if self.lone:
            self.growth = self.device * random.uniform(0.35, 0.7)
        self.begin = datetime(2026, random.randint(1, 12), random.randint(1, 28), 8)
        self.folders = self.seed % 5 == 3

    def times(self, rank: int, step: int, *, late: bool) -> tuple[float, float]:
        """Give host and device time of one iteration in ms."""
        jitter = self.random.uniform(0.99, 1.01)
        host, device = self.usual * jitter, self.device * self.random.uniform(0.995, 1.005)
        if late and not self.benign:
            host += self.growth
        elif late and self.benign in ("device", "batch"):
            host, device = host + self.growth, device + self.growth
        elif late and self.benign == "one_rank" and rank == self.ranks - 1 and self.ranks > 1:
            host += self.growth
        elif self.benign == "hidden":
            host = self.device * (0.55 if late else 0.4) * jitter
        if step == 7 or (self.benign == "noise" and late and step % 9 == 0):
            host *= 1.9
        return host, device

    def line(self, rank: int, step: int, *, late: bool) -> str:
        """Give the line of one iteration, in the dialect of the log."""
        host, device = self.times(rank, step, late=late)
        when = self.begin + timedelta(milliseconds=step * (host + 1))
        batch = self.batch * (2 if late and self.benign == "batch" else 1)
        first = step == 0
        states = (
            f"states = {{'num_ctx_requests': 0, 'num_ctx_tokens': 0, "
            f"'num_generation_tokens': {batch}}}"
        )
        before = "N/Ams" if first else f"{device:.4f}ms"
        head = f"[{when:%m/%d/%Y-%H:%M:%S}] [TRT-LLM] "
        head += f"[RANK {rank}] [I] " if self.dialect == "rank" else "[I] "
        figures = (
            f"iter = {1200 + step}, global_rank = {rank}, rank = {rank}, "
            f"currank_total_requests = 0/0, "
        )
        if self.dialect == "newer":
            figures += f"num_scheduled_requests = {batch}, kv_cache_util = 0.41, "
        figures += f"host_step_time = {host:.4f}ms, prev_device_step_time = {before}, "
        figures += f"timestamp = {when:%Y-%m-%d %H:%M:%S}, "
        if self.dialect != "newer":
            figures += f"num_scheduled_requests: {batch}, "
        return head + figures + states

    def stats(self, step: int, *, late: bool) -> str:
        """Give the statistics of one iteration, as the server's metrics have them."""
        host, device = self.times(0, step, late=late)
        when = self.begin + timedelta(milliseconds=step * (host + 1))
        batch = self.batch * (2 if late and self.benign == "batch" else 1)
        said: dict[str, Any] = {
            "iter": 1200 + step, "iterLatencyMS": 2 * host, "hostStepTimeMS": host,
            "timestamp": f"{when:%m-%d-%Y %H:%M:%S}.000000",
            "numActiveRequests": batch, "numQueuedRequests": 0,
            "inflightBatchingStats": {"numContextRequests": 0, "numCtxTokens": 0,
                                      "numGenRequests": batch, "numPausedRequests": 0},
        }  # fmt: skip
        if step:
            said["prevDeviceStepTimeMS"] = device
        return json.dumps(said)

    def text(self, *, late: bool) -> str:
        """Give a whole file."""
        if self.dialect == "stats":
            return "\n".join(self.stats(step, late=late) for step in range(self.steps)) + "\n"
        lines = [
            self.line(rank, step, late=late)
            for step in range(self.steps)
            for rank in range(self.ranks)
        ]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """Write the files of the story."""
        end = ".jsonl" if self.dialect == "stats" else self.random.choice((".log", ".txt", ".out"))
        now = folder / (f"now/trtllm{end}" if self.folders else f"run_v1.3.0rc18{end}")
        usual = folder / (f"baseline/trtllm{end}" if self.folders else f"baseline_v1.3.0rc17{end}")
        for path, late in ((now, True), (usual, False)):
            if not late and (self.lone or self.benign == "alone"):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            text = self.text(late=late).encode()
            if self.seed % 6 == 2:
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(text))
            else:
                path.write_bytes(text)


@pytest.mark.parametrize("seed", range(20))
def test_host_work_is_told_from_device_work_and_load(
    seed: int, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    story = Story(seed)
    story.write(tmp_path / "run")
    if story.benign:
        right(tmp_path / "run", "")
        return
    parts = ["executor", "scheduler"] if story.lone else ["executor"]
    said = right(
        tmp_path / "run",
        "scheduler_overhead",
        {"components": parts, "ranks": []},
        never=("late_rank", "slow_operator", "slow_rank"),
    )
    finding = said["findings"][0]
    assert finding["severity"] in ("high", "medium", "critical")
    if not story.lone:
        assert finding["numbers"]["host_delta_ms"] == pytest.approx(story.growth, rel=0.05)
        assert finding["numbers"]["device_delta_ms"] == pytest.approx(0, abs=0.2)
