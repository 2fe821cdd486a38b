"""Nothing is blamed that the data does not show."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from teller import pipeline
from teller.graph.finding import Diagnosis
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent


def diagnose(source: Path, folder: Path) -> Diagnosis:
    workspace = Workspace(folder / "workspace", project=project)
    return pipeline.diagnose([source], workspace, Options(), Silent())


def events(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return found


def span(name: str, cat: str, ts: float, dur: float, **args: int) -> dict[str, Any]:
    tid = args.get("stream", 1)
    return {
        "ph": "X", "name": name, "cat": cat, "pid": 0 if "stream" in args else 9, "tid": tid,
        "ts": ts, "dur": dur, "args": args,
    }  # fmt: skip


def lone_rank() -> list[dict[str, Any]]:
    """Ten steps of one rank, of which the last five have kernels twice as long."""
    rows = []
    for step in range(10):
        at, dur = step * 1000.0, 300.0 if step < 5 else 600.0
        rows += [
            span(f"ProfilerStep#{step}", "user_annotation", at, 990),
            span("cudaLaunchKernel", "cuda_runtime", at + 10, 5, correlation=step + 1),
            span("gemm", "kernel", at + 20, dur, stream=7, device=0, correlation=step + 1),
        ]
    return rows


def test_a_rank_alone_is_not_slower_than_peers(tmp_path: Path) -> None:
    trace = {"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": lone_rank()}
    path = tmp_path / "rank0.pt.trace.json"
    path.write_text(json.dumps(trace))
    said = diagnose(path, tmp_path)
    assert said.runs[0].steps == 10
    assert {f.klass for f in said.findings}.isdisjoint({"slow_rank", "slow_operator"})


@pytest.mark.parametrize("name", ["hta_compare_base", "hta_diff_test"])
def test_a_public_trace_of_one_rank_has_no_slow_rank(
    name: str, shared: Path, tmp_path: Path
) -> None:
    path = shared / "traces" / "kineto" / f"{name}.json.gz"
    said = diagnose(path, tmp_path)
    assert len(said.runs[0].ranks) == 1
    assert said.verdict == "no_fault"


def test_waiting_for_launches_is_at_most_what_the_device_is_idle(
    shared: Path, tmp_path: Path
) -> None:
    path = shared / "traces" / "kineto" / "hta_nccl_metadata.json.gz"
    whole = [e for e in events(path) if e.get("ph") == "X"]
    steps = [e for e in whole if e["name"].startswith("ProfilerStep")]
    work = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in whole
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    busy, until = 0.0, 0.0
    for start, end in work:
        busy += max(end - max(start, until), 0)
        until = max(until, end)
    busy /= sum(e["dur"] for e in steps)

    said = diagnose(path, tmp_path)
    bound = next(f for f in said.findings if f.klass == "cpu_launch_bound")
    assert bound.numbers["gpu_busy_ratio"] == pytest.approx(busy, abs=0.01)
    assert 0.25 < bound.numbers["idle_ratio"] < 1 - busy + 0.01


def test_a_host_that_was_watched_call_by_call_speaks_against_launches(
    shared: Path, tmp_path: Path
) -> None:
    path = shared / "traces" / "kineto" / "tl_h100_bert_small.json.gz"
    assert any(e.get("cat") == "python_function" for e in events(path))
    bound = next(f for f in diagnose(path, tmp_path).findings if f.klass == "cpu_launch_bound")
    assert any("Python calls" in text for text in bound.against)


def test_recordings_without_utc_have_no_skewed_clocks(shared: Path, tmp_path: Path) -> None:
    said = diagnose(shared / "traces" / "nsys_parquet", tmp_path)
    assert said.runs[0].ranks == (0, 1, 2, 3)
    assert said.runs[0].t0_epoch_ns == 0
    assert said.findings == ()
    assert not [q for q in said.data_quality if "skew" in q.what]


def test_a_duplicate_names_a_file_that_is_used(shared: Path, tmp_path: Path) -> None:
    case = sorted((shared / "cases").glob("o11_*"))[0]
    said = diagnose(case, tmp_path)
    duplicates = [q for q in said.data_quality if "is used (" in q.what]
    left_out = {q.file for q in duplicates}
    used = {q.what.partition("; ")[2].partition(" is used (")[0] for q in duplicates}
    assert duplicates
    assert used.isdisjoint(left_out)


def test_one_step_alone_is_said_to_have_no_peer(tmp_path: Path) -> None:
    rows = lone_rank()[:3]
    path = tmp_path / "rank0.pt.trace.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": rows}))
    said = diagnose(path, tmp_path)
    assert said.runs[0].steps == 1
    assert any("--baseline" in note for note in said.notes)
