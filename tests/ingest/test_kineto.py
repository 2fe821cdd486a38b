"""Public Kineto traces of all generations give what a plain JSON parser counts in them."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from teller.ingest.readers import kineto
from teller.ingest.source import CALLS, OPS, SPANS, Source

# both generations of time, three vendors, string threads, no categories that are spelt the same
FILES = (
    "kineto/hta_alexnet.json.gz",
    "kineto/hta_file_list_inference_rank1.json.gz",
    "kineto/hta_large_integer_rank70.json.gz",
    "kineto/hta_mi250_rocm6.2.json.gz",
    "kineto/hta_nccl_metadata.json.gz",
    "kineto/hta_ns_resolution_rank0.json.gz",
    "kineto/hta_sampled_rank0.json.gz",
    "kineto/hta_triton_example.json.gz",
    "kineto/kineto_gpu_metrics_input.json",
    "kineto/tl_h100_bert_small.json.gz",
    "kineto/tl_mi210_gpu_only.json.gz",
    "kineto/tl_normalization.json.gz",
    "kineto/hta_mtia_inference_rank0.json.gz",
    "kineto_inference/sglang_qwen3_8b_decode.json.gz",
    "kineto_inference/vllm_decode_full_graph_execution.json.gz",
)
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
CALL_CATEGORIES = ("cuda_runtime", "cuda_driver", "runtime", "mtia_runtime")
Trace = dict[str, Any]


def plain(path: Path) -> Trace:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    trace: Trace = json.loads(text, parse_float=Decimal)
    return trace


def lasting(trace: Trace) -> list[dict[str, Any]]:
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e.get("cat") != "Trace"]


def category(event: dict[str, Any]) -> str:
    return str(event.get("cat", "")).lower()


def nanoseconds(microseconds: object) -> int:
    return int((Decimal(str(microseconds)) * 1000).to_integral_value(ROUND_HALF_EVEN))


def only(path: Path) -> Source:
    reading = kineto.read(path)
    assert reading.remarks == ()
    (source,) = reading.sources
    return source


@pytest.fixture(params=FILES, scope="module")
def pair(request: pytest.FixtureRequest, shared: Path) -> tuple[Source, Trace]:
    path = shared / "traces" / request.param
    return only(path), plain(path)


def test_every_lasting_event_is_a_span_with_its_exact_times(pair: tuple[Source, Trace]) -> None:
    source, trace = pair
    base = int(trace.get("baseTimeNanoseconds", 0))
    expected = [
        (
            i,
            e["name"],
            base + nanoseconds(e["ts"]),
            base + nanoseconds(e["ts"]) + nanoseconds(e["dur"]),
        )
        for i, e in enumerate(trace["traceEvents"])
        if e["ph"] == "X" and e.get("cat") != "Trace"
    ]
    columns = ("place", "name", "start_ns", "end_ns")
    assert source.spans.schema == SPANS
    assert list(zip(*(source.spans[c].to_pylist() for c in columns), strict=True)) == expected
    assert source.facts.event_count == len(trace["traceEvents"])


def test_device_work_has_its_stream_and_finds_its_launch(pair: tuple[Source, Trace]) -> None:
    source, trace = pair
    events = lasting(trace)
    device = [e for e in events if category(e) in DEVICE]
    if any(category(e).startswith("mtia") for e in events):
        device = [
            e for e in events if category(e) == "mtia_ccp_events" and e["name"][:6] != "event_"
        ]
    work = source.spans.filter(pc.is_valid(source.spans["stream"]))
    args = [e.get("args") or {} for e in device]
    assert work["stream"].to_pylist() == [
        a.get("stream", e["tid"]) for a, e in zip(args, device, strict=True)
    ]
    assert work["device_index"].to_pylist() == [
        a.get("device", e["pid"]) for a, e in zip(args, device, strict=True)
    ]
    ids = [a["correlation"] for a in args if a.get("correlation", 0) > 0]
    assert [c for c in work["correlation"].to_pylist() if c is not None] == ids
    known = set(ids)
    calls = [e for e in events if category(e) in CALL_CATEGORIES]
    partners = sum((e.get("args") or {}).get("correlation") in known for e in calls)
    runtime = source.spans.filter(pc.equal(source.spans["layer"].cast("string"), "runtime"))
    assert sum(c in known for c in runtime["correlation"].to_pylist() if c) == partners


def test_every_collective_kernel_is_a_call(pair: tuple[Source, Trace]) -> None:
    source, trace = pair
    kernels = [
        i
        for i, e in enumerate(trace["traceEvents"])
        if category(e) == "kernel" and "nccl" in e["name"].lower()
    ]
    records = [
        i
        for i, e in enumerate(trace["traceEvents"])
        if e["ph"] == "X"
        and (e["name"] == "record_param_comms" or e["name"].startswith(("nccl:", "c10d::")))
        and category(e) in ("cpu_op", "user_annotation")
        and (e.get("args") or {}).get("Collective name") != "wait"
    ]
    assert source.calls.schema == CALLS
    assert source.calls["place"].to_pylist() == sorted(kernels + records)
    assert set(source.calls["op"].to_pylist()) <= set(OPS)
    layer = dict(
        zip(source.spans["place"].to_pylist(), source.spans["layer"].to_pylist(), strict=True)
    )
    assert {layer[place] for place in source.calls["place"].to_pylist()} <= {"comm"}


def traces(shared: Path) -> Iterator[Path]:
    for folder in ("kineto", "kineto_inference"):
        yield from sorted((shared / "traces" / folder).iterdir())


NO_TRACE = ("hta_memory_timeline.raw.json.gz", "hta_simple_add_et.json.gz")


@pytest.mark.slow
def test_every_public_trace_is_read_and_nothing_else_is(shared: Path) -> None:
    for path in traces(shared):
        raw = path.read_bytes()
        head = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)[: 1 << 16]
        reading = kineto.read(path)
        is_trace = path.name not in NO_TRACE
        assert kineto.looks_like(head, path) == is_trace, path.name
        assert len(reading.sources) == is_trace, path.name
        assert len(reading.remarks) == (not is_trace), path.name


def test_other_json_is_refused_with_its_name(shared: Path, tmp_path: Path) -> None:
    expected = {
        shared / "traces/kineto/hta_memory_timeline.raw.json.gz": "memory timeline",
        shared / "traces/kineto/hta_simple_add_et.json.gz": "execution trace",
        shared / "traces/nccl_profiler/nccl_example_profiler_p2p_chrome.INVALID.json": "NCCL",
    }
    for path, word in expected.items():
        (remark,) = kineto.read(path).remarks
        assert word in remark.what


def test_facts_come_from_the_header(shared: Path) -> None:
    facts = only(shared / "traces/kineto/hta_nccl_metadata.json.gz").facts
    assert (facts.rank, facts.rank_source, facts.world_size, facts.epoch_ns) == (0, "header", 2, 0)
    assert (facts.pid, facts.process_name, facts.device_index) == (2910249, "python3.10", 0)
    assert [(g.name, g.ranks, g.desc, g.size) for g in facts.groups] == [
        ("0", (0, 1), "default_pg", 2)
    ]
    assert len(facts.gpus) == 8
    mtia = only(shared / "traces/kineto/hta_mtia_inference_rank0.json.gz").facts
    assert mtia.host == "twshared38393.01.cco6.facebook.com"
    assert mtia.rank is None


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("vllm_decode_full_capture_rank0", "graph capture"),
        ("sglang_decode_capture_bs32_rank0", "graph capture"),
        ("vllm_decode_full_graph_execution", None),
        ("sglang_qwen3_8b_decode", None),
    ],
)
def test_a_capture_of_graphs_is_told_from_a_run(shared: Path, name: str, role: str | None) -> None:
    facts = only(shared / "traces/kineto_inference" / f"{name}.json.gz").facts
    assert facts.options.get("role") == role


def test_a_kernel_without_metadata_has_that_of_its_host_record(shared: Path) -> None:
    path = shared / "traces/kineto/hta_nccl_metadata.json.gz"
    calls, trace = only(path).calls, plain(path)
    item = {"Float": 4, "Byte": 1, "Long": 8}
    told = {
        i: e["args"]
        for i, e in enumerate(trace["traceEvents"])
        if category(e) == "kernel" and "Collective name" in e.get("args", {})
    }
    op = {"allreduce": "all_reduce", "broadcast": "broadcast"}
    assert told
    for row in calls.to_pylist():
        args = told.get(row["place"])
        if args:
            assert row["op"] == op[args["Collective name"]]
            assert row["size_bytes"] == args["In msg nelems"] * item[args["dtype"]]
    named = Counter(calls["group_name"].to_pylist())
    assert named == {"0": calls.num_rows}


def test_the_case_of_a_slow_gpu_reads_whole(shared: Path) -> None:
    folder = shared / "cases/o03_straggler_slow_gpu_kineto"
    for path in sorted(folder.glob("*.json")):
        if path.name == "expected.json":
            continue
        source = only(path)
        assert source.facts.rank == int(path.name.split("rank")[1][0])
        assert source.calls.num_rows == 12
        assert set(source.calls["op"].to_pylist()) == {"all_reduce"}
        assert set(source.calls["size_bytes"].to_pylist()) == {65536 * 2}


def test_driver_launches_join_their_kernels(shared: Path) -> None:
    source = only(shared / "cases/o04_launch_bound_eager_kineto/rank0.pt.trace.json")
    spans = source.spans
    kernels = set(spans.filter(pc.is_valid(spans["stream"]))["correlation"].to_pylist())
    driver = spans.filter(pc.equal(spans["name"].cast("string"), "cuLaunchKernelEx"))
    assert driver.num_rows == 46
    assert set(driver["correlation"].to_pylist()) <= kernels
    assert source.facts.rank is None
