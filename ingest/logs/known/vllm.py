"""vLLM: statistics, start-up facts, iterations, trouble and requests, of V0 and V1."""

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs import phrases
from teller.ingest.logs.knowledge import Meant, matched, number, samples
from teller.ingest.logs.known.vllm_requests import REQUEST_MARKS, requests_of
from teller.ingest.logs.meaning import (
    counted,
    having,
    integers,
    labelled,
    meant,
    parted,
    told,
    whole,
    with_text,
)
from teller.ingest.logs.options import options
from teller.ingest.logs.pairs import Pairs, pairs
from teller.ingest.logs.phrases import LINE, Phrase

_STATS: Final = "Avg generation throughput"
_SPECULATION: Final = ("SpecDecoding metrics", "Speculative metrics")
_TRANSFERS: Final = "KV Transfer metrics"
_ITERATION: Final = "Iteration("
_FIGURES: Final = (_STATS, *_SPECULATION, _TRANSFERS, _ITERATION)
_CONFIG: Final = ("LLM engine (v", "non-default args", "args: Namespace(")
_RANKS: Final = ("is assigned as DP rank", "distributed_init_method=")
_RANK: Final = r"(?P<global>\d{1,9})"
_WORLD: Final = r"(?P<world>\d+)"
_MILLI: Final = 1e6
_SECOND: Final = 1e9

_PHRASES: Final = (
    Phrase("engine.name", "LLM engine (v", r"Initializing an? .*LLM engine \(v", "vllm"),
    Phrase("engine.restart", "LLM engine (v", r"Initializing an? .*LLM engine \(v", "vllm"),
    Phrase("engine.version", "LLM engine (v", r"LLM engine \(v(?P<text>[^)\s]+)\)"),
    Phrase("engine.version", "API server version", r"vLLM API server version (?P<text>\S+)"),
    Phrase("engine.model", "LLM engine (v", r"with config: .*?\bmodel=['\"](?P<text>[^'\"]+)"),
    Phrase("engine.max_model_tokens", "max_seq_len=", r"\bmax_seq_len=(?P<value>\d+)"),
    Phrase("engine.max_model_tokens", "max model len", r"Using max model len (?P<value>[\d,]+)"),
    Phrase("engine.kv_tokens", "KV cache size", r"KV cache size: (?P<value>[\d,]+) tokens"),
    Phrase(
        "engine.max_concurrency",
        "Maximum concurrency for",
        r"Maximum concurrency for [\d,]+ tokens per request: (?P<value>[\d.,]+)x",
    ),
    Phrase(
        "engine.loading_ns",
        "Loading weights took",
        r"Loading weights took (?P<value>[\d.]+) seconds",
        "weights",
        _SECOND,
    ),
    Phrase(
        "engine.loading_ns",
        "oading",
        r"(?:Model loading|Loading model weights) took .* and (?P<value>[\d.]+) seconds",
        "model",
        _SECOND,
    ),
    Phrase(
        "engine.capture_ns",
        "Graph capturing finished",
        r"Graph capturing finished in (?P<value>[\d.]+) secs",
        "",
        _SECOND,
    ),
    Phrase(
        "engine.init_ns",
        "init engine (",
        r"init engine \([^)]*\) took (?P<value>[\d.]+) s",
        "",
        _SECOND,
    ),
    Phrase(
        "engine.compile_ns",
        "torch.compile takes",
        r"torch\.compile takes (?P<value>[\d.]+) s in total",
        "in total",
        _SECOND,
    ),
    Phrase(
        "engine.compile_ns",
        "ompiling a graph for",
        r"Compiling a graph for (?P<text>.+?) takes (?P<value>[\d.]+) s",
        "",
        _SECOND,
    ),
    Phrase(
        "engine.compile_ns",
        "Dynamo bytecode transform time",
        r"Dynamo bytecode transform time: (?P<value>[\d.]+) s",
        "bytecode",
        _SECOND,
    ),
    Phrase(
        "engine.compile_ns",
        "JIT compilation during inference",
        r"JIT compilation during inference: (?P<text>\w+)",
    ),
    Phrase("nccl.version", "using nccl==", r"vLLM is using nccl==(?P<text>[\w.+]+)"),
    Phrase("engine.cuda_graph", "under eager mode", "(?i)cudagraph is disabled under", value=0),
    Phrase("engine.cuda_graph", "Skipping CUDA graph capture", "", value=0),
    Phrase("engine.fallback", "Skipping CUDA graph capture", "", LINE),
    Phrase("engine.fallback", "ustom allreduce is disabled", "", LINE),
    Phrase("engine.fallback", "Using default MoE config", "", LINE),
    Phrase("engine.fallback", "CPU contention", "Reducing Torch parallelism", LINE),
    Phrase(
        "engine.prefix_hit_ratio",
        "Prefix cache hit rate: GPU",
        r"Prefix cache hit rate: GPU: (?P<value>[\d.]+)%",
        "",
        0.01,
    ),
    Phrase(
        "engine.preemptions_total",
        "total_cumulative_preemption_cnt",
        r"total_cumulative_preemption_cnt=(?P<value>\d+)",
    ),
    Phrase(
        "gc.pause_ns",
        "GC took",
        r"GC took (?P<value>[\d.]+)ms to complete.* in GC (?P<text>generation \d+)",
        "",
        _MILLI,
    ),
    Phrase(
        "engine.broadcast_wait_ns",
        "No available shared memory broadcast block",
        r"broadcast block found in (?P<value>\d+) second",
        "",
        _SECOND,
    ),
    Phrase(
        "engine.broadcast_wait_ns",
        "No available block found in",
        r"No available block found in (?P<value>\d+) second",
        "",
        _SECOND,
    ),
    Phrase("process.died", "died unexpectedly", r"(?i)(?:worker|engine core) proc.* died", LINE),
    Phrase("process.died", "encountered a fatal error", r"EngineCore.* encountered a fatal", LINE),
    Phrase("process.died", "[shutdown]", r"trigger received signal=SIG", LINE),
    Phrase("engine.error", "EngineDeadError", r"(?P<text>\S*EngineDeadError.*)"),
    Phrase("engine.error", "WorkerProc hit an exception", "", LINE),
    Phrase("engine.error", "WorkerProc initialization failed", "", LINE),
    Phrase("engine.error", "Dumping input data for V1", r"(?P<text>Dumping input data)"),
    Phrase("engine.error", "RPC call to", r"RPC call to \S+ timed out", LINE),
)

MARKS: tuple[str, ...] = (
    *(_STATS, *_SPECULATION, _TRANSFERS, _ITERATION, *_CONFIG, *_RANKS, *REQUEST_MARKS),
    *phrases.marks(_PHRASES),
)


class _Knowing:
    """What one file's lines of vLLM mean."""

    def __init__(self) -> None:
        self._ranks: dict[tuple[str, int | None], int] = {}

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines."""
        figures, rest = parted(lines, *_FIGURES)
        found, known = _statistics(having(figures, _STATS))
        for more, also in (
            _speculation(parted(figures, *_SPECULATION)[0]),
            _transfers(having(figures, _TRANSFERS)),
            _iterations(having(figures, _ITERATION)),
        ):
            found, known = found + more, known + also
        config, _ = parted(rest, *_CONFIG)
        found += options(config) if config.num_rows else []
        single, about = phrases.read(rest, _PHRASES)
        asked, also = requests_of(rest)
        self._place(rest)
        told_ = [*known, *about, *also, told(config)]
        return meant(found + single, told_, [asked], processes=dict(self._ranks))

    def _place(self, lines: pa.Table) -> None:
        """Learn ranks of processes; what is said at the assignment goes before the rest."""
        sure = matched(
            having(lines, _RANKS[0]), rf"rank {_RANK} in world size {_WORLD} is assigned"
        )
        other = matched(having(lines, _RANKS[1]), rf"world_size={_WORLD} rank={_RANK} local_rank=")
        for rows, first in ((other, False), (sure, True)):
            columns = (rows[name].to_pylist() for name in ("process", "pid", "global", "world"))
            for process, pid, rank, world in zip(*columns, strict=True):
                who, alone = (process or "", pid), world == "1"
                if _plausible(who[0], int(rank), alone=alone) and (first or who not in self._ranks):
                    self._ranks[who] = int(rank)


def _plausible(process: str, rank: int, *, alone: bool) -> bool:
    """Tell whether a rank can be the global one of a process of this label.

    Without labels only a world of one is sure. Engines of plain data parallelism count each from 0:
    on EngineCore_DP1 rank 0 is not the global one.
    """
    if not process:
        return alone
    engine = re.search(r"DP(\d+)", process)
    return engine is None or rank >= int(engine[1])


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()


def _params(figures: Pairs) -> list[pa.Table]:
    """Set the figures of lines as their parameters."""
    return [told(figures.lines, params=figures.params)] if figures.lines.num_rows else []


def _statistics(lines: pa.Table) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read the lines that come every ten seconds while there is work."""
    figures = pairs(lines)
    engine = _engine(lines)
    made = [
        figures.samples(name, *keys, unit=unit, text=engine)
        for name, unit, *keys in (
            ("engine.prompt_tokens_per_s", "tokens/s", "Avg prompt throughput"),
            ("engine.generation_tokens_per_s", "tokens/s", _STATS),
            ("engine.running", "reqs", "Running"),
            ("engine.waiting", "reqs", "Waiting", "Pending"),
            ("engine.swapped", "reqs", "Swapped"),
            ("engine.preemptions", "", "Preemptions"),
            ("engine.kv_usage_ratio", "%", "GPU KV cache usage", "KV cache usage"),
            ("engine.prefix_hit_ratio", "%", "Prefix cache hit rate"),
        )
    ]
    return made, _params(figures)


def _engine(lines: pa.Table) -> pa.Array:
    """Name the engine that a statistics line is of: "engine 1", "2 engines", or "" for V0."""
    text = whole(lines["text"])
    one = pc.struct_field(pc.extract_regex(text, r"\bEngine 0*(?P<n>\d+):"), "n")
    all_ = pc.struct_field(pc.extract_regex(text, r"(?P<n>\d+) Engines Aggregated"), "n")
    return pc.coalesce(labelled("engine {}", one), labelled("{} engines", all_), pa.scalar(""))


def _speculation(lines: pa.Table) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read what speculative decoding saved."""
    bare = pc.replace_substring_regex(
        lines["text"], r"Per-position acceptance rate: [\d., ]+, ", ""
    )
    figures = pairs(with_text(lines, bare))
    keys = ("Avg Draft acceptance rate", "Draft acceptance rate")
    return [figures.samples("engine.accept_ratio", *keys)], _params(figures)


def _transfers(lines: pa.Table) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read the summary of KV transfers of an interval."""
    figures = pairs(lines)
    failed = figures.samples("kv.transfer_failed", "Num failed transfers", text="in the interval")
    made = [
        figures.samples("kv.transfer_ns", "Avg xfer time (ms)", scale=_MILLI, text="average"),
        failed.filter(pc.greater(failed["value"], 0)),
    ]
    return made, _params(figures)


def _iterations(lines: pa.Table) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read the lines of single iterations."""
    rows = matched(
        lines,
        r"Iteration\((?P<step>\d+)\): (?P<prefills>\d+) context requests, "
        r"(?P<prompt>\d+) context tokens, (?P<decodes>\d+) generation requests, "
        r"(?P<output>\d+) generation tokens, iteration elapsed time: (?P<ms>[\d.]+) ms",
    )
    if not rows.num_rows:
        return [], []
    read = {
        name: number(rows[name]) for name in ("step", "prefills", "prompt", "decodes", "output")
    }
    host = pc.multiply(number(rows["ms"]), _MILLI)
    step = counted(read["step"])
    made = [samples("step.host_ns", rows, value=host, text=step)]
    for name, key, phase in (
        ("engine.batch_size", "prefills", "prefill"),
        ("engine.batch_size", "decodes", "decode"),
        ("engine.step_tokens", "prompt", "prefill"),
        ("engine.step_tokens", "output", "decode"),
    ):
        made.append(samples(name, rows, value=read[key], text=phase))
    params = labelled(
        '{"context requests": {}, "context tokens": {}, "generation requests": {}, '
        '"generation tokens": {}, "iteration elapsed time (ms)": {}}',
        *(whole(rows[key]) for key in ("prefills", "prompt", "decodes", "output", "ms")),
    )
    return made, [told(rows, params=params, step_index=integers(read["step"]))]
