"""The demo run, asked with plain SQL: the planted fault is in it, and nothing private."""

import gzip
import json
import sqlite3
from pathlib import Path
from statistics import median
from typing import Any

import pytest

HERE = Path(__file__).parents[1] / "src" / "teller" / "demo"
RUN = HERE / "run"
OPERATOR = "layers.2.self_attn.o_proj"

# begin and end of the operator, time of the all-reduce in it, when that began; in order of steps
CALLS = """
select start + utcEpochNs, end - start, inner_end - inner_start, inner_start + utcEpochNs
from (
    select s.value as name, start, end, lead(start) over lane as inner_start,
        lead(end) over lane as inner_end, lead(s.value) over lane as inner_name
    from NVTX_EVENTS join StringIds s on s.id = textId where eventType = 59
    window lane as (partition by globalTid order by start, end desc)
), TARGET_INFO_SESSION_START_TIME
where name = ? and inner_name = 'tensor_model_parallel_all_reduce' order by start
"""


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    told: dict[str, Any] = json.loads((HERE / "run.truth.json").read_text())
    return told


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[tuple[int, ...]]]:
    """Rank -> one row a step: start, duration and all-reduce of the operator."""
    found = {}
    for rank in (0, 1):
        path = tmp_path_factory.mktemp("demo") / f"{rank}.sqlite"
        path.write_bytes(gzip.decompress((RUN / f"rank{rank}.nsys.sqlite.gz").read_bytes()))
        with sqlite3.connect(path) as db:
            found[rank] = db.execute(CALLS, (OPERATOR,)).fetchall()
        db.close()
    return found


def test_the_manifest_names_every_file_and_only_those() -> None:
    manifest = json.loads((RUN / "manifest.json").read_text())
    assert manifest["schema"] == "teller.run/1"
    assert {f["path"] for f in manifest["files"]} == {
        p.name for p in RUN.iterdir() if p.name != "manifest.json"
    }
    assert [(r["rank"], r["host"]) for r in manifest["ranks"]] == [(0, "node-0"), (1, "node-1")]


def test_the_run_is_small() -> None:
    assert sum(p.stat().st_size for p in HERE.rglob("*") if p.is_file()) <= 3_000_000


def test_the_operator_is_slow_on_rank_1_in_the_steps_that_the_truth_names(
    calls: dict[int, list[tuple[int, ...]]], truth: dict[str, Any]
) -> None:
    own = {r: [(dur - reduce) / 1e6 for _, dur, reduce, _ in rows] for r, rows in calls.items()}
    assert len(own[0]) == len(own[1]) == truth["extra"]["steps"]
    [episode] = truth["episodes"]
    first, last = (episode["measured"][k]["1"] for k in ("first_step", "last_step"))
    slow = [step for step, ms in enumerate(own[1]) if ms > 5]
    assert set(range(first, last + 1)) - set(slow) == set()
    assert len(slow) - (last + 1 - first) <= 1
    assert median(own[1][first : last + 1]) == pytest.approx(12.2, abs=0.3)
    assert median(own[1][:first]) < 0.5
    assert median(own[0][first : last + 1]) < 0.5
    assert episode["culprit"]["operators"] == [OPERATOR]
    assert episode["culprit"]["ranks"] == [1]


def test_the_innocent_rank_waits_in_the_collective(
    calls: dict[int, list[tuple[int, ...]]], truth: dict[str, Any]
) -> None:
    measured = truth["episodes"][0]["measured"]
    bad = slice(measured["first_step"]["1"], measured["last_step"]["1"] + 1)
    waited = {r: median(row[2] / 1e6 for row in rows[bad]) for r, rows in calls.items()}
    assert waited[0] > 12
    assert waited[1] < 1.5
    pairs = zip(calls[0][bad], calls[1][bad], strict=True)
    late = median((b[3] - a[3]) / 1e6 for a, b in pairs)
    assert late == pytest.approx(12.0, abs=0.3)


@pytest.mark.parametrize("path", sorted(RUN.glob("*.gz")), ids=lambda p: p.name)
def test_nothing_in_the_run_tells_where_it_was_made(path: Path) -> None:
    raw = gzip.decompress(path.read_bytes())
    for private in (b"/home/", b"/root", b"/tmp/", b"/work", b"token=", b"PASSWORD", b"AWS_"):
        assert private not in raw
