"""Slices of steps made by hand: deep trees, ranks that waited for one another, and calm ones."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from teller.graph.embedded import EmbeddedStore
from teller.graph.tables import fit, table_of
from teller.models.slices import Slice, slice_of

Rows = list[dict[str, object]]
RUN, MS = 9, 1_000_000
DUR = 100 * MS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path / "graph.lbdb", pool_bytes=128 << 20) as opened:
        yield opened


def fill(store: EmbeddedStore, found: Mapping[str, Rows]) -> None:
    tables = {}
    for name, rows in found.items():
        kind = table_of(name).kind
        own = [row if "." in name else {"run_id": RUN} | row for row in rows]
        names = {n for row in own for n in row}
        types = {field.name: field.type for field in kind.arrow}
        columns = {n: pa.array([row.get(n) for row in own], types[n]) for n in names}
        tables[name] = fit(pa.table(columns), kind)
    store.append(RUN, tables)


def step(rank: int) -> dict[str, object]:
    return {"id": 1000 + rank, "rank": rank, "step_index": 0, "phase": "decode",
            "start_ns": 0, "end_ns": DUR, "dur_ns": DUR, "excess_ns": 0}  # fmt: skip


def span(number: int, rank: int, name: str, at: int, dur: int, **more: object) -> dict[str, object]:
    return {"id": number, "rank": rank, "step_index": 0, "name": name, "operator": name,
            "start_ns": at, "end_ns": at + dur, "dur_ns": dur, "own_ns": dur, "self_ns": dur,
            "gap_ns": 0, "excess_ns": 0, "late_ns": 0, "layer": "device"} | more  # fmt: skip


def pairs(*found: tuple[int, int]) -> Rows:
    return [{"src": src, "dst": dst} for src, dst in found]


def inside(spans: Rows) -> Rows:
    return [{"src": one["id"], "dst": 1000 + int(str(one["rank"]))} for one in spans]


def told(found: Slice) -> dict[str, set[str]]:
    return {row["name"]: set(row["roles"]) for row in found.spans.to_pylist()}


def ids(found: Slice) -> Sequence[int]:
    numbers: Sequence[int] = found.spans["id"].to_pylist()
    return numbers


def test_a_tree_88_deep_is_kept_up_to_its_root(store: EmbeddedStore) -> None:
    spans = [span(n, 0, f"call {n}", n, DUR - 2 * n, layer="framework") for n in range(89)]
    spans[88]["excess_ns"] = 10 * MS
    fill(store, {
        "Step": [step(0)], "Span": spans, "IN_STEP.Span.Step": inside(spans),
        "CHILD.Span.Span": pairs(*((n, n + 1) for n in range(88))),
    })  # fmt: skip
    found = slice_of(store, RUN, [1000])
    assert list(ids(found)) == list(range(89))
    assert told(found)["call 0"] == {"ancestor", "root"}
    assert told(found)["call 88"] == {"excess"}
    assert found.edges.num_rows == 88


def test_a_calm_step_is_its_root_alone(store: EmbeddedStore) -> None:
    names = ("step", "linear", "norm")
    spans = [span(n, 0, name, n * MS, MS, layer="framework") for n, name in enumerate(names)]
    fill(store, {
        "Step": [step(0)], "Span": spans, "IN_STEP.Span.Step": inside(spans),
        "CHILD.Span.Span": pairs((0, 1), (0, 2)),
    })  # fmt: skip
    found = slice_of(store, RUN, [1000])
    assert told(found) == {"step": {"root"}}
    for name in ("edges", "collectives", "lines", "counts"):
        assert getattr(found, name).num_rows == 0


def test_a_step_without_spans_has_an_empty_slice(store: EmbeddedStore) -> None:
    fill(store, {"Step": [step(0)]})
    found = slice_of(store, RUN, [1000])
    assert found.steps.to_pylist()[0]["span_count"] == 0
    assert found.spans.num_rows == found.edges.num_rows == 0


def test_many_calls_that_are_each_a_little_too_long_are_seen(store: EmbeddedStore) -> None:
    spans = [span(n, 0, "gemm", n * MS, MS, excess_ns=MS // 10 + n) for n in range(80)]
    fill(store, {"Step": [step(0)], "Span": spans, "IN_STEP.Span.Step": inside(spans)})
    found = slice_of(store, RUN, [1000])
    longest = [n for n, roles in zip(ids(found), found.spans["roles"].to_pylist(), strict=True)
               if "excess" in roles]  # fmt: skip
    assert longest == [76, 77, 78, 79]


def chained(store: EmbeddedStore) -> None:
    """Rank 2 computes long; rank 1 waits for it, goes on, and so rank 0 waits for rank 1."""
    spans = [
        span(20, 2, "slow", 10 * MS, 30 * MS, excess_ns=20 * MS, stream=7),
        span(21, 2, "send", 40 * MS, 2 * MS, stream=7, late_ns=20 * MS),
        span(22, 2, "launch of slow", 5 * MS, MS, layer="runtime"),
        span(10, 1, "receive", 20 * MS, 22 * MS, stream=7),
        span(11, 1, "middle", 42 * MS, 8 * MS, stream=7),
        span(12, 1, "join", 50 * MS, 2 * MS, stream=7, late_ns=25 * MS),
        span(0, 0, "early", 5 * MS, 20 * MS, stream=7),
        span(1, 0, "meet", 25 * MS, 27 * MS, stream=7),
    ]
    met = [(10, 500, 20, 20, 0), (21, 500, 40, 0, 1), (1, 501, 25, 25, 0), (12, 501, 50, 0, 1)]
    fill(store, {
        "Step": [step(rank) for rank in range(3)], "Span": spans,
        "Collective": [{"id": 500, "op": "send", "last_rank": 2, "ranks_seen": 2},
                       {"id": 501, "op": "all_reduce", "last_rank": 1, "ranks_seen": 2}],
        "IN_STEP.Span.Step": inside(spans),
        "LAUNCHED.Span.Span": pairs((22, 20)),
        "NEXT.Span.Span": pairs((0, 1), (20, 21), (10, 11), (11, 12)),
        "IN_COLLECTIVE.Span.Collective": [
            {"src": src, "dst": dst, "arrival_ns": at * MS, "wait_ns": wait * MS,
             "arrival_order": order} for src, dst, at, wait, order in met],
        "LogLine": [{"id": 900, "rank": 2, "text": "slow disk", "time_ns": 12 * MS}],
        "LogTemplate": [{"id": 901, "text": "slow <*>"}],
        "DURING.LogLine.Step": pairs((900, 1002)), "INSIDE.LogLine.Span": pairs((900, 20)),
        "MATCHES.LogLine.LogTemplate": pairs((900, 901)),
    })  # fmt: skip


def test_who_was_late_because_it_waited_leads_further_back(store: EmbeddedStore) -> None:
    chained(store)
    found = slice_of(store, RUN, [1000])
    roles = told(found)
    assert "waited" in roles["meet"]
    assert roles["early"] == {"neighbour", "root"}
    assert roles["join"] == {"collective_peer"}
    assert roles["middle"] == {"behind_late_rank"}
    assert roles["send"] == {"collective_peer"}
    assert roles["slow"] == {"behind_late_rank"}
    assert "ancestor" in roles["launch of slow"]
    hops = dict(zip(found.spans["name"].to_pylist(), found.spans["hop"].to_pylist(), strict=True))
    assert (hops["meet"], hops["join"], hops["middle"], hops["send"], hops["slow"]) == (
        0,
        1,
        1,
        2,
        2,
    )
    assert set(found.spans["step_id"].to_pylist()) == {1000}
    arrived = [(r["hop"], r["rank"], r["wait_ns"]) for r in found.collectives.to_pylist()]
    assert sorted(arrived) == [(1, 0, 25 * MS), (1, 1, 0), (2, 1, 20 * MS), (2, 2, 0)]


def test_a_line_of_the_rank_behind_comes_with_it(store: EmbeddedStore) -> None:
    chained(store)
    [line] = slice_of(store, RUN, [1000]).lines.to_pylist()
    assert (line["step_id"], line["own_step_id"], line["span_id"]) == (1000, 1002, 20)
    assert (line["text"], line["template"]) == ("slow disk", "slow <*>")
