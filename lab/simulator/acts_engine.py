"""What causes in operators, the engine and its queue do to a step."""

from typing import Final

from teller.lab.simulator.acting import MS, Now, act
from teller.lab.simulator.causes import Cause
from teller.lab.simulator.effects import Effects, Pause


@act("slow_operator")
def _slow_operator(cause: Cause, now: Now, out: Effects) -> None:
    out.role(cause.role)[:] *= cause.severity
    if cause.number % 3 == 0:
        out.fallback = out.fallback | {cause.role}


def _extra(cause: Cause, now: Now, out: Effects) -> None:
    graph = now.scene.mode != "eager"
    layers = now.scene.model.layers
    role = cause.role if cause.role in _INSIDE else "attention"
    if graph:  # nothing can be put into a graph: it is before or after
        role = "prepare" if cause.layer % 2 else "sample"
    where = tuple(
        (cause.spec.kind, -1 if graph else (cause.layer + 5 * i) % layers, role)
        for i in range(max(1, min(round(cause.severity), 4 if graph else 64)))
    )
    out.extras = out.extras + where
    out.tags[cause.spec.kind] = frozenset(range(out.ranks))


_INSIDE: Final = ("attention", "qkv", "o_proj", "gate_up", "down", "norm", "experts_up")
for _kind in ("hidden_sync", "device_allocation", "blocking_copy"):
    act(_kind)(_extra)


@act("graph_fallback")
def _graph_fallback(cause: Cause, now: Now, out: Effects) -> None:
    out.eager = True


@act("scheduler_overhead")
def _scheduler(cause: Cause, now: Now, out: Effects) -> None:
    out.schedule_ns += cause.severity * MS * now.random.uniform(0.7, 1.3)


@act("log_storm")
def _storm(cause: Cause, now: Now, out: Effects) -> None:
    out.schedule_ns += now.random.exponential(cause.severity) * MS


@act("storage_stall")
def _storage(cause: Cause, now: Now, out: Effects) -> None:
    if now.step == cause.first:
        out.schedule_ns += cause.severity * MS


@act("compile_in_serving")
def _compile(cause: Cause, now: Now, out: Effects) -> None:
    if now.step == cause.first:
        kind = cause.spec.kind
        out.extras = (*out.extras, (kind, -1, "prepare"))
        out.tags[kind] = frozenset(range(out.ranks))
        for place in now.scene.places:
            ns = cause.severity * MS * now.random.uniform(0.95, 1.1)
            out.pauses.append(Pause(place.rank, 0.0, ns, kind))


@act("kv_preemption")
def _preemption(cause: Cause, now: Now, out: Effects) -> None:
    out.blocks = cause.severity


@act("admission_blocked")
def _admission(cause: Cause, now: Now, out: Effects) -> None:
    out.giant = cause.severity if now.step == cause.first else 0.0
    out.held = now.step < cause.last


@act("tokenizer_stall")
def _tokenizer(cause: Cause, now: Now, out: Effects) -> None:
    out.queue_ns += cause.severity * MS * now.random.uniform(0.6, 1.4)


@act("expert_imbalance")
def _experts(cause: Cause, now: Now, out: Effects) -> None:
    for role in ("experts_up", "experts_down"):
        factors = out.tokens(role)
        others = [p.rank for p in now.scene.places if p.rank != cause.rank]
        factors[cause.rank] *= cause.severity * now.random.uniform(0.9, 1.1)
        factors[others] *= max(0.2, 1 - (cause.severity - 1) / max(1, len(others)))


@act("pipeline_imbalance")
def _stages(cause: Cause, now: Now, out: Effects) -> None:
    stage = now.scene.places[cause.rank].pp
    for place in now.scene.places:
        if place.pp == stage:
            out.device[place.rank] *= cause.severity
            out.memory[place.rank] *= cause.severity


@act("load_growth")
def _load(cause: Cause, now: Now, out: Effects) -> None:
    out.arrivals = cause.severity


@act("verbose_log")
def _verbose(cause: Cause, now: Now, out: Effects) -> None:
    """Nothing waits for it."""


@act("rank_asymmetric_warmup")
def _warmup(cause: Cause, now: Now, out: Effects) -> None:
    if now.step == cause.first:
        kind = "compile_in_serving"
        out.extras = (*out.extras, (kind, -1, "prepare"))
        out.tags[kind] = out.tags.get(kind, frozenset()) | {cause.rank}
        out.pauses.append(Pause(cause.rank, 0.0, cause.severity * MS, kind))


@act("prefill_interference")
def _interference(cause: Cause, now: Now, out: Effects) -> None:
    out.token_limit *= cause.severity


@act("batch_imbalance")
def _unequal(cause: Cause, now: Now, out: Effects) -> None:
    out.skew = (now.scene.places[cause.rank].dp, cause.severity)
