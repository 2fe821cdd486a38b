"""Make a log as several nodes' services write into one file, and measure what reading it costs.

`python bench/logs.py 100` makes 100 MB of vLLM, SGLang, NCCL and tracebacks from a seed, reads it
by the log reader and prints CPU seconds, MB/s and the largest memory. Needs the package installed.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from teller.ingest.readers import log

START: Final = 1_772_618_400
STATS: Final = (
    "Engine 000: Avg prompt throughput: {a:.1f} tokens/s, Avg generation throughput: {b:.1f} "
    "tokens/s, Running: {n} reqs, Waiting: {m} reqs, GPU KV cache usage: {c:.1f}%, "
    "Prefix cache hit rate: {d:.1f}%"
)
DECODE: Final = (
    "Decode batch. #running-req: {n}, #token: {k}, token usage: 0.{m:02d}, cuda graph: True, "
    "gen throughput (token/s): {b:.2f}, #queue-req: {m}, "
)
NCCL: Final = (
    "AllReduce: opCount {k:x} sendbuff 0x{p:x} recvbuff 0x{p:x} count {k} datatype 7 op 0 root 0 "
    "comm 0x55b6aa754530 [nranks=2] stream 0x55b6aa63f7a0",
    "Channel {m:02d}/0 : {n}[{r}] -> {m}[{r}] via NET/IB/{r}/GDRDMA",
    "proxyProgressAsync opId=0x{p:x} op.type=3 op.reqBuff=0x{p:x} op.respSize={n} done",
    "NCCL_IB_TIMEOUT set by environment to {n}.",
)
VLLM: Final = (
    STATS,
    "Added request cmpl-{p:x}-0.",
    "Compiling a graph for dynamic shape takes {c:.2f} s",
    'Request cmpl-{p:x} finished after {a:.3f} s with {k} tokens at "/v1/completions"',
)
VLLM_WEIGHTS: Final = (1, 9, 1, 9)
TRACEBACK: Final = (
    "Traceback (most recent call last):",
    '  File "/opt/vllm/v1/engine/core.py", line {m}, in run_busy_loop',
    "    self._process_engine_step()",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 GiB.",
)


def lines(draw: random.Random) -> Iterator[str]:
    """Give lines without end."""
    now = float(START)
    while True:
        now += draw.expovariate(200)
        civil = time.gmtime(now)
        kind, r = draw.random(), draw.randrange(8)
        what: dict[str, Any] = {
            "a": draw.random() * 9e3, "b": draw.random() * 3e3, "c": draw.random() * 99,
            "d": draw.random() * 99, "n": draw.randrange(256), "m": draw.randrange(99),
            "k": draw.randrange(1 << 22), "p": draw.getrandbits(44), "r": r,
        }  # fmt: skip
        if kind < 0.45:
            stamp = time.strftime("%m-%d %H:%M:%S", civil)
            text = draw.choices(VLLM, VLLM_WEIGHTS)[0].format(**what)
            yield f"(EngineCore_DP{r} pid={700 + r}) INFO {stamp} [core.py:{100 + r}] {text}"
        elif kind < 0.7:
            yield f"node-a:{700 + r}:{1100 + r} [{r}] NCCL INFO {draw.choice(NCCL).format(**what)}"
        elif kind < 0.95:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S", civil)
            yield f"[{stamp} TP{r}] {DECODE.format(**what)}"
        elif kind < 0.99:
            yield f'INFO:     10.0.0.{r}:{40000 + r} - "POST /v1/completions HTTP/1.1" 200 OK'
        else:
            stamp = time.strftime("%m-%d %H:%M:%S", civil)
            head = f"(EngineCore_DP{r} pid={700 + r}) ERROR {stamp} [core.py:700] "
            yield from (head + part.format(**what) for part in TRACEBACK)


def make(path: Path, size_bytes: int, seed: int = 0) -> None:
    """Write a log of about this size."""
    written = 0
    with path.open("w") as file:
        for line in lines(random.Random(seed)):
            written += file.write(line + "\n")
            if written >= size_bytes:
                return


def main() -> None:
    """Measure as the command line says."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("megabytes", type=int, nargs="?", default=100)
    said.add_argument("--keep", type=Path, help="where the log is or will be; else a temporary one")
    told = said.parse_args()
    with tempfile.TemporaryDirectory(prefix="teller-bench-") as made:
        path = told.keep or Path(made) / "service.log"
        if not path.exists():
            make(path, told.megabytes * 1_000_000)
        begun, size = time.process_time(), path.stat().st_size / 1e6
        read = log.read(path)
        used = time.process_time() - begun
    kept = sum(r.lines.num_rows for r in read.records)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(
        f"{size:.0f} MB, {used:.2f} CPU s, {size / used:.1f} MB/s, {kept:,} lines kept, "
        f"largest {largest:.0f} MiB\n"
    )


if __name__ == "__main__":
    main()
