"""The archive has the old state or the new one, whatever ends the writer."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from teller.errors import BadUsage, UnknownName
from teller.graph.archive import Archive, RunEntry
from teller.graph.finding import Cost, Culprit, Evidence, Finding
from teller.graph.store import StoreUnreadable

RUN = RunEntry(
    run_id=2**62 + 1, key="k", name="monday", deployment="chat", generation="",
    created_epoch_ns=1_780_000_000_000_000_001, inputs_digest="d1",
)  # fmt: skip

# runs a second commit, and ends the process for good before the n-th step that touches the disk
KILLED = """
import os, shutil, sys
from pathlib import Path
import msgspec
from teller.graph.archive import Archive, RunEntry
root, last = Path(sys.argv[1]), int(sys.argv[2])
steps = iter(range(10**6))
def counted(step):
    def run(*args, **kwargs):
        if next(steps) == last:
            os._exit(9)
        return step(*args, **kwargs)
    return run
run = msgspec.json.decode(sys.argv[3], type=RunEntry)
os.fsync, os.replace, os.rename = map(counted, (os.fsync, os.replace, os.rename))
shutil.rmtree = counted(shutil.rmtree)
archive = Archive(root, write=True)
staged = archive.stage()
(staged / "Span.parquet").write_text("new")
(staged / "more").mkdir()
(staged / "more" / "Host.parquet").write_text("new")
archive.commit(run, staged)
"""


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "archive", write=True)


def committed(archive: Archive, entry: RunEntry, content: str) -> RunEntry:
    staged = archive.stage()
    (staged / "Span.parquet").write_text(content)
    return archive.commit(entry, staged)


def content(archive: Archive, run_id: int) -> str:
    return (archive.folder_of(run_id) / "Span.parquet").read_text()


def finding(run_id: int, number: int) -> Finding:
    return Finding(
        id=2**62 + number, run=run_id, klass="slow_rank", case_class="slow_rank", title="é 'q'",
        severity="high", confidence=0.9, culprit=Culprit("link", links=(("a", "b"),)),
        text="two\nlines", next_step="look", ruleset="rules 1", numbers={"pause_s": 1.25},
        cost=Cost(excess_ns=2**53 + 1), evidence=(Evidence("cause", "Span", 2**61, "f:1", "t"),),
    )  # fmt: skip


def test_an_absent_archive_holds_nothing(tmp_path: Path) -> None:
    empty = Archive(tmp_path / "nowhere")
    assert empty.runs() == []
    with pytest.raises(UnknownName, match="no run '7'"):
        empty.folder_of(7)
    with pytest.raises(BadUsage, match="open for reading"):
        empty.stage()
    assert not (tmp_path / "nowhere").exists()


def test_a_commit_is_there_and_stays(archive: Archive) -> None:
    kept = committed(archive, RUN, "old")
    assert kept == msgspec.structs.replace(RUN, generation=kept.generation)
    again = Archive(archive.folder)
    assert again.runs() == [kept]
    assert content(again, RUN.run_id) == "old"


def test_a_new_generation_takes_the_place_of_the_old(archive: Archive) -> None:
    old = committed(archive, RUN, "old")
    folder = archive.folder_of(RUN.run_id)
    other = committed(archive, msgspec.structs.replace(RUN, run_id=5, created_epoch_ns=1), "x")
    new = committed(archive, msgspec.structs.replace(RUN, inputs_digest="d2"), "new")
    assert old.generation != new.generation
    assert archive.runs() == [other, new]
    assert content(archive, RUN.run_id) == "new"
    assert not folder.exists()


def test_what_was_left_half_done_is_swept_away(archive: Archive) -> None:
    committed(archive, RUN, "old")
    archive.stage().joinpath("half").write_text("x")
    (archive.folder / "generations" / "5-orphan").mkdir()
    reopened = Archive(archive.folder, write=True)
    assert list((archive.folder / "staging").iterdir()) == []
    assert [p.name for p in (archive.folder / "generations").iterdir()] == [
        reopened.entry(RUN.run_id).generation
    ]


def test_only_what_was_staged_can_be_committed(archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match=r"stage\(\)"):
        archive.commit(RUN, tmp_path)


def test_a_lost_or_broken_pointer_stops_and_sweeps_nothing(archive: Archive) -> None:
    committed(archive, RUN, "old")
    pointer = archive.folder / "runs.json"
    good = pointer.read_bytes()
    pointer.write_bytes(good[:40])
    with pytest.raises(StoreUnreadable, match=r"runs\.json"):
        Archive(archive.folder, write=True)
    pointer.unlink()
    with pytest.raises(StoreUnreadable, match="missing"):
        Archive(archive.folder, write=True)
    pointer.write_bytes(good)
    assert content(Archive(archive.folder, write=True), RUN.run_id) == "old"


def test_findings_come_back_and_outlive_a_generation(archive: Archive) -> None:
    committed(archive, RUN, "old")
    said = [finding(RUN.run_id, n) for n in (1, 2)]
    archive.save_findings(RUN.run_id, "rules/1 *", said)
    archive.save_findings(RUN.run_id, "model", [])
    committed(archive, RUN, "new")
    again = Archive(archive.folder, write=True)
    assert again.findings(RUN.run_id) == said
    assert again.findings(RUN.run_id, "rules/1 *") == said
    assert again.findings(RUN.run_id, "model") == []
    assert again.findings(RUN.run_id, "never ran") == []
    again.save_findings(RUN.run_id, "rules/1 *", said[1:])
    assert again.findings(RUN.run_id) == said[1:]


def test_a_broken_finding_is_named_by_line(archive: Archive) -> None:
    committed(archive, RUN, "old")
    archive.save_findings(RUN.run_id, "r", [finding(RUN.run_id, 1)])
    [path] = (archive.folder / "findings" / str(RUN.run_id)).iterdir()
    path.write_bytes(path.read_bytes() + b'{"id": "1"}\n')
    with pytest.raises(StoreUnreadable, match="line 2"):
        archive.findings(RUN.run_id)


def test_a_removed_run_is_gone_with_its_findings(archive: Archive) -> None:
    committed(archive, RUN, "old")
    archive.save_findings(RUN.run_id, "r", [finding(RUN.run_id, 1)])
    archive.remove(RUN.run_id)
    assert archive.runs() == []
    assert [p.name for p in archive.folder.rglob("*") if p.is_file()] == ["runs.json"]
    with pytest.raises(UnknownName):
        archive.findings(RUN.run_id)


def kills(folder: Path) -> Iterator[tuple[int, str]]:
    """Kill the writer before each of its steps in turn; give what is there afterwards."""
    for step in range(100):
        place = folder / str(step)
        committed(Archive(place, write=True), RUN, "old")
        new = msgspec.json.encode(msgspec.structs.replace(RUN, inputs_digest="d2")).decode()
        command = [sys.executable, "-c", KILLED, str(place), str(step), new]
        code = subprocess.run(command, env=os.environ, check=False).returncode
        reopened = Archive(place, write=True)
        found = content(reopened, RUN.run_id)
        assert reopened.entry(RUN.run_id).inputs_digest == {"old": "d1", "new": "d2"}[found]
        assert len(list((place / "generations").iterdir())) == 1
        assert list((place / "staging").iterdir()) == []
        yield code, found
        if code == 0:
            return


@pytest.mark.slow
def test_a_killed_writer_leaves_the_old_state_or_the_new(tmp_path: Path) -> None:
    told = list(kills(tmp_path))
    assert [code for code, _ in told] == [9] * (len(told) - 1) + [0]
    found = [state for _, state in told]
    assert found == sorted(found, reverse=True)  # "old" up to one step, then "new"
    assert {"old", "new"} == set(found[:-1])
