"""The truth of a life: what was meant, held to what it measurably did."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from teller.lab.testbed import expected
from teller.lab.testbed.effect import Effect, effect
from teller.lab.testbed.faults import Kind, kind_named
from teller.lab.testbed.inject import Done
from teller.lab.testbed.life import Lived
from teller.lab.testbed.meetings import meetings
from teller.lab.testbed.recorded import Recorded
from teller.lab.testbed.scene import Scene, scene
from teller.lab.testbed.scheduler import STEP_COLUMNS
from teller.lab.testbed.settings import NAME, VERSION
from teller.lab.truth import Culprit, Episode, Severity, Truth, Window

NO_EFFECT: Final = "no_effect"
QUIET_WAIT: Final = 0.2  # share of time that ranks wait for a CPU on a quiet machine
QUIET_TAIL: Final = 6  # the slowest 1 % of collectives, in units of the median
QUIET_SPREAD: Final = 0.35  # 95 % of healthy steps lie within this share of what is expected


def truth_of(life: Lived, ranks: Sequence[Recorded], run: str, root_seed: int) -> Truth:
    """Give the truth of a life: times are ns since its first recorded event."""
    zero = min(int(one.stream.events["start_ns"].to_numpy().min()) for one in ranks)
    rows = msgspec.json.decode((life.control / "steps.json").read_bytes())
    met = meetings(ranks)
    windows = expected.healthy_windows(
        [(one.ask_ns, one.off_ns) for one in life.done],
        life.load_ns, max(row[2] for row in rows),
    )  # fmt: skip
    lines = (life.control / "client.jsonl").read_bytes().splitlines()
    requests = [msgspec.json.decode(line) for line in lines]
    of = scene(ranks, rows, STEP_COLUMNS, windows, requests, met, life.setup.service.tp)
    episodes = [
        _episode(one, effect(one, of), life, links, zero)
        for one, links in zip(life.done, life.paths, strict=True)
    ]
    return Truth(
        run=run,
        generator={"name": NAME, "version": VERSION},
        root_seed=root_seed,
        episodes=tuple(episodes),
        healthy_windows=tuple(Window(a - zero, b - zero) for a, b in windows),
        extra={
            "t0_epoch_ns": zero, "setup": msgspec.to_builtins(life.setup),
            "steps": len(rows), "certificate": certificate(life, of, windows),
        },
    )  # fmt: skip


def certificate(life: Lived, of: Scene, windows: list[tuple[int, int]]) -> dict[str, Any]:
    """Give how noisy the life was where nothing was done, and whether it may be trusted."""
    ratio = (of.steps.length_ns / of.expected_ns - 1)[of.healthy]
    low, high = np.percentile(ratio, [5, 95])
    good = expected.inside(of.met.arrived_ns, windows)
    pure = of.met.pure_ns[good] / 1e3
    waits = _waits(life, windows)
    usual, late = np.percentile(pure, [50, 99])
    quiet = bool(
        max(waits, default=0) <= QUIET_WAIT
        and max(-low, high) <= QUIET_SPREAD
        and late <= QUIET_TAIL * usual
    )
    return {
        "quiet": quiet, "healthy_steps": int(of.healthy.sum()),
        "step_ms_p50": round(float(np.median(of.steps.length_ns[of.healthy])) / 1e6, 3),
        "step_share_p5": round(float(low), 4), "step_share_p95": round(float(high), 4),
        "pure_us_p50": round(float(usual), 1), "pure_us_p99": round(float(late), 1),
        "cpu_wait_share": waits, "real_time": life.setup.real_time, "net": life.setup.net,
        **life.pressure,
    }  # fmt: skip


def _waits(life: Lived, windows: list[tuple[int, int]]) -> list[float]:
    """Give for each rank the share of healthy time in which its threads waited for a CPU."""
    lines = (life.control / "metrics.jsonl").read_bytes().splitlines()
    moments = [msgspec.json.decode(line) for line in lines]
    waited, past = [0.0] * len(life.pids), 0
    for start, end in windows:
        kept = [m for m in moments
                if start <= m["t"] < end and len(m["nodes"]) == len(life.pids)]  # fmt: skip
        if len(kept) < 2:
            continue
        past += kept[-1]["t"] - kept[0]["t"]
        for rank in range(len(life.pids)):
            a, b = kept[0]["nodes"][rank]["runq_ns"], kept[-1]["nodes"][rank]["runq_ns"]
            waited[rank] += max(0, b - a)
    return [round(one / past, 4) for one in waited] if past else []


def _episode(
    done: Done, did: Effect, life: Lived, links: Sequence[tuple[str, str]], zero: int
) -> Episode:
    kind = kind_named(done.planned.kind)
    meant = _culprit(kind, done, life, links)
    extra: dict[str, Any] = {
        "parameters": done.planned.parameters, "rank": done.planned.rank,
        "known": kind.known, "ask_ns": done.ask_ns - zero, "off_ns": done.off_ns - zero,
    }  # fmt: skip
    real = did.real or kind.benign
    if not real:
        extra["intended"] = {"class": kind.class_, "culprit": msgspec.to_builtins(meant)}
    return Episode(
        class_=kind.class_ if real else NO_EFFECT,
        fault=kind.name,
        culprit=meant if real else Culprit(kind="none"),
        severity=Severity(done.planned.severity, kind.law.unit),
        intended=Window(done.on_ns - zero, done.clear_ns - zero),
        steps=did.steps,
        operators=did.operators if real and not kind.benign else (),
        benign=kind.benign or not real,
        measured=did.measured,
        extra=extra,
    )


def _culprit(kind: Kind, done: Done, life: Lived, links: Sequence[tuple[str, str]]) -> Culprit:
    if kind.culprit == "none":
        return Culprit(kind="none")
    rank = done.planned.rank
    struck = {what: None for *_, what in done.strikes} if kind.culprit == "operator" else {}
    return Culprit(
        kind=kind.culprit, ranks=(rank,), hosts=(life.hosts[rank],), links=tuple(links),
        operators=tuple(struck), components=(kind.component,) if kind.component else (),
    )  # fmt: skip
