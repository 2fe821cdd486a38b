"""A KV cache that is too small, and what looks like it: more load, longer prompts, a full cache."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

DIALECTS = ("v1", "v1", "v1_plain", "v1_counted", "v0", "sglang", "sglang")
BENIGN = ("full", "growth", "long_prompts", "fewer", "idle", "few_preemptions")
METRICS = {
    "preempted": "num_preemptions_total",
    "prompts": "prompt_tokens_total",
    "tokens": "generation_tokens_total",
    "done": "request_success_total",
    "running": "num_requests_running",
    "waiting": "num_requests_waiting",
    "kv": "kv_cache_usage_perc",
}


@dataclass
class Story:
    """What happens to an engine of `most` requests that it could run at once."""

    seed: int

    def __post_init__(self) -> None:
        self.random = random = Random(self.seed)
        self.benign = BENIGN[self.seed // 3 % len(BENIGN)] if self.seed % 3 == 2 else ""
        self.dialect = DIALECTS[self.seed % len(DIALECTS)]
        self.most = random.choice((12, 24, 64, 200))
        self.per_request = random.uniform(9, 40)
        self.engines = random.choice((1, 1, 2, 4)) if self.dialect.startswith("v1") else 1
        self.struck = random.randrange(self.engines)
        self.lines = random.choice((18, 24, 40))
        self.onset = random.choice((4, 8))
        self.begin = datetime(2026, random.randint(1, 12), random.randint(1, 28), 18)
        self.every = random.choice((1, 2)) if self.dialect == "sglang" else 10
        self.scrapes = random.choice(("two", "timed", "none"))
        if self.dialect == "v1" and self.benign == "few_preemptions":
            self.scrapes = "two"
        self.first = random.choice((0, 3, 1200))
        self.preempted = random.randint(60, 900)

    def state(self, at: int, engine: int) -> dict[str, float]:
        """Give the engine's figures at one line."""
        jitter = self.random.uniform(0.98, 1.02)
        rate = self.per_request * self.most * jitter
        part = min(max((at - self.onset) / 7, 0), 1) if engine == self.struck else 0
        said = {"running": self.most, "waiting": 0, "prompts": 0.0, "preempted": 0}
        said |= {"kv": min(0.6 + 0.35 * at / (self.onset + 1), 0.93), "rate": rate}
        if not self.benign and part:
            back = round(0.7 * self.most * part)
            said |= {"running": self.most - back, "waiting": back, "preempted": self.each(at)}
            said |= {"kv": self.random.uniform(0.972, 0.999), "rate": rate * (1 - 0.9 * part)}
        elif self.benign in ("growth", "few_preemptions") and part:
            said |= {"waiting": round(self.most * part), "prompts": rate * 2, "kv": 0.975}
            said["preempted"] = int(self.benign == "few_preemptions" and at % 5 == 0)
        elif self.benign == "long_prompts" and part:
            back = round(0.5 * self.most * part)
            said |= {"running": self.most - back, "waiting": back, "prompts": rate * 9}
            said |= {"kv": 0.97, "rate": rate * (1 - 0.5 * part)}
        elif self.benign == "full":
            said["kv"] = self.random.uniform(0.96, 0.985)
        elif self.benign == "fewer":
            said["running"] = round(self.most * (1 - 0.7 * part))
            said |= {"kv": 0.9 * (1 - 0.7 * part), "rate": rate * (1 - 0.6 * part)}
        elif self.benign == "idle" and part == 1:
            said |= {"running": 0, "kv": 0.0, "rate": 0.0}
        return said

    def each(self, at: int) -> int:
        return 1 + self.preempted * 2 * at // self.lines**2

    def log(self) -> list[str]:
        """Give the lines of the engine's log."""
        told = [self.head()]
        for at in range(self.lines):
            for engine in range(self.engines):
                told += self.line(self.begin + timedelta(seconds=self.every * at), engine, at)
        return told

    def head(self) -> str:
        when = self.begin - timedelta(minutes=5)
        if self.dialect == "sglang":
            return f"[{when:%Y-%m-%d %H:%M:%S} TP0] max_total_num_tokens=153600, context_len=32768"
        place = "[kv_cache_utils.py:1087]" if self.dialect != "v0" else "executor_base.py:110]"
        return f"INFO {when:%m-%d %H:%M:%S} {place} GPU KV cache size: 153,600 tokens"

    def line(self, when: datetime, engine: int, at: int) -> Iterator[str]:
        said = self.state(at, engine)
        kv = f"{100 * said['kv']:.1f}%"
        if self.dialect == "sglang":
            if said["preempted"] and not self.benign:
                yield (
                    f"[{when:%Y-%m-%d %H:%M:%S} TP0] KV cache pool is full. Retract requests. "
                    f"#retracted_reqs: {said['preempted']}, #new_token_ratio: 0.41 -> 0.63"
                )
            if said["running"]:
                yield (
                    f"[{when:%Y-%m-%d %H:%M:%S} TP0] Decode batch. "
                    f"#running-req: {said['running']}, #token: 91000, "
                    f"token usage: {said['kv']:.2f}, cuda graph: True, gen throughput (token/s): "
                    f"{said['rate']:.2f}, #queue-req: {said['waiting']}, "
                )
            return
        rates = (
            f"Avg prompt throughput: {said['prompts']:.1f} tokens/s, Avg generation throughput: "
            f"{said['rate']:.1f} tokens/s, Running: {said['running']} reqs, "
        )
        if self.dialect == "v0":
            if said["preempted"] and not self.benign:
                yield (
                    f"WARNING {when:%m-%d %H:%M:%S} scheduler.py:1754] Sequence group cmpl-{at} is "
                    "preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV "
                    f"cache space. total_cumulative_preemption_cnt={self.total(at)}"
                )
            yield (
                f"INFO {when:%m-%d %H:%M:%S} metrics.py:455] {rates}Swapped: 0 reqs, "
                f"Pending: {said['waiting']} reqs, GPU KV cache usage: {kv}, "
                "CPU KV cache usage: 0.0%."
            )
            return
        counted = f"Preemptions: {said['preempted']}, " if self.dialect == "v1_counted" else ""
        prefix = "(APIServer pid=60) " if self.dialect != "v1_plain" else ""
        yield (
            f"{prefix}INFO {when:%m-%d %H:%M:%S} [loggers.py:271] Engine {engine:03d}: {rates}"
            f"Waiting: {said['waiting']} reqs, {counted}GPU KV cache usage: {kv}, "
            "Prefix cache hit rate: 2.1%"
        )

    def total(self, at: int) -> int:
        return self.first + sum(self.each(n) for n in range(self.onset + 1, at + 1))

    def metrics(self, at: int) -> str:
        """Give a scrape at one moment."""
        told = ["# TYPE vllm:num_preemptions_total counter"]
        for engine in range(self.engines):
            said = self.state(at, engine)
            grave = not self.benign and engine == self.struck
            arrives = self.benign in ("growth", "long_prompts", "few_preemptions")
            said |= {"preempted": self.total(at) if grave else self.first, "prompts": 91230.0}
            said |= {"prompts": 91230.0 + 5000 * at * arrives, "done": 40.0 + 20 * at * arrives}
            if self.benign == "few_preemptions":
                said["preempted"] += at // 3
            said["tokens"] = 1004511.0 + 100 * at
            told += [
                f'vllm:{METRICS[name]}{{engine="{engine}",model_name="m70b"}} {value}'
                for name, value in said.items() if name in METRICS
            ]  # fmt: skip
        return "\n".join(told) + "\n"

    @property
    def counted(self) -> int | None:
        """Give the preemptions that the counter's first and last value tell."""
        if self.scrapes == "none" or not self.dialect.startswith("v1"):
            return None
        return self.total(self.lines - 1) - self.first

    def write(self, folder: Path) -> None:
        """Write the files of the story."""
        folder.mkdir()
        text = "\n".join(self.log()) + "\n"
        name = self.random.choice(("vllm.log", "server.out", "api_server-0.txt"))
        if self.seed % 4 == 1:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text, "utf-8")
        if not self.dialect.startswith("v1") or self.scrapes == "none":
            return
        for number, at in enumerate((0, self.lines // 2, self.lines - 1)):
            when = self.begin + timedelta(seconds=self.every * at)
            stamp = f"{when:%Y%m%dT%H%M%SZ}" if self.scrapes == "timed" else f"t{number}"
            (folder / f"metrics_{stamp}.prom").write_text(self.metrics(at), "utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_preemption_is_told_from_load(
    seed: int, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    story = Story(seed)
    story.write(tmp_path / "run")
    if story.benign:
        right(tmp_path / "run", "")
        return
    said = right(
        tmp_path / "run",
        "kv_preemption",
        {"components": ["scheduler", "kv_cache"], "ranks": []},
        never=("slow_path", "collective_missing_rank", "host_pause", "admission_blocked"),
    )
    if story.counted is not None:
        assert said["findings"][0]["numbers"]["preemptions_count"] == story.counted
    assert said["findings"][0]["severity"] == "critical"
    evidence = said["findings"][0]["evidence"]
    assert any("KV cache" in e["text"] for e in evidence)
