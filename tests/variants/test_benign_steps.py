"""Steps that are longer for a reason, or alone: said for information, never as a fault."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Event = dict[str, Any]


def trace(lasts: list[float], tokens: list[int], rest: list[float]) -> list[Event]:
    """Steps of vLLM in us, each with one kernel as long as itself, and idle time before each."""
    rows: list[Event] = []
    at = 1000.0
    for n, (dur, count, quiet) in enumerate(zip(lasts, tokens, rest, strict=True)):
        at += quiet
        prompt = count > 1
        name = (
            f"execute_context_{int(prompt)}({count if prompt else 0})_generation_{int(not prompt)}"
            f"({int(not prompt)})"
        )
        kernel = {"correlation": n + 1, "stream": 7, "device": 0}
        rows += [
            {"ph": "X", "cat": "user_annotation", "name": name, "pid": 9, "tid": 9, "ts": at,
             "dur": dur, "args": {}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
             "ts": at + 5, "dur": 5, "args": {"correlation": n + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 12,
             "dur": dur - 20, "args": kernel},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 9, "tid": 9,
             "ts": at + 12, "dur": dur - 14, "args": {"correlation": 1000 + n}},
        ]  # fmt: skip
        at += dur + 3
    return rows


STORIES = {
    "one spike": ([1000.0] * 19 + [3100.0] + [1000.0] * 180, None, "isolated_spike"),
    "several spikes": ([3100.0 if n % 8 == 3 else 1000.0 for n in range(40)], None, ""),
    "prefill": (
        [4000.0 if n % 8 == 3 else 1000.0 for n in range(40)],
        [2048 if n % 8 == 3 else 1 for n in range(40)],
        "load_growth",
    ),
    "even": ([1000.0] * 40, None, ""),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_longer_step_is_told_with_its_reason(
    story: str, tmp_path: Path, answer: Callable[[Path], dict[str, Any]]
) -> None:
    lasts, tokens, klass = STORIES[story]
    rows = trace(lasts, tokens or [1] * len(lasts), [0.0] * len(lasts))
    folder = tmp_path / "run"
    folder.mkdir()
    made = {"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": rows}
    (folder / "rank0.pt.trace.json").write_text(json.dumps(made), "utf-8")
    said = answer(folder)
    assert said["verdict"] == "no_fault"
    told = {f["class"] for f in said["findings"] if f["severity"] == "info"}
    assert told == ({klass} if klass else set())
