"""Spans of OpenTelemetry as the protocol writes them, and the requests that engines tell by them.

Only attributes that are named here are looked at: others may hold prompts and secrets.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_tables import rows, samples
from teller.ingest.readers.side_times import ns_of
from teller.ingest.records import REQUESTS

# fmt: off
LATENCY: Final = "gen_ai.latency."
TTFT: Final = "gen_ai.latency.time_to_first_token"
QUEUE: Final = "gen_ai.latency.time_in_queue"
STAGES: Final = frozenset((  # of SGLang: spans below a request's own
    "request_process", "api_server_dispatch", "tokenize", "dispatch", "prefill_waiting",
    "prefill_prepare", "prefill_bootstrap", "prefill_forward", "prefill_chunked_forward",
    "prefill_transfer_kv_cache", "decode_prepare", "decode_bootstrap", "decode_waiting",
    "decode_transferred", "decode_fake_output", "decode_quick_finish", "decode_loop",
    "decode_forward",
))
_KNOWN: Final = frozenset((
    "gen_ai.request.id", "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens",
    "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "rid", "tp_rank", "dp_rank",
    "host.name", "process.pid", "vllm.process_id", "service.name",
    "gen_ai.response.finish_reasons", "finish.status",
))
# fmt: on
_SGLANG: Final = re.compile(r"(?:\w+)? ?Req ([0-9a-zA-Z-]{1,8})")
_SECOND: Final = 1e9


class Value(msgspec.Struct, rename="camel"):
    """An attribute's value, of one kind; 64-bit numbers are text."""

    string_value: str | None = None
    int_value: str | int | None = None
    double_value: float | str | None = None

    def text(self) -> str | None:
        """Give it as text, None where it is of no simple kind."""
        for one in (self.string_value, self.int_value, self.double_value):
            if one is not None:
                return str(one)
        return None


class Attribute(msgspec.Struct):
    """A name and its value."""

    key: str = ""
    value: Value | None = None


class Status(msgspec.Struct):
    """How a span ended; 2 is an error."""

    code: str | int = 0


class Span(msgspec.Struct, rename="camel"):
    """One span."""

    name: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    start_time_unix_nano: str | int = 0
    end_time_unix_nano: str | int = 0
    attributes: list[Attribute] = []
    status: Status | None = None


class Scope(msgspec.Struct):
    """The spans of one instrument."""

    spans: list[Span] = []


class Resource(msgspec.Struct):
    """What sent the spans."""

    attributes: list[Attribute] = []


class ResourceSpans(msgspec.Struct, rename="camel"):
    """The spans of one process; the older name of scopes is read too."""

    resource: Resource | None = None
    scope_spans: list[Scope] = []
    instrumentation_library_spans: list[Scope] = []


class Export(msgspec.Struct, rename="camel"):
    """One message of the protocol."""

    resource_spans: list[ResourceSpans]


@dataclass(frozen=True, slots=True)
class Told:
    """A span with what its attributes and its resource say; `line` is its message's number."""

    span: Span
    said: Mapping[str, str]
    process: Mapping[str, str]
    line: int

    @property
    def request(self) -> str | None:
        """Give the request that this span is of as a whole; None if it is of none."""
        own = self.said.get("gen_ai.request.id") or self.said.get("rid")
        if own:
            return own
        if matched := _SGLANG.fullmatch(self.span.name.strip()):
            return matched[1]
        whole = self.span.name == "llm_request" or any(k.startswith(LATENCY) for k in self.said)
        return self.span.span_id if whole else None


def told(exports: Sequence[Export]) -> Iterator[Told]:
    """Give all spans of some messages."""
    for line, export in enumerate(exports, 1):
        for group in export.resource_spans:
            process = _said(group.resource.attributes if group.resource else ())
            for scope in (*group.scope_spans, *group.instrumentation_library_spans):
                for span in scope.spans:
                    yield Told(span, _said(span.attributes), process, line)


def requests(spans: Sequence[Told]) -> pa.Table:
    """Give a request for each span that is of a request as a whole."""
    own = [one for one in spans if one.request]
    start = times([one.span.start_time_unix_nano for one in own])
    end = times([one.span.end_time_unix_nano for one in own])
    ttft = ns_of(_figures(own, TTFT), _SECOND)
    return rows(REQUESTS, len(own), {
        "name": pa.array([one.request for one in own], pa.string()),
        "start_ns": start, "end_ns": end, "first_token_ns": pc.add(start, ttft),
        "prompt_tokens": _tokens(own, "prompt", "input"),
        "output_tokens": _tokens(own, "completion", "output"),
        "ttft_ns": ttft, "queue_ns": ns_of(_figures(own, QUEUE), _SECOND),
        "status": pa.array([_status(one) for one in own], pa.string()),
    } | _who(own))  # fmt: skip


def latencies(spans: Sequence[Told]) -> Iterator[pa.Table]:
    """Give what requests spent where, in seconds, as the engine's attributes say it."""
    own = [one for one in spans if one.request]
    who = _who(own) | {
        "text": pa.array([one.request for one in own], pa.string()),
        "time_ns": times([one.span.start_time_unix_nano for one in own]),
    }
    names = sorted({key for one in own for key in one.said if key.startswith(LATENCY)})
    for name in names:
        if name not in (TTFT, QUEUE):
            made = samples(f"prom:{name}", len(own), value=_figures(own, name), **who)
            yield made.filter(made["value"].is_valid())


def stages(spans: Sequence[Told]) -> Iterator[pa.Table]:
    """Give how long each stage of a request took; a transfer of its KV cache by its own name."""
    by_id = {one.span.span_id: one for one in spans if one.span.span_id}
    own = [one for one in spans if one.span.name.lower() in STAGES]
    above = [list(_above(one, by_id)) for one in own]
    request = [next((a.request for a in chain if a.request), None) for chain in above]
    rank = [next((a.said["tp_rank"] for a in chain if "tp_rank" in a.said), "") for chain in above]
    start = times([one.span.start_time_unix_nano for one in own])
    spent = pc.subtract(times([one.span.end_time_unix_nano for one in own]), start)
    name = [one.span.name.lower() for one in own]
    made = samples("", len(own), value=pc.cast(spent, pa.float64(), safe=False), time_ns=start,
                   text=pa.array(request, pa.string()), **_who(own))  # fmt: skip
    kept = pc.is_valid(made["value"])
    transfer = pa.array(["transfer" in one for one in name], pa.bool_()).filter(spent.is_valid())
    made = made.filter(kept)
    seconds = pc.if_else(transfer, made["value"], pc.divide(made["value"], _SECOND))
    named = pc.if_else(
        transfer, "kv.transfer_ns",
        pc.binary_join_element_wise("prom:stage", _where(name, spent), ":"),
    )  # fmt: skip
    process = _where([f"TP{one}" if one else "" for one in rank], spent)
    for column, values in (("name", named), ("value", seconds), ("process", process)):
        at = made.schema.get_field_index(column)
        made = made.set_column(at, made.schema.field(at), values)
    yield made


def times(values: Sequence[str | int]) -> pa.Array:
    """Give ns; what is 0 or no number is null."""
    text = pa.array([str(value) for value in values], pa.string())
    good = pc.match_substring_regex(text, r"^[1-9]\d{0,17}$|^[1-8]\d{18}$")
    return pc.cast(pc.if_else(good, text, None), pa.int64())


def _above(one: Told, by_id: Mapping[str, Told]) -> Iterator[Told]:
    """Give a span and those that it is in, as far up as engines nest them."""
    for _ in range(6):
        yield one
        parent = by_id.get(one.span.parent_span_id)
        if parent is None:
            return
        one = parent


def _where(values: list[str], spent: pa.Array) -> pa.Array:
    return pa.array(values, pa.string()).filter(spent.is_valid())


def _said(attributes: Sequence[Attribute]) -> dict[str, str]:
    return {
        a.key: text
        for a in attributes
        if (a.key in _KNOWN or a.key.startswith(LATENCY))
        and a.value
        and (text := a.value.text()) is not None
    }


def _who(spans: Sequence[Told]) -> dict[str, pa.Array]:
    pid = [one.process.get("process.pid") or one.process.get("vllm.process_id") for one in spans]
    return {
        "host": pa.array([one.process.get("host.name") for one in spans], pa.string()),
        "pid": pa.array([int(p) if p and re.fullmatch(r"\d{1,9}", p) else None for p in pid],
                        pa.int64()),
        "line": pa.array([one.line for one in spans], pa.int64()),
    }  # fmt: skip


def _figures(spans: Sequence[Told], key: str) -> pa.Array:
    text = pa.array([one.said.get(key) for one in spans], pa.string())
    good = pc.match_substring_regex(text, r"^\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?$")
    return pc.cast(pc.if_else(good, text, None), pa.float64())


def _tokens(spans: Sequence[Told], *words: str) -> pa.Array:
    values = [_figures(spans, f"gen_ai.usage.{word}_tokens") for word in words]
    sane = pc.coalesce(*values)
    return pc.cast(pc.if_else(pc.less(sane, 1e12), sane, None), pa.int64(), safe=False)


def _status(one: Told) -> str:
    code = one.span.status.code if one.span.status else 0
    if code in (2, "2", "STATUS_CODE_ERROR"):
        return "error"
    words = one.said.get("gen_ai.response.finish_reasons", "") + one.said.get("finish.status", "")
    return "aborted" if "abort" in words.lower() else "ok"
