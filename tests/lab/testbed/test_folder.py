"""A run folder of the testbed is read as any other, and tells nothing of what was done."""

import gzip
import json
from pathlib import Path

import pytest

from teller.graph.workspace import Workspace
from teller.lab.manifest import read_manifest
from teller.lab.testbed.campaign import written
from teller.lab.testbed.faults import KINDS
from teller.lab.testbed.life import Lived
from teller.lab.testbed.recorded import Recorded
from teller.lab.truth import Truth, read_truth
from tests.lab.testbed.reading import ask, ingested, step_numbers, who


@pytest.fixture(scope="module")
def run(life: Lived, tmp_path_factory: pytest.TempPathFactory) -> Path:
    ((folder, _),) = written(life, tmp_path_factory.mktemp("runs"), 11)
    return folder


@pytest.fixture(scope="module")
def workspace(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return ingested(run, tmp_path_factory.mktemp("workspace"))


def test_the_manifest_names_every_file_and_the_truth_lies_outside(run: Path, truth: Truth) -> None:
    manifest = read_manifest(run)
    assert manifest.run == run.name
    assert {one.path for one in manifest.files} | {"manifest.json"} == {
        file.name for file in run.iterdir()
    }
    assert read_truth(run).episodes == truth.episodes


def test_nothing_in_the_folder_names_a_kind_of_fault(run: Path) -> None:
    for file in run.iterdir():
        data = file.read_bytes()
        text = gzip.decompress(data) if file.suffix == ".gz" else data
        named = [name for name in KINDS if name.encode() in text and name != "healthy"]
        assert not named, (file.name, named)


def test_ranks_hosts_and_steps_are_read_as_they_were(workspace: Workspace, truth: Truth) -> None:
    assert who(workspace) == [(0, "node-0"), (1, "node-1")]
    assert (
        step_numbers(workspace, 0) == step_numbers(workspace, 1) == [*range(truth.extra["steps"])]
    )


def test_collectives_of_both_ranks_are_one(workspace: Workspace, ranks: list[Recorded]) -> None:
    calls = min(len(one.calls["seq"]) for one in ranks)
    found = ask(
        workspace,
        "MATCH (c:Collective) WHERE c.ranks_seen = 2 RETURN c.op AS op, count(*) AS n ORDER BY op",
    )
    assert sum(row["n"] for row in found) == pytest.approx(calls, abs=2)
    assert {row["op"] for row in found} == {"all_reduce", "all_gather", "broadcast"}


def test_times_of_the_truth_are_those_of_the_run(workspace: Workspace, truth: Truth) -> None:
    ((row),) = ask(workspace, "MATCH (r:Run) RETURN r.t0_epoch_ns AS zero, r.name AS name")
    assert abs(row["zero"] - truth.extra["t0_epoch_ns"]) < 1_000_000
    slow = truth.episodes[0]
    steps = ask(
        workspace,
        f"MATCH (t:Step) WHERE t.rank = 1 AND t.step_index = {slow.steps[0].step_index} "
        "RETURN t.start_ns AS first, t.end_ns AS last",
    )
    assert steps[0]["last"] > slow.intended.start_ns
    assert steps[0]["first"] < slow.intended.end_ns


def test_the_struck_operator_has_the_excess_that_the_truth_tells(
    workspace: Workspace, truth: Truth
) -> None:
    (gold,) = truth.episodes[0].operators
    first, last = truth.episodes[0].steps[0].step_index, truth.episodes[0].steps[-1].step_index
    found = ask(
        workspace,
        "MATCH (s:Span) WHERE s.rank = 1 AND s.layer <> 'comm' AND s.step_index >= "
        f"{first} AND s.step_index <= {last} AND s.operator = '{gold.operator}' "
        "RETURN sum(s.self_ns) AS own",
    )
    assert found[0]["own"] == pytest.approx(gold.excess_ns, rel=0.1)


def test_records_of_calls_say_the_same_as_the_trace(run: Path, ranks: list[Recorded]) -> None:
    lines = gzip.decompress((run / "comm_rank1.jsonl.gz").read_bytes()).splitlines()
    told = [json.loads(line) for line in lines]
    assert len(told) == len(ranks[1].calls["seq"])
    shared = [one for one in told if one["op"] == "all_reduce"]
    assert [one["seq"] for one in told if one["group"] == shared[0]["group"]] == [
        *range(sum(one["group"] == shared[0]["group"] for one in told))
    ]
