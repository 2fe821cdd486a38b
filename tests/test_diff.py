"""Two runs compared: what is slower is found with its operator, load and noise are not blamed."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from teller.cli import main

HOUR_US = 3_600_000_000
BASE_NS = 1_790_000_000_000_000_000


def trace(
    path: Path, seed: int, *, hour: int = 0, batches: Sequence[int] = (2, 4, 8), steps: int = 120,
    gemm: float = 1.0, calls: int = 4,
) -> Path:  # fmt: skip
    """Write a trace of decode steps whose kernels take longer with the batch, and by a factor."""
    noise, rows, at = random.Random(seed), [], hour * HOUR_US * 1.0
    for step in range(steps):
        batch, begin = noise.choice(batches), at
        at += 20
        for call in range(calls + 1):
            name, us = ("rms_norm_kernel", 40.0) if call == calls else ("gemm_kernel", 200.0)
            dur = us * (1 + batch / 8) * noise.gauss(1, 0.03)
            dur *= gemm if name == "gemm_kernel" else 1
            number = step * 100 + call + 1
            rows += [
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1,
                 "ts": begin + 3 * call + 1, "dur": 2, "args": {"correlation": number}},
                {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at,
                 "dur": dur, "args": {"stream": 7, "device": 0, "correlation": number}},
            ]  # fmt: skip
            at += dur + 1
        name = f"execute_context_0(0)_generation_{batch}({batch})"
        rows.append({"ph": "X", "cat": "user_annotation", "name": name, "pid": 9, "tid": 1,
                     "ts": begin, "dur": at - begin})  # fmt: skip
        at += noise.uniform(20, 60)
    head = {"baseTimeNanoseconds": BASE_NS, "distributedInfo": {"rank": 0, "world_size": 1}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**head, "traceEvents": rows}), "utf-8")
    return path


class Said:
    """What `teller diff` says: its exit code, its JSON, and what stands on stderr."""

    def __init__(
        self, places: Sequence[Path | str], folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        asked = ["diff", *map(str, places), "--workspace", str(folder / "w")]
        capsys.readouterr()
        self.code = main([*asked, "--format", "json", "--quiet"])
        printed = capsys.readouterr()
        self.err = printed.err
        self.json: dict[str, Any] = json.loads(printed.out) if printed.out else {}

    def change(self, section: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(
            c for c in self.json["changes"] if c["section"] == section and c["name"] == name
        )
        return found


def test_a_slower_kernel_makes_the_run_slower_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = trace(tmp_path / "usual.json", 1)
    now = trace(tmp_path / "now.json", 2, hour=3, gemm=1.25)
    said = Said([usual, now], tmp_path, capsys)
    assert said.code == 1
    assert [f["class"] for f in said.json["findings"] if f["new"]] == ["slow_operator"]
    assert said.json["schema"] == "teller.diff/1"
    assert said.json["answer"] == "slower"
    step = said.change("step", "decode step")
    assert step["slower"]
    assert step["ratio"] == pytest.approx(1.23, abs=0.03)
    assert step["low"] < step["now"] - step["usual"] < step["high"]
    first = next(c for c in said.json["changes"] if c["section"] == "operator")
    assert first["name"] == "gemm_kernel"
    assert first["each"][1] / first["each"][0] == pytest.approx(1.25, abs=0.04)
    assert first["calls"] == pytest.approx([4, 4])
    assert said.change("operator", "rms_norm_kernel")["told"] == "same"


def test_more_calls_of_the_same_kernel_are_told_as_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = trace(tmp_path / "usual.json", 1)
    now = trace(tmp_path / "now.json", 2, hour=3, calls=6)
    said = Said([usual, now], tmp_path, capsys)
    assert said.code == 1
    gemm = said.change("operator", "gemm_kernel")
    assert gemm["calls"] == pytest.approx([4, 6])
    assert gemm["each"][1] / gemm["each"][0] == pytest.approx(1.0, abs=0.04)
    assert said.change("pace", "device operations")["told"] == "more"


def test_noise_and_more_load_are_no_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = trace(tmp_path / "usual.json", 1, batches=(2, 2, 2, 8))
    now = trace(tmp_path / "now.json", 2, hour=3, batches=(2, 8, 8, 8))
    said = Said([usual, now], tmp_path, capsys)
    assert said.code == 0
    assert said.json["answer"] == "not_slower"
    assert said.change("step", "decode step")["told"] == "same"


def test_loads_that_do_not_overlap_and_too_few_steps_are_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = trace(tmp_path / "usual.json", 1, batches=(2,))
    apart = Said([usual, trace(tmp_path / "b.json", 2, hour=3, batches=(32,))], tmp_path, capsys)
    assert apart.code == 2
    assert "loads of decode steps do not overlap: batch 2, tokens 2 against batch 32" in (
        " ".join(apart.json["notes"])
    )
    few = Said(
        [usual, trace(tmp_path / "c.json", 3, hour=6, batches=(2,), steps=5)], tmp_path, capsys
    )
    assert few.code == 2
    assert "too few to tell" in " ".join(few.json["notes"])


def test_one_folder_with_two_runs_and_the_earlier_is_the_usual_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "two"
    trace(folder / "b.json", 1)
    trace(folder / "a.json", 2, hour=3, gemm=0.8)
    said = Said([folder], tmp_path, capsys)
    assert said.code == 0
    assert said.json["usual"]["t0_epoch_ns"] < said.json["now"]["t0_epoch_ns"]
    assert said.change("step", "decode step")["told"] == "less"
    names = [said.json[which]["name"] for which in ("now", "usual")]
    turned = Said(names, tmp_path, capsys)
    assert turned.code == 1
    assert turned.change("step", "decode step")["slower"]


def test_what_are_not_two_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = trace(tmp_path / "one.json", 1, steps=20)
    twice = Said([one, one], tmp_path, capsys)
    assert twice.code == 2
    assert "both are the run" in twice.err
    alone = Said([one], tmp_path, capsys)
    assert alone.code == 2
    assert "holds 1 runs" in alone.err
    assert Said([one, "nowhere"], tmp_path, capsys).code == 2


def test_text_and_markdown_show_the_same_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [
        str(trace(tmp_path / "u.json", 1)),
        str(trace(tmp_path / "n.json", 2, hour=3, gemm=2)),
    ]
    asked = ["diff", *places, "--workspace", str(tmp_path / "w"), "--quiet"]
    assert main(asked) == 1
    text = capsys.readouterr().out
    assert main([*asked, "--format", "markdown"]) == 1
    markdown = capsys.readouterr().out
    for said in (text, markdown):
        assert "Slower: decode step" in said
        assert "Own time by operator" in said
        assert "4 → 4" in said
    assert main([*asked, "--threshold", "3"]) == 2


def test_the_iterations_of_an_engines_log_are_compared(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [case] = (shared / "cases").glob("*_trtllm_host_step_regression")
    said = Said([case], tmp_path, capsys)
    assert said.code == 1
    host = said.change("step", "step.host_ns")
    assert host["slower"]
    assert host["now"] - host["usual"] == pytest.approx(8.2e6, abs=0.3e6)
    assert said.change("step", "step.device_ns")["told"] == "same"


def test_versions_and_options_that_differ_are_listed(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = shared / "traces" / "vllm_log"
    said = Said([logs / "v0.9.0.1.log", logs / "v0.10.1.1.log"], tmp_path, capsys)
    [version] = [s for s in said.json["settings"] if s["name"] == "engine.version"]
    assert version["usual"] != version["now"]
