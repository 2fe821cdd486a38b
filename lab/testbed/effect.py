"""What one episode measurably did: to steps, operators, collectives, requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from teller.lab.testbed import expected
from teller.lab.testbed.calls import Ints
from teller.lab.testbed.expected import Mask, Steps
from teller.lab.testbed.faults import Kind, kind_named
from teller.lab.testbed.held import against_peers
from teller.lab.testbed.inject import Done, Strike
from teller.lab.testbed.meetings import Floats, waited
from teller.lab.testbed.scene import Scene, mean
from teller.lab.testbed.struck import calls_struck, operators
from teller.lab.truth import OperatorTruth, StepTruth

SHARE: Final = 0.03  # of a step: below, a cause has no effect on it
FEWEST_FAR: Final = 2  # steps far outside what healthy ones do, where most are not touched
WAITING: Final = 0.5  # more requests that wait, on average: the queue grows
_JOINT: Final = ("all_reduce", "all_gather")  # in a broadcast, only the others wait for its root
LATER: Final = 1.5  # first tokens that take so many times as long


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one episode. `real` tells whether there was any."""

    real: bool
    steps: tuple[StepTruth, ...]
    operators: tuple[OperatorTruth, ...]
    measured: dict[str, Any]


def effect(done: Done, of: Scene) -> Effect:
    """Give what an episode did."""
    kind = kind_named(done.planned.kind)
    begin, end = _acted(done)
    during = (of.steps.end_ns > begin) & (of.steps.start_ns < end)
    share, usual = _shares(kind, done, of)
    bound = expected.noise_bound(usual, of.healthy, int(during.sum()))
    far = max(SHARE, float(np.percentile(usual[of.healthy], 99.5)))
    mean_share = mean(share[during])
    settled = _settled(share, usual, during, of.healthy)
    measured = {
        "first_step": _first(of.steps.number[during]), "last_step": _last(of.steps.number[during]),
        "steps": int(during.sum()), "base_steps": int(of.healthy.sum()),
        "affected_steps": int((during & (settled >= SHARE)).sum()),
        "direct_share": mean_share, "usual_share": round(bound, 4),
        **_lengths(of, during), **_queue(of, during, begin, end), **_meetings(of, begin, end),
    }  # fmt: skip
    gold = operators(kind, done, of, begin, end)
    if kind.culprit == "operator":
        measured |= calls_struck(done, of, during)
    if kind.known == "strikes":
        real = bool((share[during] >= SHARE).any())
    else:
        outside = int((share[during] > far).sum()) >= FEWEST_FAR
        real = (mean_share or 0.0) > max(SHARE, bound) or outside
    if kind.known == "queue":
        real = real or _queued(measured)
    rows = () if kind.known == "queue" else _rows(kind, done, of, during, settled)
    return Effect(real, rows, gold, measured)


def _acted(done: Done) -> tuple[int, int]:
    """Give when it acted: the strikes say it best."""
    if done.strikes:
        return min(s[0] for s in done.strikes), max(s[1] for s in done.strikes)
    return done.on_ns, done.clear_ns


def _shares(kind: Kind, done: Done, of: Scene) -> tuple[Floats, Floats]:
    """Give each step's direct excess as a share of what is expected, by the best there is to go by.

    The second is the same figure where nothing acts, which is below 0 as often as above.
    """
    if kind.known == "strikes":
        own = _overlap(done.strikes, of.steps, waited(of.met, done.planned.rank))
        return own / of.expected_ns, np.zeros(len(of.expected_ns))
    over = of.steps.length_ns - of.expected_ns
    if kind.known == "pure":
        over = _beyond(of, of.met.pure_ns)
    elif kind.known in ("held", "queue") and of.tp > 1:
        to_first = of.met.pure_ns - of.met.left_ns.max(axis=1)  # the last to leave is own time
        over = _beyond(of, to_first) + against_peers(of.own_step_ns, done.planned.rank, of.tp)
        over -= np.median(over[of.healthy])
    share: Floats = over / of.expected_ns
    return share, share


def _beyond(of: Scene, took_ns: Ints) -> Floats:
    """Give how much longer than expected the collectives of each step took, in ns."""
    beyond = took_ns - of.met_expected_ns
    at = np.searchsorted(of.steps.start_ns, of.met.arrived_ns, "right") - 1
    kept = at >= 0
    return np.bincount(at[kept], beyond[kept], minlength=len(of.steps.number)).astype(float)


def _settled(share: Floats, usual: Floats, during: Mask, healthy: Mask) -> Floats:
    """Give shares freed of noise: drawn to their mean by as much of their spread as is usual."""
    found = np.zeros(len(share))
    if during.any():
        center = share[during].mean()
        spread = max(share[during].var(), 1e-12)
        trust = max(0.0, 1 - usual[healthy].var() / spread)
        found[during] = np.maximum(0.0, center + trust * (share[during] - center))
    return found


def _overlap(strikes: Sequence[Strike], told: Steps, waits: tuple[Ints, Ints]) -> Floats:
    """Give how much of each step lies in strikes, but for the time that the rank waits anyway.

    Strikes that overlap count once.
    """
    spans = sorted((s[0], s[1]) for s in strikes)
    merged: list[list[int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    found = np.zeros(len(told.number))
    for start, end in merged:
        first, last = np.maximum(told.start_ns, start), np.minimum(told.end_ns, end)
        idle = np.interp(last, *waits) - np.interp(first, *waits) if len(waits[0]) else 0.0
        found += np.where(last > first, last - first - idle, 0.0)
    return np.maximum(found, 0.0)


def _queued(measured: dict[str, Any]) -> bool:
    """Tell whether requests waited more, or waited longer for their first token."""
    waiting, first = measured["waiting_requests"], measured["first_token_ms"]
    longer = first["healthy"] and first["during"] and first["during"] > LATER * first["healthy"]
    return bool(longer or waiting["during"] > waiting["healthy"] + WAITING)


def _rows(kind: Kind, done: Done, of: Scene, during: Mask, share: Floats) -> tuple[StepTruth, ...]:
    """Give a row for each rank and step that the cause met."""
    excess = share * of.expected_ns
    return tuple(
        StepTruth(
            rank=rank, step_index=int(of.steps.number[i]), direct_excess_ns=round(excess[i]),
            share=round(float(share[i]), 4),
            own=kind.known == "pure" or rank == done.planned.rank,
        )
        for i in np.flatnonzero(during)
        for rank in range(len(of.ranks))
    )  # fmt: skip


def _lengths(of: Scene, during: Mask) -> dict[str, Any]:
    took = of.steps.length_ns / 1e6
    if not during.any() or not of.healthy.any():
        return {}
    mine, usual = took[during], took[of.healthy]
    want = of.expected_ns[during] / 1e6
    area = expected.auc(mine, usual)
    return {
        "excess_share": round(float(mine.mean() / usual.mean() - 1), 4),
        "p50_ratio": round(float(np.median(mine) / np.median(usual)), 3),
        "auc": None if area is None else round(area, 3),
        "excess_share_at_equal_load": round(float(mine.sum() / want.sum() - 1), 4),
        "step_ms": {"healthy": mean(usual), "during": mean(mine)},
    }


def _queue(of: Scene, during: Mask, begin: int, end: int) -> dict[str, Any]:
    waiting = of.steps.columns["waiting"].astype(float)
    sent = np.array([one["sent"] * 1e9 for one in of.requests])
    first = np.array([one["ttft"] or np.nan for one in of.requests], float) * 1e3
    spans = of.steps.start_ns[of.healthy]
    mine = (sent >= begin) & (sent < end)
    # a request belongs to the healthy ones if a healthy step began just after it was sent
    after = np.searchsorted(spans, sent)
    near = spans[np.minimum(after, max(0, len(spans) - 1))] - sent if len(spans) else sent
    good = (near >= 0) & (near < 2e8) & ~mine
    told = of.ranks[0].ranges
    encodes = told.where(told.name == told.number("ApiServer.encode"))
    took, at = (encodes.end_ns - encodes.start_ns) / 1e6, encodes.start_ns
    within = (at >= begin) & (at < end)
    return {
        "encode_ms": {"healthy": mean(took[~within]), "during": mean(took[within])},
        "waiting_requests": {
            "healthy": mean(waiting[of.healthy]) or 0.0, "during": mean(waiting[during]) or 0.0,
        },
        "first_token_ms": {"healthy": _median(first[good]), "during": _median(first[mine])},
    }  # fmt: skip


def _meetings(of: Scene, begin: int, end: int) -> dict[str, Any]:
    """Give mean lateness by rank and mean pure time of what ranks do together, in µs."""
    joint = np.isin(of.met.op, [of.met.ops.index(op) for op in _JOINT if op in of.met.ops])
    during = joint & (of.met.arrived_ns >= begin) & (of.met.arrived_ns < end)
    step = np.searchsorted(of.steps.start_ns, of.met.arrived_ns, "right") - 1
    good = joint & (step >= 0) & of.healthy[np.maximum(step, 0)]
    pure = of.met.pure_ns / 1e3
    late = {}
    for rank in range(len(of.ranks)):
        took_part = of.met.late_ns[:, rank] >= 0
        us = of.met.late_ns[:, rank] / 1e3
        late[str(rank)] = {
            "healthy": mean(us[took_part & good]),
            "during": mean(us[took_part & during]),
        }
    return {"late_us": late,
            "pure_us": {"healthy": mean(pure[good]), "during": mean(pure[during])}}  # fmt: skip


def _median(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return round(float(np.median(known)), 3) if len(known) else None


def _first(values: Ints) -> int | None:
    return int(values.min()) if len(values) else None


def _last(values: Ints) -> int | None:
    return int(values.max()) if len(values) else None
