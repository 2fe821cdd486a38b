"""Apply rules to a run in a store: candidates, their episodes, and findings with evidence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from teller.errors import BadUsage
from teller.graph import ids
from teller.graph.classes import class_named
from teller.graph.finding import SEVERITIES, Cost, Culprit, Evidence, Finding, Severity
from teller.models import episodes
from teller.models.baseline import compared
from teller.models.case import Case, Row
from teller.models.rule import RULESET, EpisodeQuery, Rule, Shown, Usual
from teller.models.wording import say

PLACE_MASK: Final = (1 << ids.PLACE_BITS) - 1
FEW_STEPS: Final = 8  # an episode shorter than this is measured against the whole run
SHARES: Final[tuple[tuple[float, Severity], ...]] = (
    (0.5, "critical"),
    (0.15, "high"),
    (0.03, "medium"),
    (0.01, "low"),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that a rule found, with its episode where there is one."""

    rule: Rule
    row: Row
    episode: episodes.Episode | None


@dataclass(frozen=True, slots=True)
class Ground:
    """What a finding's words were filled from: rows by evidence and objection of the rule.

    `evidence` has, in the order of the finding's evidence, the number of the rule's query with the
    row that it gave; `against` likewise, in the order of what is said against it.
    """

    rule: Rule
    row: Row
    evidence: tuple[tuple[int, Row], ...]
    against: tuple[tuple[int, Row], ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """What one rule gives in a run: the rows of its query, the findings, and what each rests on."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    grounds: tuple[Ground, ...] = ()


def apply(rule: Rule, case: Case) -> Applied:
    """Ask what one rule finds in a run."""
    found: dict[tuple[object, ...], Candidate] = {}
    rows = list(_rows(rule, case))
    for row, episode in rows:
        known = _completed(dict(rule.thresholds) | row, case)
        for candidate in _candidates(rule, known, episode, case):
            who = tuple(str(candidate.row.get(c)) for c in rule.culprit)
            when = candidate.row.get("first_step"), candidate.row.get("last_step")
            found.setdefault((who, when), candidate)  # two episodes may lead to one
    made = [_finding(candidate, case) for candidate in found.values()]
    findings, grounds = tuple(f for f, _ in made), tuple(g for _, g in made)
    return Applied(tuple(row for row, _ in rows), findings, grounds)


def _rows(rule: Rule, case: Case) -> Iterator[tuple[Row, episodes.Episode | None]]:
    """Give the rule's rows: of the whole run, of each episode, or compared with a healthy run."""
    if rule.compare is not None:
        yield from ((row, None) for row in compared(rule, case))
    elif rule.each == "episode":
        for known, episode in case.episodes:
            for row in case.rows(rule.find, dict(rule.thresholds) | known):
                yield known | row, episode
    elif rule.usual is not None:
        for usual in _usual(rule.usual, rule, case):
            for row in case.rows(rule.find, dict(rule.thresholds) | usual):
                yield usual | row, None
    else:
        yield from ((row, None) for row in case.rows(rule.find, rule.thresholds))


def _usual(asked: Usual, rule: Rule, case: Case) -> Iterator[Row]:
    """Give what the healthy run says, each column as `usual_COLUMN`."""
    if case.baseline is not None:
        for row in Case(case.store, case.baseline).rows(asked.cypher, rule.thresholds):
            yield {f"usual_{name}": value for name, value in row.items()}


def _completed(row: Row, case: Case) -> Row:
    """Add host and device of the rank, or of the ranks, that the row names."""
    rank = row.get("rank")
    known = [case.ranks[r] for r in (rank if isinstance(rank, list) else [rank]) if r in case.ranks]
    if known and isinstance(rank, list):
        hosts = list(dict.fromkeys(k["host"] for k in known))
        row = {"host": hosts, "device": [k["device"] for k in known if k["device"]]} | row
    elif known:
        row = {"host": known[0]["host"], "device": known[0]["device"]} | row
    return row | {"rank_count": len(case.ranks)}


def _candidates(
    rule: Rule, row: Row, episode: episodes.Episode | None, case: Case
) -> Iterator[Candidate]:
    """Give the candidate with its episode: the rule's own, else the one it comes from."""
    if rule.episode is None:
        yield Candidate(rule, row | {"excess_ns": episode.excess_ns} if episode else row, episode)
        return
    steps = case.rows(rule.episode.cypher, row)
    series = [s["step_index"] for s in steps], [s["excess_ns"] for s in steps]
    for own in episodes.find_all(*series):
        if not _stands(own, rule.episode, len(steps)):
            continue
        if episode is not None and (own.last < episode.first or own.first > episode.last):
            continue
        inside = [s for s in steps if own.first <= s["step_index"] <= own.last]
        yield Candidate(
            rule,
            row
            | {
                "first_step": own.first,
                "last_step": own.last,
                "step_count": len(own.steps),
                "level_ns": own.level_ns,
                "excess_ns": own.excess_ns,
                "start_ns": min(s["start_ns"] for s in inside),
                "end_ns": max(s["end_ns"] for s in inside),
            },
            own,
        )


def _stands(own: episodes.Episode, asked: EpisodeQuery, steps: int) -> bool:
    """Tell whether an episode is what the rule means."""
    return (
        len(own.steps) >= asked.min_steps
        and own.density >= asked.min_density
        and len(own.steps) <= asked.max_cover * steps
    )


def _finding(one: Candidate, case: Case) -> tuple[Finding, Ground]:
    cost = _cost(one, case)
    row = one.row | {"share": cost.share}
    shown = [
        (number, told, said)
        for number, asked in enumerate(one.rule.evidence)
        for told, said in _evidence(asked, row, case)
    ]
    asked = ((n, case.rows(a.cypher, row)) for n, a in enumerate(one.rule.against))
    against = tuple((n, rows[0]) for n, rows in asked if rows)
    ground = Ground(one.rule, row, tuple((n, told) for n, told, _ in shown), against)
    return _said(one, ground, cost, tuple(said for _, _, said in shown), case), ground


def _said(
    one: Candidate, ground: Ground, cost: Cost, evidence: tuple[Evidence, ...], case: Case
) -> Finding:
    rule, row, episode = one.rule, ground.row, one.episode
    objections = [(rule.against[n], told) for n, told in ground.against]
    sure = rule.confidence * (episode.clarity if episode else 1.0)
    sure = max(0.05, sure - sum(a.lowers for a, _ in objections))
    culprit = _culprit(rule, row)
    return Finding(
        id=ids.node_id(str(case.run), "Finding", rule.id, culprit, row.get("first_step")),
        run=case.run,
        klass=rule.klass,
        case_class=class_named(rule.klass).cases,
        title=say(rule.title, row),
        severity=_severity(rule, row, cost, sure),
        confidence=sure,
        culprit=culprit,
        text=say(rule.text, row),
        next_step=say(rule.next_step, row),
        ruleset=RULESET,
        first_step=episode.first if episode else row.get("first_step"),
        last_step=episode.last if episode else row.get("last_step"),
        step_count=len(episode.steps) if episode else int(row.get("step_count") or 0),
        start_ns=_whole(row.get("start_ns")),
        end_ns=_whole(row.get("end_ns")),
        cost=cost,
        numbers={
            name: float(row[column])
            for name, column in rule.numbers.items()
            if row.get(column) is not None
        },
        evidence=evidence,
        against=tuple(say(a.text, row | told) for a, told in objections),
        not_checked=rule.not_checked,
        voices={"rules": round(sure, 3)},
    )


def _whole(time: float | None) -> int | None:
    return None if time is None else int(time)


def _cost(one: Candidate, case: Case) -> Cost:
    """Cost is the episode's excess, as a share of its own time, or of the run where it is short.

    A rule that knows the share otherwise (requests, throughput) gives it as `cost_share`.
    """
    excess = int(one.row.get("excess_ns") or 0)
    told = one.row.get("cost_share")
    if told is not None:
        share = round(min(max(float(told), 0.0), 1.0), 4)
        return Cost(excess, share, round(excess * len(case.ranks) / 1e9, 6))
    if not excess:
        return Cost()
    total = sum(i["dur_ns"] for i in case.iterations.values())
    episode = one.episode
    if episode is not None and len(episode.steps) >= FEW_STEPS:
        total = sum(
            i["dur_ns"] for n, i in case.iterations.items() if episode.first <= n <= episode.last
        )
    share = min(excess / total, 1.0) if total else float(one.row.get("share") or 0)
    return Cost(excess, round(share, 4), round(excess * len(case.ranks) / 1e9, 6))


def _severity(rule: Rule, row: Row, cost: Cost, sure: float) -> Severity:
    if row.get("severity"):
        given: Severity = row["severity"]
        if given not in SEVERITIES:
            raise BadUsage(f"severity {given!r} is none of {', '.join(SEVERITIES)}")
        return given
    if rule.severity:
        return rule.severity
    if row.get("excess_ns") is None and row.get("cost_share") is None:
        return "medium" if sure >= 0.5 else "low"  # its cost is not visible
    by_cost: Severity = next((s for share, s in SHARES if cost.share >= share), "info")
    return "low" if sure < 0.5 and by_cost != "info" else by_cost


def _culprit(rule: Rule, row: Row) -> Culprit:
    kind = class_named(rule.klass).culprits[0]
    named = {c: row[c] for c in rule.culprit if row.get(c) not in (None, "", "unknown")}
    listed = {c: v if isinstance(v, list) else [v] for c, v in named.items()}
    for column, values in listed.items():
        wanted = int if column == "rank" else str
        if strange := [v for v in values if not isinstance(v, wanted)]:
            raise BadUsage(f"its column {column!r} gives {strange[0]!r}, which names none")
    parts = tuple(dict.fromkeys([*rule.components, *listed.get("component", [])]))
    if not listed and not parts:
        return Culprit("none")
    return Culprit(
        kind,
        ranks=tuple(sorted(listed.get("rank", []))),
        hosts=tuple(sorted(listed.get("host", []))),
        devices=tuple(listed.get("device", [])),
        groups=tuple(listed.get("group_name", [])),
        links=tuple(
            (a, b)
            for a, b in zip(listed.get("src_host", []), listed.get("dst_host", []), strict=True)
        ),
        operators=tuple(listed.get("operator", [])),
        components=parts,
        requests=tuple(listed.get("request", [])),
    )


def _evidence(shown: Shown, values: Mapping[str, Any], case: Case) -> list[tuple[Row, Evidence]]:
    found = []
    for row in case.rows(shown.cypher, values)[: shown.limit]:
        if row.get("id") is None:
            continue
        path = case.inputs.get(row.get("input_id") or 0, "")
        if not path and row.get("rank") is not None:
            path = case.rank_inputs.get(row["rank"], "")
        place = row.get("path") or path
        if shown.kind == "Span":
            place = f"{path}:{row['id'] & PLACE_MASK}"
        elif row.get("line") is not None:
            place = f"{path}:{row['line']}"
        text = say(shown.text, dict(values) | row)
        found.append((row, Evidence(shown.role, shown.kind, row["id"], place, text)))
    return found
