"""What an engine writes into the name of a step: its number, phase, requests and tokens."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

VLLM: Final = "vllm"
SGLANG: Final = "sglang"
TRTLLM: Final = "trtllm"
PROFILER: Final = "profiler_step"
ITERATION: Final = "iteration"

PREFILL: Final = "prefill"
DECODE: Final = "decode"
MIXED: Final = "mixed"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class StepName:
    """What one name says; None where it does not say. `operator` is the name without numbers."""

    engine: str  # vllm, sglang, trtllm, profiler_step, iteration
    operator: str
    index: int | None = None
    phase: str = UNKNOWN
    batch_size: int | None = None
    token_count: int | None = None
    context_tokens: int | None = None


# Every step name matches this, and few others do; written for RE2 as well, to look over a column.
HINT: Final = (
    r"(?:^|[ ,:])execute_(?:\d+_)?(?:context|model|new)|^step\[|^run_batch |^ProfilerStep"
    r"|^(?:\[Executor\] )?_forward_step|^executeStep|(?i:(?:iteration|iter|step)[ _#=:]*\d+$)"
)


_TOO_LARGE: Final = re.compile(r"\d{16}")  # no engine counts that far, and no column holds more


def parse(name: str) -> StepName | None:
    """Give what a step's name says; None for a name that is not a step's."""
    if _TOO_LARGE.search(name):
        return None
    for pattern, read in _GRAMMARS:
        found = pattern.match(name)
        if found:
            return read(found)
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _phase(context: int, generation: int) -> str:
    if context and generation:
        return MIXED
    if context:
        return PREFILL
    return DECODE if generation else UNKNOWN


def _context_generation(m: re.Match[str]) -> StepName:
    contexts, generations = int(m["ctx"]), int(m["gen"])
    tokens = attended = None
    if m["ctx_tokens"] is not None and m["gen_tokens"] is not None:
        tokens = int(m["ctx_tokens"]) + int(m["gen_tokens"])
    elif m["ctx_sq"] is not None and m["gen_sq"] is not None:
        tokens = int(m["ctx_sq"]) + int(m["gen_sq"])
        attended = int(m["ctx_sk"]) + int(m["gen_sk"])
    return StepName(
        VLLM,
        "execute_context_generation",
        _number(m["before"] or m["after"]),
        _phase(contexts, generations),
        contexts + generations,
        tokens,
        attended,
    )


def _new_cached(m: re.Match[str]) -> StepName:
    new, cached = int(m["new"]), int(m["cached"])
    return StepName(
        VLLM,
        "execute_new_cached",
        _number(m["before"] or m["after"]),
        _phase(new, cached),
        new + cached,
    )


def _execute_model(m: re.Match[str]) -> StepName:
    return StepName(VLLM, "execute_model", _number(m["before"] or m["after"]))


# a forward mode that is not here (idle, dummy …) leaves the phase unknown
_MODES: Final = {
    "EXTEND": PREFILL,
    "SPLIT_PREFILL": PREFILL,
    "PREFILL": PREFILL,
    "DRAFT_EXTEND": PREFILL,
    "DRAFT_EXTEND_V2": PREFILL,
    "DECODE": DECODE,
    "TARGET_VERIFY": DECODE,
    "MIXED": MIXED,
}


def _sglang(m: re.Match[str]) -> StepName:
    mode = m["mode"].upper()
    batch = _number(m["bs"])
    # a decode step computes one token a request; speculative modes have names of their own
    tokens = _number(m["toks"]) if m["toks"] or mode != "DECODE" else batch
    operator = f"step[{mode}]" if m["form"] == "step[" else f"run_batch {mode.lower()}"
    return StepName(
        SGLANG,
        operator,
        _number(m["index"]),
        _MODES.get(mode, UNKNOWN),
        batch,
        tokens,
    )


def _trtllm(m: re.Match[str]) -> StepName:
    contexts, generations = int(m["ctx"] or 0), int(m["gen"] or 0)
    known = m["ctx"] is not None
    tokens = int(m["toks"]) + generations if m["toks"] else None
    if tokens is None and known and not contexts:
        tokens = generations
    return StepName(
        TRTLLM,
        m["form"],
        _number(m["index"]),
        _phase(contexts, generations),
        contexts + generations if known else None,
        tokens,
    )


def _profiler(m: re.Match[str]) -> StepName:
    return StepName(PROFILER, "ProfilerStep", _number(m["index"]))


def _iteration(m: re.Match[str]) -> StepName:
    before = (m["word"] or "").strip(" _.")
    phase = before.lower() if before.lower() in (PREFILL, DECODE, MIXED) else UNKNOWN
    operator = f"{m['word'] or ''}{m['noun']}"
    return StepName(ITERATION, operator, int(m["index"]), phase)


_AFTER: Final = r"(?:[ ,]+step[= #]+(?P<after>\d+))?\s*$"
_BEFORE: Final = r"^(?:step[= #]+(?P<before>\d+)[ ,:]+)?"
_GRAMMARS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], StepName]], ...]] = (
    (
        re.compile(
            _BEFORE + r"execute(?:_\d+)?_context_(?P<ctx>\d+)"
            r"\((?:(?P<ctx_tokens>\d+)|sq(?P<ctx_sq>\d+)sk(?P<ctx_sk>\d+)\w*)?\)"
            r"_generation_(?P<gen>\d+)"
            r"\((?:(?P<gen_tokens>\d+)|sq(?P<gen_sq>\d+)sk(?P<gen_sk>\d+)\w*)?\)" + _AFTER
        ),
        _context_generation,
    ),
    (
        re.compile(_BEFORE + r"execute_new_(?P<new>\d+)_cached_(?P<cached>\d+)" + _AFTER),
        _new_cached,
    ),
    (re.compile(_BEFORE + r"execute_model" + _AFTER), _execute_model),
    (
        re.compile(
            r"^(?P<form>step\[)(?P<mode>[A-Z]\w*)(?:[^\]]*?\bbs=(?P<bs>\d+))?"
            r"(?:[^\]]*?\btoks=(?P<toks>\d+))?[^\]]*\](?:\s+step[= #]+(?P<index>\d+))?\s*$"
        ),
        _sglang,
    ),
    (
        re.compile(
            r"^(?P<form>run_batch) (?P<mode>\w+)(?: bs=(?P<bs>\d+))?(?: toks=(?P<toks>\d+))?"
            r"(?: step=(?P<index>\d+))?\s*$"
        ),
        _sglang,
    ),
    (
        re.compile(
            r"^(?:\[Executor\] )?(?P<form>_forward_step|executeStep)"
            r"(?: (?P<index>\d+)(?=:|\s*$))?:?(?:\s*(?P<ctx>\d+) ctx reqs"
            r"(?:, (?P<toks>\d+) ctx tokens)?(?:, (?P<gen>\d+) gen reqs)?.*)?$"
        ),
        _trtllm,
    ),
    (re.compile(r"^ProfilerStep[#*]?(?P<index>\d+)?\s*$"), _profiler),
    (
        re.compile(
            r"^(?!capture)(?P<word>[A-Za-z]+[ _.])?(?P<noun>(?i:iteration|iter|step))"
            r"[ _#=:]*(?P<index>\d+)$"
        ),
        _iteration,
    ),
)
