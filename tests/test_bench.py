"""What the benchmark makes and writes: traces with the truth that was planted, and its page."""

import gzip
import importlib
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.compute as pc
import pytest

from teller import pipeline
from teller.graph.workspace import Workspace
from teller.ingest.readers import kineto, nsys

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "bench"
STEPS, KERNELS = 2, 12  # of the hand-made seed
HOST, STREAM, COMM_STREAM = 77, 7, 20


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("page")


def run(script: str, *arguments: object) -> None:
    subprocess.run([sys.executable, str(BENCH / script), *map(str, arguments)], check=True)


def span(cat: str, name: str, thread: int, ts: float, dur: float, **args: object) -> dict[str, Any]:
    pid = 0 if thread in (STREAM, COMM_STREAM) else HOST
    times = {"ts": 5_000_000.0 + ts, "dur": dur}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": thread, **times, "args": args}


def step(number: int, ts: float) -> list[dict[str, Any]]:
    """A step of 16 ms: a launch and a kernel a millisecond, and one all-reduce at the end."""
    events = [span("user_annotation", f"ProfilerStep#{number}", HOST, ts, 15_900)]
    for k in range(KERNELS):
        at, ids = ts + 100 + 1000 * k, {"correlation": 100 * number + k}
        device = {"device": 0, "stream": STREAM, **ids}
        events += [
            span("cuda_runtime", "cudaLaunchKernel", HOST, at, 20, **ids),
            span("kernel", f"gemm_{k % 3}<float, 100%>", STREAM, at + 30, 900.125, **device),
        ]
    ids = {"correlation": 100 * number + 99}
    told: dict[str, object] = {
        "Collective name": "allreduce", "In msg nelems": 4096, "dtype": "Float",
        "Process Group Name": "0", "Process Group Ranks": "[0]", "Group size": 1,
        "device": 0, "stream": COMM_STREAM, **ids,
    }  # fmt: skip
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    return [
        *events,
        span("cuda_runtime", "cudaLaunchKernelExC", HOST, ts + 13_000, 20, **ids),
        span("kernel", name, COMM_STREAM, ts + 13_100, 500, **told),
    ]


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    events = [e for n in range(STEPS) for e in step(n + 1, 16_000.0 * n)]
    group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 1, "ranks": [0]}
    told = {"backend": "nccl", "rank": 0, "world_size": 1, "pg_config": [group]}
    path = tmp_path / "seed.json"
    path.write_text(json.dumps({
        "schemaVersion": 1, "distributedInfo": told,
        "baseTimeNanoseconds": 1_700_000_000_000_000_000, "traceEvents": events,
    }))  # fmt: skip
    return path


def made(folder: Path, seed: Path, *flags: object) -> dict[str, Any]:
    run("make_traces.py", folder, "--seed-trace", seed, *flags)
    truth: dict[str, Any] = json.loads(folder.with_name(f"{folder.name}.truth.json").read_text())
    return truth


def events(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return found


def nccl(path: Path) -> list[tuple[int, int]]:
    """Start and end of each collective of a file, ns."""
    found = [e for e in events(path) if e.get("cat") == "kernel" and "nccl" in e["name"]]
    return sorted((round(e["ts"] * 1e3), round((e["ts"] + e["dur"]) * 1e3)) for e in found)


def test_ranks_end_a_collective_together_and_the_slow_one_comes_last(
    seed: Path, tmp_path: Path
) -> None:
    count = 4 * 6 * len(events(seed))
    truth = made(tmp_path / "t", seed, "--ranks", 4, "--slow-rank", 2, "--events", count)
    assert (truth["copies"], truth["slow_from_step"]) == (6, 1 + 4 * STEPS)
    ranks = [nccl(path) for path in sorted((tmp_path / "t").iterdir())]
    last = []
    for same in zip(*ranks, strict=True):
        assert max(end for _, end in same) - min(end for _, end in same) <= 1
        last.append(max(range(4), key=lambda r: same[r][0]))
    assert last[4 * STEPS :] == [2] * 2 * STEPS
    assert set(last[: 4 * STEPS]) != {2}


def test_a_copy_is_the_seed_with_other_times_and_numbers(seed: Path, tmp_path: Path) -> None:
    count = 3 * len(events(seed))
    made(tmp_path / "t", seed, "--ranks", 1, "--slow-rank", -1, "--events", count, "--plain")
    found = events(tmp_path / "t" / "rank-0.pt.trace.json")
    assert len(found) == count
    steps = [e["name"] for e in found if e["name"].startswith("ProfilerStep#")]
    assert steps == [f"ProfilerStep#{n + 1}" for n in range(3 * STEPS)]
    launched = [e["args"]["correlation"] for e in found if e["cat"] == "kernel"]
    assert len(set(launched)) == len(launched) == 3 * STEPS * (KERNELS + 1)
    assert {e["dur"] for e in found if "gemm" in e["name"]} == {900.125}


def test_the_same_arguments_give_the_same_bytes(seed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        made(tmp_path / name, seed, "--ranks", 4, "--events", 200, "--seed", 5, "--clock-us", 40)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_clocks_are_as_far_apart_as_the_truth_says(seed: Path, tmp_path: Path) -> None:
    common = ("--ranks", 4, "--events", 300)
    made(tmp_path / "a", seed, *common)
    truth = made(tmp_path / "b", seed, *common, "--clock-us", 5000)
    for rank, clock in enumerate(truth["clocks_ns"]):
        one, other = (nccl(tmp_path / n / f"rank-{rank}.pt.trace.json.gz") for n in "ab")
        assert other[0][0] - one[0][0] == pytest.approx(clock, abs=2)


def test_a_diagnosis_finds_what_was_planted(seed: Path, tmp_path: Path) -> None:
    count = 4 * 9 * len(events(seed))
    made(tmp_path / "t", seed, "--ranks", 4, "--slow-rank", 2, "--events", count)
    found = pipeline.diagnose(
        [tmp_path / "t"], Workspace(tmp_path / "w"), pipeline.Options(), pipeline.Silent()
    )
    slow = next(f for f in found.findings if f.klass == "slow_rank")
    assert slow.culprit.ranks == (2,)
    assert slow.first_step == 1 + 6 * STEPS


@pytest.mark.slow
def test_a_real_trace_repeated_is_read_whole_with_its_slow_rank(
    shared: Path, tmp_path: Path
) -> None:
    real = shared / "traces" / "kineto" / "hta_nccl_metadata.json.gz"
    flags = ("--ranks", 3, "--slow-rank", 1, "--events", 120_000)
    truth = made(tmp_path / "t", real, *flags)
    assert (truth["copies"], truth["steps"]) == (1, 3)
    waiting = {}
    for path in sorted((tmp_path / "t").iterdir()):
        [source] = kineto.read(path).sources
        assert source.spans.num_rows == sum(e["ph"] == "X" for e in events(path))
        names = source.spans["name"].cast("string")
        rows = source.spans.filter(pc.match_substring(names, "ncclKernel"))
        waiting[source.facts.rank] = pc.sum(pc.subtract(rows["end_ns"], rows["start_ns"])).as_py()
    assert min(waiting, key=lambda rank: waiting[rank]) == 1
    assert 2 * waiting[1] < min(waiting[0], waiting[2])


EXPORT = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME
    (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel'), (2, 'gemm');
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 83886081, 7, 1), (30, 40, 83886081, 9, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (15, 60, 0, 7, 7, 83886080, 2);
"""


def test_rows_of_an_export_are_repeated_under_new_numbers(tmp_path: Path) -> None:
    seed, path = tmp_path / "seed.sqlite", tmp_path / "made.sqlite"
    with closing(sqlite3.connect(seed)) as database:
        database.executescript(EXPORT)
    run("make_export.py", path, "--seed-export", seed, "--rows", 9)
    with closing(sqlite3.connect(path)) as database:
        calls = database.execute("SELECT start, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME")
        joined = database.execute(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN CUPTI_ACTIVITY_KIND_RUNTIME "
            "USING (correlationId)"
        ).fetchone()
        starts, numbers = zip(*calls.fetchall(), strict=True)
    assert numbers == (7, 9, 17, 19, 27, 29)
    assert starts[2] - starts[0] == 60 - 10 + 1_000_000
    assert joined == (3,)
    assert sum(s.spans.num_rows for s in nsys.read(path).sources) == 9


def test_the_page_has_its_markers_and_keeps_the_rest(page: ModuleType, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    assert text.count(page.BEGIN) == text.count(page.END) == 1
    path = tmp_path / "page.md"
    path.write_text(f"above\n{page.BEGIN}\nold\n{page.END}\nbelow\n")
    page.write(path, "new")
    assert path.read_text() == f"above\n{page.BEGIN}\n\nnew\n\n{page.END}\nbelow\n"


def test_a_goal_that_is_missed_is_bold_and_a_failure_is_said(page: ModuleType) -> None:
    cost = page.Cost(3.0, 4.0, 100.0, 120.0, 0, "", "")
    rows = (
        page.Row("read", 0.5, costs=[cost], units=[4.0]),
        page.Row("ingest", 2.0, costs=[cost], units=[4.0]),
        page.Row("peer", ours=False, problem="could not be installed"),
    )
    lines = page.table(page.Table("Files", "json.load", rows, (90, 150))).splitlines()
    assert "| read | 3.0 | **0.75** | 0.75–0.75 | ≤ 0.50 | 100 | 120 |" in lines
    assert "| ingest | 3.0 | 0.75 | 0.75–0.75 | ≤ 2.00 | 100 | 120 |" in lines
    assert "| peer | | could not be installed | | – | | |" in lines
    assert "**100 MiB** (goal ≤ 90)" in lines[-1]
    assert " 120 MiB (goal ≤ 150)" in lines[-1]
