"""The gate says what would mislead a verdict, before there is one."""

import gzip
import json
import sqlite3
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from teller import gate
from teller.cli import main
from teller.graph import sanity
from teller.graph.sanity import Check
from teller.pipeline import Options, Silent

SECOND = 1_000_000_000


def demo(folder: Path, *ranks: int) -> None:
    """Put the traces of the demo run into a folder, plain."""
    folder.mkdir()
    with as_file(files("teller").joinpath("demo/run")) as run:
        for rank in ranks:
            packed = run / f"rank{rank}.nsys.sqlite.gz"
            (folder / f"rank{rank}.nsys.sqlite").write_bytes(gzip.decompress(packed.read_bytes()))


def checks(folder: Path) -> dict[str, Check]:
    """Give the checks of a folder by name."""
    return {check.name: check for _, check in gate.checked([folder], Options(), Silent()).checks}


def test_a_sound_recording_holds_together(tmp_path: Path) -> None:
    demo(tmp_path / "run", 0, 1)
    found = gate.checked([tmp_path / "run"], Options(), Silent())
    assert found.state == "ok"
    assert {c.name for _, c in found.checks} >= {
        "ranks", "windows", "annotations", "records", "clocks",
    }  # fmt: skip


def test_what_its_profiler_says_of_losses_and_clocks_is_repeated(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    demo(folder, 0, 1)
    with closing(sqlite3.connect(folder / "rank1.nsys.sqlite")) as database:
        database.execute(
            "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, timestampType INTEGER, "
            "source INTEGER, severity INTEGER, text TEXT, globalPid INTEGER)"
        )
        database.executemany(
            "INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 1, 1, 2, ?, 0)",
            [("Not all NVTX events might have been collected.",),
             ("the clock was set: UTC moved by -2.000000 s against the times here",)],
        )  # fmt: skip
        database.commit()
    found = checks(folder)
    assert found["records"].state == found["clocks"].state == "weak"
    assert "UTC moved by -2.0" in found["clocks"].what


def test_a_rank_that_was_recorded_late_is_named_here_and_by_the_doctor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    demo(folder, 0, 1)
    with closing(sqlite3.connect(folder / "rank1.nsys.sqlite")) as database:
        database.execute(
            "DELETE FROM NVTX_EVENTS WHERE eventType = 59 AND start < "
            "(SELECT min(start) + 10000000000 FROM NVTX_EVENTS WHERE eventType = 59)"
        )
        database.commit()
    late = checks(folder)["windows"]
    assert late.state == "weak"
    assert "rank 1 begins " in late.what
    capsys.readouterr()
    words = ["doctor", str(folder), "--workspace", str(tmp_path / "w"), "--quiet"]
    assert main([*words, "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)["data_quality"]
    assert [q["where"] for q in said if "after those of rank 0" in q["what"]] == ["rank 1"]


def test_a_folder_that_holds_nothing_is_said_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    assert main(["collect", "check", str(tmp_path), "--format", "json", "--quiet"]) == 2
    said = json.loads(capsys.readouterr().out)
    assert (said["state"], said["checks"][0]["name"]) == ("bad", "readable")


def test_the_manifest_says_how_many_ranks_there_should_be(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    demo(folder, 0, 1)
    manifest = {
        "schema": "teller.run/1", "run": "a1", "created": "", "tool": "t", "hosts": [], "ranks": [],
        "engine": {"name": ""}, "model": {"ranks": 4},
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert checks(folder)["ranks"].what == "2 of 4 ranks left nothing: rank 2, 3"


@pytest.mark.parametrize(
    ("seen", "expected", "state"),
    [((0, 1), None, "ok"), ((0, 1), 2, "ok"), ((0, 2), None, "weak"), ((0,), 4, "weak"),
     ((), 2, "bad"), ((), None, "bad")],
)  # fmt: skip
def test_ranks_are_held_against_those_that_there_are(
    seen: tuple[int, ...], expected: int | None, state: str
) -> None:
    assert sanity.ranks(seen, expected).state == state


@pytest.mark.parametrize(
    ("windows", "state"),
    [
        ([(0, 0, 30 * SECOND), (1, SECOND // 2, 30 * SECOND)], "ok"),
        ([(0, 0, 30 * SECOND), (1, 5 * SECOND, 30 * SECOND)], "weak"),
        ([(0, 0, 2 * SECOND), (1, SECOND // 2, 2 * SECOND)], "ok"),  # below a second
        ([(0, 0, 3 * SECOND), (1, 4 * SECOND, 8 * SECOND)], "bad"),
        ([(0, 0, 3 * SECOND)], "ok"),
        ([], "unknown"),
    ],
)
def test_windows_must_lie_over_each_other(windows: list[tuple[int, int, int]], state: str) -> None:
    assert sanity.windows(windows).state == state


def test_ranks_without_annotations_are_named() -> None:
    assert sanity.steps({0: 3, 1: 3}).state == "ok"
    assert sanity.steps({0: 3, 1: 0}).what == "rank 1 has no steps, unlike others"
    assert sanity.steps({0: 0, 1: 0}).state == "bad"
