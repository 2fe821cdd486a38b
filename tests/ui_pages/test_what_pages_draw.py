"""What the pages are drawn from, without a browser: worked examples."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from teller.errors import BadUsage
from teller.graph.finding import Culprit, Evidence, Finding
from teller.ui import (
    asking,
    beside,
    claims,
    costs,
    detail,
    heatmap,
    icicle,
    lanes,
    layout,
    uploads,
    verbatim,
)  # fmt: skip
from teller.ui.lanes import Frame, Marks

SPANS = pa.Table.from_pylist(
    [
        {"id": 1 << 60, "rank": 0, "name": "model", "operator": "model", "family": None,
         "layer": "engine", "lane": "thread 1", "stream": None, "start_ns": 1_000, "dur_ns": 900,
         "depth": 0, "excess_ns": 0, "late_ns": 0},
        {"id": 2, "rank": 0, "name": "<b>gemm</b>", "operator": "gemm", "family": "gemm",
         "layer": "device", "lane": "stream 7", "stream": 7, "start_ns": 1_500, "dur_ns": 300,
         "depth": 0, "excess_ns": 50, "late_ns": 0},
        {"id": 3, "rank": 1, "name": "deep", "operator": "deep", "family": None,
         "layer": "framework", "lane": "thread 1", "stream": None, "start_ns": 1_100,
         "dur_ns": 10, "depth": 9, "excess_ns": 0, "late_ns": 0},
    ]
)  # fmt: skip
LINES = pa.table({"id": [9], "rank": [0], "time_ns": [1_700], "text": ["*late*\n"]})


def unpacked(data: bytes) -> tuple[dict[str, object], dict[str, list[float]]]:
    """Read what the timeline reads, as `components/timeline.js` says it."""
    (length,) = struct.unpack_from("<I", data)
    head = json.loads(data[4 : 4 + length])
    at = (4 + length + 7) & ~7
    columns = {}
    for name, kind in (("start", "<f8"), ("length", "<f8"), ("id", "<i8"), ("name", "<u4"),
                       ("lane", "<u2"), ("color", "u1"), ("flags", "u1")):  # fmt: skip
        part = np.frombuffer(data, kind, head["n"], at)
        columns[name] = part.tolist()
        at += part.nbytes
    assert at == len(data)
    return head, columns


def test_spans_come_by_lane_with_ids_and_times_whole() -> None:
    frame = Frame("k", 1_000, 2_000, {0: "rank 0", 1: "rank 1"}, depth=4)
    picture = lanes.draw(SPANS, frame, Marks(in_slice=[2], evidence=[1 << 60]), LINES)
    head, columns = unpacked(picture.data)
    assert columns["id"] == [9, 1 << 60, 2]  # the one that is too deep is left out
    assert columns["start"] == [0.7, 0.0, 0.5]  # µs since the frame's start
    assert columns["flags"] == [lanes.MARK, lanes.EVIDENCE, lanes.IN_SLICE]
    names = head["names"]
    assert isinstance(names, list)
    assert [names[int(n)] for n in columns["name"]] == ["*late*\\n", "model", "<b>gemm</b>"]
    said = head["lanes"]
    assert isinstance(said, list)
    assert [row["told"] for row in said] == [
        "rank 0, log lines", "rank 0, thread 1", "rank 0, stream 7"
    ]  # fmt: skip


def test_kinds_of_work_have_their_colours() -> None:
    assert lanes.kind_of("device", "gemm") == "matrix products"
    assert lanes.kind_of("device", "all_reduce") == "communication"
    assert lanes.kind_of("runtime", "") == "runtime"
    assert lanes.kind_of("device", "softmax") == "other device work"


def test_of_many_spans_the_longest_reach_the_browser() -> None:
    many = pa.table({"id": range(100), "dur_ns": [n % 50 for n in range(100)]})
    kept = detail.longest(many, 10)
    assert kept["dur_ns"].to_pylist() == [45, 46, 47, 48, 49] * 2
    assert detail.longest(many, 200) is many


def tree(*rows: tuple[int, int | None, str, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"id": i, "parent_id": p, "operator": o, "self_ns": s, "dur_ns": s, "excess_ns": 0,
             "layer": "engine", "family": None}
            for i, p, o, s in rows
        ]
    )  # fmt: skip


def test_same_calls_are_one_box_as_wide_as_all_below() -> None:
    found = icicle.boxes(
        tree((10, None, "model", 5), (11, 10, "layer", 1), (12, 10, "layer", 2),
             (13, 11, "gemm", 30), (14, 12, "gemm", 40), (15, 12, "norm", 3))
    )  # fmt: skip
    boxes = {
        (int(level), found.names[int(op)]): (int(total), int(calls))
        for level, op, total, calls in zip(
            found.level, found.operator, found.total, found.calls, strict=True
        )
    }
    assert boxes == {(0, "model"): (81, 1), (1, "layer"): (76, 2), (2, "gemm"): (70, 2),
                     (2, "norm"): (3, 1)}  # fmt: skip
    start = icicle.places(found)
    order = {found.names[int(op)]: s for op, s in zip(found.operator, start, strict=True)}
    assert order == {"model": 0, "layer": 0, "gemm": 0, "norm": 70}  # the widest first


def test_an_empty_tree_is_drawn_as_nothing() -> None:
    assert icicle.draw(tree((1, None, "a", 0)).slice(0, 0), "k").span_count == 0


def step(
    index: int, dur: int, excess: int, tokens: int = 4, phase: str = "decode"
) -> dict[str, object]:
    return {"step_index": index, "phase": phase, "dur_ns": dur, "excess_ns": excess,
            "token_count": tokens, "batch_size": tokens}  # fmt: skip


def test_a_step_is_held_against_a_calm_one_of_like_load() -> None:
    steps = pa.Table.from_pylist(
        [step(0, 90, 0, phase="prefill"), step(1, 50, 0, tokens=40), step(2, 10, 0),
         step(3, 30, 20), step(4, 11, 0)]
    )  # fmt: skip
    found = beside.healthy(steps, 3)
    assert found is not None
    assert found["step_index"] in (2, 4)  # the same phase and load, and calm
    assert beside.healthy(steps.slice(0, 1), 0) is None


def test_operators_are_told_by_how_much_more_they_take() -> None:
    other = SPANS.slice(0, 1)
    rows = beside.operators(SPANS, other)
    assert [(r["operator"], r["here_ns"] - r["there_ns"]) for r in rows] == [
        ("gemm", 300), ("deep", 10), ("model", 0)
    ]  # fmt: skip


def edge_row(src: int, dst: int, pure: int, host: str = "a") -> dict[str, object]:
    return {"src_rank": src, "dst_rank": dst, "src_host": "a", "dst_host": host,
            "group_name": "tp", "op": "all_reduce", "count": 10, "size_bytes": 10_000,
            "pure_p50_ns": pure, "pure_p99_ns": pure, "transport": "IB"}  # fmt: skip


def test_a_path_slower_than_its_like_stands_out() -> None:
    rows = pa.Table.from_pylist(
        [edge_row(0, 1, 100), edge_row(1, 2, 100), edge_row(2, 3, 400, "b"), edge_row(3, 0, 100)]
    )
    found = {(e.first, e.last): e.slowness for e in layout.edges(rows, by_host=False)}
    assert found[("rank 2", "rank 3")] == 4.0
    assert found[("rank 0", "rank 1")] == 1.0
    [one] = layout.edges(rows, by_host=True)
    assert (one.first, one.last, one.ranks) == ("a", "b", (2, 3))


def test_a_thousand_ranks_are_placed_by_their_hosts() -> None:
    hosts = {rank: f"h{rank // 8}" for rank in range(1024)}
    assert len(layout.places(hosts, by_host=True)) == 128
    ranks = layout.places(hosts, by_host=False)
    assert len(set(ranks.values())) == 1024


def test_a_heat_map_keeps_the_worst_of_neighbours() -> None:
    heat = pa.Table.from_pylist(
        [{"rank": r, "step_index": s, "excess_ns": 7 if (r, s) == (2, 3) else 1, "dur_ns": 10}
         for r in range(4) for s in range(6)]
    )  # fmt: skip
    assert len(heatmap.cells(heat)) == 24
    few = heatmap.cells(heat, rows=2, columns=3)
    assert len(few) == 6
    worst = max(few, key=lambda cell: cell["excess_ms"])
    assert (worst["rank"], worst["step"], worst["row"], worst["column"]) == (2, 3, 2, 2)


FINDING = Finding(
    id=1, run=1, klass="slow_operator", case_class="x", title="t", severity="high", confidence=1,
    culprit=Culprit(), next_step="", ruleset="r",
    text="From step 4 on, o_proj.weight on rank 1 takes longer. The other ranks wait for it.",
    evidence=(Evidence("cause", "Span", 1, "a:1", "o_proj.weight took 3 ms on rank 1"),
              Evidence("victim", "Span", 2, "a:2", "rank 0 waits"),
              Evidence("healthy", "Span", 3, "a:3", "the same on rank 0")),
)  # fmt: skip


def test_a_sentence_is_shown_by_what_names_the_same() -> None:
    first, second = claims.claims(FINDING)
    assert first.shown_by == (1,)
    assert second.shown_by == (2, 3)


def test_what_is_not_known_of_a_cost_is_not_told() -> None:
    steps = pa.Table.from_pylist(
        [{"step_index": n, "start_ns": n * 100, "end_ns": n * 100 + 100, "token_count": 10}
         for n in range(10)]
    )  # fmt: skip
    slow = replace(FINDING, first_step=0, last_step=9, cost=replace(FINDING.cost, excess_ns=500))
    # 100 tokens in 1000 ns; without the excess in 500: as many again were lost
    assert costs.tokens_lost_in(steps, slow) == pytest.approx(100 / 1000 * 1e9)
    none = steps.set_column(3, "token_count", pa.array([None] * 10, pa.int64()))
    assert costs.tokens_lost_in(none, slow) is None


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../b", "~/x", "C:\\x", "", "a\0b"])
def test_a_file_that_is_sent_stays_in_its_folder(name: str) -> None:
    try:
        assert not uploads.place(name).is_absolute()
        assert name == "/etc/passwd"  # it becomes etc/passwd below the folder
    except BadUsage:
        assert name != "/etc/passwd"


def test_too_much_is_not_taken(tmp_path: Path) -> None:
    class Sent:
        name, size = "run/a.json", 2_000

        def getbuffer(self) -> memoryview:
            return memoryview(b"x" * self.size)

    with pytest.raises(BadUsage, match="too much"):
        uploads.write([Sent()], tmp_path, 1_000)
    assert not (tmp_path / uploads.FOLDER).exists()
    folder = uploads.write([Sent()], tmp_path, 4_000)
    assert (folder / "run" / "a.json").stat().st_size == 2_000


def test_values_in_html_of_ours_are_escaped_and_control_characters_spelt_out() -> None:
    said = verbatim.made("<p>{text}</p>", text="<img src=x> __name__ \x1b[31m")
    assert said == "<p>&lt;img src=x&gt; __name__ \\x1b[31m</p>"
    inner = verbatim.made("<b>{x}</b>", x="&")
    assert verbatim.made("<p>{inner}</p>", inner=inner) == "<p><b>&amp;</b></p>"


def test_a_snippet_for_a_notebook_is_python_that_asks_the_same() -> None:
    text = 'MATCH (s:Span) WHERE s.name = "a\\"" RETURN s.id AS id LIMIT 1 // """'
    said = asking.snippet(text, {"run": 7}, "/tmp/w", "")
    names: dict[str, object] = {}
    exec(compile(said.split("with open_graph")[0].split("open_graph\n", 1)[1], "x", "exec"), names)
    assert str(names["query"]).strip() == text


def test_examples_read_and_the_editor_knows_the_schema() -> None:
    from teller.graph import reading
    from teller.graph.tokens import parameters

    for name, text in asking.examples().items():
        given = dict.fromkeys(parameters(text), 1)
        assert reading.check_asked(text, given), name
    assert "Collective" in asking.words()["labels"]
    assert "TALKED_TO" in asking.words()["relations"]


def test_joined_nodes_of_a_graph_stand_near_each_other() -> None:
    found = pa.table({"source": ["a", "b", "c", "d"], "target": ["b", "a", "d", "c"]})
    nodes, edges = asking.graph(found, "source", "target")
    at = asking.spread(len(nodes), edges)

    def far(first: str, second: str) -> float:
        return float(np.linalg.norm(at[nodes.index(first)] - at[nodes.index(second)]))

    assert far("a", "b") < far("a", "c")
    assert asking.ends(found) == ("source", "target")


def test_parameters_are_an_object_of_json() -> None:
    assert asking.parameters("") == {}
    assert asking.parameters('{"rank": 3}') == {"rank": 3}
    for wrong in ("rank=3", "[1]"):
        with pytest.raises(BadUsage):
            asking.parameters(wrong)
