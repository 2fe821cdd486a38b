"""Steps of a real device beside simulated ones: recorded where a device is, compared anywhere."""

from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

from teller import pipeline
from teller.errors import BadUsage
from teller.graph.classes import classes
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.lab import real_steps
from teller.lab.truth import read_truth
from teller.pipeline import Options, Silent

torch_here = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
STEPS = 6


def spans(own: list[int], family: str = "gemm") -> pa.Table:
    """Two steps of one kind of span; some rows outside of steps."""
    half = len(own) // 2
    steps = [0] * half + [1] * (len(own) - half)
    return pa.table({
        "step_index": pa.array([*steps, None], pa.int64()), "layer": ["device"] * (len(own) + 1),
        "family": [family] * (len(own) + 1), "self_ns": [*own, 10**9],
    })  # fmt: skip


def test_spans_are_compared_kind_by_kind() -> None:
    table = real_steps.compared(spans([10, 20, 30, 40]), spans([30, 40, 50, 60]))
    assert table.to_pylist() == [
        {"layer": "device", "family": "gemm", "real_per_step": 2.0, "simulated_per_step": 2.0,
         "real_own_ns": 25.0, "simulated_own_ns": 45.0, "distance": 0.5},
    ]  # fmt: skip
    apart = real_steps.compared(spans([10, 20]), spans([10, 20], "attention")).to_pylist()
    assert [(r["family"], r["real_per_step"], r["distance"]) for r in apart] == [
        ("attention", 0.0, None), ("gemm", 1.0, None),
    ]  # fmt: skip


def test_each_disturbance_is_of_a_class_that_can_be_claimed() -> None:
    assert {d.klass for d in real_steps.DISTURBANCES.values()} - {""} <= classes().keys()


@torch_here
def test_what_a_device_cannot_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="needs a CUDA device"):
        real_steps.record("extra_sync", tmp_path, "cpu", STEPS)


@torch_here
@pytest.mark.slow
def test_steps_of_a_cpu_are_recorded_and_read(tmp_path: Path) -> None:
    folder = real_steps.record("cpu_contention", tmp_path / "runs", "cpu", STEPS, hidden=64)
    (episode,) = read_truth(folder).episodes
    assert episode.class_ == "host_contention"
    workspace = Workspace(tmp_path / "w", project=project, rest=rest)
    (run,) = pipeline.ingest([folder], workspace, Options(), Silent()).runs
    assert (run.steps, list(run.ranks)) == (STEPS, [0])
