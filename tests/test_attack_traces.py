"""What a trace says of itself may be anything: what cannot be is said, and misleads nobody."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller import pipeline
from teller.errors import TellerError
from teller.graph.finding import Diagnosis
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.ingest import match, runs
from teller.ingest.plausible import plausible
from teller.ingest.runs import Capture
from teller.ingest.source import Facts
from teller.ingest.step_names import parse
from teller.pipeline import Options, Silent

BASE_NS = 1_733_000_000_000_000_000
STEP_US, STEPS, LAYERS = 4_000.0, 8, 3


def trace(number: int, *, late_us: float = 0.0, **header: Any) -> dict[str, Any]:
    """Two healthy ranks that wait for each other at the end of each layer."""
    events: list[dict[str, Any]] = []
    call = 0
    for step in range(STEPS):
        begin = 1_000 + step * STEP_US + late_us
        lane = {"pid": 100 + number, "tid": 1}
        events.append(
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", **lane,
             "ts": begin, "dur": STEP_US - 5}
        )  # fmt: skip
        for layer in range(LAYERS):
            at = begin + 10 + layer * 1_200
            # rounds differ a little, as real ones do
            length = 1_000 + 7 * ((step * LAYERS + layer) % 5)
            for name, start, dur in (
                ("gemm", at + 20, length),
                ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", at + 21 + length, 60.0),
            ):
                call += 1
                events += [
                    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **lane,
                     "ts": at + call % 2 * 8, "dur": 5, "args": {"correlation": call}},
                    {"ph": "X", "cat": "kernel", "name": name, "pid": number, "tid": 7, "ts": start,
                     "dur": dur, "args": {"correlation": call, "device": number, "stream": 7}},
                ]  # fmt: skip
    return {
        "baseTimeNanoseconds": BASE_NS,
        "distributedInfo": {"rank": number, "world_size": 2} | header,
        "traceEvents": events,
    }


def write(folder: Path, **traces: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in traces.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def diagnose(folder: Path, place: Path) -> Diagnosis:
    workspace = Workspace(place, project=project, rest=rest)
    return pipeline.diagnose([folder], workspace, Options(), Silent())


def faults(said: Diagnosis) -> list[str]:
    return [f.title for f in said.findings if f.severity not in ("low", "info")]


def test_a_rank_and_a_size_that_cannot_be_are_said_and_not_used(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", a=trace(0, world_size=10**9), b=trace(1, rank=2**63))
    said = diagnose(folder, tmp_path / "w")
    assert [r.ranks for r in said.runs] == [(0, 1)]
    what = {q.file: q.what for q in said.data_quality}
    assert what == {
        "a.json": "says that the run has 1000000000 ranks, which cannot be",
        "b.json": f"says that it is rank {2**63}, which no run has",
    }
    assert (said.verdict, faults(said)) == ("no_fault", [])


@pytest.mark.parametrize("rank", [-1, 10**6, 2**70])
def test_no_run_has_such_a_rank(rank: int) -> None:
    kept, remarks = plausible(Facts("x", "kineto", rank=rank, world_size=0, pid=2**60))
    assert (kept.rank, kept.world_size, kept.pid) == (None, None, None)
    assert len(remarks) == 1


def test_a_clock_half_a_minute_off_is_aligned_by_the_numbers_of_the_steps(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", a=trace(0), b=trace(1, late_us=30e6))
    workspace = Workspace(tmp_path / "w", project=project, rest=rest)
    pipeline.diagnose([folder], workspace, Options(), Silent())
    with workspace.reader() as store:
        asked = "MATCH (r:Rank) RETURN r.rank AS rank, r.clock_offset_ns AS off ORDER BY rank"
        off = store.query(asked)["off"].to_pylist()
        both = store.query("MATCH (c:Collective) WHERE c.ranks_seen = 2 RETURN count(*) AS n")
    assert abs(off[1] + 30_000_000_000) < 1_000
    assert both["n"].to_pylist() == [STEPS * LAYERS]


def test_step_numbers_decide_only_where_clocks_cannot() -> None:
    end = np.arange(24, dtype=np.int64) * 1_000_000
    token, step = np.zeros(24, np.int64), np.arange(24) // 3
    far = end + 7_000_000_000
    assert match.align(end, token, far, token, (step, step)).tolist() == list(range(24))
    # clocks agree: a rank that counts its steps from another number is not moved
    assert match.align(end, token, end, token, (step, step - 1)).tolist() == list(range(24))


def test_a_step_number_that_no_column_holds_is_no_step() -> None:
    assert parse(f"ProfilerStep#{2**63}") is None
    assert parse("ProfilerStep#" + "9" * 5_000) is None
    known = parse("ProfilerStep#41")
    assert known is not None
    assert known.index == 41


def capture(rank: int, digest: str, **more: Any) -> Capture:
    given: dict[str, Any] = {"first_ns": 0, "last_ns": 1_000, "anchored": True} | more
    order = (given.get("head", digest), digest, 1)
    return Capture(rank=rank, digest=digest, order=order, **given)


def test_the_same_bytes_are_used_once_whatever_their_names_say() -> None:
    found = runs.group([capture(rank, "same") for rank in range(4)])
    assert [(r.captures, r.duplicates) for r in found] == [([0], [(1, 0), (2, 0), (3, 0)])]


def test_the_user_may_say_later_which_rank_it_is() -> None:
    captures = [capture(0, "x"), capture(1, "y"), capture(5, "x", told=True)]
    known = runs.Membership("k", [0, 1], known=frozenset({0, 1}))
    (run,) = runs.group(captures, [known])
    assert (sorted(run.captures), run.is_new) == ([1, 2], True)


def test_equal_heads_in_two_windows_are_two_runs_and_a_shorter_copy_is_named() -> None:
    later = {"first_ns": 5_000, "last_ns": 6_000}
    found = runs.group([capture(0, "x", head="h"), capture(0, "y", head="h", **later)])
    assert [r.captures for r in found] == [[0], [1]]
    whole, cut = capture(0, "x", head="h", weight=9), capture(0, "y", head="h", weight=4)
    for pair, kept in (([whole, cut], 0), ([cut, whole], 1)):
        (run,) = runs.group(pair)
        assert (run.captures, run.duplicates) == ([kept], [(1 - kept, kept)])


def test_runs_with_equal_large_headers_are_kept_apart(tmp_path: Path) -> None:
    large = {"deviceProperties": [{"id": 0, "name": "N" * 70_000}]}
    early, late = (large | trace(0, late_us=at) for at in (0.0, 90e6))
    said = diagnose(write(tmp_path / "run", a=early, b=late), tmp_path / "w")
    assert len({r.id for r in said.runs}) == 2


def test_a_file_that_was_mended_is_spoken_of_no_more(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", rank0=trace(0), rank1=trace(1))
    whole = (folder / "rank1.json").read_bytes()
    (folder / "rank1.json").write_bytes(whole[: len(whole) // 2])
    before = diagnose(folder, tmp_path / "w")
    assert any("cut" in q.what for q in before.data_quality)
    (folder / "rank1.json").write_bytes(whole)
    after = diagnose(folder, tmp_path / "w")
    assert [r.id for r in after.runs] == [r.id for r in before.runs]
    assert after.data_quality == ()
    assert [i.file for i in after.inputs] == ["rank0.json", "rank1.json"]


def test_a_kept_run_that_is_damaged_says_how_to_begin_again(tmp_path: Path) -> None:
    folder, place = write(tmp_path / "run", rank0=trace(0)), tmp_path / "w"
    run = diagnose(folder, place).runs[0].id
    shutil.rmtree(place / "graph")
    for file in (place / "archive" / "generations").glob("*/spans/*.parquet"):
        file.write_text("garbage")
    with pytest.raises(TellerError, match=f"the kept run is damaged .*teller runs rm {run}"):
        diagnose(folder, place)
    with Workspace(place, write=True, project=project, rest=rest) as workspace:
        workspace.remove(run)
    assert diagnose(folder, place).runs[0].id == run
