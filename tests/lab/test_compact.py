"""A packed run folder is the same run, in a twentieth of the room."""

from pathlib import Path

from teller.ingest.discover import discover
from teller.lab.compact import compact
from teller.lab.manifest import read_manifest
from teller.lab.simulator.recording.plan import plain
from teller.lab.simulator.recording.write import record
from tests.lab.small import small


def made(folder: Path) -> Path:
    """Write a run with a trace, a log and metrics."""
    happened = small(steps=12, replayed=())
    record(happened, plain(happened.scene, nsys="3.25.0", engine_log=True, gpu_csv=True), folder)
    return folder


def test_a_packed_folder_lists_its_packed_files_and_is_read_as_before(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    before = {c.format for c in discover([folder]).candidates}
    size = sum(p.stat().st_size for p in folder.iterdir())
    assert compact(folder) < size / 5
    assert {f.path for f in read_manifest(folder).files} == {
        p.name for p in folder.iterdir() if p.name != "manifest.json"
    }
    found = discover([folder])
    assert {c.format for c in found.candidates} == before
    assert found.others == ()


def test_packing_twice_changes_nothing_and_times_leave_no_trace(tmp_path: Path) -> None:
    one, two = made(tmp_path / "one"), made(tmp_path / "two")
    compact(one)
    assert compact(one) == compact(two)
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {
        p.name: p.read_bytes() for p in two.iterdir()
    }
