"""What lies in a folder may be anything: nothing hangs, nothing is lost without a word."""

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from teller.ingest.discover import MANY, discover
from teller.ingest.walk import printable, walk

TRACE = '{"traceEvents": [{"ph": "X", "name": "a", "cat": "kernel", "ts": 1, "dur": 1}]}'
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no pipes in folders")


def no_export(_: Path) -> bool:
    return False


def test_pipes_sockets_and_devices_are_named_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "rank0.json").write_text(TRACE)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "s"))  # a socket's path is short
        found = discover([tmp_path])
    assert [c.name for c in found.candidates] == ["rank0.json"]
    said = {r.path: r.what for r in found.remarks}
    assert said == {
        "pipe.json": "is a pipe, not a file",
        "s": "is a socket, not a file",
        "zero.json": "is a device, not a file",
    }


def test_links_in_a_circle_end_and_links_out_are_named(tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    (run / "sub").mkdir(parents=True)
    other.mkdir()
    (run / "sub" / "rank0.json").write_text(TRACE)
    (run / "again").symlink_to(".")
    (run / "up").symlink_to("..")
    (run / "out").symlink_to(other)
    (run / "a.json").symlink_to("b.json")
    (run / "b.json").symlink_to("a.json")
    (run / "gone.json").symlink_to("nowhere")
    places, remarks = walk([run], no_export)
    assert [p.name for p in places] == ["sub/rank0.json"]
    assert {r.path for r in remarks} == {"out", "a.json", "b.json", "gone.json"}
    assert str(other) in next(r.remedy for r in remarks if r.path == "out")


def test_a_deep_tree_is_walked(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for _ in range(300):
        folder += "/d"
        os.mkdir(folder)
    Path(folder, "rank0.json").write_text(TRACE)
    places, remarks = walk([tmp_path], no_export)
    assert [len(p.path.relative_to(tmp_path).parts) for p in places] == [301]
    assert not remarks


def test_what_may_not_be_read_is_named_and_the_rest_is_used(tmp_path: Path) -> None:
    locked, whole = tmp_path / "locked", tmp_path / "rank0.json"
    locked.mkdir()
    whole.write_text(TRACE)
    locked.chmod(0)
    try:
        if os.access(locked, os.R_OK):
            pytest.skip("this user may read everything")
        found = discover([tmp_path])
    finally:
        locked.chmod(stat.S_IRWXU)
    assert [c.name for c in found.candidates] == ["rank0.json"]
    assert [(r.path, r.what) for r in found.remarks] == [
        ("locked", "cannot be read: Permission denied")
    ]


def test_a_name_that_is_no_text_is_spelt_out(tmp_path: Path) -> None:
    odd = os.fsdecode(b"rank1\xff.json")
    (tmp_path / odd).write_text(TRACE)
    assert [c.name for c in discover([tmp_path]).candidates] == ["rank1\\xff.json"]
    assert printable("漢\n[bold]") == "漢\n[bold]"


def test_equal_names_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    for folder in ("monday", "tuesday"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rank0.json").write_text(TRACE)
    (tmp_path / "tuesday" / "rank1.json").write_text(TRACE)
    both = [tmp_path / "monday", tmp_path / "tuesday", tmp_path / "monday"]
    places, _ = walk(both, no_export)
    assert [p.name for p in places] == [
        "monday/rank0.json", "tuesday/rank0.json", "tuesday/rank1.json",
    ]  # fmt: skip
    places, _ = walk([tmp_path, tmp_path / "monday"], no_export)
    assert len(places) == 3


def test_many_foreign_files_are_one_remark(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"note{i:02d}.json").write_text('{"a": 1}')
        (tmp_path / f"note{i:02d}.txt").write_text("")
    found = discover([tmp_path])
    assert len(found.others) == 80
    assert len(found.remarks) == MANY
    assert found.remarks[-1].path == f"{40 - MANY + 1} more files like note00.json"
