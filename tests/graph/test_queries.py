"""Each named query on the tiny run of `conftest.py`, with the answer worked out by hand."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from teller.errors import BadUsage, UnknownName
from teller.graph import queries, tokens
from teller.graph.store import Store

MakeRun = Callable[[int], dict[str, pa.Table]]
ToFiles = Callable[[Mapping[str, pa.Table]], dict[str, list[Path]]]
Told = list[tuple[object, ...]]

# name: parameters, the columns that are looked at, their rows; run 3 has ids from 30 000
STORIES: dict[str, tuple[dict[str, object], str, Told]] = {
    "step_tree": (
        {"step": 35011}, "id parent_id name dur_ns",
        [(30110, None, "execute_model", 1_000), (30111, 30110, "linear", 400),
         (30112, 30111, "cudaLaunchKernel", 100), (30113, 30112, "gemm", 2_500),
         (30114, 30110, "cudaLaunchKernel", 100), (30115, 30114, "all_reduce", 1_000)],
    ),
    "step_of_rank": (
        {"run": 3, "rank": 1, "number": 1}, "id phase start_ns end_ns dur_ns excess_ns",
        [(35011, "decode", 10_000, 14_500, 4_500, 500)],
    ),
    "step_spans": (
        {"step": 35001}, "id lane start_ns own_ns",
        [(30010, "thread 1", 10_000, 100), (30011, "thread 1", 10_100, 200),
         (30012, "thread 1", 10_200, 100), (30013, "stream 7", 10_600, 2_000),
         (30014, "thread 1", 10_700, 100), (30015, "stream 7", 13_000, 1_000)],
    ),
    "span_tree": (
        {"span": 30111}, "id parent_id name",
        [(30111, 30110, "linear"), (30112, 30111, "cudaLaunchKernel"), (30113, 30112, "gemm")],
    ),
    "span_ancestors": (
        {"span": 30113}, "id distance name",
        [(30112, 1, "cudaLaunchKernel"), (30111, 2, "linear"), (30110, 3, "execute_model")],
    ),
    "launches_of": (
        {"span": 30110}, "id call_id name excess_ns",
        [(30113, 30112, "gemm", 500), (30115, 30114, "all_reduce", 0)],
    ),
    "slowest_steps": (
        {"run": 3, "limit": 3}, "id rank step_index dur_ns excess_ns",
        [(35001, 0, 1, 4_500, 0), (35011, 1, 1, 4_500, 500), (35000, 0, 0, 4_000, 0)],
    ),
    "rank_iteration_heat": (
        {"run": 3}, "step_index rank dur_ns own_ns excess_ns",
        [(0, 0, 4_000, 2_000, 0), (0, 1, 4_000, 2_000, 0),
         (1, 0, 4_500, 2_000, 0), (1, 1, 4_500, 2_500, 500)],
    ),
    "collective_arrivals": (
        {"collective": 35201}, "id rank arrival_ns wait_ns arrival_order",
        [(30015, 0, 13_000, 500, 0), (30115, 1, 13_500, 0, 1)],
    ),
    "collective_ranks": (
        {"collective": 35201}, "rank host seq state",
        [(0, "node-0", 1, "completed"), (1, "node-1", 1, "completed")],
    ),
    "communication_edges": (
        {"run": 3}, "src_rank dst_rank group_name op count size_bytes transport",
        [(a, 1 - a, "tp", op, 2, 2 << 20, "assumed ring")
         for a in (0, 1) for op in ("all_gather", "all_reduce")],
    ),
    "last_arrivals": (
        {"run": 3}, "rank collective_count wait_ns max_skew_ns", [(1, 1, 500, 500)],
    ),
    "operators_by_excess": (
        {"run": 3, "limit": 2}, "operator family span_count dur_ns excess_ns",
        [("gemm", "gemm", 4, 8_500, 500), ("all_reduce", None, 4, 4_500, 0)],
    ),
    "explain_waits": (
        {"run": 3, "rank": 1, "first": 0, "last": 1},
        "collective_id span_id step_id rank wait_ns", [(35201, 30015, 35001, 0, 500)],
    ),
    "explain_arrival": (
        {"collective": 35201, "rank": 1}, "span_id step_id arrival_ns", [(30115, 35011, 13_500)],
    ),
    "explain_work": (
        {"step": 35011, "operators": ["gemm", "linear"], "before": 13_500},
        "span_id operator own_ns excess_ns", [(30113, "gemm", 2_500, 500)],
    ),
    "explain_launcher": ({"span": 30113}, "span_id name", [(30112, "cudaLaunchKernel")]),
    "explain_worst_step": (
        {"run": 3, "ranks": [0, 1], "first": 0, "last": 1},
        "step_id iteration_id rank step_index excess_ns end_ns",
        [(35011, 35101, 1, 1, 500, 14_500)],
    ),
    "explain_iteration": ({"step": 35011}, "iteration_id", [(35101,)]),
    "explain_pure": (
        {"run": 3, "ranks": [0], "first": 1, "last": 1},
        "collective_id span_id step_id pure_ns", [(35201, 30015, 35001, 1_000)],
    ),
    "explain_line": ({"line": 35900}, "step_id rank_id host_id", [(35011, None, None)]),
    "explain_about": ({"sample": 35960}, "kind id", []),
    "explain_span_step": ({"span": 30113}, "step_id iteration_id", [(35011, 35101)]),
    "findings": (
        {"run": 3}, "id class severity culprit excess_ns",
        [(35800, "slow_rank", "high", "rank 1", 500)],
    ),
    "iteration_steps": (
        {"iteration": 35101}, "id rank step_index own_ns",
        [(35001, 0, 1, 2_000), (35011, 1, 1, 2_500)],
    ),
    "iteration_lines": (
        {"iteration": 35101}, "id rank text",
        [(35900, 1, "slow 'gemm'\n"), (35901, 0, "7 is late")],
    ),
    "step_collectives": (
        {"step": 35001}, "id span_id op wait_ns skew_ns last_rank",
        [(35201, 30015, "all_reduce", 500, 500, 1)],
    ),
    "requests": ({"run": 3}, "id name start_ns ttft_ns", [(35950, "7", 9_000, 1_500)]),
    "request_iterations": (
        {"request": 35950}, "id step_index dur_ns last_rank tied_by confidence",
        [(35101, 1, 4_500, 1, "time", 0.9), (35100, 0, 4_000, 1, "time", 0.9)],
    ),
    "request_lines": (
        {"run": 3, "request": "7"}, "id text step_index tied_by",
        [(35901, "7 is late", 1, "request")],
    ),
    "requests_over_target": (
        {"run": 3, "ttft_ns": 1_000, "itl_ns": 1 << 62, "e2e_ns": 1 << 62},
        "id name ttft_ns e2e_ns",
        [(35950, "7", 1_500, 6_000)],
    ),
    "targets": ({"run": 3}, "name target_ns", [("slo.ttft_ns", 1_000.0)]),
    "line_to_late_kernel": (
        {"line": 35901, "limit": 3},
        "rank op wait_ns late_rank kernel_id kernel excess_ns call caller",
        [(0, "all_reduce", 500, 1, 30113, "gemm", 500, "cudaLaunchKernel", "linear")],
    ),
    "evidence": (
        {"finding": 35800}, "role kind id rank name",
        [("cause", "Span", 30113, 1, "gemm"), ("effect", "Step", 35011, 1, None),
         ("victim", "Rank", 35400, 0, None)],
    ),
    "blamed": ({"finding": 35800}, "kind id rank host", [("Rank", 35401, 1, "node-1")]),
    "inputs": (
        {"run": 3}, "id path rank event_count used",
        [(35600, "rank0.json", 0, 14, True), (35601, "rank1.json", 1, 14, True)],
    ),
    "remarks": (
        {"run": 3}, "path place text remedy input_id",
        [("rank1.json", "byte 9", "cut off", "record again", 35601)],
    ),
    "all_findings": (
        {}, "id run_id class severity",
        [(35800, 3, "slow_rank", "high"), (45800, 4, "slow_rank", "high")],
    ),
    "rank_steps": (
        {"run": 3, "rank": 1}, "id step_index dur_ns excess_ns",
        [(35010, 0, 4_000, 0), (35011, 1, 4_500, 500)],
    ),
    "iteration_of_step": (
        {"step": 35011}, "id step_index dur_ns last_rank", [(35101, 1, 4_500, 1)],
    ),
    "window_spans": (
        {"steps": [35001, 35011], "from_ns": 10_600, "to_ns": 13_500, "least_ns": 1_000},
        "id rank name start_ns",
        [(30010, 0, "execute_model", 10_000), (30013, 0, "gemm", 10_600),
         (30015, 0, "all_reduce", 13_000), (30110, 1, "execute_model", 10_000),
         (30113, 1, "gemm", 10_600)],
    ),
    "pair_collectives": (
        {"run": 3, "first": 0, "second": 1, "op": "all_reduce", "limit": 1},
        "id seq last_rank step_index first_arrival_ns second_arrival_ns",
        [(35201, 1, 1, 1, 13_000, 13_500)],
    ),
    "layer_coverage": (
        {"run": 3}, "rank layer span_count",
        [(rank, layer, count) for rank in (0, 1) for layer, count in
         (("device", 4), ("engine", 2), ("framework", 2), ("runtime", 4))],
    ),
    "slice_steps": (
        {"steps": [35001, 35011, 1]}, "id run_id rank step_index dur_ns excess_ns",
        [(35001, 3, 0, 1, 4_500, 0), (35011, 3, 1, 1, 4_500, 500)],
    ),
    "slice_rows": (
        {"steps": [35011]}, "id step_id operator stream start_ns own_ns excess_ns",
        [(30110, 35011, "execute_model", None, 10_000, 100, 0),
         (30111, 35011, "linear", None, 10_100, 200, 0),
         (30112, 35011, "cudaLaunchKernel", None, 10_200, 100, 0),
         (30113, 35011, "gemm", 7, 10_600, 2_500, 500),
         (30114, 35011, "cudaLaunchKernel", None, 10_700, 100, 0),
         (30115, 35011, "all_reduce", 7, 13_500, 1_000, 0)],
    ),
    "slice_children": (
        {"steps": [35001]}, "src dst", [(30010, 30011), (30010, 30014), (30011, 30012)],
    ),
    "slice_launches": ({"steps": [35001]}, "src dst", [(30012, 30013), (30014, 30015)]),
    "slice_next": ({"steps": [35001]}, "src dst", [(30013, 30015)]),
    "slice_waited_for": ({"steps": [35001]}, "src dst", []),
    "slice_meetings": (
        {"steps": [35001]}, "step_id span_id collective_id arrival_ns wait_ns end_ns",
        [(35001, 30015, 35201, 13_000, 500, 14_500)],
    ),
    "slice_arrivals": (
        {"steps": [35000, 35001], "share": 0.01},
        "step_id collective_id last_rank span_id own_step_id rank arrival_ns wait_ns",
        [(35001, 35201, 1, 30015, 35001, 0, 13_000, 500),
         (35001, 35201, 1, 30115, 35011, 1, 13_500, 0)],
    ),
    "slice_peers": (
        {"steps": [35001]}, "step_id peer_id rank", [(35001, 35001, 0), (35001, 35011, 1)],
    ),
    "slice_followers": ({"steps": [35001]}, "step_id peer_id rank", [(35001, 35000, 0)]),
    "slice_counts": (
        {"steps": [35001]}, "operator span_count",
        [("all_reduce", 1), ("cudaLaunchKernel", 2), ("execute_model", 1), ("gemm", 1),
         ("linear", 1)],
    ),
    "slice_lines": (
        {"steps": [35001, 35011]}, "step_id id span_id template rank",
        [(35011, 35900, None, None, 1), (35001, 35901, None, None, 0)],
    ),
    "slice_spans": (
        {"spans": [30113, 30115]}, "id rank name dur_ns excess_ns late_ns",
        [(30113, 1, "gemm", 2_500, 500, 0), (30115, 1, "all_reduce", 1_000, 0, 500)],
    ),
    "runs": (
        {}, "id name t0_epoch_ns",
        [(3, "run 3", 1_780_000_000_000_000_001), (4, "run 4", 1_780_000_000_000_000_001)],
    ),
}  # fmt: skip


@pytest.fixture
def two_runs(store: Store, make_run: MakeRun, to_files: ToFiles) -> Store:
    store.load(3, to_files(make_run(3)))
    store.load(4, to_files(make_run(4)))
    return store


def test_every_query_tells_its_story(two_runs: Store) -> None:
    assert sorted(STORIES) == list(queries.names())
    for name, (params, columns, expected) in STORIES.items():
        found = queries.run(two_runs, name, **params)
        assert tuple(found.column_names) == queries.get(name).columns, name
        rows = found.select(columns.split()).to_pylist()
        told = [tuple(row.values()) for row in rows]
        if "ORDER BY" not in queries.text(name):
            told.sort(key=repr)
        assert told == expected, name


LISTS = {"steps": [1], "spans": [1], "ranks": [1], "operators": ["gemm"]}


def test_every_query_answers_nothing_with_no_rows(store: Store) -> None:
    for name in queries.names():
        query = queries.get(name)
        params = {p: LISTS.get(p, 1) for p in query.parameters}
        found = queries.run(store, name, **params)
        assert (tuple(found.column_names), found.num_rows) == (query.columns, 0), name


@pytest.mark.parametrize("name", queries.names())
def test_a_query_says_what_it_asks_for(name: str) -> None:
    query = queries.get(name)
    assert tokens.parameters(query.text) == set(query.parameters)
    assert query.purpose.endswith(".")


def test_a_wrong_name_or_parameter_is_told(store: Store) -> None:
    with pytest.raises(UnknownName, match="did you mean step_tree"):
        queries.text("steptree")
    with pytest.raises(BadUsage, match="query findings takes run; given: step"):
        queries.run(store, "findings", step=1)


def test_the_named_walks_go_88_deep(
    store: Store, make_table: Callable[..., pa.Table], to_files: ToFiles
) -> None:
    spans = [{"id": i, "run_id": 1, "depth": i, "start_ns": i} for i in range(89)]
    nested = [{"src": i, "dst": i + 1} for i in range(88)]
    inside = [{"src": i, "dst": 500} for i in range(89)]
    tables = {
        "Span": make_table("Span", spans),
        "Step": make_table("Step", [{"id": 500, "run_id": 1}]),
        "CHILD.Span.Span": make_table("CHILD.Span.Span", nested),
        "IN_STEP.Span.Step": make_table("IN_STEP.Span.Step", inside),
    }
    store.load(1, to_files(tables))
    tree = queries.run(store, "span_tree", span=0).to_pylist()
    assert [(r["id"], r["parent_id"]) for r in tree][-2:] == [(87, 86), (88, 87)]
    assert len(tree) == 89
    above = queries.run(store, "span_ancestors", span=88).to_pylist()
    assert [(r["id"], r["distance"]) for r in above] == [(88 - d, d) for d in range(1, 89)]
    step = queries.run(store, "step_tree", step=500).to_pylist()
    assert [r["parent_id"] for r in step] == [None, *range(88)]
