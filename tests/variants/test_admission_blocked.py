"""A request that can never be scheduled, and what looks like it: idle, start-up, a hang."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

BENIGN = ("idle", "startup", "busy", "short", "remote", "queue", "idle")


@dataclass
class Story:
    """An engine whose queue is blocked from line `onset` for `blocked` lines."""

    seed: int

    def __post_init__(self) -> None:
        self.random = random = Random(self.seed)
        self.benign = BENIGN[self.seed // 3 % len(BENIGN)] if self.seed % 3 == 2 else ""
        self.kv = random.choice((16384, 81920, 153600))
        self.admitted = random.choice((self.kv * 2, self.kv * 4 - 512))
        self.engines = random.choice((1, 1, 2))
        self.struck = random.randrange(self.engines)
        self.onset = random.choice((0, 6, 9)) if not self.benign else 6
        self.onset = 0 if self.benign == "startup" else self.onset
        self.blocked = random.choice((9, 30, 50))
        self.ends = random.random() < 0.7
        self.version = random.choice(("v0", "v1", "v1", "plain", "trtllm"))
        if self.version in ("v0", "trtllm"):
            self.engines, self.struck = 1, 0
        self.table = random.choice(("csv", "jsonl", "none"))
        self.begin = datetime(2026, random.randint(1, 12), random.randint(1, 28), 7, 24)
        self.name = str(random.choice((41, 7, 1003)))
        self.tokens = self.kv + random.randint(300, 20000)

    def at(self, line: int) -> datetime:
        return self.begin + timedelta(seconds=10 * line)

    def state(self, at: int, engine: int) -> tuple[int, int, float, float]:
        """Give running, waiting, share of the KV cache in use and tokens a second."""
        inside = self.onset <= at < self.onset + self.blocked and engine == self.struck
        waiting = 1 + (at - self.onset) // 5
        if inside and not self.benign:
            return 0, waiting, 0.0, 0.0
        if inside and self.benign == "idle":
            return 0, 0, 0.0, 0.0
        if inside and self.benign in ("busy", "queue"):
            return (8, waiting, 0.6, 210.0) if self.benign == "queue" else (8, 0, 0.6, 200.0)
        if inside and self.benign == "short":
            return (0, 1, 0.0, 0.0) if at == self.onset + 2 else (3, 0, 0.1, 120.0)
        if inside and self.benign == "remote":  # blocks wait for a transfer: the cache is in use
            return 0, waiting, 0.3, 0.0
        if inside and self.benign == "startup":
            return 0, waiting, 0.0, 0.0
        return 5, 0, 0.08, self.random.uniform(110, 125)

    def log(self) -> list[str]:
        """Give the lines of the engine's log."""
        told = self.head()
        last = self.onset + self.blocked + (6 if self.ends or self.benign else 0)
        for at in range(last):
            told += [self.line(at, engine) for engine in range(self.engines)]
            if at % 6 == 3:
                told.append('INFO:     192.0.2.7:39012 - "GET /health HTTP/1.1" 200 OK')
                told.append(
                    f"INFO {self.at(at):%m-%d %H:%M:%S} [shm_broadcast.py:705] No available shared "
                    "memory broadcast block found in 60 seconds."
                )
            if self.benign == "startup" and at == self.onset + 3:
                told.append(
                    f"INFO {self.at(at):%m-%d %H:%M:%S} [monitor.py:34] torch.compile takes "
                    "20.97 s in total"
                )
        return told

    def head(self) -> list[str]:
        when = f"{self.begin - timedelta(minutes=2):%m-%d %H:%M:%S}"
        if self.version == "trtllm":
            return []
        return [
            f"INFO {when} [core.py:93] Initializing a V1 LLM engine (v0.19.1) with config: "
            f"model='/models/m31b', tensor_parallel_size=2, max_seq_len={self.admitted}",
            f"INFO {when} [kv_cache_utils.py:1087] GPU KV cache size: {self.kv:,} tokens",
        ]

    def line(self, at: int, engine: int) -> str:
        running, waiting, kv, rate = self.state(at, engine)
        when = f"{self.at(at):%m-%d %H:%M:%S}"
        rates = (
            f"Avg prompt throughput: {rate / 3:.1f} tokens/s, Avg generation throughput: "
            f"{rate:.1f} tokens/s, Running: {running} reqs, "
        )
        usage = f"GPU KV cache usage: {100 * kv:.1f}%, "
        if self.version == "v0":
            return (
                f"INFO {when} metrics.py:455] {rates}Swapped: 0 reqs, Pending: {waiting} reqs, "
                f"{usage}CPU KV cache usage: 0.0%."
            )
        prefix = "" if self.version == "plain" else "(APIServer pid=100) "
        return (
            f"{prefix}INFO {when} [loggers.py:271] Engine {engine:03d}: {rates}Waiting: {waiting} "
            f"reqs, {usage}Prefix cache hit rate: 3.0%"
        )

    def requests(self) -> list[dict[str, Any]]:
        """Give what the client wrote of each request."""
        end = self.onset + self.blocked
        rows: list[dict[str, Any]] = []
        if not self.benign:
            rows.append({"request": self.name, "sent": self.at(self.onset) - timedelta(seconds=2),
                         "prompt_tokens": self.tokens, "result": "client timeout",
                         "finished": self.at(end) - timedelta(seconds=2)})  # fmt: skip
        rows += [
            {"request": str(2000 + n), "sent": self.at(self.onset + 5 * n) + timedelta(seconds=3),
             "prompt_tokens": 900 + n, "result": "ok",
             "finished": self.at(end) + timedelta(seconds=7 + n)}
            for n in range(self.blocked // 5)
        ]  # fmt: skip
        return rows

    def write(self, folder: Path) -> None:
        """Write the files of the story."""
        folder.mkdir()
        name = self.random.choice(("vllm.log", "engine.txt", "pod-0.out"))
        text = ("\n".join(self.log()) + "\n").encode()
        if self.seed % 5 == 2:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text))
        else:
            (folder / name).write_bytes(text)
        rows = self.requests()
        if self.table == "csv":
            lines = [",".join(rows[0])] if rows else []
            for row in rows:
                sent, done = f"{row['sent']:%H:%M:%S}", f"{row['finished']:%H:%M:%S}"
                lines.append(
                    ",".join([row["request"], sent, str(row["prompt_tokens"]), row["result"], done])
                )
            (folder / "client.csv").write_text("\n".join(lines) + "\n", "utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_a_blocked_queue_is_told_from_idleness_and_start(
    seed: int, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    story = Story(seed)
    story.write(tmp_path / "run")
    if story.benign:
        right(tmp_path / "run", "")
        return
    named = story.table == "csv"
    said = right(
        tmp_path / "run",
        "admission_blocked",
        {"components": ["scheduler"], "requests": [story.name] if named else []},
        never=("collective_missing_rank", "kv_preemption", "idle", "host_pause"),
    )
    numbers = said["findings"][0]["numbers"]
    lasts = 10 * (story.blocked if story.ends else story.blocked - 1)
    assert numbers["blocked_s"] == pytest.approx(lasts, abs=1)
    if named:
        assert numbers["prompt_tokens_count"] == story.tokens
    if story.version != "trtllm":
        assert numbers["kv_tokens_count"] == story.kv
