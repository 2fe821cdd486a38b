"""One run, many sources: requests, their iterations, their lines, and the late kernel behind."""

from typing import Any

import pytest

from teller.graph import queries
from teller.graph.workspace import Workspace

Row = dict[str, Any]


@pytest.fixture(scope="module")
def asked(workspace: Workspace) -> dict[str, Row]:
    """Give the requests by the first digits of their ids."""
    with workspace.reader() as graph:
        run = graph.runs()[0]
        rows = queries.run(graph, "requests", run=run).to_pylist()
    return {row["name"].removeprefix("cmpl-")[:4]: row for row in rows}


def rows(workspace: Workspace, text: str, **params: object) -> list[Row]:
    with workspace.reader() as graph:
        found: list[Row] = graph.query(text, params).to_pylist()
    return found


def test_log_client_telemetry_and_ranges_tell_of_the_same_requests(asked: dict[str, Row]) -> None:
    assert sorted(asked) == ["0f8f", "7c9e", "othe"]
    first, second = asked["0f8f"], asked["7c9e"]
    assert first["name"].endswith("-0-1a2b3c4d")  # as telemetry has it, who has most of it
    assert (first["ttft_ns"], first["queue_ns"]) == (375_000_000, 125_000_000)
    assert (first["prompt_tokens"], first["status"]) == (16, "ok")
    assert first["told_by"] == (
        "telemetry: status, start_ns, first_token_ns, end_ns, ttft_ns, queue_ns; "
        "client: prompt_tokens, output_tokens, itl_p50_ns"
    )
    # it came at 4.1 s; the first step whose ranges name it began 5 ms into the step at 4.5 s
    assert abs(second["queue_ns"] - 405_000_000) < 1_000
    assert second["told_by"].endswith("worked out: queue_ns")


def test_iterations_serve_by_ranges_where_these_name_most(
    workspace: Workspace, asked: dict[str, Row]
) -> None:
    text = (
        "MATCH (q:Request {id: $id})-[s:SERVED_IN]->(i:Iteration) "
        "RETURN i.step_index AS n, s.tied_by AS by ORDER BY n"
    )
    served = {
        name: [(r["n"], r["by"]) for r in rows(workspace, text, id=asked[name]["id"])]
        for name in asked
    }
    assert served["7c9e"] == [(3, "range"), (4, "range"), (5, "range")]
    assert [n for n, _ in served["0f8f"]] == list(range(9))
    assert [n for n, by in served["0f8f"] if by == "range"] == [3, 4, 5]
    assert served["othe"] == []  # after the capture


def test_lines_are_tied_by_their_request_or_their_process(workspace: Workspace) -> None:
    said = rows(
        workspace,
        "MATCH (l:LogLine) WHERE l.origin = 'vllm' RETURN l.text AS text, l.request AS request, "
        "l.step_index AS step, l.tied_by AS by ORDER BY l.line",
    )
    assert [(r["step"], r["by"]) for r in said] == [
        (0, "request"), (3, "request"), (7, "process"), (8, "request"),
    ]  # fmt: skip
    assert all(r["request"][:20] in r["text"] for r in said if r["request"])


def test_one_query_leads_from_a_line_to_the_kernel_that_was_late_on_another_rank(
    workspace: Workspace,
) -> None:
    (line,) = rows(
        workspace, "MATCH (l:LogLine) WHERE l.text STARTS WITH 'The step' RETURN l.id AS id"
    )
    with workspace.reader() as graph:
        found = queries.run(graph, "line_to_late_kernel", line=line["id"], limit=5).to_pylist()
    assert len(found) == 1
    row = found[0]
    assert (row["text"], row["rank"]) == ("The step takes longer than usual.", 0)
    assert (row["op"], row["wait_ns"]) == ("all_reduce", 400_000_000)
    assert (row["late_rank"], row["kernel"], row["excess_ns"]) == (1, "gemm_bf16", 400_000_000)
    assert (row["call"], row["caller"]) == ("cudaLaunchKernel", "aten::linear")


def test_a_line_in_a_step_where_none_was_late_leads_nowhere(workspace: Workspace) -> None:
    lines = rows(
        workspace,
        "MATCH (l:LogLine) WHERE l.origin = 'vllm' AND l.step_index <> 7 RETURN l.id AS id",
    )
    with workspace.reader() as graph:
        for line in lines:
            found = queries.run(graph, "line_to_late_kernel", line=line["id"], limit=5)
            assert found.num_rows == 0
