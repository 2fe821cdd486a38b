"""What a surface shows of a run comes out of a real store as it went in."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from teller.graph import recall
from teller.graph.embedded import EmbeddedStore
from teller.graph.finding import Diagnosis
from teller.graph.store import Store
from teller.graph.tables import fit, table_of
from teller.ui import report, sights

RUN = 1 << 61  # past what a float keeps


def _rows() -> dict[str, list[dict[str, object]]]:
    """Give two ranks with three steps each; rank 1 is 400 µs late in step 1."""
    late = {(1, 1): 400_000}
    steps = [(rank, step) for rank in (0, 1) for step in (0, 1, 2)]
    return {
        "Run": [{"id": RUN, "name": "tiny", "t0_epoch_ns": 1_780_000_000_000_000_001}],
        "Rank": [{"id": 10 + r, "rank": r, "host": f"node-{r}", "clock_residual_ns": 900 + r}
                 for r in (0, 1)],
        "Input": [{"id": 20 + r, "path": f"r{r}.json", "format": "kineto", "rank": r,
                   "event_count": 7} for r in (0, 1)],
        "Remark": [{"id": 30, "path": "r1.json", "place": "byte 9", "text": "cut off",
                    "remedy": "record again"}],
        "Iteration": [{"id": 40 + s, "step_index": s} for s in (0, 1, 2)],
        "Step": [{"id": 50 + 10 * r + s, "rank": r, "step_index": s, "start_ns": s * 2_000_000,
                  "dur_ns": 1_000_000 + 400_000 * (s == 1), "excess_ns": late.get((r, s), 0)}
                 for r, s in steps],
        "Span": [{"id": 100 + 10 * r + s, "rank": r, "step_index": s, "name": "forward",
                  "layer": "engine", "lane": "thread 1", "depth": 0, "start_ns": s * 2_000_000,
                  "end_ns": s * 2_000_000 + 900_000, "dur_ns": 900_000,
                  "excess_ns": late.get((r, s), 0)} for r, s in steps],
        "IN_STEP.Span.Step": [{"src": 100 + 10 * r + s, "dst": 50 + 10 * r + s} for r, s in steps],
        "TALKED_TO.Rank.Rank": [{"src": 10 + r, "dst": 11 - r, "group_name": "tp",
                                 "op": "all_reduce", "count": 3, "size_bytes": 1 << 20,
                                 "pure_p50_ns": 5_000} for r in (0, 1)],
    }  # fmt: skip


def _table(name: str, rows: list[dict[str, object]]) -> pa.Table:
    full = [row if "src" in row else {"run_id": RUN} | row for row in rows]
    return fit(pa.Table.from_pylist(full), table_of(name).kind)


@pytest.fixture
def graph(tmp_path: Path, diagnosis: Diagnosis) -> Iterator[Store]:
    finding = replace(
        diagnosis.findings[1], run=RUN, culprit=replace(diagnosis.findings[1].culprit, ranks=(1,)),
        first_step=1, last_step=2,
    )  # fmt: skip
    said = {"id": finding.id, "class": finding.klass, "detail": json.dumps(finding.to_json())}
    rows = _rows() | {"Finding": [said]}
    with EmbeddedStore(tmp_path / "g.lbdb", pool_bytes=128 << 20) as store:
        store.append(RUN, {name: _table(name, some) for name, some in rows.items()})
        yield store


def test_a_stored_diagnosis_comes_back_whole(graph: Store, diagnosis: Diagnosis) -> None:
    found = recall.diagnosis(graph, RUN)
    assert found.verdict == "fault"
    [run] = found.runs
    assert (run.id, run.name, run.t0_epoch_ns) == (RUN, "tiny", 1_780_000_000_000_000_001)
    assert (run.ranks, run.hosts, run.steps) == ((0, 1), ("node-0", "node-1"), 3)
    assert run.clock_residual_ns == 901
    assert [f.title for f in found.findings] == [diagnosis.findings[1].title]
    assert [(i.file, i.rank, i.events) for i in found.inputs] == [
        ("r0.json", 0, 7),
        ("r1.json", 1, 7),
    ]
    assert [(q.file, q.where, q.do) for q in found.data_quality] == [
        ("r1.json", "byte 9", "record again")
    ]


def test_pictures_show_the_step_that_lost_most(graph: Store) -> None:
    found = recall.diagnosis(graph, RUN)
    seen = sights.gather(graph, found)[RUN]
    assert seen.hosts == {0: "node-0", 1: "node-1"}
    assert (seen.heat.num_rows, seen.edges.num_rows) == (6, 2)
    assert seen.step is not None
    assert (seen.step.rank, seen.step.step_index) == (1, 1)
    assert seen.step.spans["name"].to_pylist() == ["forward"]
    page = report.render(found, {RUN: seen})
    assert "Inside step 1 of rank 1" in page
    assert "Clocks of its ranks agree within 901 ns" in page


def test_any_table_of_the_graph_can_be_had(graph: Store) -> None:
    spans = recall.table(graph, table_of("Span"), RUN)
    assert spans.column_names == [c.name for c in table_of("Span").kind.columns]
    assert sorted(spans["id"].to_pylist()) == [100, 101, 102, 110, 111, 112]
    inside = recall.table(graph, table_of("IN_STEP.Span.Step"), RUN).to_pylist()
    assert {(row["src"], row["dst"]) for row in inside} == {
        (100 + 10 * r + s, 50 + 10 * r + s) for r in (0, 1) for s in (0, 1, 2)
    }
