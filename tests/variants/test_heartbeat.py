"""The message that no block of shared memory is free: a heartbeat of idleness, or of a hang."""

import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

HANG = range(13, 17)  # seeds whose engine has requests and computes nothing
START = range(17, 20)  # seeds that wait while the service starts


class Log:
    """A log of vLLM, a line at a time."""

    def __init__(self, rng: Random) -> None:
        """Draw names of processes and the dialect."""
        self.rng, self.at = rng, 3600 + rng.randrange(3600)
        self.lines: list[str] = []
        pid = rng.randrange(10, 90_000)
        label, number = rng.choice((("APIServer", pid), ("ApiServer_0", pid)))
        self.server = f"({label} pid={number}) "
        core = rng.choice(("EngineCore_DP0", "EngineCore_0", "EngineCore", "Worker_TP1"))
        self.core = f"({core} pid={pid + 29}) "
        self.engine = rng.choice(("Engine 000: ", "Engine 000: ", ""))
        self.unit = rng.choice(("seconds", "second(s)"))

    def say(self, who: str, source: str, text: str, then_s: int) -> None:
        """Write a line, and let time pass."""
        hour, rest = divmod(self.at, 3600)
        stamp = f"05-23 {hour:02}:{rest // 60:02}:{rest % 60:02}"
        self.lines.append(f"{who}INFO {stamp} [{source}:{self.rng.randrange(90, 900)}] {text}")
        self.at += then_s

    def report(self, running: int, rate: float, prompt: float = 0.0) -> None:
        """Write the report of ten seconds."""
        text = (
            f"{self.engine}Avg prompt throughput: {prompt:.1f} tokens/s, "
            f"Avg generation throughput: {rate:.1f} tokens/s, Running: {running} reqs, "
            f"Waiting: 0 reqs, GPU KV cache usage: {running * 2.2:.1f}%, "
            "Prefix cache hit rate: 41.0%"
        )
        self.say(self.server, "loggers.py", text, 10)

    def heartbeats(self, count: int) -> None:
        """Write the message once a minute."""
        for _ in range(count):
            text = (
                f"No available shared memory broadcast block found in 60 {self.unit}. This "
                "typically happens when some processes are hanging or doing some time-consuming "
                "work (e.g. compilation, weight/kv cache quantization)."
            )
            self.say(self.core, "shm_broadcast.py", text, 60)


@pytest.mark.parametrize("seed", range(20))
def test_the_message_alone_is_no_fault(
    seed: int, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    rng = Random(300 + seed)
    log = Log(rng)
    if seed in START:
        log.say(log.core, "core.py", "Initializing a V1 LLM engine (v0.11.2) with config: x", 30)
        log.heartbeats(rng.randrange(1, 4))
        log.say(
            log.core,
            "core.py",
            "init engine (profile, create kv cache, warmup model) took 189.2 seconds",
            2,
        )
    for _ in range(rng.randrange(2, 6)):
        log.report(running := rng.randrange(1, 6), 150.0 * running, prompt=rng.choice((0.0, 900.0)))
    if seed in HANG:
        for _ in range(rng.randrange(4, 9)):
            log.report(running, 0.0)
        log.heartbeats(rng.randrange(2, 5))
    elif seed not in START:
        log.report(0, rng.choice((0.0, 101.3)))
        log.report(0, 0.0)
        log.heartbeats(rng.randrange(1, 9))
        if rng.random() < 0.7:  # and the next request is served
            log.lines.append(
                f'{log.server}INFO:     203.0.113.9:50122 - "POST /v1/completions HTTP/1.1" 200 OK'
            )
            for _ in range(rng.randrange(1, 4)):
                log.report(1, 166.4, prompt=800.0)
    folder = tmp_path / "run"
    folder.mkdir()
    data = ("\n".join(log.lines) + "\n").encode()
    if rng.random() < 0.3:
        (folder / "vllm.log.gz").write_bytes(gzip.compress(data))
    else:
        (folder / rng.choice(("vllm.log", "gpu-17.out", "serve.txt"))).write_bytes(data)
    if seed in HANG:
        right(folder, "collective_missing_rank", {"ranks": [], "hosts": []})
    else:
        right(folder, "")
