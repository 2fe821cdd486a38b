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
