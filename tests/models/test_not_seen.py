"""A run says what it lacks: in one line the layers that are not there, or what a capture lacks."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from teller import pipeline
from teller.errors import TooMuch
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.store import Store
from teller.graph.workspace import Workspace
from teller.models.diagnose import not_seen
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


class Narrow:
    """A real store in which looking through spans is too much."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def query(self, text: str, values: dict[str, Any] | None = None) -> pa.Table:
        """Ask, unless it is for spans."""
        if "(s:Span)" in text and "LIMIT 1" in text:
            raise TooMuch("the query needs more memory than the store may use; narrow it")
        return self._store.query(text, values)


def test_what_is_too_much_to_look_through_is_not_called_absent(tmp_path: Path) -> None:
    trace = tmp_path / "rank0.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1, "dur": 9}
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}), "utf-8")
    workspace = Workspace(tmp_path / "w", project=project, rest=rest)
    [run] = pipeline.ingest([trace], workspace, Options(), Silent()).runs
    with workspace.reader() as store:
        said = list(not_seen(cast(Store, Narrow(store)), run.id))
    assert said
    assert not [n for n in said if n.startswith(("no device work", "not in this run"))]
