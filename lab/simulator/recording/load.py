"""What an engine knew of its load at a moment, out of steps, requests and gauges."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from teller.lab.simulator.happened import Happened, Small
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.seen import Flags

KNOWN: Final = ("running", "waiting", "kv_usage", "preemptions")


@dataclass(frozen=True, slots=True)
class Load:
    """Figures of one replica."""

    running: int
    waiting: int
    kv_usage: float  # share in use
    preemptions: int  # so far


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of an interval."""

    prompt: int
    output: int
    steps: int


def head_rank(happened: Happened, replica: int) -> int:
    """Give the first rank of a replica, whose steps the engine counts."""
    return next(p.rank for p in happened.scene.places if p.dp == replica)


def load(happened: Happened, replica: int, time_ns: int) -> Load:
    """Give the figures of a moment: of gauges where there are some, else worked out."""
    own = [r for r in happened.requests if r.replica == replica]
    worked = {
        "running": sum(_between(r.scheduled_ns, time_ns, r.end_ns) for r in own),
        "waiting": sum(_between(r.queued_ns, time_ns, r.scheduled_ns) for r in own),
        "kv_usage": _usage(happened, replica, time_ns),
        "preemptions": sum(r.preemptions for r in own if 0 <= r.scheduled_ns <= time_ns),
    }
    gauges = happened.gauges
    at = int(np.searchsorted(gauges.time_ns, time_ns, "right")) - 1
    for name in KNOWN:
        column = gauges.columns.get(f"engine {replica} {name}")
        if column is not None and len(column) and at >= 0:
            worked[name] = float(column[at])
    return Load(round(worked["running"]), round(worked["waiting"]), float(worked["kv_usage"]),
                round(worked["preemptions"]))  # fmt: skip


def _between(start: int, moment: int, end: int) -> bool:
    return 0 <= start <= moment and (end < 0 or moment < end)


def _usage(happened: Happened, replica: int, time_ns: int) -> float:
    steps = happened.steps[head_rank(happened, replica)]
    at = int(np.searchsorted(steps.start_ns, time_ns, "right")) - 1
    load_ = happened.scene.load
    room = max(load_.kv_blocks * load_.block_tokens, 1)
    return min(1.0, float(steps.attended[at]) / room) if at >= 0 else 0.0


def tokens(happened: Happened, replica: int, start_ns: int, end_ns: int) -> Tokens:
    """Give the tokens of the steps that began in an interval."""
    steps = happened.steps[head_rank(happened, replica)]
    inside = (steps.start_ns >= start_ns) & (steps.start_ns < end_ns)
    return Tokens(_sum(steps.context_tokens, inside), _sum(steps.generation_tokens, inside),
                  int(inside.sum()))  # fmt: skip


def _sum(values: Small, some: Flags) -> int:
    return int(values[some].sum())


def requests_logged(happened: Happened, recording: Recording) -> bool:
    """Tell whether the log is to have lines of requests: notes may have them already."""
    return recording.requests_logged and all(n.kind != "request_added" for n in happened.notes)
