"""`teller trace`: one request from its queue to the kernels of its slowest step."""

import json

import pytest

from teller import cli
from teller.graph.workspace import Workspace

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def at(workspace: Workspace) -> list[str]:
    return ["--workspace", str(workspace.folder)]


def test_a_request_is_found_by_what_any_program_prints_of_it(
    at: list[str], capsys: Capture
) -> None:
    for name in ("0f8fad5bd9cb469fa16570867728950e", "0f8fad5b", "cmpl-0f8", "0f"):
        assert cli.main(["trace", name, "--format", "json", *at]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["request"]["name"] == "cmpl-0f8fad5bd9cb469fa16570867728950e-0-1a2b3c4d"


def test_the_slowest_iteration_is_opened_over_all_ranks(at: list[str], capsys: Capture) -> None:
    assert cli.main(["trace", "0f8f", "--limit", "2", *at]) == 0
    text = capsys.readouterr().out
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "Request cmpl-0f8fad5bd9cb469fa16570867728950e-0-1a2b3c4d: ok"
    assert "first token     375 ms after it came" in lines
    assert "the slowest 2 are shown; --limit N shows more" in lines
    assert "Iteration 7, 1 s" in lines
    tree = text.partition("Iteration 7, 1 s")[2].partition("Lines that speak of it: 3")[0]
    late, waiting = tree.split("rank 0: 1 s")
    assert "rank 1: 1 s, own time 1 s, 400 ms too long" in late
    path = (
        "execute_context",
        "model.layers.0.mlp",
        "aten::linear",
        "cudaLaunchKernel",
        "gemm_bf16",
    )
    assert [late.index(name) for name in path] == sorted(late.index(name) for name in path)
    assert "gemm_bf16  device, 700 ms  400 ms too long" in late
    assert "all_reduce of 2 ranks, waited 400 ms; rank 1 came last" in " ".join(waiting.split())
    assert "The step takes longer than usual." in " ".join(text.partition("Other lines")[2].split())


def test_json_has_the_ids_as_strings_and_the_tree(at: list[str], capsys: Capture) -> None:
    assert cli.main(["trace", "0f8f", "--limit", "1", "--format", "json", *at]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "teller.request/1"
    assert said["iterations"]["count"] == 9
    assert [i["step_index"] for i in said["iterations"]["slowest"]] == [7]
    first, second = said["slowest"]["ranks"]
    assert (first["step"]["rank"], second["step"]["rank"]) == (1, 0)
    assert isinstance(first["tree"][0]["id"], str)
    assert second["collectives"][0]["wait_ns"] == 400_000_000
    assert first["left_out"] == second["left_out"] == 0
    assert said["lines"]["count"] == 3


def test_a_request_that_nothing_served_says_so(at: list[str], capsys: Capture) -> None:
    assert cli.main(["trace", "other-7", *at]) == 0
    assert "No iteration is known to have served it." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cmpl-0f8fad5bd9cb469f", None),
        ("cmpl-", "2 requests begin with 'cmpl-': cmpl-0f8f"),
        ("other-8", "no request 'other-8'; did you mean other-7?"),
        ("nobody", "no request 'nobody'; known: "),
    ],
)
def test_a_name_that_means_none_or_several_gets_near_ones(
    name: str, said: str | None, at: list[str], capsys: Capture
) -> None:
    code = cli.main(["trace", name, *at])
    err = capsys.readouterr().err
    assert (code, err) == (0, "") if said is None else (code == 2 and said in err)


def test_the_story_may_go_to_a_file(
    at: list[str], capsys: Capture, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("out") / "story.txt"
    assert cli.main(["trace", "7c9e", "-o", str(file), *at]) == 0
    assert capsys.readouterr().out == ""
    assert "Served by 3 iterations" in file.read_text()
