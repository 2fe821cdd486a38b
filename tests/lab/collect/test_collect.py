"""`teller collect` runs a command unchanged and leaves a run folder, whatever becomes of it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from teller.cli import main
from teller.ingest.discover import discover

pytestmark = pytest.mark.slow
SERVES = Path(__file__).with_name("serves.py")
TWO = (
    f"RANK=0 WORLD_SIZE=2 {sys.executable} {SERVES} 20 & "
    f"RANK=1 WORLD_SIZE=2 {sys.executable} {SERVES} 20; wait; echo served"
)


def manifest(folder: Path) -> dict[str, Any]:
    """Give the manifest of a folder."""
    said: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return said


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rank of whatever runs the tests, and no Nsight Systems."""
    for name in ("RANK", "WORLD_SIZE", "NVTX_INJECTION64_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def test_a_service_of_two_ranks_becomes_a_folder_that_is_read_and_checked(
    recorder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    code = main(["collect", "--out", str(folder), "--", "sh", "-c", f"{TWO}; exit 3"])
    said = capfd.readouterr()
    assert code == 3  # the command's own
    assert "served" in said.out
    assert "nsys is not on PATH" in said.err
    names = {"rank0.nsys.sqlite", "rank1.nsys.sqlite"}
    listed = manifest(folder)["files"]
    assert names <= {file["path"] for file in listed}
    assert [r["rank"] for r in manifest(folder)["ranks"]] == [0, 1]
    assert names <= {c.name for c in discover([folder]).candidates}
    assert not list(folder.glob("*.nvtx"))
    log = next(folder.glob("service.*.log"))
    assert log.read_text() == "served\n"
    assert main(["collect", "check", str(folder), "--format", "json", "--quiet"]) == 0
    checks = {c["name"]: c for c in json.loads(capfd.readouterr().out)["checks"]}
    assert {checks[n]["state"] for n in ("ranks", "annotations", "windows", "records")} == {"ok"}
    assert checks["annotations"]["what"] == "every rank has annotated steps: 20"


def test_a_rank_that_left_nothing_is_missed(
    recorder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    words = ["sh", "-c", f"RANK=0 WORLD_SIZE=3 {sys.executable} {SERVES} 5"]
    assert main(["collect", "--out", str(folder), "--ranks", "3", *words]) == 0
    capfd.readouterr()
    main(["collect", "check", str(folder), "--format", "json", "--quiet"])
    checks = {c["name"]: c for c in json.loads(capfd.readouterr().out)["checks"]}
    assert checks["ranks"]["what"] == "2 of 3 ranks left nothing: rank 1, 2"
    assert checks["ranks"]["state"] == "weak"


def test_a_signal_ends_the_service_first_and_the_folder_is_there(
    recorder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    begin = [sys.executable, "-c", "from teller.cli import run; run()", "collect"]
    service = f"echo begun; {sys.executable} {SERVES} 1000000"
    words = [*begin, "--out", str(folder), "--", "sh", "-c", service]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=os.environ | {"RANK": "0"}) as running:  # fmt: skip
        assert running.stdout
        assert running.stdout.readline() == b"begun\n"
        while not list(folder.glob("*.nvtx")):  # it annotates now
            os.sched_yield()
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 128 + signal.SIGINT
    assert (folder / "manifest.json").exists()
    assert not list(folder.glob("*.nvtx"))


def test_a_command_that_is_not_there_is_said_plainly(
    recorder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", "--out", str(tmp_path / "run"), "--", "no-such-server", "--x"]) == 2
    assert "no-such-server: cannot be started: No such file" in capfd.readouterr().err
    assert main(["collect", "--tool", "nsys", "--", "true"]) == 2
    assert "nsys is not on PATH" in capfd.readouterr().err
    assert main(["collect", "--out", str(tmp_path / "run")]) == 2
    assert "what is to be recorded?" in capfd.readouterr().err


def test_two_hosts_finish_into_one_folder(
    recorder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    for rank in ("0", "1"):
        words = ["sh", "-c", f"RANK={rank} WORLD_SIZE=2 {sys.executable} {SERVES} 5"]
        assert main(["collect", "--out", str(folder), "--ranks", "2", *words]) == 0
    said = manifest(folder)
    assert [r["rank"] for r in said["ranks"]] == [0, 1]
    assert said["model"]["ranks"] == 2
    capfd.readouterr()
