"""A run says what it lacks: in one line the layers that are not there, or what a capture lacks."""

import json
from collections.abc import Sequence
from pathlib import Path

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent


def notes(paths: Sequence[Path], tmp_path: Path) -> tuple[str, ...]:
    """Give the notes of a diagnosis of these paths."""
    workspace = Workspace(tmp_path / "w", project=project, rest=rest)
    return pipeline.diagnose(paths, workspace, Options(), Silent()).notes


def test_records_alone_lack_captures_logs_and_metrics(shared: Path, tmp_path: Path) -> None:
    [note] = notes([shared / "traces/flight_recorder/nvrx_lock_gil_1st"], tmp_path)
    assert note.startswith("not in this run: captures")
    assert "service logs" in note
    assert "device metrics" in note
    assert "communication records" not in note


def test_a_scrape_of_an_engine_lacks_the_rest(tmp_path: Path) -> None:
    scrape = tmp_path / "metrics.prom"
    scrape.write_text(
        "# HELP vllm:num_requests_running Requests.\n# TYPE vllm:num_requests_running gauge\n"
        'vllm:num_requests_running{engine="0"} 3.0\n',
        "utf-8",
    )
    [note] = notes([scrape], tmp_path)
    assert "service logs" not in note
    assert "captures" in note
    assert "communication records" in note
    assert "teller doctor PATH" in note


def test_a_capture_says_only_what_it_lacks_itself(tmp_path: Path) -> None:
    trace = tmp_path / "rank0.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1, "dur": 9}
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}), "utf-8")
    said = notes([trace], tmp_path)
    assert [note for note in said if note.startswith("no device work")]
    assert not [note for note in said if note.startswith("not in this run")]
