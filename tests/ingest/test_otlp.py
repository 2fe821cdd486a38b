"""Spans of OpenTelemetry tell requests alike, as JSON and as protobuf in each framing."""

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from teller.ingest.readers import otlp
from teller.ingest.records import Records

START = 1_789_185_000_000_000_000
ITEM = dict[str, Any]


def said(**values: str | float | int) -> list[ITEM]:
    kinds = {str: "stringValue", float: "doubleValue", int: "intValue"}
    return [
        {"key": key.replace("__", "."), "value": {kinds[type(v)]: str(v) if type(v) is int else v}}
        for key, v in values.items()
    ]


def span(
    number: int, name: str, start_ms: int, end_ms: int, parent: int = 0, **values: Any
) -> ITEM:
    return {
        "traceId": base64.b64encode(bytes(16)).decode(),
        "spanId": base64.b64encode(bytes([0] * 7 + [number])).decode(),
        "parentSpanId": base64.b64encode(bytes([0] * 7 + [parent])).decode() if parent else "",
        "name": name,
        "startTimeUnixNano": str(START + start_ms * 1_000_000),
        "endTimeUnixNano": str(START + end_ms * 1_000_000),
        "attributes": said(**values),
    }


VLLM = span(
    1, "llm_request", 0, 2000, gen_ai__request__id="cmpl-1", gen_ai__prompt="my words",
    gen_ai__latency__time_to_first_token=0.25, gen_ai__latency__time_in_queue=0.125,
    gen_ai__latency__time_in_model_prefill=0.1, gen_ai__usage__prompt_tokens=101,
    gen_ai__usage__completion_tokens=20,
)  # fmt: skip
SGLANG = [
    span(2, "prefill Req abcd1234", 0, 2000, rid="abcd1234ef"),
    span(3, "scheduler [TP 1] (host:x | pid:3)", 0, 2000, 2, tp_rank=1),
    span(4, "prefill_waiting", 0, 500, 3),
    span(5, "prefill_transfer_kv_cache", 1000, 1003, 3),
]
EXPORT: ITEM = {
    "resourceSpans": [
        {
            "resource": {"attributes": said(host__name="node-a", vllm__process_id=77)},
            "scopeSpans": [{"spans": [VLLM]}],
        },
        {"resource": {"attributes": said(service__name="sglang")},
         "scopeSpans": [{"spans": SGLANG}]},
    ]
}  # fmt: skip


def varint(number: int) -> bytes:
    head = bytes([number & 0x7F | (0x80 if number > 0x7F else 0)])
    return head + (varint(number >> 7) if number > 0x7F else b"")


RAW: bytes = ParseDict(EXPORT, ExportTraceServiceRequest()).SerializeToString()
FRAMES: dict[str, Callable[[], bytes]] = {
    "json": lambda: json.dumps(EXPORT).encode(),
    "pretty": lambda: json.dumps(EXPORT, indent=1).encode(),
    "alone": lambda: RAW,
    "varint": lambda: varint(len(RAW)) + RAW,
    "four bytes": lambda: struct.pack(">I", len(RAW)) + RAW,
}


def read(path: Path, content: bytes) -> Records:
    path.write_bytes(content)
    assert otlp.looks_like(content[:65536], path)
    (records,) = otlp.read(path).records
    return records


@pytest.mark.parametrize("frame", FRAMES)
def test_a_request_has_its_times_and_tokens_in_each_framing(tmp_path: Path, frame: str) -> None:
    records = read(tmp_path / "spans", FRAMES[frame]())
    first, second = records.requests.to_pylist()
    assert {k: v for k, v in first.items() if v is not None} == {
        "name": "cmpl-1", "start_ns": START, "first_token_ns": START + 250_000_000,
        "end_ns": START + 2_000_000_000, "prompt_tokens": 101, "output_tokens": 20,
        "ttft_ns": 250_000_000, "queue_ns": 125_000_000, "status": "ok", "host": "node-a",
        "pid": 77, "line": 1,
    }  # fmt: skip
    assert (second["name"], second["status"], second["host"]) == ("abcd1234ef", "ok", None)
    assert records.clock == "utc"


@pytest.mark.parametrize("frame", FRAMES)
def test_stages_and_latencies_are_samples_of_their_request(tmp_path: Path, frame: str) -> None:
    records = read(tmp_path / "spans", FRAMES[frame]())
    found = {(s["name"], s["value"], s["text"], s["process"]) for s in records.samples.to_pylist()}
    assert found == {
        ("prom:gen_ai.latency.time_in_model_prefill", 0.1, "cmpl-1", None),
        ("prom:stage:prefill_waiting", 0.5, "abcd1234ef", "TP1"),
        ("kv.transfer_ns", 3e6, "abcd1234ef", "TP1"),
    }


def test_prompts_are_never_kept(tmp_path: Path) -> None:
    records = read(tmp_path / "spans", FRAMES["json"]())
    assert "my words" not in str((records.requests.to_pylist(), records.samples.to_pylist()))


def test_an_error_and_an_abort_are_seen(tmp_path: Path) -> None:
    failed = VLLM | {"status": {"code": 2}}
    ended = span(9, "llm_request", 0, 1, gen_ai__response__finish_reasons="abort")
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [failed, ended]}]}]}
    records = read(tmp_path / "spans", json.dumps(spans).encode())
    assert records.requests["status"].to_pylist() == ["error", "aborted"]


def test_of_a_cut_file_the_whole_messages_are_used(tmp_path: Path) -> None:
    line = json.dumps(EXPORT).encode() + b"\n"
    for name, content in (("a", line * 2 + line[:99]), ("b", FRAMES["varint"]() * 2 + RAW[:40])):
        (tmp_path / name).write_bytes(content)
        reading = otlp.read(tmp_path / name)
        assert reading.records[0].requests.num_rows == 4
        assert reading.records[0].requests["line"].to_pylist() == [1, 1, 2, 2]
        assert len(reading.remarks) == 1


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\x0a\x0a", b'{"resourceMetrics": []}', b"\x1f\x8b"]
)
def test_other_content_is_no_export_of_spans(tmp_path: Path, content: bytes) -> None:
    assert not otlp.looks_like(content, tmp_path)
