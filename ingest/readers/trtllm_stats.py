"""Statistics of iterations that TensorRT-LLM gives at /metrics: a JSON list, or objects a line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_json import Whole, documents, opening
from teller.ingest.readers.side_lines import Lines
from teller.ingest.readers.side_tables import Unread, joined, reading, samples
from teller.ingest.readers.side_times import civil
from teller.ingest.records import SAMPLES, ClockKind, Records
from teller.ingest.source import Facts, Reading

FORMAT: Final = "trtllm_stats"

_MS: Final = 1e6
_MARKS: Final = (b'"iterLatencyMS"', b'"hostStepTimeMS"')


class Batch(msgspec.Struct, rename="camel"):
    """Requests and tokens of one iteration."""

    num_context_requests: float | None = None
    num_ctx_tokens: float | None = None
    num_gen_requests: float | None = None
    num_paused_requests: float | None = None


class Cache(msgspec.Struct, rename="camel"):
    """The KV cache after one iteration."""

    max_num_blocks: float | None = None
    used_num_blocks: float | None = None
    tokens_per_block: float | None = None
    cache_hit_rate: float | None = None


class Iteration(msgspec.Struct, rename="camel"):
    """One iteration; what a version does not have is None."""

    iter: Whole | None = None
    timestamp: str | None = None
    iter_latency_ms: float | None = msgspec.field(default=None, name="iterLatencyMS")
    host_step_time_ms: float | None = msgspec.field(default=None, name="hostStepTimeMS")
    prev_device_step_time_ms: float | None = msgspec.field(
        default=None, name="prevDeviceStepTimeMS"
    )
    num_active_requests: float | None = None
    num_queued_requests: float | None = None
    attention_dp_rank: Whole | None = None
    inflight_batching_stats: Batch | None = None
    kv_cache_stats: Cache | None = None


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins with statistics of iterations."""
    return opening(head) in (b"[", b"{") and any(mark in head for mark in _MARKS)


def read(path: Path) -> Reading:
    """Read one file: samples of each iteration; `line` is the number of the iteration."""
    lines, unread = Lines(path), Unread()
    if opening(next(lines.text.pieces(), b"")) == b"[":  # a list is one answer of the server
        found = [one for part in documents(lines, list[Iteration], unread) for one in part]
    else:
        found = documents(lines, Iteration, unread)
    made = joined(SAMPLES, list(_samples(found)))
    timed = made["time_ns"].null_count < made.num_rows
    clock: ClockKind = "local" if timed else "none"
    facts = Facts(str(path), FORMAT, event_count=len(found))
    return reading(lines, Records(facts, clock, samples=made), unread, "iteration")


def _samples(found: list[Iteration]) -> Iterator[pa.Table]:
    size = len(found)
    engine = [
        None if i.attention_dp_rank is None else f"engine {i.attention_dp_rank}" for i in found
    ]
    text = pc.fill_null(pa.array(engine, pa.string()), "")
    number = [i.iter for i in found]
    who = {"line": pa.array(range(1, size + 1), pa.int64()), "time_ns": _times(found)}
    batch = [i.inflight_batching_stats or Batch() for i in found]
    cache = [i.kv_cache_stats or Cache() for i in found]
    used = pc.divide(_floats([c.used_num_blocks for c in cache]),
                     _positive([c.max_num_blocks for c in cache]))  # fmt: skip
    tokens = pc.multiply(_floats([c.max_num_blocks for c in cache]),
                         _floats([c.tokens_per_block for c in cache]))  # fmt: skip
    own = pa.array([None if n is None else str(n) for n in number], pa.string())
    # the device's time is of the iteration before
    before = pa.array([None if n is None else str(n - 1) for n in number], pa.string())
    yield samples("engine.name", min(size, 1), text="trtllm", line=1)
    for name, value, said in (
        ("step.host_ns", _ns([i.host_step_time_ms for i in found]), own),
        ("step.device_ns", _ns([i.prev_device_step_time_ms for i in found]), before),
        ("prom:iterLatencyMS", _floats([i.iter_latency_ms for i in found]), own),
        ("engine.running", _floats([i.num_active_requests for i in found]), text),
        ("engine.waiting", _floats([i.num_queued_requests for i in found]), text),
        ("engine.batch_size", _floats([b.num_context_requests for b in batch]), "prefill"),
        ("engine.batch_size", _floats([b.num_gen_requests for b in batch]), "decode"),
        ("engine.step_tokens", _floats([b.num_ctx_tokens for b in batch]), "prefill"),
        ("engine.preemptions", _floats([b.num_paused_requests for b in batch]), text),
        ("engine.kv_usage_ratio", used, text),
        ("engine.prefix_hit_ratio", _floats([c.cache_hit_rate for c in cache]), text),
        ("engine.kv_tokens", tokens, text),
    ):
        made = samples(name, size, value=value, text=said, **who)
        yield made.filter(made["value"].is_valid())


def _times(found: list[Iteration]) -> pa.Array:
    """Give ns of the stamps, month first as C++ prints them, or year first."""
    stamp = pa.array([i.timestamp for i in found], pa.string())
    year_first = pc.replace_substring_regex(stamp, r"^(\d\d)[-/](\d\d)[-/](\d{4})", r"\3-\1-\2")
    return civil(year_first)[0]


def _floats(values: list[float | None]) -> pa.Array:
    return pa.array(values, pa.float64())


def _positive(values: list[float | None]) -> pa.Array:
    return _floats([value if value else None for value in values])


def _ns(values: list[float | None]) -> pa.Array:
    return pc.multiply(_floats(values), _MS)
