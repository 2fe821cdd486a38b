"""Small traces that show one property of the format each."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from teller.ingest.readers import kineto
from teller.ingest.source import Reading, Source

BASE = 1_770_000_000_000_000_000
Event = dict[str, Any]


def op(name: str = "aten::mm", ts: object = 100, dur: object = 5, **more: Any) -> Event:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 9,
        "tid": 9,
        "ts": ts,
        "dur": dur,
    } | more


def kernel(name: str = "gemm", ts: object = 200, dur: object = 50, **args: Any) -> Event:
    own = {"device": 0, "stream": 7, "correlation": 1} | args
    return op(name, ts, dur, cat="kernel", pid=0, tid=7, args=own)


def trace(events: Sequence[Mapping[str, Any]], **header: Any) -> bytes:
    own = {"schemaVersion": 1, "distributedInfo": {"rank": 0}, "baseTimeNanoseconds": BASE}
    return json.dumps({**own, **header, "traceEvents": list(events)}).encode()


def read(folder: Path, text: bytes) -> Reading:
    path = folder / "made.json"
    path.write_bytes(text)
    return kineto.read(path)


def only(folder: Path, text: bytes) -> Source:
    reading = read(folder, text)
    assert reading.remarks == ()
    (source,) = reading.sources
    return source


def column(source: Source, name: str) -> list[Any]:
    values: list[Any] = source.spans[name].to_pylist()
    return values


def test_a_list_of_events_is_a_trace(tmp_path: Path) -> None:
    text = json.dumps([op(), kernel()]).encode()
    assert kineto.looks_like(text, tmp_path)
    source = only(tmp_path, text)
    assert column(source, "place") == [0, 1]
    assert source.facts.rank is None


def test_gzip_is_told_by_content_and_may_have_several_members(tmp_path: Path) -> None:
    text = trace([op(), kernel()])
    twice = gzip.compress(text[:200]) + gzip.compress(text[200:])
    assert column(only(tmp_path, twice), "name") == ["aten::mm", "gemm"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b'{"a": 1}',
        b"[1, 2]",
        b"[[1, 2]]",
        b'[{"a": 1}]',
        b"<html>",
        b'{"schema": "1.0", "nodes": [{"id": 1}]}',
        b'{"rocprofiler-sdk-tool": []}',
        b"\x1f\x8b",
        b'{"text": "\\"traceEvents\\": ["}',
        b'{"name": "run", "ranks": [{"rank": 0}]}',
        b'[{"name": "Group API", "cat": "GROUP_API", "ph": "b", "ts": 1}]',
    ],
)
def test_what_is_no_trace_is_refused_and_named(text: bytes, tmp_path: Path) -> None:
    assert not kineto.looks_like(text, tmp_path / "x")
    reading = read(tmp_path, text)
    assert reading.sources == ()
    assert len(reading.remarks) == 1


def test_a_header_longer_than_the_head_is_looked_through(tmp_path: Path) -> None:
    text = trace([op()], metadata={"environment": "x" * 100_000})
    path = tmp_path / "made.json"
    path.write_bytes(text)
    assert kineto.looks_like(text[: 1 << 16], path)
    path.write_bytes(b'{"metadata": {"x": "' + b"y" * 100_000 + b'"}}')
    assert not kineto.looks_like(path.read_bytes()[: 1 << 16], path)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("1711964646123456.789", 1_711_964_646_123_456_789),
        ("1711964646123456", 1_711_964_646_123_456_000),
        ('"1711964646123456.789"', 1_711_964_646_123_456_789),
        ("1711964646.123456789e6", 1_711_964_646_123_456_789),
        ("1.5e15", 1_500_000_000_000_000_000),
        ("1711964646123456.7885", 1_711_964_646_123_456_788),
        ("1711964646123456.7895", 1_711_964_646_123_456_790),
        ("1711964646123456.78850000000000000000000000000001", 1_711_964_646_123_456_788),
        ("-3.25", -3250),
        ("1.7119646461234567e+15", 1_711_964_646_123_456_700),
        ("0", 0),
    ],
)
def test_times_are_exact_whatever_they_are_written_like(
    literal: str, expected: int, tmp_path: Path
) -> None:
    text = f'{{"traceEvents": [{{"ph": "X", "name": "a", "ts": {literal}, "dur": 0.001}}]}}'
    source = only(tmp_path, text.encode())
    assert column(source, "start_ns") == [expected]
    assert column(source, "end_ns") == [expected + 1]
    assert source.facts.epoch_ns == (0 if expected > 10**17 else None)


def test_the_base_may_stand_behind_the_events_and_the_unit_changes_nothing(tmp_path: Path) -> None:
    text = b'{"displayTimeUnit": "ns", "traceEvents": [{"ph": "X", "ts": 1.5, "dur": 2, "name": "a"'
    text += b'}], "baseTimeNanoseconds": %d, "distributedInfo": {"rank": "3"}}' % BASE
    source = only(tmp_path, text)
    assert column(source, "start_ns") == [BASE + 1500]
    assert column(source, "end_ns") == [BASE + 3500]
    assert (source.facts.rank, source.facts.rank_source) == (3, "header")


def test_layers_and_lanes_follow_the_category(tmp_path: Path) -> None:
    device = {"pid": 0, "tid": 7}
    source = only(
        tmp_path,
        trace(
            [
                op(),
                op("f.py(3): g", cat="python_function"),
                op("cudaLaunchKernel", cat="Runtime"),
                op("step[DECODE bs=8]", cat="user_annotation"),
                op("nccl:all_reduce", cat="user_annotation"),
                kernel(),
                op("Memset (Device)", cat="Memset", pid=0, tid="stream 7"),
                op("step", cat="gpu_user_annotation", **device),
                op("Sync", cat="cuda_sync", **device),
                op("Buffer Flush", cat="overhead", pid=-1, tid=0),
                op("hipMalloc", cat="cuda_runtime"),
                op("ncclDevKernel_AllGather_RING_LL(x)", cat="kernel", **device),
                op("PyTorch Profiler (0)", cat="Trace", pid="Spans", tid="PyTorch Profiler"),
            ]
        ),
    )
    assert list(zip(column(source, "layer"), column(source, "lane"), strict=True)) == [
        ("framework", "thread 9"),
        ("framework", "thread 9"),
        ("runtime", "thread 9"),
        ("engine", "thread 9"),
        ("comm", "thread 9"),
        ("device", "device 0 stream 7"),
        ("device", "device 0 stream 7"),
        ("engine", "device 0 stream 7 annotations"),
        ("runtime", "device 0 stream 7 syncs"),
        ("runtime", "overhead"),
        ("runtime", "thread 9"),
        ("comm", "device 0 stream 7"),
    ]
    assert column(source, "stream") == [None] * 5 + [7, 7] + [None] * 4 + [7]


def test_the_process_is_in_the_lane_where_there_are_several(tmp_path: Path) -> None:
    source = only(tmp_path, trace([op(), op(pid=8), op(tid="9")]))
    assert column(source, "lane") == [
        "process 9 thread 9",
        "process 8 thread 9",
        "process 9 thread 9",
    ]
    assert source.facts.pid == 9


def test_events_without_category_are_told_by_arguments_and_name(tmp_path: Path) -> None:
    events = [op("cudaLaunchKernel", args={"correlation": 4}), op("k", args={"stream": 3}), op("f")]
    for event in events:
        del event["cat"]
    source = only(tmp_path, trace(events))
    assert column(source, "layer") == ["runtime", "device", "framework"]
    assert column(source, "correlation") == [4, None, None]


def test_ids_beyond_64_bits_and_odd_ones_are_null(tmp_path: Path) -> None:
    ids = [10**25, 0, -1, None, "12", 7.0, [1], {"a": 1}, True]
    source = only(tmp_path, trace([kernel(correlation=i) for i in ids] + [op(args=[1])]))
    assert column(source, "correlation") == [None, None, None, None, 12, 7, *[None] * 4]


def test_beginnings_and_ends_pair_by_nesting_in_their_thread(tmp_path: Path) -> None:
    def mark(ph: str, name: str, ts: int, tid: int = 1) -> Event:
        return {"ph": ph, "name": name, "ts": ts, "pid": 9, "tid": tid, "cat": "cpu_op"}

    reading = read(
        tmp_path,
        trace(
            [
                mark("E", "before", 1),
                mark("B", "outer", 10),
                mark("B", "inner", 20),
                mark("B", "other", 25, tid=2),
                mark("E", "", 30),
                mark("E", "", 40),
                mark("B", "never ended", 50),
                op("last", 60, 40),
            ]
        ),
    )
    (source,) = reading.sources
    rows = zip(*(column(source, c) for c in ("name", "start_ns", "end_ns", "open")), strict=True)
    assert [(n, s - BASE, e - BASE, o) for n, s, e, o in rows] == [
        ("outer", 10_000, 40_000, False),
        ("inner", 20_000, 30_000, False),
        ("other", 25_000, 100_000, True),
        ("never ended", 50_000, 100_000, True),
        ("last", 60_000, 100_000, False),
    ]
    (remark,) = reading.remarks
    assert "end what never began (ph E without B): 1" in remark.what


def test_only_listed_words_of_the_header_are_kept(tmp_path: Path) -> None:
    secret = "hf_token_of_someone"
    source = only(
        tmp_path,
        trace(
            [op()],
            metadata={"env": secret},
            host_name="node-a",
            cupti_version=26,
            username=secret,
            deviceProperties=[{"id": 0, "name": "H100"}],
        ),
    )
    assert secret not in repr(source)
    assert (source.facts.host, source.facts.host_source) == ("node-a", "header")
    assert source.facts.product == "Kineto trace, schema 1, CUPTI 26"
    assert [(g.index, g.name) for g in source.facts.gpus] == [(0, "H100")]


def test_communication_is_told_by_metadata_first_and_by_name_else(tmp_path: Path) -> None:
    said = {
        "External id": 5,
        "Collective name": "_allgather_base",
        "Process Group Name": "3",
        "Process Group Ranks": "[0, 1]",
        "In msg nelems": 10,
        "dtype": "BFloat16",
        "Seq": 4,
        "Comms Id": 10159970886766084423,
    }
    groups = [{"pg_name": "3", "pg_desc": "tp", "pg_size": 2, "ranks": "[0, 1]"}]
    source = only(
        tmp_path,
        trace(
            [
                op("c10d::_allgather_base_", 100, 50),
                op("record_param_comms", 110, 30, args=said),
                op("record_param_comms", 170, 1, args={"Collective name": "wait"}),
                kernel("ncclDevKernel_Generic(x)", **{"External id": 5}),
                kernel("ncclDevKernel_Generic(x)", 300),
                kernel("void vllm::cross_device_reduce_1stage<half, 2>(x)", 400),
                kernel("void deep_ep::internode_ll::dispatch<false>(x)", 500),
                kernel("softmax<allreduce>", 600),
                kernel(
                    "ncclDevKernel_SendRecv",
                    700,
                    **{
                        "Collective name": "send",
                        "Src Rank": 0,
                        "Dst Rank": 1,
                        "Process Group Ranks": "[0, 1]",
                    },
                ),
            ],
            distributedInfo={"rank": 0, "world_size": 2, "pg_config": groups},
        ),
    )
    rows = [
        (c["place"], c["op"], c["group_name"], c["seq"], c["size_bytes"], c["peer"])
        for c in source.calls.to_pylist()
    ]
    assert rows == [
        (0, "all_gather", "3", 4, 20, None),
        (1, "all_gather", "3", 4, 20, None),
        (3, "all_gather", "3", 4, 20, None),
        (4, "unknown", None, None, None, None),
        (5, "all_reduce", None, None, None, None),
        (6, "all_to_all", None, None, None, None),
        (8, "send", "3", None, None, 1),
    ]
    assert source.calls["comm"].to_pylist()[0] == f"{10159970886766084423:x}"
    (group,) = source.facts.groups
    assert (group.name, group.ranks, group.comm) == ("3", (0, 1), f"{10159970886766084423:x}")
