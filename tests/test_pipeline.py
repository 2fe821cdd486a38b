"""From files to an answer and back again: the same input always gives the same graph."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

import pyarrow as pa
import pytest

from teller import pipeline
from teller.graph.finding import Diagnosis
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent

Ingest = Callable[[Path, Path], Workspace]
TRACES = ("rank0.nsys.sqlite.gz", "rank1.nsys.sqlite.gz")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two traces of the demo run, without its manifest."""
    folder = tmp_path_factory.mktemp("run")
    with as_file(files("teller").joinpath("demo/run")) as demo:
        for name in TRACES:
            shutil.copy(demo / name, folder / name)
    return folder


def ingest(source: Path, folder: Path) -> Workspace:
    workspace = Workspace(folder, project=project, rest=rest)
    pipeline.ingest([source], workspace, Options(), Silent())
    return workspace


def graph(workspace: Workspace) -> dict[str, pa.Table]:
    """Everything that tells two graphs apart: counts, and sums over ids and times."""
    with workspace.reader() as store:
        return {
            "counts": store.counts(),
            "spans": store.query(
                "MATCH (s:Span) RETURN s.rank AS rank, count(*) AS n, min(s.id) AS low, "
                "max(s.id) AS high, sum(s.start_ns) AS begins, sum(s.excess_ns) AS excess, "
                "sum(s.own_ns) AS own ORDER BY rank"
            ).to_pylist(),
            "steps": store.query(
                "MATCH (t:Step) RETURN t.id AS id, t.excess_ns AS excess ORDER BY id"
            ).to_pylist(),
            "collectives": store.query(
                "MATCH (c:Collective) RETURN count(*) AS n, min(c.id) AS low, max(c.id) AS high, "
                "sum(c.pure_ns) AS pure, sum(c.skew_ns) AS skew"
            ).to_pylist(),
            "ranks": store.query(
                "MATCH (r:Rank) RETURN r.id AS id, r.rank AS rank, r.host AS host, "
                "r.clock_offset_ns AS offset ORDER BY rank"
            ).to_pylist(),
        }


@pytest.fixture(scope="module")
def clean(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    return graph(ingest(run, tmp_path_factory.mktemp("clean")))


def test_the_graph_holds_what_the_files_hold(clean: dict[str, pa.Table]) -> None:
    assert clean["counts"]["Span"] == sum(r["n"] for r in clean["spans"]) > 100_000
    assert clean["counts"]["Step"] == 2 * clean["counts"]["Iteration"] == 816
    assert [r["host"] for r in clean["ranks"]] == ["node-0", "node-1"]
    assert abs(clean["ranks"][1]["offset"]) < 50_000  # one machine, one clock


def test_twice_and_under_other_names_changes_nothing(
    run: Path, clean: dict[str, pa.Table], tmp_path: Path
) -> None:
    workspace = ingest(run, tmp_path / "w")
    ingest(run, tmp_path / "w")
    assert graph(workspace) == clean
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    for name, other in zip(TRACES, ("z.gz", "a.gz"), strict=True):
        shutil.copy(run / name, renamed / other)
    ingest(renamed, tmp_path / "w")
    assert graph(workspace) == clean
    assert len(workspace.archive.runs()) == 1


def test_a_rank_that_comes_later_joins_its_run_and_changes_no_id(
    run: Path, clean: dict[str, pa.Table], tmp_path: Path
) -> None:
    workspace = ingest(run / TRACES[0], tmp_path / "w")
    before = graph(workspace)
    ingest(run / TRACES[1], tmp_path / "w")
    after = graph(workspace)
    assert len(workspace.archive.runs()) == 1
    assert {r["id"] for r in before["steps"]} < {r["id"] for r in after["steps"]}
    assert {k: after["spans"][0][k] for k in ("n", "low", "high")} == {
        k: before["spans"][0][k] for k in ("n", "low", "high")
    }
    assert after["counts"] == clean["counts"]


def test_traces_that_come_after_their_logs_join_the_run_of_these(tmp_path: Path) -> None:
    with as_file(files("teller").joinpath("demo/run")) as demo:
        workspace = ingest(demo / "client.jsonl.gz", tmp_path / "w")
        [before] = workspace.archive.runs()
        for name in TRACES:
            ingest(demo / name, tmp_path / "w")
    [after] = workspace.archive.runs()
    assert (after.run_id, after.key) == (before.run_id, before.key)
    counts = graph(workspace)["counts"]
    assert (counts["Step"], counts["Request"], counts["Rank"]) == (816, 26, 2)


CUTS = {
    "while reading": "import teller.ingest.shape as m; m.find_steps = die",
    "while a run is written": "import teller.ingest.traffic as m; m.tables = die",
    "before the run counts": "import teller.graph.archive as m; m.Archive._point = die",
    "before the graph is loaded": "import teller.graph.embedded as m; m.EmbeddedStore.load = die",
    "before the graph is shown": "import teller.graph.published as m; m.Published.publish = die",
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_a_kill_at_any_moment_is_healed_by_the_next_run(
    run: Path, clean: dict[str, pa.Table], tmp_path: Path, cut: str
) -> None:
    code = (
        "import os, sys; die = lambda *a, **k: os._exit(9)\n"
        f"{cut}\nfrom teller.cli import main\n"
        "sys.exit(main(['ingest', sys.argv[1], '--workspace', sys.argv[2], '--quiet']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run), str(tmp_path / "w")],
        check=False,
        capture_output=True,
        env=os.environ | {"NO_COLOR": "1"},
    )
    if b"die" not in done.stderr:
        assert done.returncode in (0, 9), done.stderr
    assert graph(ingest(run, tmp_path / "w")) == clean
    assert not list((tmp_path / "w" / "archive" / "staging").iterdir())


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Diagnosis]:
    workspace = Workspace(tmp_path_factory.mktemp("demo"), project=project, rest=rest)
    with as_file(files("teller").joinpath("demo/run")) as demo:
        return workspace, pipeline.diagnose([demo], workspace, Options(), Silent())


def test_the_demo_run_is_diagnosed_as_its_truth_says(answer: tuple[Workspace, Diagnosis]) -> None:
    import json

    truth = json.loads(files("teller").joinpath("demo/run.truth.json").read_text("utf-8"))
    episode = truth["episodes"][0]
    finding = answer[1].findings[0]
    assert answer[1].verdict == "fault"
    assert finding.klass == "slow_operator"
    assert list(finding.culprit.ranks) == episode["culprit"]["ranks"]
    assert list(finding.culprit.operators) == episode["culprit"]["operators"]
    assert list(finding.culprit.hosts) == episode["culprit"]["hosts"]
    assert abs((finding.first_step or 0) - 165) <= 3
    assert abs((finding.last_step or 0) - 285) <= 3
    others = [f for f in answer[1].findings[1:] if f.severity in ("medium", "high", "critical")]
    assert not others


def test_findings_are_kept_and_come_back_with_a_rebuilt_graph(
    answer: tuple[Workspace, Diagnosis],
) -> None:
    workspace, diagnosis = answer
    asked = (
        "MATCH (f:Finding)-[:BLAMES]->(r:Rank) RETURN f.id AS id, r.rank AS rank, f.class AS class"
    )
    with workspace.reader() as store:
        said = store.query(asked).to_pylist()
    assert {r["id"] for r in said} == {f.id for f in diagnosis.findings if f.culprit.ranks}
    shutil.rmtree(workspace.folder / "graph")
    (workspace.folder / "graph").mkdir()
    with workspace.reader() as store:
        assert store.query(asked).to_pylist() == said
        shown = store.query("MATCH (f:Finding)-[s:SHOWN_BY]->(x:Span) RETURN count(*) AS n")["n"][
            0
        ].as_py()
    assert shown == len(
        {(f.id, e.id, e.role) for f in diagnosis.findings for e in f.evidence if e.kind == "Span"}
    )


def test_the_steps_table_has_a_row_a_rank_and_step(answer: tuple[Workspace, Diagnosis]) -> None:
    table = pipeline.step_rows(*answer)
    rows = table.to_pylist()
    assert table.num_rows == 816
    faulty = [r for r in rows if r["abnormal"]]
    assert {r["class"] for r in faulty if 165 <= r["step_index"] <= 285} == {"slow_operator"}
    assert len([r for r in faulty if r["rank"] == 1 and 165 <= r["step_index"] <= 285]) > 110
    assert len([r for r in faulty if not 163 <= r["step_index"] <= 287]) < 8
