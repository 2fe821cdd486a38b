"""TensorRT-LLM: the line of each iteration, and facts of start and memory."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs import phrases
from teller.ingest.logs.knowledge import Meant, samples
from teller.ingest.logs.meaning import counted, having, integers, meant, told, with_column
from teller.ingest.logs.pairs import pairs
from teller.ingest.logs.phrases import LINE, Phrase

_ITERATION: Final = "iter = "
_MILLI: Final = 1e6
_SECOND: Final = 1e9

_PHRASES: Final = (
    Phrase("engine.name", "TensorRT-LLM version", "", "trtllm"),
    Phrase("engine.restart", "TensorRT-LLM version", "", "trtllm"),
    Phrase("engine.version", "TensorRT-LLM version", r"TensorRT-LLM version: ?(?P<text>[\w.+-]+)"),
    Phrase(
        "engine.kv_tokens",
        "max tokens in paged KV cache (",
        r"max tokens in paged KV cache \((?P<value>\d+)\)",
    ),
    Phrase("engine.max_model_tokens", "max_seq_len=", r"\bmax_seq_len=(?P<value>\d+), max_num"),
    Phrase("engine.init_ns", "Model init total", r"total -- (?P<value>[\d.]+)s", "", _SECOND),
    Phrase("engine.ready", "Engine loaded and ready to serve", "", "trtllm"),
    Phrase(
        "engine.error", "Hang detected on rank", r"(?P<text>Hang detected on rank (?P<rank>\d+).*)"
    ),
    Phrase("engine.error", "Error in event loop", "", LINE),
    Phrase("engine.error", "Executor worker returned error", "", LINE),
    Phrase("engine.error", "Encountered an error in forward function", "", LINE),
)

MARKS: tuple[str, ...] = (_ITERATION, *phrases.marks(_PHRASES))


class _Knowing:
    """What one file's lines of TensorRT-LLM mean."""

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines."""
        made, known = _iterations(having(lines, _ITERATION))
        single, also = phrases.read(lines, _PHRASES)
        return meant(made + single, known + also)


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()


def _iterations(lines: pa.Table) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read iterations; a line's device time is of the iteration before and gets its number."""
    figures = pairs(lines)
    step = figures.of("iter")
    good = pc.and_(step.is_valid(), pc.is_valid(figures.of("host_step_time", "elapsed_time")))
    lines, step = lines.filter(good), integers(step.filter(good))
    if not lines.num_rows:
        return [], []
    figures = pairs(lines)
    rank = integers(figures.of("global_rank", "rank"))
    placed = with_column(lines, "rank", rank)
    milli = figures.of("host_step_time")
    host = pc.coalesce(pc.multiply(milli, _MILLI), pc.multiply(figures.of("elapsed_time"), _SECOND))
    device = pc.multiply(figures.of("prev_device_step_time"), _MILLI)
    timed = device.is_valid()
    made = [
        samples("step.host_ns", placed, value=host, text=counted(step)),
        samples(
            "step.device_ns",
            placed.filter(timed),
            value=device.filter(timed),
            text=counted(pc.subtract(step, 1).filter(timed)),
        ),
    ]
    for name, key, text in (
        ("engine.batch_size", "num_scheduled_requests", ""),
        ("engine.step_tokens", "num_ctx_tokens", "prefill"),
        ("engine.step_tokens", "num_generation_tokens", "decode"),
        ("engine.kv_usage_ratio", "kv_cache_util", ""),
    ):
        value = figures.of(key)
        have = value.is_valid()
        made.append(samples(name, placed.filter(have), value=value.filter(have), text=text))
    return made, [told(lines, params=figures.params, step_index=step, rank=rank)]
