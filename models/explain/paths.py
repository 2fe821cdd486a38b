"""The way from cause to effect, as relations of the graph: found by named queries and by slices.

Each step of the way is a sentence whose edges are relations that the checker asks for again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import queries
from teller.graph.classes import classes
from teller.graph.explanation import BEFORE, Edge, Sentence
from teller.graph.finding import Finding
from teller.models.case import Case, Row
from teller.models.explain.words import of_part
from teller.models.slices import slice_of

NETWORK: Final = "network"  # siblings whose cause is between ranks, not on one
_ABOUT: Final = {"Rank": "path.about_rank", "Host": "path.about_host",
                 "Device": "path.about_device", "Link": "path.about_link"}  # fmt: skip


def path(case: Case, finding: Finding) -> list[Sentence]:
    """Give the way as sentences that are yet to be filled; empty where the graph holds none."""
    if finding.first_step is not None and finding.last_step is not None:
        within = {"run": case.run, "first": finding.first_step, "last": finding.last_step}
        known = classes().get(finding.klass)
        if known and known.siblings == NETWORK and (found := _network(case, finding, within)):
            return found
        if found := _late(case, finding, within) or _alone(case, finding, within):
            return found
    return list(_records(case, finding))


def _ask(case: Case, name: str, **params: Any) -> Row:
    """Give the first row of a named query, or nothing."""
    rows = case.rows(queries.text(name), params)
    return rows[0] if rows else {}


def _ranks(case: Case, finding: Finding) -> list[int]:
    """Give the ranks to blame, else those of the hosts to blame, else all."""
    if finding.culprit.ranks:
        return list(finding.culprit.ranks)
    hosts = set(finding.culprit.hosts)
    return [r for r, row in case.ranks.items() if row["host"] in hosts] or list(case.ranks)


def _late(case: Case, finding: Finding, within: dict[str, int]) -> list[Sentence]:
    """Go from the work of the last to arrive over the collective to who waited there longest."""
    asked = (
        {"late": rank} | _ask(case, "explain_waits", rank=rank, **within)
        for rank in _ranks(case, finding)
    )
    waits = [row for row in asked if "wait_ns" in row]
    if not waits:
        return []
    worst = max(waits, key=lambda row: (row["wait_ns"], row["span_id"]))
    met = worst["collective_id"]
    late = _ask(case, "explain_arrival", collective=met, rank=worst["late"])
    if late.get("step_id") is None:
        return []
    before = Edge("IN_STEP", "Span", late["span_id"], "Step", late["step_id"])
    arrives = Edge("IN_COLLECTIVE", "Span", late["span_id"], "Collective", met)
    work = _work(case, finding, late["step_id"], late["arrival_ns"], worst["step_id"])
    work = {} if work.get("span_id") == late["span_id"] else work
    if work:
        then = Edge(BEFORE, "Span", work["span_id"], "Span", late["span_id"])
        found = [*_cause(case, work, late["step_id"]),
                 of_part("path", "path.late", edges=(arrives, before, then))]  # fmt: skip
    else:
        found = [of_part("path", "path.last", edges=(arrives, before))]
    waits_there = Edge("IN_COLLECTIVE", "Span", worst["span_id"], "Collective", met)
    inside = Edge("IN_STEP", "Span", worst["span_id"], "Step", worst["step_id"])
    found.append(of_part("path", "path.wait", edges=(waits_there, inside)))
    whole = _ask(case, "explain_iteration", step=worst["step_id"])
    if whole:
        edge = Edge("ON_RANK", "Iteration", whole["iteration_id"], "Step", worst["step_id"])
        found.append(of_part("path", "path.effect", edges=(edge,)))
    return found


def _cause(case: Case, work: Row, step: int) -> Iterator[Sentence]:
    """Say what was done in a step, and what launched it."""
    inside = Edge("IN_STEP", "Span", work["span_id"], "Step", step)
    above = (work["excess_ns"] or 0) > 0
    yield of_part("path", "path.over" if above else "path.work", edges=(inside,))
    if call := _ask(case, "explain_launcher", span=work["span_id"]):
        edge = Edge("LAUNCHED", "Span", call["span_id"], "Span", work["span_id"])
        yield of_part("path", "path.launch", edges=(edge,))


def _work(case: Case, finding: Finding, step: int, before: int, victim: int) -> Row:
    """Give the work that made an arrival late: the operator to blame, else what the slice has."""
    operators = [*finding.culprit.operators, *_shown(case, finding)]
    if operators:
        found = _ask(case, "explain_work", step=step, operators=operators, before=before)
        if found:
            return found
    return _behind(slice_of(case.store, case.run, [victim]).spans, step)


def _behind(spans: pa.Table, step: int) -> Row:
    """Give what the slice of a step found behind the last to arrive, the most above its like."""
    rows = spans.filter(pc.equal(spans["own_step_id"], step)).to_pylist()
    behind = [r for r in rows if "behind_late_rank" in r["roles"] and r["operator"]]
    if not behind:
        return {}
    worst = max(behind, key=lambda r: (r["excess_ns"] or 0, r["own_ns"] or 0, -r["id"]))
    return {"span_id": worst["id"], "excess_ns": worst["excess_ns"]}


def _shown(case: Case, finding: Finding) -> list[str]:
    """Give the operators of the spans that are shown as the cause."""
    spans = [e.id for e in finding.evidence if e.role == "cause" and e.kind == "Span"]
    asked = "MATCH (s:Span {id: $id}) RETURN s.operator AS operator"
    found = [r["operator"] for i in spans for r in case.rows(asked, {"id": i})]
    return [o for o in dict.fromkeys(found) if o]


def _alone(case: Case, finding: Finding, within: dict[str, int]) -> list[Sentence]:
    """Go from work to the step that it made long, where nobody is known to have waited."""
    worst = _ask(case, "explain_worst_step", ranks=_ranks(case, finding), **within)
    if not worst:
        return []
    step = worst["step_id"]
    edge = Edge("ON_RANK", "Iteration", worst["iteration_id"], "Step", step)
    said = of_part("path", "path.step", edges=(edge,))
    work = _work(case, finding, step, worst["end_ns"], step)
    return [*(_cause(case, work, step) if work else ()), said]


def _network(case: Case, finding: Finding, within: dict[str, int]) -> list[Sentence]:
    """Go from the slowest collective to a step that it made long."""
    met = _ask(case, "explain_pure", ranks=_ranks(case, finding), **within)
    if not met:
        return []
    edges = (
        Edge("IN_COLLECTIVE", "Span", met["span_id"], "Collective", met["collective_id"]),
        Edge("IN_STEP", "Span", met["span_id"], "Step", met["step_id"]),
    )
    found = [of_part("path", "path.pure", edges=edges)]
    if whole := _ask(case, "explain_iteration", step=met["step_id"]):
        edge = Edge("ON_RANK", "Iteration", whole["iteration_id"], "Step", met["step_id"])
        found.append(of_part("path", "path.effect", edges=(edge,)))
    return found


def _records(case: Case, finding: Finding) -> Iterator[Sentence]:
    """Go from the line, figure or span that shows a cause to what it is about."""
    for shown in _causes_first(finding):
        if shown.kind == "LogLine":
            found = list(_line(case, shown.id))
        elif shown.kind == "Sample":
            rows = case.rows(queries.text("explain_about"), {"sample": shown.id})
            found = [
                of_part("path", _ABOUT[r["kind"]],
                        edges=(Edge("ABOUT", "Sample", shown.id, r["kind"], r["id"]),))
                for r in rows[:1]
            ]  # fmt: skip
        elif shown.kind == "Span":
            found = list(_span(case, shown.id))
        else:
            found = []
        if found:
            yield from found
            return


def _causes_first(finding: Finding) -> Sequence[Any]:
    return sorted(finding.evidence, key=lambda e: e.role != "cause")


def _line(case: Case, line: int) -> Iterator[Sentence]:
    row = _ask(case, "explain_line", line=line)
    for kind, relation, words in (("step", "DURING", "path.line_step"),
                                  ("rank", "FROM_RANK", "path.line_rank"),
                                  ("host", "FROM_HOST", "path.line_host")):  # fmt: skip
        node = row.get(f"{kind}_id")
        if node is not None and not (kind == "host" and row.get("rank_id") is not None):
            edge = Edge(relation, "LogLine", line, kind.capitalize(), node)
            yield of_part("path", words, edges=(edge,))


def _span(case: Case, span: int) -> Iterator[Sentence]:
    row = _ask(case, "explain_span_step", span=span)
    if row.get("step_id") is not None:
        yield of_part("path", "path.work",
                      edges=(Edge("IN_STEP", "Span", span, "Step", row["step_id"]),))  # fmt: skip
        if row.get("iteration_id") is not None:
            edge = Edge("ON_RANK", "Iteration", row["iteration_id"], "Step", row["step_id"])
            yield of_part("path", "path.effect", edges=(edge,))
