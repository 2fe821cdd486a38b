"""Triton Inference Server: statistics of its TensorRT-LLM backend, loading and readiness."""

from typing import Final

import pyarrow as pa

from teller.ingest.logs import phrases
from teller.ingest.logs.knowledge import Meant
from teller.ingest.logs.meaning import having, integers, meant, told
from teller.ingest.logs.pairs import pairs
from teller.ingest.logs.phrases import LINE, Phrase

_STATS: Final = "Active Request Count"

_PHRASES: Final = (
    Phrase("engine.name", "server_id", r"\| server_id +\| triton", "triton"),
    Phrase("engine.version", "server_version", r"\| server_version +\| (?P<text>[\w.+-]+)"),
    Phrase("engine.ready", "HTTPService at", "Started HTTPService at", "http"),
    Phrase("engine.ready", "GRPCInferenceService at", "Started GRPCInferenceService at", "grpc"),
    Phrase("engine.restart", "Initializing Triton", "", "triton"),
    Phrase("engine.error", "failed to load '", r"(?P<text>failed to load '[^']+' version \d+.*)"),
    Phrase("engine.error", "failed to load all models", "", LINE),
    Phrase("process.died", "Waiting for in-flight requests", "", LINE),
    Phrase("process.died", "tub process", r"Stub process .*(?:not healthy|died|exited)", LINE),
)

MARKS: tuple[str, ...] = (_STATS, *phrases.marks(_PHRASES))


class _Knowing:
    """What one file's lines of Triton mean."""

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines."""
        stats = having(lines, _STATS)
        figures = pairs(stats, r"\\?,\s*")
        made = [
            figures.samples("engine.running", "Active Request Count"),
            figures.samples("engine.kv_usage_ratio", "Fraction used KV cache blocks"),
            figures.samples("engine.batch_size", "Context Requests", text="prefill"),
            figures.samples("engine.batch_size", "Generation Requests", text="decode"),
            figures.samples("engine.step_tokens", "Total Context Tokens", text="prefill"),
        ]
        step = integers(figures.of("Iteration Counter"))
        known = [told(stats, params=figures.params, step_index=step)] if stats.num_rows else []
        single, also = phrases.read(lines, _PHRASES)
        return meant(made + single, known + also)


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()
