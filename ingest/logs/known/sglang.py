"""SGLang: batches, start-up facts, trouble, requests and transfers between prefill and decode."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs import phrases
from teller.ingest.logs.knowledge import Meant, matched, samples
from teller.ingest.logs.meaning import (
    filled,
    having,
    integers,
    labelled,
    meant,
    parted,
    requests,
    told,
    whole,
)
from teller.ingest.logs.options import option, options
from teller.ingest.logs.pairs import Pairs, pairs
from teller.ingest.logs.phrases import LINE, Phrase

_PHASES: Final = (("Prefill batch", "prefill"), ("Decode batch", "decode"))
_ARGS: Final = "ServerArgs("
_TRANSFER: Final = " failed for request rank="
_SECOND: Final = 1e9

_PHRASES: Final = (
    Phrase("engine.name", _ARGS, "", "sglang"),
    Phrase("engine.restart", _ARGS, "", "sglang"),
    Phrase("engine.model", _ARGS, r"\bmodel_path=['\"](?P<text>[^'\"]+)"),
    Phrase("engine.kv_tokens", "KV Cache is allocated", r"#tokens: (?P<value>\d+)", "pool"),
    Phrase("engine.kv_tokens", "max_total_num_tokens=", r"\bmax_total_num_tokens=(?P<value>\d+)"),
    Phrase("engine.max_model_tokens", "context_len=", r"\bcontext_len=(?P<value>\d+)"),
    Phrase(
        "engine.loading_ns",
        "Load weight end",
        r"Load weight end\..*?\belapsed=(?P<value>[\d.]+) s",
        "weights",
        _SECOND,
    ),
    Phrase(
        "engine.capture_ns",
        " graph end",
        r"(?i)Capture (?P<text>.*?) ?graph end\..*?elapsed[=:] ?(?P<value>[\d.]+) s",
        "",
        _SECOND,
    ),
    Phrase("engine.ready", "The server is fired up and ready to roll", "", "sglang"),
    Phrase(
        "engine.preemptions",
        "#retracted_reqs:",
        r"(?:Retract requests|out of memory happened).*?#retracted_reqs: (?P<value>\d+)",
    ),
    Phrase(
        "watchdog.stuck",
        "atchdog timeout (",
        r"atchdog timeout \(self\.watchdog_timeout=(?P<value>[\d.]+)",
        "scheduler",
        _SECOND,
    ),
    Phrase(
        "engine.health_failed",
        "Health check failed",
        r"(?P<text>Health check failed.*?) for last (?P<value>\d+) seconds",
    ),
    Phrase("process.died", "SIGQUIT received", "", LINE),
    Phrase("process.died", "Received sigquit", "", LINE),
    Phrase("process.died", "SIGTERM received", "", LINE),
    Phrase(
        "process.died",
        "crashed with exit code",
        r"(?P<text>Subprocess \S+ \(pid=(?P<pid>\d+)\) crashed with exit code (?P<value>-?\d+))",
    ),
    Phrase("process.died", "hit an exception", r"(?:Scheduler|Worker|Process).* hit an exc", LINE),
    Phrase("engine.error", "Prefill out of memory", "", LINE),
    Phrase("engine.error", "Losing connection with", "", LINE),
    Phrase(
        "kv.transfer_failed",
        "Losing connection with",
        r"bootstrap_addr: (?P<text>[^)]+)\), (?P<value>\d+) requests? affected",
    ),
    Phrase(
        "gc.pause_ns",
        "GARBAGE COLLECTION DETECTED",
        r"Generation (?P<text>\d) \| Duration: (?P<value>[\d.]+)",
        "",
        _SECOND,
    ),
)

MARKS: tuple[str, ...] = (
    *(mark for mark, _ in _PHASES),
    *(_TRANSFER, "Receive: obj=", "Finish: obj=", " request. rid=", "Init torch distributed"),
    *phrases.marks(_PHRASES),
)


class _Knowing:
    """What one file's lines of SGLang mean."""

    def __init__(self) -> None:
        self._labels: set[str] = set()
        self._attention_dp = False
        self._pipeline = False

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines."""
        found: list[pa.Table] = []
        known: list[pa.Table] = []
        for mark, phase in _PHASES:
            more, also = _batches(having(lines, mark), phase)
            found, known = found + more, known + also
        _, rest = parted(lines, *(mark for mark, _ in _PHASES))
        args = having(rest, _ARGS)
        found += options(args) if args.num_rows else []
        single, understood = phrases.read(rest, _PHRASES)
        failed, also = _failed(having(rest, _TRANSFER))
        asked, about = _requests(rest)
        self._place(lines, args)
        known += [*understood, *also, *about]
        return meant([*found, *single, *failed], known, asked, processes=self._ranks())

    def _place(self, lines: pa.Table, args: pa.Table) -> None:
        """Remember the labels of processes and how the engine is spread."""
        self._labels.update(filter(None, pc.unique(lines["process"]).to_pylist()))
        if args.num_rows:
            self._attention_dp = "True" in option(args, "enable_dp_attention").to_pylist()
            self._pipeline = bool(set(option(args, "pp_size").to_pylist()) - {"1", None})

    def _ranks(self) -> dict[tuple[str, int | None], int]:
        """Give ranks where a label is sure to tell one.

        A label names DP and PP only where there are several. Ranks of TP count over all nodes, and
        with attention split over DP also over all its groups; with plain DP each group begins at 0.
        """
        sure: dict[tuple[str, int | None], int] = {}
        for label in self._labels:
            parts = dict(_part(word) for word in label.split())
            tensor, split = parts.get("TP"), "DP" in parts and not self._attention_dp
            if tensor is not None and "PP" not in parts and not self._pipeline and not split:
                sure[(label, None)] = tensor
        return sure


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()


def _part(word: str) -> tuple[str, int | None]:
    """Split "TP3" into its name and number."""
    name = word.rstrip("0123456789")
    digits = word[len(name) :]
    return name, int(digits) if 0 < len(digits) < 10 else None


def _batches(lines: pa.Table, phase: str) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read the lines of batches; the fullest pool of the KV cache counts."""
    if not lines.num_rows:
        return [], []
    figures = pairs(lines)
    engine = _engine(lines)
    rate = "prompt" if phase == "prefill" else "generation"
    throughput = ("input throughput (token/s)", "gen throughput (token/s)")
    made = [
        figures.samples("engine.running", "#running-req", text=engine),
        figures.samples("engine.waiting", "#queue-req", text=engine),
        figures.samples("engine.queued_tokens", "#pending-token", text=engine),
        figures.samples("engine.accept_ratio", "accept rate", text=engine),
        figures.samples(f"engine.{rate}_tokens_per_s", *throughput, text=engine),
        figures.samples("engine.cuda_graph", "cuda graph", "npu graph", text=phase),
        figures.samples("engine.step_tokens", "#new-token", text=phase),
        figures.samples("engine.cached_tokens", "#cached-token", text=engine),
        figures.samples(
            "engine.batch_size", "#new-seq" if phase == "prefill" else "#running-req", text=phase
        ),
        _fullest(figures, engine),
    ]
    return made, [told(lines, params=figures.params)]


def _fullest(figures: Pairs, engine: pa.Array) -> pa.Table:
    """Give the share in use of the fullest pool: hybrid models have a pool a kind of layer."""
    pools = ("token usage", "full token usage", "swa token usage", "mamba usage")
    usage = pc.max_element_wise(*(figures.of(pool) for pool in pools))
    have = usage.is_valid()
    rows, text = figures.lines.filter(have), engine.filter(have)
    return samples("engine.kv_usage_ratio", rows, value=usage.filter(have), text=text)


def _engine(lines: pa.Table) -> pa.Array:
    """Name the engine: "engine 1" for DP1, "" where there is one."""
    label = whole(lines["process"].cast(pa.string()))
    number_ = pc.struct_field(pc.extract_regex(label, r"\bDP(?P<n>\d+)"), "n")
    return pc.coalesce(labelled("engine {}", number_), pa.scalar(""))


def _failed(lines: pa.Table) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read failed transfers of single requests: who, and the room that both sides know."""
    told_: list[pa.Table] = []
    pattern = r"rank=(?P<rank>\d+) \S*?rid='(?P<text>[^']+)'"
    found, _ = phrases.read(lines, [Phrase("kv.transfer_failed", _TRANSFER, pattern)])
    rows = matched(
        lines,
        r"rank=\d+ \S*?rid='(?P<asked>[^']+)'(?: \S*?bootstrap_room=(?P<room>\d+))?"
        r"(?:.* with exception (?P<error>\w+))?",
    )
    if rows.num_rows:
        params = labelled('{"bootstrap_room": {}}', filled(rows["room"]))
        told_.append(told(rows, request=rows["asked"], params=params))
    return found, told_


def _requests(lines: pa.Table) -> tuple[list[pa.Table], list[pa.Table]]:
    """Read requests that came and ended; of what was asked and answered only the counts."""
    made = []
    came = matched(
        having(lines, "Receive: obj="), r"^Receive: obj=\w+\(.*?\brid='(?P<asked>[^']+)'"
    )
    made.append(requests(came, came["asked"], start_ns=came["time_ns"], status="running"))
    ended = matched(having(lines, "Finish: obj="), r"^Finish: obj=\w+\(.*?\brid='(?P<asked>[^']+)'")
    text = whole(ended["text"])
    aborted = pc.match_substring(text, "'type': 'abort'")
    made.append(
        requests(
            ended,
            ended["asked"],
            end_ns=ended["time_ns"],
            prompt_tokens=_last(text, "prompt_tokens"),
            output_tokens=_last(text, "completion_tokens"),
            status=pc.if_else(aborted, "aborted", "ok"),
        )
    )
    gone = matched(having(lines, " request. rid="), r"Abort .*request\. rid=(?P<asked>[\w-]+)")
    made.append(requests(gone, gone["asked"], end_ns=gone["time_ns"], status="aborted"))
    known = [told(rows, request=rows["asked"]) for rows in (came, ended, gone) if rows.num_rows]
    return made, known


def _last(text: pa.Array, key: str) -> pa.Array:
    """Give the last figure of that key: figures of the engine stand behind the answer."""
    found = pc.extract_regex(text, rf"^(?s:.*)'{key}': (?P<n>\d+)")
    return integers(pc.struct_field(found, "n"))
