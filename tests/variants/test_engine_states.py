"""States of an engine that its log tells, each beside one that looks the same and is none."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

BEGIN = datetime(2026, 3, 4, 5, 6)
START = (
    "(EngineCore_DP0 pid=7) INFO {at} [core.py:93] Initializing a V1 LLM engine (v0.15.0) with "
    "config: model='/models/m8b', tensor_parallel_size=1, dtype=torch.bfloat16{more}"
)


def stamp(second: float) -> str:
    return f"{BEGIN + timedelta(seconds=second):%m-%d %H:%M:%S}"


def full(second: float) -> str:
    return f"{BEGIN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"


def vllm(
    second: float, rate: float, running: int = 8, waiting: int = 0, prompts: float = 0.0
) -> str:
    return (
        f"(APIServer pid=9) INFO {stamp(second)} [loggers.py:271] Engine 000: "
        f"Avg prompt throughput: {prompts:.1f} tokens/s, Avg generation throughput: {rate:.1f} "
        f"tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: 31.0%"
    )


def sglang(second: float, rate: float, running: int = 16, more: str = "cuda graph: True") -> str:
    return (
        f"[{full(second)} TP0] Decode batch. #running-req: {running}, #token: 91000, "
        f"token usage: 0.44, {more}, gen throughput (token/s): {rate:.2f}, #queue-req: 0, "
    )


def head(more: str = "") -> str:
    return START.format(at=stamp(0), more=more)


def compiled(second: float) -> str:
    return (
        f"(EngineCore_DP0 pid=7) INFO {stamp(second)} [backends.py:278] Compiling a graph for "
        "dynamic shape takes 41.50 s"
    )


def steady(first: int, last: int, rate: float = 400, running: int = 8) -> list[str]:
    return [vllm(second, rate, running) for second in range(first, last, 10)]


def growing(*, kept: bool) -> list[str]:
    """Load that triples; output grows with it, or falls."""
    return [
        vllm(60 + 10 * n, 400 + 20 * n if kept else 400 - 12 * n, running=8 + 2 * n, prompts=50 * n)
        for n in range(18)
    ]


def storm(rate: float) -> list[str]:
    """Forty quiet intervals, in five of which a request is logged many hundred times."""
    told = [head()]
    for n in range(40):
        second = 60 + 10 * n
        inside = 20 <= n < 25
        for k in range(900 if inside else 3):
            told.append(
                f"(APIServer pid=9) DEBUG {stamp(second + k // 100)} [serving.py:88] tick {k} of "
                "the stream was written"
            )
        told.append(vllm(second + 9, rate if inside else 400))
    return told


def paused(second: float) -> list[str]:
    """Decode lines every two seconds, then a pause of 130 s, and lines again."""
    before = [sglang(2 * n, 640) for n in range(20)]
    until = 38 + second
    return [
        *before,
        sglang(until, 640 * 2 / second),
        *(sglang(until + 2 * n, 640) for n in range(1, 9)),
    ]


def hung(second: float) -> str:
    at = BEGIN + timedelta(seconds=second)
    return (
        f"kern  :err   : {at:%Y-%m-%dT%H:%M:%S},283302+00:00 INFO: task python3:4711 blocked for "
        "more than 122 seconds."
    )


def detokenizer(*, going: bool) -> list[str]:
    check = (
        f"[{full(70)}] Health check failed. Server couldn't get a response from detokenizer "
        "for last 20 seconds. tic start time: 05:06:50. last_heartbeat time: 05:06:48"
    )
    before = [sglang(2 * n, 640) for n in range(25)]
    inside = [sglang(50 + 2 * n, 640) for n in range(10)] if going else []
    after = [sglang(72 + 2 * n, 640) for n in range(9)]
    if not going:
        after[0] = sglang(72, 640 * 2 / 24)
    return [*before, *inside, check, *after]


def chunked(option: str) -> list[str]:
    told = [head(f", {option}")]
    for n in range(24):
        mixed = n % 3 == 0
        told.append(vllm(60 + 10 * n, 90 if mixed else 400, prompts=8000 if mixed else 0))
    return told


def loaded(second: float) -> str:
    head = f"(EngineCore_DP0 pid=7) INFO {stamp(second)}"
    return f"{head} [loader.py:1] Loading weights took 12.5 seconds"


def drafts(*, fall: bool) -> list[str]:
    rates = [0.7 if n < 20 or not fall else 0.4 for n in range(40)]
    return [
        sglang(2 * n, 640, more=f"accept len: 2.4, accept rate: {rate}, cuda graph: True")
        for n, rate in enumerate(rates)
    ]


def collected(ms: float) -> list[str]:
    return [
        head(), *steady(60, 120),
        *(f"(Worker_TP3 pid=44) INFO {stamp(130 + 60 * n)} [gc.py:4] GC took {ms * (1 + n):.3f}ms "
          "to complete. Collected 8812 objects in GC generation 2." for n in range(3)),
        *steady(310, 400),
    ]  # fmt: skip


WAITING = """request,sent,first_token,finished,prompt_tokens,result
{rows}
"""


def clients(seconds: float) -> str:
    rows = []
    for n in range(6):
        sent = BEGIN + timedelta(seconds=100 + 2 * n)
        first, last = sent + timedelta(seconds=seconds), sent + timedelta(seconds=seconds + 9)
        times = ",".join(f"{t:%Y-%m-%dT%H:%M:%S}Z" for t in (sent, first, last))
        rows.append(f"r{n},{times},900,ok")
    return WAITING.format(rows="\n".join(rows))


IDLE = [vllm(60 + 10 * n, 400 if n < 3 or n > 9 else 0, running=8 if n < 3 or n > 9 else 0)
        for n in range(20)]  # fmt: skip
GRAPHS = [
    sglang(2 * n, 640 if n % 3 else 300, more=f"cuda graph: {bool(n % 3)}") for n in range(30)
]
ALWAYS_OFF = [sglang(2 * n, 300, more="cuda graph: False") for n in range(30)]
LARGE = [sglang(2 * n, 640 if n < 25 else 900, running=16 if n < 25 else 200,
                more=f"cuda graph: {n < 25}") for n in range(30)]  # fmt: skip
SKIPPED = (
    f"(Worker_TP0 pid=8) WARNING {stamp(9)} [vllm.py:9] Skipping CUDA graph capture. To turn on "
    "CUDA graph capture, set another backend."
)
ANEW = START.format(at=stamp(500), more="")
STOPPED = (
    f"(APIServer pid=9) INFO {stamp(480)} [launcher.py:9] [shutdown] EngineCore: trigger received "
    "signal=SIGTERM"
)
Files = dict[str, Iterable[str] | str]

STORIES: dict[str, tuple[str, Files]] = {
    "compile in serving": ("compile_in_serving", {"a.log": [
        head(), *steady(60, 200), compiled(250), *steady(260, 400)]}),
    "compile at start": ("", {"a.log": [head(), compiled(30), *steady(60, 400)]}),
    "compile at a second start": ("", {"a.log": [
        head(), *steady(60, 400), vllm(410, 0, running=0), ANEW, compiled(540),
        *steady(600, 900)]}),
    "graphs off at times": ("graph_fallback", {"a.log": GRAPHS}),
    "graphs never on": ("", {"a.log": ALWAYS_OFF}),
    "graphs off for a larger batch": ("", {"a.log": LARGE}),
    "capture skipped": ("graph_fallback", {"a.log": [head(), SKIPPED, *steady(60, 300)]}),
    "capture skipped by choice": ("", {"a.log": [
        head(", enforce_eager=True"), SKIPPED, *steady(60, 300)]}),
    "long collections": ("host_pause", {"a.log": collected(3000)}),
    "short collections": ("", {"a.log": collected(3)}),
    "whole prompts": ("prefill_interference", {"a.log": chunked("enable_chunked_prefill=False")}),
    "chunked prompts": ("", {"a.log": chunked("enable_chunked_prefill=True")}),
    "detokenizer": ("tokenizer_stall", {"a.log": detokenizer(going=True)}),
    "a detokenizer that waits for the scheduler": ("", {"a.log": detokenizer(going=False)}),
    "held before the scheduler": ("tokenizer_stall", {"a.log": IDLE, "client.csv": clients(45)}),
    "an idle engine with quick answers": ("", {"a.log": IDLE, "client.csv": clients(1)}),
    "storage": ("storage_stall", {"a.log": paused(130), "dmesg.txt": [hung(165)]}),
    "a stuck task elsewhere in time": ("", {"a.log": [sglang(2 * n, 640) for n in range(90)],
                                            "dmesg.txt": [hung(160)]}),
    "weights in serving": ("", {"a.log": [
        head(), *steady(60, 200), loaded(205), *steady(210, 300)]}),
    "weights at start": ("", {"a.log": [head(), loaded(30), *steady(60, 300)]}),
    "log storm": ("log_storm", {"a.log": storm(180)}),
    "harmless storm": ("", {"a.log": storm(402)}),
    "begun anew": ("worker_crash", {"a.log": [head(), *steady(60, 470), ANEW, *steady(560, 700)]}),
    "stopped and begun anew": ("", {"a.log": [
        head(), *steady(60, 470), STOPPED, ANEW, *steady(560, 700)]}),
    "more load": ("", {"a.log": growing(kept=True)}),
    "fewer drafts accepted": ("", {"a.log": drafts(fall=True)}),
}  # fmt: skip
SAID = {  # what stands there for information
    "more load": "load_growth",
    "fewer drafts accepted": "load_growth",
    "harmless storm": "no_effect",
    "an idle engine with quick answers": "idle",
}


@pytest.mark.parametrize("story", STORIES)
def test_a_state_of_an_engine_is_told_from_what_looks_like_it(
    story: str, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    klass, files = STORIES[story]
    folder = tmp_path / "run"
    folder.mkdir()
    for name, lines in files.items():
        text = lines if isinstance(lines, str) else "\n".join(lines) + "\n"
        (folder / name).write_text(text, "utf-8")
    said = right(folder, klass)
    told = {f["class"] for f in said["findings"] if f["severity"] == "info"}
    if story in SAID:
        assert SAID[story] in told
