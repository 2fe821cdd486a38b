"""What an incident costs, in the words that a manager reads; nothing is guessed."""

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from teller.graph.finding import Finding
from teller.graph.incidents import Incident
from teller.ui import phrase
from teller.ui.desk import Place


@dataclass(frozen=True, slots=True)
class Lost:
    """Tokens a second that the latest stretch of an incident lost; None where that is not known."""

    tokens_per_s: float | None
    requests_over: int | None
    requests: int


def lost(place: Place, incident: Incident) -> Lost:
    """Give what the run in which it was seen last lost by it."""
    run = incident.latest.run.run
    summary = place.diagnosis(run).runs[0]
    return Lost(
        tokens_lost(place, incident.finding), summary.requests_over_target, summary.requests
    )


def tokens_lost(place: Place, finding: Finding) -> float | None:
    """Give tokens a second without the excess, less those with it, over the finding's steps."""
    if finding.first_step is None or finding.last_step is None or not finding.cost.excess_ns:
        return None
    ranks = finding.culprit.ranks or place.diagnosis(finding.run).runs[0].ranks
    if not ranks:
        return None
    steps = place.ask("rank_steps", run=finding.run, rank=ranks[0])
    return tokens_lost_in(steps, finding)


def tokens_lost_in(steps: pa.Table, finding: Finding) -> float | None:
    """Give the same of the steps of one rank, as `rank_steps` gives them."""
    rows = steps.select(["step_index", "start_ns", "end_ns", "token_count"]).to_pydict()
    index = np.array(rows["step_index"], np.int64)
    first, last = finding.first_step, finding.last_step
    if first is None or last is None:
        return None
    inside = (index >= first) & (index <= last)
    tokens = np.array([t or 0 for t in rows["token_count"]], np.float64)[inside]
    if not inside.any() or not tokens.sum():
        return None
    took = np.array(rows["end_ns"])[inside].max() - np.array(rows["start_ns"])[inside].min()
    left = took - finding.cost.excess_ns
    if left <= 0.02 * took:  # it stood still: what would have been is not known
        return float(tokens.sum() / took * 1e9) if took else None
    return float(tokens.sum() * 1e9 * (1 / left - 1 / took))


def day(epoch_ns: int) -> str:
    """Give a UTC time to the minute: "2026-11-30 12:03 UTC"."""
    said = phrase.clock(epoch_ns)
    return f"{said[:16]} UTC" if said.endswith("UTC") else said


def ago(epoch_ns: int, now_ns: int | None = None) -> str:
    """Give how long ago that was: "4 hours ago"."""
    seconds = ((time.time_ns() if now_ns is None else now_ns) - epoch_ns) / 1e9
    if seconds < 0:
        return "in the future: its clock is ahead"
    for size, unit in ((86_400 * 365, "year"), (86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{phrase.counted(int(seconds // size), unit)} ago"
    return "just now"


def gpu(seconds: float) -> str:
    """Give GPU time; nothing seen is said so."""
    return phrase.duration(seconds * 1e9) if seconds else "none seen"


def facts(
    place: Place, incident: Incident, now_ns: int | None = None
) -> list[tuple[str, str, str]]:
    """Give since when, who, and what it costs: what a card shows."""
    found = lost(place, incident)
    share = incident.latest.share
    rows = [
        ("Since", day(incident.since_epoch_ns), ago(incident.since_epoch_ns, now_ns)),
        ("Who", incident.culprit, ""),
        (
            "GPU time lost",
            gpu(incident.gpu_seconds),
            f"{phrase.share(share)} of the time" if share else "",
        ),
    ]
    if found.tokens_per_s:
        rows.append(
            ("Tokens lost", f"{phrase.figures(found.tokens_per_s)} a second", "while it acts")
        )
    if found.requests_over is not None and found.requests:
        rows.append(
            (
                "Requests over target",
                f"{found.requests_over:,} of {found.requests:,}",
                "in the last run",
            )
        )
    rows.append(("Seen in", phrase.counted(incident.run_count, "run"), _clean(incident)))
    return rows


def _clean(incident: Incident) -> str:
    count = incident.clean_runs
    return f"{phrase.counted(count, 'clean run')} since" if count else "not clean since"


def trend(incident: Incident) -> list[float]:
    """Give its share of the time in each run, in percent; 0 where it was not seen."""
    return [round(100 * one.share, 2) for one in incident.seen]


def table(found: list[Incident]) -> pa.Table:
    """Give the rows of the list of incidents."""
    moments = pa.timestamp("ms", "UTC")
    return pa.table({
        "severity": [[one.severity] for one in found], "what": [one.title for one in found],
        "who": [one.culprit for one in found], "deployment": [one.deployment for one in found],
        "state": [one.state for one in found],
        "since": pa.array([one.since_epoch_ns // 1_000_000 for one in found], moments),
        "last": pa.array([one.last_epoch_ns // 1_000_000 for one in found], moments),
        "trend": [trend(one) for one in found], "runs": [one.run_count for one in found],
        "gpu_seconds": [one.gpu_seconds for one in found],
    })  # fmt: skip
