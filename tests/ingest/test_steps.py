"""Steps of real traces, counted a second time from the raw file."""

import gzip
import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from teller.ingest.steps import Steps, find_steps

Row = tuple[str, str, str, int | None, int, int, int | None]  # name, layer, lane, stream, …
Make = Callable[[Iterable[Row]], pa.Table]
ANNOTATION = re.compile(r"execute_|step\[|run_batch|ProfilerStep")


def kineto(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    events: list[dict[str, Any]] = json.loads(text, strict=False)["traceEvents"]
    return [e for e in events if e.get("ph") == "X" and e.get("cat") != "Trace"]


def kineto_rows(path: Path, *, without: re.Pattern[str] | None = None) -> list[Row]:
    """Give the spans of a trace, without the annotations whose name matches."""
    layers = {"user_annotation": "engine", "cuda_runtime": "runtime", "cuda_driver": "runtime"}
    rows: list[Row] = []
    for event in kineto(path):
        category, args = str(event.get("cat")).lower(), event.get("args", {})
        device = category in ("kernel", "gpu_memcpy", "gpu_memset")
        start = round(float(event["ts"]) * 1000)
        if without and category == "user_annotation" and without.search(event["name"]):
            continue
        rows.append(
            (
                event["name"],
                "device" if device else layers.get(category, "framework"),
                f"{'stream' if device else 'thread'} {event['tid']}",
                int(event["tid"]) if device else None,
                start,
                start + round(float(event.get("dur", 0)) * 1000),
                args.get("correlation"),
            )
        )
    return rows


def nsys_rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as base:
        rows = base.execute(query).fetchall()
    base.close()
    return rows


def ranges(path: Path) -> list[Row]:
    """Give the push/pop ranges of a report."""
    return [
        (name, "engine", f"thread {tid & 0xFFFFFF}", None, start, end, None)
        for name, tid, start, end in nsys_rows(
            path,
            "SELECT coalesce(n.text, s.value), globalTid, start, end FROM NVTX_EVENTS n "
            "LEFT JOIN StringIds s ON s.id = n.textId WHERE eventType = 59 AND end IS NOT NULL",
        )
    ]


def column(steps: Steps, name: str) -> list[Any]:
    values: list[Any] = steps.table[name].to_pylist()
    return values


def test_vllm_steps_are_those_of_the_annotations(spans: Make, shared: Path) -> None:
    path = shared / "cases" / "o04_launch_bound_eager_kineto" / "rank0.pt.trace.json"
    raw = sorted(
        (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e["name"])
        for e in kineto(path)
        if e["name"].startswith("execute_")
    )
    steps = find_steps(spans(kineto_rows(path)))
    assert (steps.found_by, steps.confidence) == ("vllm", 1.0)
    assert column(steps, "step_index") == [int(name.rpartition("=")[2]) for *_, name in raw]
    assert column(steps, "start_ns") == [start for start, *_ in raw]
    assert column(steps, "phase") == ["decode", "decode"]
    assert column(steps, "batch_size") == [1, 1]


def test_annotations_that_overlap_are_cut_where_the_next_begins(spans: Make, shared: Path) -> None:
    folder = shared / "cases" / "o03_straggler_slow_gpu_kineto"
    for path in sorted(folder.glob("*.pt.trace.json")):
        steps = find_steps(spans(kineto_rows(path)))
        assert (steps.found_by, column(steps, "step_index")) == ("vllm", [0, 1, 2])
        assert column(steps, "end_ns")[:-1] == column(steps, "start_ns")[1:]


def test_without_annotations_kernels_give_all_ranks_the_same_steps(
    spans: Make, shared: Path
) -> None:
    folder = shared / "cases" / "o03_straggler_slow_gpu_kineto"
    truth = json.loads((folder / "expected.json").read_text())["numbers"]["allreduces"]
    paths = sorted(folder.glob("*.pt.trace.json"))
    assert len(paths) == 4
    for path in paths:
        steps = find_steps(spans(kineto_rows(path, without=ANNOTATION)))
        reduces = sorted(e["ts"] * 1000 for e in kineto(path) if "AllReduce" in e["name"])
        assert len(reduces) == truth
        assert (steps.found_by, steps.table.num_rows) == ("kernel_period", 3)
        assert 0.5 < steps.confidence < 0.9
        assert column(steps, "lane") == [None] * 3
        inside = np.searchsorted(column(steps, "start_ns"), reduces, side="right")
        assert np.bincount(inside).tolist() == [0, 4, 4, 4]


def test_layers_of_one_or_two_steps_are_no_steps(spans: Make, shared: Path) -> None:
    for path in (
        shared / "cases" / "o04_launch_bound_eager_kineto" / "rank0.pt.trace.json",
        shared / "traces" / "kineto_inference" / "sglang_qwen3_8b_decode.json.gz",
        shared / "traces" / "kineto_inference" / "vllm_decode_full_graph_execution.json.gz",
    ):
        steps = find_steps(spans(kineto_rows(path, without=ANNOTATION)))
        assert (steps.found_by, steps.confidence, steps.table.num_rows) == ("none", 0.0, 0)


def test_the_outer_of_two_annotations_of_one_step_is_taken(spans: Make, shared: Path) -> None:
    path = shared / "traces" / "kineto_inference" / "sglang_qwen3_8b_decode.json.gz"
    both = [e for e in kineto(path) if e.get("cat") == "user_annotation"]
    outer = next(e for e in both if e["name"].startswith("execute_32"))
    steps = find_steps(spans(kineto_rows(path)))
    assert (steps.found_by, steps.confidence) == ("sglang", 0.9)
    assert column(steps, "start_ns") == [round(outer["ts"] * 1000)]
    assert column(steps, "context_tokens") == [32785]


@pytest.mark.parametrize(
    "file", ["hta_diff_control", "hta_nccl_metadata", "hta_ns_resolution_rank0"]
)
def test_profiler_steps_keep_their_numbers(spans: Make, shared: Path, file: str) -> None:
    path = shared / "traces" / "kineto" / f"{file}.json.gz"
    numbers = sorted(
        {
            int(e["name"].partition("#")[2])
            for e in kineto(path)
            if str(e.get("name")).startswith("ProfilerStep#")
        }
    )
    steps = find_steps(spans(kineto_rows(path)))
    assert (steps.found_by, steps.confidence) == ("profiler_step", 1.0)
    assert column(steps, "step_index") == numbers


def test_each_process_of_a_report_has_its_own_steps(spans: Make, shared: Path) -> None:
    path = shared / "cases" / "o09_single_rank_host_pause_nsys" / "node-a.sqlite"
    both = spans(ranges(path))
    lanes = both["lane"].cast(pa.string())
    for lane in pc.unique(lanes):
        steps = find_steps(both.filter(pc.equal(lanes, lane)))
        assert (steps.found_by, column(steps, "step_index")) == ("sglang", list(range(10)))
        assert set(column(steps, "phase")) == {"decode"}
        assert set(column(steps, "batch_size")) == {48}


@pytest.mark.parametrize(("file", "launches"), [("rank0", 40), ("rank0_node", 8)])
def test_graph_replays_are_steps(spans: Make, shared: Path, file: str, launches: int) -> None:
    path = shared / "cases" / "o10_cuda_graph_level_trace_nsys" / f"{file}.sqlite"
    assert find_steps(spans(ranges(path))).table.num_rows == launches
    tables = [
        (name, "shortName")
        for (name,) in nsys_rows(
            path, "SELECT name FROM sqlite_master WHERE name LIKE '%KIND_KERNEL'"
        )
    ]
    work: list[Row] = [
        (name, "device", "stream 7", 7, start, end, correlation)
        for table, word in tables
        for name, start, end, correlation in nsys_rows(
            path,
            f"SELECT value, start, end, correlationId FROM {table} JOIN StringIds ON id = {word}",
        )
    ]
    calls: list[Row] = [
        (name, "runtime", "thread 1", None, start, end, correlation)
        for name, start, end, correlation in nsys_rows(
            path,
            "SELECT value, start, end, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME "
            "JOIN StringIds ON id = nameId",
        )
    ]
    steps = find_steps(spans(work + calls))
    assert (steps.found_by, steps.table.num_rows) == ("kernel_period", launches)


def test_ranges_without_numbers_are_steps_cut_at_the_pause(spans: Make, shared: Path) -> None:
    path = shared / "traces" / "nsys_sqlite" / "centerformer_2022.4.2_nvtxonly.sqlite"
    readers = nsys_rows(
        path,
        "SELECT start FROM NVTX_EVENTS JOIN StringIds ON id = textId "
        "WHERE value = 'reader' ORDER BY start",
    )
    last, *_ = nsys_rows(path, "SELECT max(end) FROM NVTX_EVENTS")
    steps = find_steps(spans(ranges(path)))
    assert steps.found_by == "nvtx_period"
    assert 0.5 < steps.confidence < 0.9
    # the last round was cut by the end of the recording, and the head of the first by its start
    assert column(steps, "start_ns") == [start for (start,) in readers[:-1]]
    assert column(steps, "end_ns")[-1] < last[0]
    assert column(steps, "place") == [None] * 95
