"""Dumps of real jobs in which ranks were stopped: who is named, also where files are missing."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from teller import pipeline
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent

# What NVIDIA's own analysis names (reference.txt beside the dumps). In the first set a second rank
# was stopped too, which waits for the first one.
NAMED = {
    "nvrx_gpu_error_1st": [12],
    "nvrx_gpu_error_2nd": [9, 14],
    "nvrx_lock_gil_1st": [9, 14],
    "nvrx_lock_gil_2nd": [10, 15],
}


def dumps(shared: Path, name: str) -> Path:
    folder = shared / "traces" / "flight_recorder" / name
    if not folder.is_dir():
        pytest.skip(f"{name} is not among the traces")
    return folder


def said_of(source: Path, folder: Path, without: Iterable[int] = ()) -> dict[str, Any]:
    given = folder / "run"
    given.mkdir()
    for path in source.glob("_dump_*"):
        if int(path.name.removeprefix("_dump_")) not in set(without):
            shutil.copy(path, given)
    workspace = Workspace(folder / "workspace", project=project)
    envelope: dict[str, Any] = json.loads(
        json.dumps(pipeline.diagnose([given], workspace, Options(), Silent()).to_json())
    )
    return envelope


def first(said: dict[str, Any]) -> dict[str, Any]:
    assert said["verdict"] == "fault"
    found: dict[str, Any] = said["findings"][0]
    assert found["class"] == "collective_missing_rank"
    assert found["severity"] == "critical"
    return found


def without_dump(said: dict[str, Any]) -> set[int]:
    """Give the ranks of which the answer says that their dumps are not there."""
    found = next(f for f in said["findings"] if f["title"].startswith("No dump of the flight"))
    assert found["severity"] == "low"
    return {int(e["text"].split()[4].rstrip(",")) for e in found["evidence"]}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_ranks_that_were_stopped_are_named(name: str, shared: Path, tmp_path: Path) -> None:
    said = said_of(dumps(shared, name), tmp_path)
    found = first(said)
    assert found["culprit"]["ranks"] == NAMED[name]
    assert found["confidence"] > 0.8
    assert {e["role"] for e in found["evidence"]} >= {"cause", "victim"}
    group = found["text"].split("In group ")[1].split()[0]
    assert f"\n{group} " in "\n" + (dumps(shared, name) / "reference.txt").read_text("utf-8")


def test_whose_device_answers_no_more_is_told_from_whose_host_stopped(
    shared: Path, tmp_path: Path
) -> None:
    said = first(said_of(dumps(shared, "nvrx_gpu_error_1st"), tmp_path))
    assert "the device answers no more" in said["text"]
    silent = [e["text"] for e in said["evidence"] if "lacks the end" in e["text"]]
    assert [text.split(":")[0] for text in silent] == ["rank 12", "rank 14"]


def test_a_rank_without_entries_whose_host_stopped(shared: Path, tmp_path: Path) -> None:
    said = first(said_of(dumps(shared, "nvrx_lock_gil_1st"), tmp_path))
    assert "the host does not go on" in said["text"]


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("nvrx_gpu_error_1st", (13,)),
        ("nvrx_gpu_error_2nd", (8, 3)),
        ("nvrx_lock_gil_1st", (0, 8, 11)),
        ("nvrx_lock_gil_1st", (10, 11, 12, 13)),
        ("nvrx_gpu_error_2nd", (9, 4)),
        ("nvrx_lock_gil_1st", (14,)),
    ],
)
def test_files_that_are_missing_do_not_hide_who_is_known_to_be_missing(
    name: str, gone: tuple[int, ...], shared: Path, tmp_path: Path
) -> None:
    said = said_of(dumps(shared, name), tmp_path, gone)
    assert first(said)["culprit"]["ranks"] == [r for r in NAMED[name] if r not in gone]
    assert without_dump(said) == set(gone)


@pytest.mark.parametrize("name", ["nvrx_gpu_error_1st", "nvrx_gpu_error_2nd", "nvrx_lock_gil_1st"])
def test_where_the_culprits_left_no_dump_they_are_suspected(
    name: str, shared: Path, tmp_path: Path
) -> None:
    said = said_of(dumps(shared, name), tmp_path, NAMED[name])
    found = first(said)
    assert found["culprit"]["ranks"] == NAMED[name]
    assert found["confidence"] <= 0.5
    assert "left no dump" in found["title"]
    assert without_dump(said) == set(NAMED[name])


def test_few_dumps_of_many_ranks_blame_nobody_without_a_dump(shared: Path, tmp_path: Path) -> None:
    said = said_of(dumps(shared, "nvrx_lock_gil_1st"), tmp_path, range(3, 16))
    assert not [f for f in said["findings"] if f["culprit"]["ranks"]]
    assert len(without_dump(said)) == 8  # the first of 13
