"""A watch reads what comes when it is written out, says each thing once, and survives its end."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import as_file, files
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent

Event = dict[str, Any]
TELLER = [sys.executable, "-c", "from teller.cli import run; run()"]
PATIENT_S = 600
LABELS = ("Rank", "Step", "Span", "Collective", "Request", "LogLine", "Sample", "Input")
LINE = "INFO 11-29 10:00:{:02} [loggers.py:127] Engine 000: Running: {} reqs, Waiting: 0 reqs\n"


class Watching:
    """A watch in a process of its own."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [*TELLER, "watch", "--format", "json", "--every", "0.1", "--settle", "0.3", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._timer = Timer(PATIENT_S, self.process.kill)  # ends a wait for what never comes
        self._timer.start()

    def until(self, event: str, **more: object) -> list[Event]:
        """Give all events up to one of that kind."""
        assert self.process.stdout
        seen: list[Event] = []
        for line in self.process.stdout:
            seen.append(json.loads(line))
            if seen[-1]["event"] == event and more.items() <= seen[-1].items():
                return seen
        pytest.fail(f"no {event}: {seen} {self.process.communicate()[1]}")

    def end(self, how: int) -> tuple[list[Event], int]:
        """Give what is said after a signal, and the exit code."""
        self.process.send_signal(how)
        said, errors = self.process.communicate()
        self._timer.cancel()
        assert not errors
        return [json.loads(line) for line in said.splitlines()], self.process.returncode


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[..., Watching]]:
    """Give what starts a watch of `in`; its workspace is `w`."""
    (tmp_path / "in").mkdir()
    started: list[Watching] = []

    def start(*words: str) -> Watching:
        place = ["--workspace", str(tmp_path / "w")]
        started.append(Watching(str(tmp_path / "in"), *place, *words))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def demo() -> Iterator[Path]:
    """The demo run."""
    with as_file(files("teller").joinpath("demo/run")) as folder:
        yield folder


def put(source: Path, folder: Path) -> None:
    shutil.copy(source, folder / source.name)


def ids(workspace: Path) -> dict[str, set[int]]:
    with Workspace(workspace, project=project, rest=rest).reader() as store:
        return {
            label: set(store.query(f"MATCH (n:{label}) RETURN n.id AS id")["id"].to_pylist())
            for label in LABELS
        }


def findings(events: list[Event]) -> list[str]:
    return [e["finding"]["class"] for e in events if e["event"] == "finding"]


def test_files_that_come_one_by_one_give_the_ids_of_all_at_once(
    demo: Path, tmp_path: Path, watch: Callable[..., Watching]
) -> None:
    one = watch()
    assert [e["event"] for e in one.until("idle")] == ["watching", "idle"]
    put(demo / "manifest.json", tmp_path / "in")
    put(demo / "rank0.log.gz", tmp_path / "in")
    one.until("idle", runs=1)
    put(demo / "rank0.nsys.sqlite.gz", tmp_path / "in")
    seen = one.until("idle")
    assert seen[0]["files"] == ["rank0.nsys.sqlite.gz"]
    assert "capture_window" in findings(seen)
    assert [e["file"] for e in seen if e["event"] == "problem" and "ranks" in e["what"]]
    before = ids(tmp_path / "w")
    _, code = one.end(signal.SIGKILL)
    assert code == -signal.SIGKILL
    for path in sorted(demo.iterdir()):
        if not (tmp_path / "in" / path.name).exists():
            put(path, tmp_path / "in")
    two = watch()
    seen = two.until("ingested")
    assert "rank0.nsys.sqlite.gz" not in seen[1]["files"]
    two.end(signal.SIGKILL)  # while it judges
    seen = watch().until("idle")
    assert "slow_operator" in findings(seen)
    assert "capture_window" in [e["finding"]["class"] for e in seen if e["event"] == "cleared"]
    after = ids(tmp_path / "w")
    lost = {label: len(before[label] - after[label]) for label in LABELS}
    assert lost == dict.fromkeys(LABELS, 0)
    plain = Workspace(tmp_path / "plain", project=project, rest=rest)
    pipeline.ingest([demo], plain, Options(), Silent())
    whole = ids(tmp_path / "plain")
    assert {k: len(v ^ after[k]) for k, v in whole.items()} == dict.fromkeys(LABELS, 0)


def test_what_was_told_is_not_told_again(demo: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(demo, run)
    (run / "broken.sqlite").write_bytes(b"SQLite format 3\0".ljust(2000, b"\0"))
    os.utime(run / "broken.sqlite", (0, 0))
    words = [*TELLER, "watch", str(run), "--once", "--format", "json", "--settle", "0"]
    words += ["--workspace", str(tmp_path / "w")]
    first, again = (subprocess.run(words, capture_output=True, text=True) for _ in range(2))
    assert (first.returncode, first.stderr) == (again.returncode, again.stderr) == (1, "")
    events = [json.loads(line) for line in first.stdout.splitlines()]
    assert "slow_operator" in findings(events)
    assert [e["file"] for e in events if e["event"] == "problem"].count("broken.sqlite") == 1
    said = [json.loads(line)["event"] for line in again.stdout.splitlines()]
    assert said == ["watching", "idle", "stopped"]


def test_a_log_that_grows_keeps_the_ids_of_its_lines(
    tmp_path: Path, watch: Callable[..., Watching]
) -> None:
    log = tmp_path / "in" / "serve.log"
    log.write_text("".join(LINE.format(n, n) for n in range(10)))
    one = watch()
    one.until("idle", runs=1)
    before = ids(tmp_path / "w")["LogLine"]
    with log.open("a") as file:
        file.write("".join(LINE.format(n, n) for n in range(10, 20)) + "INFO 11-29 10:00:2")
    assert one.until("idle")[0]["files"] == ["serve.log"]
    after = ids(tmp_path / "w")["LogLine"]
    assert before < after
    log.unlink()  # and what is gone stays known
    said, code = one.end(signal.SIGTERM)
    assert (said[-1]["event"], code) == ("stopped", 0)
    assert ids(tmp_path / "w")["LogLine"] == after


def test_a_file_that_is_being_written_is_no_error(
    demo: Path, tmp_path: Path, watch: Callable[..., Watching]
) -> None:
    whole = gzip.decompress((demo / "rank0.nsys.sqlite.gz").read_bytes())
    half = tmp_path / "in" / "a" / "rank0.sqlite"
    half.parent.mkdir()
    half.write_bytes(whole[: len(whole) // 2])
    (tmp_path / "in" / "b").mkdir()
    one = watch("--patience", "3600")
    (tmp_path / "in" / "b" / "serve.log").write_text(LINE.format(1, 1))
    assert one.until("diagnosed")[1]["files"] == ["b/serve.log"]
    with half.open("ab") as file:
        file.write(whole[len(whole) // 2 :])
    seen = one.until("idle")
    assert [e["files"] for e in seen if e["event"] == "ingested"] == [["a/rank0.sqlite"]]
    assert not [e for e in seen if e["event"] == "problem" and "ranks" not in e["what"]]


def test_one_watch_a_workspace(tmp_path: Path, watch: Callable[..., Watching]) -> None:
    one = watch()
    one.until("idle")
    errors = watch().process.communicate()[1]
    assert f"{tmp_path / 'w'} is being watched by process {one.process.pid}; stop" in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "'nowhere' does not exist"),
        ([".", "--workspace", "inside"], "lies in the folder that is watched"),
        ([".", "--scheduler", "slurm"], "no such scheduler"),
        ([".", "--rank-regex", "x"], "has no group 'rank'"),
    ],
)
def test_what_cannot_be_watched_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    place = [] if "--workspace" in words else ["--workspace", str(tmp_path / "w")]
    here = tmp_path / "here"
    here.mkdir()
    done = subprocess.run(
        [*TELLER, "watch", *words, *place], cwd=here, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") <= 2
