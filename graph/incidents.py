"""Incidents: findings of one class and culprit in one deployment, from first seen until clean.

Nothing of them is stored but the notes: they follow from the findings of all runs, so that a
rebuilt graph or a new diagnosis shows the same ones. See `docs/adr/019-incidents-from-findings.md`.
"""

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from teller.errors import BadUsage
from teller.graph import ids, judgement
from teller.graph.archive import RunEntry
from teller.graph.finding import SEVERITIES, Culprit, Finding, Severity
from teller.graph.journal import Note
from teller.graph.schema import INCIDENT
from teller.graph.targets import SETTINGS

CLEAN_RUNS: Final = 3  # in a row, after which an incident is closed

_FEW: Final = 4  # ranks that tell apart where an operator is slow

State = Literal["open", "acknowledged", "resolved", "closed"]
STATES: Final[tuple[State, ...]] = ("open", "acknowledged", "resolved", "closed")


@dataclass(frozen=True, slots=True)
class Watched:
    """One run of a deployment: when it was recorded, and what was found in it."""

    run: int
    name: str
    deployment: str
    time_epoch_ns: int  # of its start; when it was read, where it has no clock
    judged: bool  # a run that was not diagnosed closes no incident
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What an incident was in one run; without a finding it was clean, or was not judged.

    A run may show it several times, each with its own stretch of steps; the weightiest is first.
    """

    run: Watched
    findings: tuple[Finding, ...] = ()

    @property
    def finding(self) -> Finding | None:
        """Give the weightiest finding."""
        return self.findings[0] if self.findings else None

    @property
    def gpu_seconds(self) -> float:
        """Give the GPU time that all its findings cost."""
        return sum(one.cost.gpu_seconds for one in self.findings)

    @property
    def share(self) -> float:
        """Give the share of the run's time that all its findings cost."""
        return min(1.0, sum(one.cost.share for one in self.findings))


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings of one class and culprit. `since` and the costs are of its latest stretch."""

    id: int
    deployment: str
    klass: str
    culprit: str
    title: str
    state: State
    severity: Severity
    since_epoch_ns: int
    last_epoch_ns: int
    seen: tuple[Seen, ...]  # every run of the deployment from the first one on, oldest first
    clean_runs: int  # judged runs since it was seen last
    gpu_seconds: float
    excess_ns: int
    notes: tuple[Note, ...] = field(default=())

    @property
    def latest(self) -> Seen:
        """Give the last run in which it was seen."""
        return next(one for one in reversed(self.seen) if one.finding is not None)

    @property
    def finding(self) -> Finding:
        """Give the latest finding."""
        found = self.latest.finding
        assert found is not None
        return found

    @property
    def run_count(self) -> int:
        """Give the number of runs in which it was seen."""
        return sum(one.finding is not None for one in self.seen)


def gather(
    runs: Iterable[Watched], notes: Sequence[Note] = (), clean_runs: int = CLEAN_RUNS
) -> list[Incident]:
    """Give the incidents of all deployments: open ones first, the gravest and costliest first."""
    by_deployment: dict[str, list[Watched]] = defaultdict(list)
    for run in runs:
        by_deployment[run.deployment].append(run)
    said: dict[int, list[Note]] = defaultdict(list)
    for note in notes:
        said[note.incident].append(note)
    found = [
        _incident(key, whole, said, clean_runs)
        for deployment in by_deployment
        for whole in [sorted(by_deployment[deployment], key=lambda r: (r.time_epoch_ns, r.run))]
        for key in dict.fromkeys(_key(f) for r in whole for f in r.findings if counts(f))
    ]
    return sorted(found, key=_weight)


def counts(finding: Finding) -> bool:
    """Tell whether a finding is an incident: a fault, and not a benign explanation."""
    return judgement.claims(finding) == "fault" and judgement.reaches(finding, "low")


def blamed(culprit: Culprit) -> str:
    """Give the culprit by its kind and names: "rank 3", "operator o_proj on rank 1"."""
    names: Mapping[str, Sequence[Any]] = {
        "rank": culprit.ranks, "host": culprit.hosts, "device": culprit.devices,
        "link": [f"{a} → {b}" for a, b in culprit.links], "group": culprit.groups,
        "operator": culprit.operators, "component": culprit.components,
        "request": culprit.requests,
    }  # fmt: skip
    named = ", ".join(map(str, names.get(culprit.kind, ())))
    if culprit.kind == "operator" and 0 < len(culprit.ranks) <= _FEW:
        named += f" on rank {', '.join(map(str, culprit.ranks))}"
    return f"{culprit.kind} {named}" if named else "nobody"


def incident_id(deployment: str, klass: str, culprit: str) -> int:
    """Give the id of an incident: the same whatever else was found."""
    return ids.node_id("", INCIDENT.label, deployment, klass, culprit)


def clean_runs_of(folder: Path) -> int:
    """Give `clean_runs` of `[incidents]` in a workspace's settings, or the usual number."""
    try:
        said = tomllib.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return CLEAN_RUNS
    except tomllib.TOMLDecodeError as err:
        raise BadUsage(f"{folder / SETTINGS}: {err}") from err
    table = said.get("incidents", {})
    wanted = table.get("clean_runs", CLEAN_RUNS) if isinstance(table, dict) else None
    if not isinstance(wanted, int) or not 1 <= wanted <= 1000:
        raise BadUsage(f"{folder / SETTINGS}: [incidents] clean_runs is a number from 1 to 1000")
    return wanted


def watched(runs: pa.Table, findings: pa.Table, judged: Mapping[int, bool]) -> list[Watched]:
    """Give runs with findings: of the queries `runs` and `all_findings`, and who was judged.

    `judged` holds a run with whether its diagnosis is kept; one with findings was judged.
    """
    by_run: dict[int, list[Finding]] = defaultdict(list)
    for row in findings.select(["run_id", "detail"]).to_pylist():
        if row["detail"]:
            by_run[row["run_id"]].append(Finding.from_json(json.loads(row["detail"])))
    return [
        Watched(
            row["id"], row["name"] or str(row["id"]), row["deployment"] or "",
            row["t0_epoch_ns"] or 0, judged.get(row["id"], False) or row["id"] in by_run,
            judgement.ordered(by_run[row["id"]]),
        )
        for row in runs.to_pylist()
    ]  # fmt: skip


def timed(run: Watched, entry: RunEntry | None) -> Watched:
    """Give the run with the time when it was read, where its files have no clock."""
    if run.time_epoch_ns > 0 or entry is None:
        return run
    return replace(run, time_epoch_ns=entry.created_epoch_ns)


def _key(finding: Finding) -> tuple[str, str]:
    return finding.klass, blamed(finding.culprit)


def _incident(
    key: tuple[str, str], runs: Sequence[Watched], said: Mapping[int, list[Note]], clean_runs: int
) -> Incident:
    klass, culprit = key
    seen = [
        Seen(run, tuple(f for f in run.findings if counts(f) and _key(f) == key)) for run in runs
    ]
    first = next(place for place, one in enumerate(seen) if one.finding is not None)
    stretch, clean = _latest_stretch(seen[first:], clean_runs)
    last = stretch[-1]
    assert last.finding is not None
    number = incident_id(last.run.deployment, klass, culprit)
    notes = tuple(said.get(number, ()))
    return Incident(
        id=number, deployment=last.run.deployment, klass=klass, culprit=culprit,
        title=last.finding.title, state=_state(notes, stretch, clean >= clean_runs),
        severity=last.finding.severity, since_epoch_ns=_moment(stretch[0]),
        last_epoch_ns=_moment(last, ends=True), seen=tuple(seen[first:]), clean_runs=clean,
        gpu_seconds=sum(one.gpu_seconds for one in stretch),
        excess_ns=sum(f.cost.excess_ns for one in stretch for f in one.findings), notes=notes,
    )  # fmt: skip


def _latest_stretch(seen: Sequence[Seen], clean_runs: int) -> tuple[list[Seen], int]:
    """Give where it was seen since it was last closed, and the clean runs behind that."""
    stretch: list[Seen] = []
    clean = 0
    for one in seen:
        if one.finding is not None:
            stretch = [one] if clean >= clean_runs else [*stretch, one]
            clean = 0
        elif one.run.judged:
            clean += 1
    return stretch, clean


def _state(notes: Sequence[Note], stretch: Sequence[Seen], is_clean: bool) -> State:
    """Give where it stands: what was seen after it was resolved is open again."""
    acts = [note for note in notes if note.act != "note"]
    last = acts[-1] if acts else None
    if last is not None and last.act == "resolve":
        if stretch[-1].run.time_epoch_ns <= last.time_epoch_ns:
            return "resolved"
        last = None
    if is_clean:
        return "closed"
    begun = stretch[0].run.time_epoch_ns
    if last is not None and last.act == "acknowledge" and last.time_epoch_ns >= begun:
        return "acknowledged"
    return "open"


def _moment(one: Seen, *, ends: bool = False) -> int:
    times = [(f.end_ns if ends else f.start_ns) or 0 for f in one.findings]
    return one.run.time_epoch_ns + (max(times) if ends else min(times))


def _weight(incident: Incident) -> tuple[float, ...]:
    return (
        STATES.index(incident.state), -SEVERITIES.index(incident.severity),
        -incident.gpu_seconds, -incident.excess_ns, -incident.last_epoch_ns, incident.id,
    )  # fmt: skip
