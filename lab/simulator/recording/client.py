"""What the client kept of its requests, and what the engine exported of them as telemetry."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from teller.lab.simulator.happened import Happened, Request
from teller.lab.simulator.recording.lines import host_of
from teller.lab.simulator.recording.plan import Recording

_NS: Final = 1e9
_HEAD: Final = "request_id,start_time,prompt_tokens,output_tokens,ttft_s,latency_s,status"
_SERVER: Final = 2  # a span's kind


def write_table(happened: Happened, recording: Recording, folder: Path) -> Path:
    """Write the load generator's table; it runs on the first host."""
    path = folder / "client_requests.csv"
    rows = [_HEAD]
    for r in happened.requests:
        start = happened.scene.t0_epoch_ns + recording.clocks[0].one(r.arrival_ns)
        first = f"{(r.first_token_ns - r.arrival_ns) / _NS:.6f}" if r.first_token_ns >= 0 else ""
        whole = f"{(r.end_ns - r.arrival_ns) / _NS:.6f}" if r.end_ns >= 0 else ""
        status = "ok" if r.end_ns >= 0 else "timeout"
        seconds = f"{start // 10**9}.{start % 10**9 // 1000:06d}"
        rows.append(f"{r.name},{seconds},{r.prompt_tokens},{r.output_tokens},{first},{whole},"
                    f"{status}")  # fmt: skip
    path.write_text("\n".join(rows) + "\n")
    return path


def write_otlp(happened: Happened, recording: Recording, folder: Path) -> Path:
    """Write a span for each request that ended, as an exporter of OpenTelemetry writes files."""
    path = folder / "requests.otlp.json"
    spans = [_span(happened, recording, r) for r in happened.requests if r.end_ns >= 0]
    resource = {"attributes": [_said("service.name", happened.scene.engine),
                               _said("host.name", happened.scene.hosts[0].name)]}  # fmt: skip
    scope = {"scope": {"name": f"{happened.scene.engine}.llm_engine"}, "spans": spans}
    told = [{"resource": resource, "scopeSpans": [scope]}, *_stages(happened, recording)]
    document = {"resourceSpans": told}
    path.write_bytes(msgspec.json.encode(document) + b"\n")
    return path


def _stages(happened: Happened, recording: Recording) -> Iterator[dict[str, Any]]:
    """Give what instances that prefill tell of each cache that they sent; SGLang alone does."""
    scene = happened.scene
    sent = [t for t in happened.transfers if t.end_ns <= happened.end_ns]
    for replica in range(scene.prefill if scene.engine == "sglang" else 0):
        host = host_of(happened, f"engine {replica}")
        clock, spans = recording.clocks[host], []
        for one in (t for t in sent if t.source == replica):
            digest = _digest(happened, one.request)
            spans.append({
                "traceId": digest[:32], "spanId": digest[48:64], "parentSpanId": digest[32:48],
                "name": "prefill_transfer_kv_cache", "kind": 1, "attributes": [],
                "startTimeUnixNano": str(scene.t0_epoch_ns + clock.one(one.ready_ns)),
                "endTimeUnixNano": str(scene.t0_epoch_ns + clock.one(one.end_ns)), "status": {},
            })  # fmt: skip
        who = [_said("service.name", "sglang"), _said("host.name", scene.hosts[host].name)]
        yield {"resource": {"attributes": who},
               "scopeSpans": [{"scope": {"name": "sglang"}, "spans": spans}]}  # fmt: skip


def _digest(happened: Happened, name: str) -> str:
    return hashlib.blake2b(f"{happened.scene.seed} {name}".encode()).hexdigest()


def _span(happened: Happened, recording: Recording, request: Request) -> dict[str, Any]:
    clock, epoch = recording.clocks[0], happened.scene.t0_epoch_ns
    digest = _digest(happened, request.name)
    seconds = {
        "gen_ai.latency.time_to_first_token": request.first_token_ns - request.arrival_ns,
        "gen_ai.latency.e2e": request.end_ns - request.arrival_ns,
        "gen_ai.latency.time_in_queue": request.scheduled_ns - request.queued_ns,
        "gen_ai.latency.time_in_model_prefill": request.first_token_ns - request.scheduled_ns,
        "gen_ai.latency.time_in_model_decode": request.end_ns - request.first_token_ns,
    }
    attributes = [
        _said("gen_ai.request.id", request.name),
        _said("gen_ai.response.model", happened.scene.model.name),
        _said("gen_ai.usage.prompt_tokens", request.prompt_tokens),
        _said("gen_ai.usage.completion_tokens", request.output_tokens),
        *(_said(name, ns / _NS) for name, ns in seconds.items()),
    ]
    return {
        "traceId": digest[:32], "spanId": digest[32:48], "name": "llm_request", "kind": _SERVER,
        "startTimeUnixNano": str(epoch + clock.one(request.arrival_ns)),
        "endTimeUnixNano": str(epoch + clock.one(request.end_ns)),
        "attributes": attributes, "status": {},
    }  # fmt: skip


def _said(key: str, value: str | int | float) -> dict[str, Any]:
    if isinstance(value, str):
        return {"key": key, "value": {"stringValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"doubleValue": value}}
