"""A trace for Perfetto holds every span, at its time, under its rank and lane."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from teller.graph.finding import Diagnosis
from teller.ui import perfetto

BIG = 1 << 61  # an id that a float would round


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, list[Path]]:
    """Give two ranks: a call, the kernel it launched, and a name that JSON must escape."""
    files: dict[str, list[Path]] = {"Span": [], "LAUNCHED.Span.Span": [], "Step": []}
    for rank in (0, 5):
        spans = pa.table({
            "id": [BIG + 10 * rank, BIG + 10 * rank + 1, BIG + 10 * rank + 2],
            "rank": [rank] * 3,
            "name": ["cudaLaunchKernel", 'gemm<"a">\n\\漢', "idle"],
            "operator": ["cudaLaunchKernel", "gemm", None],
            "family": ["launch", "gemm", None],
            "layer": ["runtime", "device", "os"],
            "lane": pa.array(["thread 1", "stream 7", "thread 1"]).dictionary_encode(),
            "stream": [None, 7, None],
            "start_ns": [-1_500, 2_000_000_123, 9_000_000_000],
            "dur_ns": [1_001, 4_000_000, 7],
            "step_index": [41, 41, None],
            "self_ns": [1_001, 4_000_000, 7],
            "excess_ns": [-3, 1_000, None],
            "size_bytes": pa.array([None, None, None], pa.int64()),
        })  # fmt: skip
        launched = pa.table({"src": [BIG + 10 * rank], "dst": [BIG + 10 * rank + 1]})
        step = pa.table({
            "rank": [rank], "step_index": [41], "start_ns": [2_400_000_000], "dur_ns": [60_000_000],
        })  # fmt: skip
        for name, table in (("Span", spans), ("LAUNCHED.Span.Span", launched), ("Step", step)):
            path = tmp_path / f"{name}.{rank}.parquet"
            pq.write_table(table, path)
            files[name].append(path)
    return files


def _events(file: Path) -> list[dict[str, Any]]:
    read = gzip.open if file.suffix == ".gz" else open
    with read(file, "rt", encoding="utf-8") as text:
        events: list[dict[str, Any]] = json.load(text)["traceEvents"]
    return events


def test_every_span_is_there_with_its_time_and_id(
    tables: dict[str, list[Path]], diagnosis: Diagnosis, tmp_path: Path
) -> None:
    file = tmp_path / "run.json.gz"
    assert perfetto.write(tables, diagnosis, perfetto.Cut(), file, packed=True) == 6
    events = _events(file)
    slices = [e for e in events if e["ph"] == "X" and e["pid"] != perfetto.FINDINGS_PID]
    assert len(slices) == 6
    gemm = next(e for e in slices if e["args"]["id"] == str(BIG + 51))
    assert gemm["name"] == 'gemm<"a">\n\\漢'
    assert gemm["ts"] == 2_000_001.623  # moved by the 1,500 ns that come before zero
    assert (gemm["dur"], gemm["cat"]) == (4_000.0, "device")
    assert gemm["args"]["excess_ns"] == 1_000
    assert min(e["ts"] for e in slices) == 0
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names[5, gemm["tid"]] == "stream 7"
    assert len({e["tid"] for e in slices}) == 4


def test_launches_point_from_call_to_kernel(
    tables: dict[str, list[Path]], diagnosis: Diagnosis, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    perfetto.write(tables, diagnosis, perfetto.Cut(), file, packed=False)
    arrows = [e for e in _events(file) if e["ph"] in "sf"]
    assert [e["ph"] for e in arrows] == ["s", "f", "s", "f"]
    assert arrows[0]["id"] == arrows[1]["id"]
    assert (arrows[0]["ts"], arrows[1]["ts"]) == (0, 2_000_001.623)


def test_findings_lie_on_top_with_their_steps(
    tables: dict[str, list[Path]], diagnosis: Diagnosis, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    perfetto.write(tables, diagnosis, perfetto.Cut(), file, packed=False)
    marks = [e for e in _events(file) if e["pid"] == perfetto.FINDINGS_PID and e["ph"] == "X"]
    assert [m["name"] for m in marks if m["tid"] == 1] == [
        "1 high: layers.3.mlp.gate_up takes 2.9 times as long on rank 5 as on its peers",
        "step 41 of rank 5",
    ]


def test_a_cut_leaves_out_other_ranks_and_steps(
    tables: dict[str, list[Path]], diagnosis: Diagnosis, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    cut = perfetto.Cut(first_step=41, last_step=41, ranks=(5,), flows=False)
    assert perfetto.write(tables, diagnosis, cut, file, packed=False) == 2
    assert {e["pid"] for e in _events(file) if e["ph"] == "X"} == {5, perfetto.FINDINGS_PID}
    none = perfetto.Cut(first_step=7_000)
    assert perfetto.write(tables, diagnosis, none, file, packed=False) == 0
    assert not [e for e in _events(file) if e["ph"] in "sf"]
