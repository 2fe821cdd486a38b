"""The diagnosis of one run: what the rules find, what explains what, and the verdict over all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from teller.errors import BadUsage, QueryRefused, TooMuch, UnknownName
from teller.graph import judgement
from teller.graph.finding import Finding
from teller.graph.store import Store
from teller.models import explain, fusion, numeric
from teller.models.apply import Applied, Ground, apply
from teller.models.case import Case
from teller.models.listening import Heard
from teller.models.rule import Rule, rules

SURE_ENOUGH: Final = 0.3  # a finding less sure than this explains nothing away
EXPLAINS: Final = 0.5  # of the cost of what it explains


@dataclass(frozen=True, slots=True)
class Judged:
    """What is found in one run, its scored steps, and what could not be answered."""

    findings: tuple[Finding, ...]
    steps: pa.Table  # of teller.models.numeric
    notes: tuple[str, ...]


def judge(
    store: Store,
    run: int,
    extra: Path | None = None,
    baseline: int | None = None,
    heard: Heard | None = None,
) -> Judged:
    """Diagnose one run, compared with a healthy one where `baseline` names it.

    `heard` is what the model says of it; None leaves the model out.
    """
    case = Case(store, run, baseline)
    found: list[tuple[Rule, Finding]] = []
    grounds: dict[int, Ground] = {}
    unanswered = []
    for rule in rules(extra).values():
        try:
            said = applied(rule, case)
        except TooMuch as err:  # the others are still worth an answer
            unanswered.append(f"rule {rule.id} was not answered: {err}")
            continue
        grounds |= {f.id: g for f, g in zip(said.findings, said.grounds, strict=True)}
        loud = (f for f in said.findings if f.severity != "info" or judgement.claims(f) != "fault")
        found += [(rule, f) for f in loud]
    steps = case.steps
    heard = heard or Heard()
    voiced = fusion.fused(
        _explained(found), heard.said, run, heard.evidence, len(case.ranks), heard.calibrated
    )
    kept, unproved = explain.told(case, [_with_numeric(f, steps) for f in voiced], grounds)
    notes = (*not_seen(store, run), *unanswered, *heard.notes, *unproved)
    return Judged(judgement.ordered(kept), steps, notes)


def applied(rule: Rule, case: Case) -> Applied:
    """Give what a rule finds, or say what is wrong with the rule: anyone may write one."""
    try:
        return apply(rule, case)
    except TooMuch:
        raise  # no mistake of who wrote it
    except KeyError as err:
        raise BadUsage(f"rule {rule.id}: none of its columns is {err}") from err
    except (QueryRefused, UnknownName, BadUsage, AttributeError, TypeError, ValueError) as err:
        raise BadUsage(f"rule {rule.id}: {err}") from err


def _explained(found: Sequence[tuple[Rule, Finding]]) -> list[Finding]:
    """Drop what another rule explains better: on the same rank, at the same time, for as much."""
    kept = []
    for rule, finding in found:
        better = (
            other
            for why, other in found
            if why.id in rule.unless
            and other.confidence >= SURE_ENOUGH
            and _same_ground(finding, other)
            and other.cost.excess_ns >= EXPLAINS * finding.cost.excess_ns
        )
        if next(better, None) is None:
            kept.append(finding)
    return kept


def _same_ground(one: Finding, other: Finding) -> bool:
    mine, theirs = set(one.culprit.ranks), set(other.culprit.ranks)
    if mine and theirs and not mine & theirs:
        return False
    if one.first_step is None or one.last_step is None:
        return True
    if other.first_step is None or other.last_step is None:
        return True
    return one.first_step <= other.last_step and other.first_step <= one.last_step


def _with_numeric(finding: Finding, steps: pa.Table) -> Finding:
    """Add what the numeric voice says of the finding's steps, where it names any."""
    if finding.first_step is None or finding.last_step is None or not steps.num_rows:
        return finding
    index, rank = steps["step_index"].to_numpy(), steps["rank"].to_numpy()
    inside = (index >= finding.first_step) & (index <= finding.last_step)
    if finding.culprit.ranks:
        inside &= np.isin(rank, finding.culprit.ranks)
    if not inside.any():
        return finding
    said = float(np.quantile(steps["p_abnormal"].to_numpy()[inside], 0.75))
    return replace(finding, voices=dict(finding.voices) | {"numeric": round(said, 3)})


def with_findings(store: Store, run: int, findings: Sequence[Finding]) -> Judged:
    """Give what was judged before, with its steps scored again."""
    return Judged(judgement.ordered(findings), numeric.score(store, run), ())


NOT_SEEN: Final = (
    (
        "MATCH (t:Step) WHERE t.run_id = $run RETURN t.id AS id LIMIT 1",
        "no steps were found: nothing in this capture repeats as a step does; record with the "
        "engine's annotations (NVTX scopes, profiler steps)",
    ),
    (
        "MATCH (s:Span) WHERE s.run_id = $run AND s.stream IS NOT NULL RETURN s.id AS id LIMIT 1",
        "no device work was recorded: what the GPUs did cannot be seen; record CUDA activity on "
        "every rank",
    ),
    (
        "MATCH (t:Step) WHERE t.run_id = $run WITH count(*) AS steps WHERE steps <> 1 RETURN steps",
        "one step of one rank has nothing to be compared with: record more steps, or all ranks, or "
        "name a healthy run with --baseline",
    ),
)
NOT_MATCHED: Final = (
    "MATCH (c:Collective) WHERE c.run_id = $run AND c.ranks_seen > 1 RETURN c.id AS id LIMIT 1",
    "no collective could be matched over ranks: who waits for whom cannot be seen; record "
    "communication (NCCL kernels with metadata, or the NVTX domain NCCL)",
)


CAPTURES: Final = "captures (each step, operator and kernel)"
CAPTURED: Final = "MATCH (s:Span) WHERE s.run_id = $run RETURN s.id AS id LIMIT 1"
# What else a run may hold: its name, what it would show, and the queries of which one finds it.
LAYERS: Final = (
    (
        "service logs (what the engine did, its queue and its load)",
        "MATCH (q:Sample) WHERE q.run_id = $run AND q.name STARTS WITH 'engine.' "
        "RETURN q.id AS id LIMIT 1",
        "MATCH (l:LogLine) WHERE l.run_id = $run "
        "AND l.origin IN ['vllm', 'sglang', 'trtllm', 'triton', 'ray'] RETURN l.id AS id LIMIT 1",
    ),
    (
        "communication records (which rank a collective waits for, and over which path)",
        "MATCH (r:Rank)-[m:MEMBER_OF]->(g:ProcessGroup) WHERE r.run_id = $run "
        "RETURN g.id AS id LIMIT 1",
        "MATCH (q:Sample) WHERE q.run_id = $run AND q.name STARTS WITH 'nccl.' "
        "RETURN q.id AS id LIMIT 1",
    ),
    (
        "device metrics (clocks, power, heat, errors)",
        "MATCH (q:Sample) WHERE q.run_id = $run AND q.name STARTS WITH 'gpu.' "
        "RETURN q.id AS id LIMIT 1",
    ),
)


def not_seen(store: Store, run: int) -> Iterator[str]:
    """Say what this run cannot tell, and what to record to see it."""
    case = Case(store, run)
    if _empty(case, CAPTURED):
        absent = [name for name, *asked in LAYERS if not any(case.rows(a, {}) for a in asked)]
        said = "; ".join([CAPTURES, *absent])
        yield f"not in this run: {said}; teller doctor PATH says how to record them"
        return
    asked = (*NOT_SEEN, NOT_MATCHED) if len(case.ranks) > 1 else NOT_SEEN
    for cypher, sentence in asked:
        if _empty(case, cypher):
            yield sentence


def _empty(case: Case, cypher: str) -> bool:
    """Tell whether nothing is found; what is too much to look through is not nothing."""
    try:
        return not case.rows(cypher, {})
    except TooMuch:
        return False


def step_rows(judged: Mapping[int, Judged]) -> pa.Table:
    """Give the `--steps` table: one row a rank and step of all runs."""
    tables = [_rows_of(run, one) for run, one in judged.items()]
    return pa.concat_tables(tables) if tables else _ROWS.empty_table()


_ROWS: Final = pa.schema(
    [
        ("run", pa.string()),
        ("rank", pa.int64()),
        ("step_index", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("phase", pa.string()),
        ("excess_ns", pa.int64()),
        ("own_excess_ns", pa.int64()),
        ("p_abnormal", pa.float64()),
        ("abnormal", pa.bool_()),
        ("class", pa.string()),
        ("culprit_kind", pa.string()),
        ("culprit", pa.string()),
        ("operators", pa.list_(pa.struct([("operator", pa.string()), ("score", pa.float64())]))),
    ]
)


def _rows_of(run: int, judged: Judged) -> pa.Table:
    steps = judged.steps
    size = steps.num_rows
    index, rank = steps["step_index"].to_numpy(), steps["rank"].to_numpy()
    excess = steps["excess_ns"].to_numpy()
    by_step = _iteration_excess(index, excess)
    klass, kind, culprit = np.full((3, size), None, object)
    operators: list[list[dict[str, object]]] = [[] for _ in range(size)]
    abnormal = steps["p_abnormal"].to_numpy() > 0.5
    for finding in reversed(judged.findings):  # the worst is written last and stays
        if judgement.claims(finding) != "fault" or finding.first_step is None:
            continue
        inside = (index >= finding.first_step) & (index <= (finding.last_step or 0))
        inside &= by_step > 0 if finding.step_count > 1 else True
        klass[inside], kind[inside] = finding.klass, finding.culprit.kind
        culprit[inside] = name_of(finding)
        abnormal |= inside & (not finding.culprit.ranks or np.isin(rank, finding.culprit.ranks))
        for at in np.flatnonzero(inside):
            operators[at] = [
                {"operator": o, "score": finding.confidence} for o in finding.culprit.operators
            ]
    return pa.table(
        [
            pa.repeat(pa.scalar(str(run)), size),
            steps["rank"],
            steps["step_index"],
            steps["start_ns"],
            steps["end_ns"],
            steps["phase"],
            pa.array(by_step),
            steps["excess_ns"],
            steps["p_abnormal"],
            pa.array(abnormal),
            pa.array(klass, pa.string()),
            pa.array(kind, pa.string()),
            pa.array(culprit, pa.string()),
            pa.array(operators, _ROWS.field("operators").type),
        ],
        schema=_ROWS,
    )


def _iteration_excess(index: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Give each step the excess of its iteration: that of its latest rank."""
    distinct, at = np.unique(index, return_inverse=True)
    most = np.zeros(len(distinct), np.int64)
    np.maximum.at(most, at, excess)
    return most[at]


def name_of(finding: Finding) -> str:
    """Give the culprit in words."""
    who = finding.culprit
    parts = [
        *who.operators,
        *(f"rank {r}" for r in who.ranks),
        *who.devices,
        *who.hosts,
        *(f"{a}–{b}" for a, b in who.links),
        *(f"group {g}" for g in who.groups),
        *who.components,
    ]
    return ", ".join(parts) or "nobody"
