"""The checker: asks the graph anew for all that a sentence says, and tells what it cannot prove."""

import math
from collections.abc import Sequence
from typing import Any, Final

from teller.graph.explanation import BEFORE, Edge, Fact, Sentence, Source
from teller.graph.finding import Finding
from teller.graph.schema import NODES, RELATIONS
from teller.models.apply import Applied, Ground, apply
from teller.models.case import Case
from teller.models.explain import words
from teller.models.explain.names import Names
from teller.models.rule import Rule
from teller.models.wording import printed

_COLUMNS: Final = {n.label: {c.name for c in n.columns} for n in NODES}
_ENDS: Final = {(r.type, a.label, b.label): r for r in RELATIONS for a, b in r.ends}
_RECORDED: Final = (
    "MATCH (s:Sample) WHERE s.run_id = $run AND s.rank = $rank RETURN s.id AS id LIMIT 1"
)
_NEAR: Final = 1e-9  # sums of floating point differ in their last digits


class Again:
    """A run that is asked anew, and what it answered: the graph does not change meanwhile."""

    def __init__(self, case: Case) -> None:
        """Take a case of one's own: it remembers nothing of what was said before."""
        self.case, self.names = case, Names(case)
        self.known: dict[Any, Any] = {}
        self._rules: dict[str, Applied] = {}

    def ground(self, rule: Rule, finding: int) -> Ground | None:
        """Ask a rule anew, once; give what a finding of it rests on."""
        if rule.id not in self._rules:
            self._rules[rule.id] = apply(rule, self.case)
        found = self._rules[rule.id]
        pairs = zip(found.findings, found.grounds, strict=True)
        return next((ground for f, ground in pairs if f.id == finding), None)


class Proof:
    """Checks the sentences about one finding. It trusts the graph, the rules and its own words."""

    def __init__(self, again: Again, finding: Finding, rule: Rule | None = None) -> None:
        """Take the run, the finding and the rule that found it; None for what the model says."""
        self._again, self._case, self._names = again, again.case, again.names
        self._finding, self._rule, self._known = finding, rule, again.known
        self._ground: Ground | None = None

    def flaw(self, sentence: Sentence) -> str:
        """Give what is not proved in a sentence, or "" where all of it is."""
        return (
            self._words(sentence)
            or next((f for fact in sentence.facts if (f := self._value(fact))), "")
            or next((f for node in sentence.ids if (f := self._node(*node))), "")
            or next((f for edge in sentence.edges if (f := self._edge(edge))), "")
        )

    def _words(self, sentence: Sentence) -> str:
        """Hold every word to the template, and every fact to the place that its field names."""
        try:
            text = words.template(sentence.words, self._rule, self._finding)
        except (KeyError, AttributeError, IndexError, ValueError, TypeError):
            return f"there are no words {sentence.words}"
        at = 0
        for fact in sentence.facts:
            if fact.at < at or sentence.text[fact.at : fact.at + len(fact.text)] != fact.text:
                return f"{fact.text} does not stand where it is said to"
            at = fact.at + len(fact.text)
        told = words.fields(sentence, text, only_order=sentence.rephrased)
        if told is None:
            return "its words are not those of its template"
        if sentence.words.startswith("finding.") and words.loose(sentence.text, counts=False):
            return "it names or counts something without saying where that is from"
        if sentence.rephrased and (flaw := self._loose(sentence, text)):
            return flaw
        return next(
            (f for fact, field in zip(sentence.facts, told, strict=True)
             if (f := self._place(sentence, fact, field))), "",
        )  # fmt: skip

    def _loose(self, sentence: Sentence, text: str) -> str:
        """Let other words say nothing that those of the template do not."""
        known, said = words.bare(text), words.plain(sentence)
        more = [*(words.loose(said) - words.loose(known))]
        more += [
            word for word in {*said.split()} - {*known.split()}
            for kind in ("Host", "Device", "ProcessGroup", "Operator")
            if self._names.of(kind, word.strip(".,;:!?()'\"")) is not None
        ]  # fmt: skip
        return f"nothing is known of {', '.join(more)}" if more else ""

    def _place(self, sentence: Sentence, fact: Fact, field: str) -> str:
        try:
            place = words.source(field, sentence.words, sentence.ids, sentence.edges, self._finding)
        except IndexError:
            return f"nothing shows {fact.text}"
        if fact.source != place:
            return f"{fact.text} is not from where it belongs"
        if fact.names != self._names.named(sentence.text[: fact.at], field, fact.value):
            return f"{fact.text} is another name"
        return ""

    def _value(self, fact: Fact) -> str:
        """Ask for a value again, and whether the node that it names goes by it."""
        if not any(_same(fact, value) for value in self.asked(fact.source)):
            return f"the graph does not say {fact.text}"
        if fact.names is None:
            return ""
        kind, node = fact.names
        if not node or self._names.of(kind, fact.value) is None:
            absent = kind == "Rank" and self._recorded(fact.value)
            return "" if absent else f"no {kind} of this run is {fact.text}"
        return "" if self._goes_by(kind, node, fact.value) else f"{fact.text} is another {kind}"

    def _recorded(self, rank: Any) -> bool:
        """Tell whether others' records name a rank of which nothing was captured."""
        return bool(self._case.rows(_RECORDED, {"rank": rank}))

    def _goes_by(self, kind: str, node: int, name: Any) -> bool:
        if kind == "Step":  # every rank has one of that number
            return name in self.asked(Source("Step", node, "step_index"))
        return self._names.of(kind, name) == node

    def asked(self, source: Source) -> list[Any]:
        """Give the values that stand in a place: one, or of rows with one id several."""
        if source.kind in ("rule", "Finding"):
            return self._told(source)
        if source not in self._known:
            self._known[source] = self._ask(source)
        found: list[Any] = self._known[source]
        return found

    def _told(self, source: Source) -> list[Any]:
        if source.kind == "rule":
            return self._of_rule(source)
        return [_of_finding(self._finding, source.column)]

    def _ask(self, source: Source) -> list[Any]:
        if source.to is not None:
            for ends, relation in _ENDS.items():
                if ends[0] == source.kind and source.column in {c.name for c in relation.columns}:
                    text = (
                        f"MATCH (a:{ends[1]} {{id: $src}})-[r:{ends[0]}]->"
                        f"(b:{ends[2]} {{id: $dst}}) RETURN r.{source.column} AS value"
                    )
                    rows = self._case.rows(text, {"src": source.id, "dst": source.to})
                    if rows:
                        return [r["value"] for r in rows]
            return []
        if source.column not in _COLUMNS.get(source.kind, ()):
            return []
        text = f"MATCH (n:{source.kind} {{id: $id}}) RETURN n.{source.column} AS value"
        return [r["value"] for r in self._case.rows(text, {"id": source.id})]

    def _of_rule(self, source: Source) -> list[Any]:
        ground = self._grounds()
        if ground is None:
            return []
        part, _, number = source.part.removeprefix(f"{ground.rule.id}.").partition(".")
        rows = [ground.row]
        if part == "evidence":
            rows = [
                ground.row | told for n, told in ground.evidence
                if str(n) == number and told["id"] == source.id
            ]  # fmt: skip
        elif part == "against":
            rows = [ground.row | told for n, told in ground.against if str(n) == number]
        return [row[source.column] for row in rows if source.column in row]

    def knows(self, ground: Ground | None) -> None:
        """Take what the rule said for granted: to write sentences, not to prove them."""
        self._ground = ground

    def _grounds(self) -> Ground | None:
        if self._ground is None and self._rule is not None:
            self._ground = self._again.ground(self._rule, self._finding.id)
        return self._ground

    def _node(self, kind: str, node: int) -> str:
        if (kind, node) not in self._known:
            self._known[kind, node] = self._missing(kind, node)
        return str(self._known[kind, node])

    def _missing(self, kind: str, node: int) -> str:
        if kind not in _COLUMNS:
            return f"there is no kind {kind}"
        rows = self._case.rows(
            f"MATCH (n:{kind} {{id: $id}}) RETURN n.run_id AS run_id", {"id": node}
        )
        ours = any(r["run_id"] in (self._case.run, 0) for r in rows)
        return "" if ours else f"{kind} {node} is not in this run"

    def _edge(self, edge: Edge) -> str:
        if edge not in self._known:
            self._known[edge] = self._unjoined(edge)
        return str(self._known[edge])

    def _unjoined(self, edge: Edge) -> str:
        for kind, node in ((edge.src_kind, edge.src), (edge.dst_kind, edge.dst)):
            if flaw := self._node(kind, node):
                return flaw
        ends = f"(a:{edge.src_kind} {{id: $src}})", f"(b:{edge.dst_kind} {{id: $dst}})"
        if edge.type == BEFORE:
            text = f"MATCH {ends[0]}, {ends[1]} WHERE a.start_ns <= b.start_ns RETURN a.id AS id"
        elif (edge.type, edge.src_kind, edge.dst_kind) in _ENDS:
            text = f"MATCH {ends[0]}-[:{edge.type}]->{ends[1]} RETURN a.id AS id LIMIT 1"
        else:
            return f"{edge.type} does not join {edge.src_kind} and {edge.dst_kind}"
        found = self._case.rows(text, {"src": edge.src, "dst": edge.dst})
        return "" if found else f"{edge.type} does not lead from {edge.src} to {edge.dst}"


def connected(path: Sequence[Sentence]) -> bool:
    """Tell whether the edges of a path hang together from its first sentence to its last."""
    reached: set[int] = set()
    for sentence in path:
        ends = {node for edge in sentence.edges for node in (edge.src, edge.dst)}
        if reached and not reached & ends:
            return False
        reached |= ends
    return bool(reached)


def _same(fact: Fact, value: Any) -> bool:
    """Tell whether a place holds the value, and prints as the sentence has it."""
    several = value if isinstance(value, list) else [value]
    return any(_equal(fact.value, one) and _prints(fact, one) for one in (*several, value))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=_NEAR)
    return bool(one == other)


def _prints(fact: Fact, value: Any) -> bool:
    values = [value]
    if isinstance(value, float) and math.isfinite(value):
        values += [value * (1 - _NEAR), value * (1 + _NEAR)]
    try:
        return any(printed(v, fact.form) == fact.text for v in values)
    except (ValueError, TypeError):
        return False


def _of_finding(finding: Finding, column: str) -> Any:
    """Give a figure of the finding itself."""
    for place in (finding, finding.cost, finding.culprit):
        if hasattr(place, column):
            value = getattr(place, column)
            return list(value) if isinstance(value, tuple) else value
    return finding.numbers.get(column)
