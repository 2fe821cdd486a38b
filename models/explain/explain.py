"""From a finding to sentences, and from sentences to those that the graph proves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from teller.errors import TellerError
from teller.graph.explanation import Part, Sentence
from teller.graph.finding import Finding
from teller.graph.store import Store
from teller.models.apply import Ground, apply
from teller.models.case import Case
from teller.models.explain import words
from teller.models.explain.names import Names, Node
from teller.models.explain.paths import path
from teller.models.explain.proof import Again, Proof, connected
from teller.models.rule import RULESET, rules

MOST_NAMED: Final = 4  # objects of one kind that are named as culprits
MOST_SHOWN: Final = 8  # pieces of evidence that are said


@dataclass(frozen=True, slots=True)
class Explained:
    """What could be proved of an explanation, and what not, each with the reason."""

    sentences: tuple[Sentence, ...]
    refused: tuple[tuple[Sentence, str], ...] = ()

    @property
    def path(self) -> tuple[Sentence, ...]:
        """Give the way from cause to effect."""
        return tuple(s for s in self.sentences if s.part == "path")

    @property
    def path_valid(self) -> bool:
        """Tell whether there is a way, all of it is proved, and its edges hang together."""
        return connected(self.path) and all(s.part != "path" for s, _ in self.refused)


def why(
    store: Store, finding: Finding, extra: Path | None = None, baseline: int | None = None
) -> Explained:
    """Explain a finding of a stored run; `extra` is the folder of rules that it was found with."""
    case = Case(store, finding.run, baseline)
    return explained(case, finding, _ground(case, finding, extra))


def _ground(case: Case, finding: Finding, extra: Path | None) -> Ground | None:
    """Ask the rules of its class what a finding rests on."""
    if finding.ruleset != RULESET:
        return None
    for rule in rules(extra).values():
        if rule.klass == finding.klass:
            again = apply(rule, case)
            for found, ground in zip(again.findings, again.grounds, strict=True):
                if found.id == finding.id:
                    return ground
    return None


def explained(
    case: Case, finding: Finding, ground: Ground | None, again: Again | None = None
) -> Explained:
    """Explain a finding. `again` is what the graph is asked by for proof: never by `case`."""
    again = again or Again(Case(case.store, case.run, case.baseline))
    proof = Proof(again, finding, ground.rule if ground else None)
    kept, refused = list[Sentence](), list[tuple[Sentence, str]]()
    for written in _Writer(case, finding, ground).all():
        sentence = _resting(written)
        if flaw := proof.flaw(sentence):
            refused.append((sentence, flaw))
        else:
            kept.append(sentence)
    return Explained(tuple(kept), tuple(refused))


def told(
    case: Case, findings: Sequence[Finding], grounds: Mapping[int, Ground]
) -> tuple[list[Finding], list[str]]:
    """Give findings with their explanations, and notes on what could not be proved."""
    again = Again(Case(case.store, case.run, case.baseline))
    said, notes = list[Finding](), list[str]()
    for finding in findings:
        try:
            one = explained(case, finding, grounds.get(finding.id), again)
        except (TellerError, LookupError, ValueError, TypeError) as err:  # the finding stands
            said.append(finding)
            notes.append(f"{finding.title}: not explained: {err}")
            continue
        said.append(held_to(finding, one))
        if one.refused:
            lost = len(one.refused)
            whole = lost + len(one.sentences)
            notes.append(
                f"{finding.title}: {lost} of {whole} sentences are not shown, as the graph does "
                f"not prove them ({one.refused[0][1]})"
            )
    return said, notes


class _Writer:
    """Writes the sentences of one finding."""

    def __init__(self, case: Case, finding: Finding, ground: Ground | None) -> None:
        self.case, self.finding, self.ground = case, finding, ground
        self.names = Names(case)
        self.places = Proof(Again(case), finding, ground.rule if ground else None)
        self.places.knows(ground)
        self.row: Mapping[str, Any] = ground.row if ground else {}

    def all(self) -> Iterator[Sentence]:
        """Give all sentences in the order of reading."""
        found = path(self.case, self.finding)
        yield from self._verdict()
        yield from self._culprit()
        yield from self._mechanism()
        yield from (self._own(s) for s in found)
        yield self._cost()
        yield from self._evidence()
        yield from self._rest("against")
        yield from self._rest("not_checked")
        if not found:
            yield self._own(words.of_part("not_checked", "path.none"))
        yield from self._rest("next", "next_step")

    def _verdict(self) -> Iterator[Sentence]:
        if self.ground:
            yield self._ruled(words.of_part("verdict", f"{self.ground.rule.id}.title"), self.row)
        else:
            yield self._own(words.of_part("verdict", "model.verdict"))

    def _culprit(self) -> Iterator[Sentence]:
        kind, who = self.finding.culprit.kind, self._blamed()
        for what in sorted(who, key=lambda k: k != kind):
            name = f"{'culprit' if what == kind else 'place'}.{what}"
            for node in who[what][:MOST_NAMED]:
                yield self._own(words.of_part("culprit", name, ids=(node,)))
        if self.finding.culprit.components:
            name = "culprit" if kind == "component" else "place"
            yield self._own(words.of_part("culprit", f"{name}.component"))

    def _blamed(self) -> dict[str, list[Node]]:
        who, of = self.finding.culprit, self.names.of
        asked: dict[str, tuple[str, Sequence[Any]]] = {
            "rank": ("Rank", who.ranks), "host": ("Host", who.hosts),
            "device": ("Device", who.devices), "group": ("ProcessGroup", who.groups),
            "operator": ("Operator", who.operators), "request": ("Request", who.requests),
        }  # fmt: skip
        found = {
            what: [(kind, node) for name in listed if (node := of(kind, name)) is not None]
            for what, (kind, listed) in asked.items()
        }
        found["link"] = [("Link", n) for a, b in who.links if (n := self._link(a, b))]
        return {what: nodes for what, nodes in found.items() if nodes}

    def _link(self, src: str, dst: str) -> int | None:
        rows = self.case.rows(
            "MATCH (n:Link) WHERE n.run_id = $run AND n.src_host = $src AND n.dst_host = $dst "
            "RETURN n.id AS id ORDER BY id LIMIT 1",
            {"src": src, "dst": dst},
        )
        return rows[0]["id"] if rows else None

    def _mechanism(self) -> Iterator[Sentence]:
        if self.ground:
            name = f"{self.ground.rule.id}.text"
            yield from words.split(self._ruled(words.of_part("mechanism", name), self.row))
        else:
            yield self._own(words.of_part("mechanism", "model.chance"))

    def _cost(self) -> Sentence:
        cost = self.finding.cost
        if not self.ground:
            name = "model.cost" if cost.excess_ns else "cost.unseen"
        elif cost.excess_ns:
            name = "cost"
        else:
            name = "cost.share" if cost.share else "cost.unseen"
        return self._own(words.of_part("cost", name))

    def _evidence(self) -> Iterator[Sentence]:
        shown = self.finding.evidence[:MOST_SHOWN]
        if not self.ground:
            for one in shown:
                if (name := one.kind.lower()) in words.OWN:
                    yield self._own(words.of_part("for", name, ids=((one.kind, one.id),)))
            return
        rule = self.ground.rule
        for one, (number, told) in zip(shown, self.ground.evidence, strict=False):
            sentence = words.of_part("for", f"{rule.id}.evidence.{number}",
                                     ids=((one.kind, one.id),))  # fmt: skip
            yield self._ruled(sentence, {**self.row, **told})

    def _rest(self, part: Part, field: str = "") -> Iterator[Sentence]:
        """Say what is against it, what was not checked, and what to do."""
        owner = self.ground.rule.id if self.ground else "finding"
        field = field or part
        if field == "against" and self.ground:
            for number, told in self.ground.against:
                sentence = words.of_part(part, f"{owner}.against.{number}")
                yield self._ruled(sentence, {**self.row, **told})
        elif field == "next_step":
            yield from words.split(self._ruled(words.of_part(part, f"{owner}.next_step"), self.row))
        else:
            for number in range(len(getattr(self.finding, field))):
                yield self._ruled(words.of_part(part, f"{owner}.{field}.{number}"), self.row)

    def _ruled(self, sentence: Sentence, values: Mapping[str, Any]) -> Sentence:
        """Fill words of the rule, or of the finding where no rule found it."""
        rule = self.ground.rule if self.ground else None
        text = words.template(sentence.words, rule, self.finding)
        return words.filled(sentence, text, values, self.finding, self.names.named)

    def _own(self, sentence: Sentence) -> Sentence:
        """Fill words of ours: each field is asked of the place that it names."""
        text = words.OWN[sentence.words]
        values = {}
        for field in words.fields_in(text):
            place = words.source(field, sentence.words, sentence.ids, sentence.edges, self.finding)
            values[field] = next(iter(self.places.asked(place)), None)
        return words.filled(sentence, text, values, self.finding, self.names.named)


def _resting(sentence: Sentence) -> Sentence:
    """Add the nodes that a sentence names and those of its edges to what it rests on."""
    ends = [n for e in sentence.edges for n in ((e.src_kind, e.src), (e.dst_kind, e.dst))]
    named = [f.names for f in sentence.facts if f.names is not None and f.names[1]]
    return replace(sentence, ids=tuple(dict.fromkeys((*sentence.ids, *ends, *named))))


def held_to(finding: Finding, told: Explained) -> Finding:
    """Give the finding with its explanation; of its own texts only what is proved stays."""
    said: dict[str, list[str]] = {}
    for sentence in told.sentences:
        said.setdefault(sentence.part, []).append(sentence.text)
    lost = {s.part for s, _ in told.refused}
    changed: dict[str, Any] = {"explanation": told.sentences}
    if "mechanism" in lost:
        changed["text"] = " ".join(said.get("mechanism", ()))
    if "next" in lost:
        changed["next_step"] = " ".join(said.get("next", ()))
    if "against" in lost:
        changed["against"] = tuple(said.get("against", ()))
    if "for" in lost:
        bad = {(s.ids[0], s.text) for s, _ in told.refused if s.part == "for" and s.ids}
        changed["evidence"] = tuple(
            e for e in finding.evidence if ((e.kind, e.id), e.text) not in bad
        )
    return replace(finding, **changed)
