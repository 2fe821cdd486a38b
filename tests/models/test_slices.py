"""A slice of the demo run leads from the rank that waits to the operator that made it wait."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from teller import cli, pipeline
from teller.errors import BadUsage
from teller.graph import queries
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.store import Store
from teller.graph.workspace import Workspace
from teller.models import slice_seeds
from teller.models.slices import Slice, slice_of

DEMO = Path(pipeline.__file__).with_name("demo") / "run"
GUILTY = "layers.2.self_attn.o_proj"  # of rank 1, in steps 165 to 285
SLOW, CALM = 200, 20
Row = dict[str, Any]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("slices"), project=project, rest=rest)
    pipeline.ingest([DEMO], workspace, pipeline.Options(), pipeline.Silent())
    return workspace


@pytest.fixture(scope="module")
def graph(place: Workspace) -> Iterator[Store]:
    with place.reader() as store:
        yield store


@pytest.fixture(scope="module")
def run(place: Workspace) -> int:
    return place.entries()[-1].run_id


def step(graph: Store, run: int, rank: int, number: int) -> int:
    found = queries.run(graph, "step_of_rank", run=run, rank=rank, number=number)
    return int(found["id"][0].as_py())


def cut(graph: Store, run: int, rank: int, number: int) -> Slice:
    return slice_of(graph, run, [step(graph, run, rank, number)])


def with_role(found: Slice, role: str) -> list[Row]:
    return [row for row in found.spans.to_pylist() if role in row["roles"]]


def test_the_rank_that_waited_is_led_to_the_operator_that_was_late(graph: Store, run: int) -> None:
    found = cut(graph, run, 0, SLOW)
    longest = max(found.collectives.to_pylist(), key=lambda row: row["wait_ns"])
    assert (longest["rank"], longest["last_rank"]) == (0, 1)
    arrivals = found.collectives.to_pylist()
    both = [row["rank"] for row in arrivals if row["collective_id"] == longest["collective_id"]]
    assert both == [0, 1]
    waited = next(r for r in with_role(found, "waited") if r["id"] == longest["span_id"])
    assert (waited["rank"], waited["hop"]) == (0, 0)
    behind = with_role(found, "behind_late_rank")
    worst = max(behind, key=lambda row: row["excess_ns"])
    assert (worst["name"], worst["rank"], worst["hop"]) == (GUILTY, 1, 1)
    assert worst["start_ns"] < longest["arrival_ns"] + longest["wait_ns"]


def test_the_late_rank_sees_the_operator_itself(graph: Store, run: int) -> None:
    found = cut(graph, run, 1, SLOW)
    worst = max(with_role(found, "excess"), key=lambda row: row["excess_ns"])
    assert (worst["name"], worst["rank"], worst["hop"]) == (GUILTY, 1, 0)
    assert {"late"} <= {role for row in found.spans.to_pylist() for role in row["roles"]}


def test_a_slice_is_whole_trees(graph: Store, run: int) -> None:
    found = cut(graph, run, 0, SLOW)
    edges = [e for e in found.edges.to_pylist() if e["kind"] == "CHILD"]
    parents = {edge["dst"]: edge["src"] for edge in edges}
    ids = set(found.spans["id"].to_pylist())
    assert set(parents) | set(parents.values()) <= ids
    tops = [row for row in found.spans.to_pylist() if row["id"] not in parents]
    assert [(row["family"], row["rank"]) for row in tops] == [("step", 0), ("step", 1)]
    for kind, table in (("IN_COLLECTIVE", found.collectives),):
        joined = [e["dst"] for e in found.edges.to_pylist() if e["kind"] == kind]
        assert set(joined) <= set(table["collective_id"].to_pylist())
    starts = found.spans["start_ns"].to_pylist()
    assert starts == sorted(starts)


def test_a_step_where_little_is_odd_gives_a_small_slice(graph: Store, run: int) -> None:
    found = cut(graph, run, 0, CALM)
    [size] = found.steps.to_pylist()
    assert found.spans.num_rows == size["kept"] < 0.2 * size["span_count"]
    assert size["cut"] == 0
    assert not [row for row in found.spans.to_pylist() if row["name"] == GUILTY and row["hop"]]


def test_many_at_once_are_those_one_by_one(graph: Store, run: int) -> None:
    ids = sorted(step(graph, run, rank, n) for rank in (0, 1) for n in (CALM, SLOW, 280))
    whole = slice_of(graph, run, [*ids, ids[0]])
    alone = [slice_of(graph, run, [one]) for one in ids]
    for name in ("steps", "spans", "edges", "collectives", "lines", "counts"):
        joined = [row for one in alone for row in getattr(one, name).to_pylist()]
        order = [tuple(map(str, row.values())) for row in getattr(whole, name).to_pylist()]
        assert sorted(order) == sorted(tuple(map(str, row.values())) for row in joined), name


def test_lines_come_with_their_template(graph: Store, run: int) -> None:
    text = """
        MATCH (l:LogLine)-[:DURING]->(t:Step) WHERE t.run_id = $run
        RETURN t.id AS id, l.text AS text ORDER BY text LIMIT 1
    """
    [line] = graph.query(text, {"run": run}).to_pylist()
    found = slice_of(graph, run, [line["id"]]).lines.to_pylist()
    [tied] = [row for row in found if row["text"] == line["text"]]
    assert tied["own_step_id"] == line["id"]
    assert tied["template"]


def test_what_is_too_large_is_cut_and_says_so(
    graph: Store, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cut(graph, run, 0, SLOW)
    monkeypatch.setattr(slice_seeds, "MOST_SPANS", 3)
    found = cut(graph, run, 0, SLOW)
    [size] = found.steps.to_pylist()
    assert size["cut"] > 0
    assert found.spans.num_rows < before.spans.num_rows
    assert max(with_role(found, "behind_late_rank"), key=lambda r: r["excess_ns"])["name"] == GUILTY


@pytest.mark.parametrize(("ids", "said"), [([7], "7 is no step of run"), ([], "one step at least")])
def test_an_unknown_step_is_told(graph: Store, run: int, ids: list[int], said: str) -> None:
    with pytest.raises(BadUsage, match=re.escape(said)):
        slice_of(graph, run, ids)


def test_a_step_of_another_run_is_unknown(graph: Store, run: int) -> None:
    with pytest.raises(BadUsage, match="is no step of run"):
        slice_of(graph, run + 1, [step(graph, run, 0, CALM)])


def test_the_command_shows_the_tree(place: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--workspace", str(place.folder)]
    assert cli.main(["trace", "--slice", f"0:{SLOW}", *at]) == 0
    said = capsys.readouterr().out
    own, _, other = said.partition("rank 1\n")
    assert re.search(r"all_reduce  comm, [\d.]+ ms  waited 12\.0 ms", own)
    assert re.search(rf"{re.escape(GUILTY)}  .*on the way of the last to come, 12\.0 ms too", other)
    for wrong in (["--slice", "0"], ["--slice", "0:9999"], ["cmpl", "--slice", "0:1"], []):
        assert cli.main(["trace", *wrong, *at]) == 2
        assert capsys.readouterr().err.startswith("teller: ")
