"""The words of explanations: templates, how they are filled, and what can be read of a sentence.

A field of a rule's template is a column of the rule's answer. Our own fields say where their value
is: `n0.rank` is column `rank` of the sentence's first node, `0s.own_ns` of the start of its first
edge, `0d.` of that edge's end, `0r.` of the relation itself, `r.` of the rule's row, `f.` of the
finding.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from string import Formatter
from typing import Any, Final

from teller.graph.explanation import Edge, Fact, Part, Sentence, Source
from teller.graph.finding import Finding
from teller.models.rule import Rule
from teller.models.wording import parts

OWN: Final[Mapping[str, str]] = {
    "culprit.rank": "To blame is rank {n0.rank}.",
    "culprit.host": "To blame is host {n0.name}.",
    "culprit.device": "To blame is device {n0.name}.",
    "culprit.link": "To blame is the link from {n0.src_host} to {n0.dst_host}.",
    "culprit.group": "To blame is group {n0.name}.",
    "culprit.operator": "To blame is {n0.name}.",
    "culprit.request": "To blame is request {n0.name}.",
    "culprit.component": "To blame is the {f.components}.",
    "place.rank": "It is on rank {n0.rank}.",
    "place.host": "It is on host {n0.name}.",
    "place.device": "It is on device {n0.name}.",
    "place.link": "It is on the link from {n0.src_host} to {n0.dst_host}.",
    "place.group": "It is in group {n0.name}.",
    "place.operator": "It is in {n0.name}.",
    "place.request": "It is in request {n0.name}.",
    "place.component": "It is in the {f.components}.",
    "model.verdict": "The model says: {f.title}.",
    "model.chance": "It takes {f.step_count} of the steps {f.first_step} to {f.last_step} for "
    "abnormal ({f.model_chance:pct}), and for this of all classes ({f.class_chance:pct}).",
    "model.cost": "It costs {f.excess_ns:time}, {f.share:pct} of the time of these steps.",
    "step": "Step {n0.step_index} of rank {n0.rank} takes {n0.dur_ns:time}, {n0.excess_ns:time} "
    "above its like.",
    "span": "{n0.operator} on rank {n0.rank} takes {n0.own_ns:time} of its own, "
    "{n0.excess_ns:time} above its like.",
    "cost": "It costs {r.excess_ns:time}, {r.share:pct} of the time it is set against.",
    "cost.share": "It costs {r.share:pct} of what it is set against.",
    "cost.unseen": "What it costs is not visible in this recording.",
    "path.over": "In step {0d.step_index} rank {0s.rank} spends {0s.own_ns:time} in "
    "{0s.operator}, {0s.excess_ns:time} more than its like.",
    "path.work": "In step {0d.step_index} rank {0s.rank} spends {0s.own_ns:time} in {0s.operator}.",
    "path.launch": "{0s.name} launched it.",
    "path.late": "After that rank {0d.last_rank} comes last to {0d.op}, {0s.late_ns:time} behind "
    "the median rank.",
    "path.last": "Rank {0d.last_rank} comes last to {0d.op} in step {1d.step_index}, "
    "{0s.late_ns:time} behind the median rank.",
    "path.wait": "Rank {0s.rank} waits {0r.wait_ns:time} for it there, in step {1d.step_index}.",
    "path.effect": "That iteration takes {0s.dur_ns:time}.",
    "path.step": "Step {0d.step_index} of rank {0d.rank} takes {0d.dur_ns:time}, "
    "{0d.excess_ns:time} more than its like; the iteration takes {0s.dur_ns:time}.",
    "path.pure": "{0d.op} takes {0d.pure_ns:time} once all ranks are there; rank {0s.rank} is in "
    "it in step {1d.step_index}.",
    "path.line_step": "The line was written during step {0d.step_index} of rank {0d.rank}.",
    "path.line_rank": "Rank {0d.rank} wrote the line.",
    "path.line_host": "Host {0d.name} wrote the line.",
    "path.about_rank": "The figure is of rank {0d.rank}.",
    "path.about_host": "The figure is of host {0d.name}.",
    "path.about_device": "The figure is of device {0d.name}.",
    "path.about_link": "The figure is of the link from {0d.src_host} to {0d.dst_host}.",
    "path.none": "the way from cause to effect: the graph holds no relation from this evidence on",
}

# What is no mere word: a number, a name that a program made, a count spelt out.
_NAME: Final = re.compile(
    r"\w+(?:-\w+)+|[^\W_]*(?:[_/@]|::|\.(?=\w)|(?<=[a-z])(?=[A-Z])|(?=\d))[\w.:/@-]*"
)
_COUNTS: Final = re.compile(
    r"(?i)\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds?|"
    r"thousands?|millions?|half|halves|third|quarter|twice|double[sd]?|triple[sd]?|percent|"
    r"not|no|none|never|nothing|nobody|without|isn't|doesn't|didn't|hardly)\b"
)

Names = Callable[[str, str, Any], tuple[str, int] | None]  # text before, field, value

_END: Final = re.compile(r"[.!?]\s+")
_OWN_FIELD: Final = re.compile(r"(?:n|r|f|)(\d*)([sdr]?)\.(\w+)")


def template(words: str, rule: Rule | None, finding: Finding) -> str:
    """Give the template of that name: one of ours, of the finding's rule, or the finding's words.

    Raises `KeyError` where there is none.
    """
    if words in OWN:
        return OWN[words]
    if words.startswith("finding."):
        part, _, number = words.removeprefix("finding.").partition(".")
        said = getattr(finding, part)
        return _literal(said[int(number)] if number else said)
    if rule is None or not words.startswith(f"{rule.id}."):
        raise KeyError(words)
    part, _, number = words.removeprefix(f"{rule.id}.").partition(".")
    said = getattr(rule, part)
    if not number:
        return str(said)
    one = said[int(number)]
    return _literal(one) if isinstance(one, str) else str(one.text)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def source(field: str, words: str, ids: Sequence[tuple[str, int]], edges: Sequence[Edge],
           finding: Finding) -> Source:  # fmt: skip
    """Give where the value of a template's field is found."""
    own = _OWN_FIELD.fullmatch(field)
    if own is None:  # of a rule: its evidence goes by the node that it shows
        at = ids[0][1] if ".evidence." in words else finding.id
        return Source("rule", at, field, part=words)
    number, end, column = own[1], own[2], own[3]
    if field.startswith("f."):
        return Source("Finding", finding.id, column)
    if field.startswith("r."):
        return Source("rule", finding.id, column, part="row")
    if field.startswith("n"):
        kind, node = ids[int(number)]
        return Source(kind, node, column)
    edge = edges[int(number)]
    if end == "r":
        return Source(edge.type, edge.src, column, to=edge.dst)
    kind, node = (edge.src_kind, edge.src) if end == "s" else (edge.dst_kind, edge.dst)
    return Source(kind, node, column)


def filled(
    sentence: Sentence, text: str, values: Mapping[str, Any], finding: Finding, names: Names
) -> Sentence:
    """Fill a template; the sentence given holds its part, the template's name, ids and edges."""
    said, facts = "", list[Fact]()
    for bit, field, form in parts(text, values):
        value = values.get(field) if field is not None else None
        if field is None or value in (None, "", []):
            said += bit
            continue
        where = source(field, sentence.words, sentence.ids, sentence.edges, finding)
        several = sorted(value) if isinstance(value, list) else [value]
        printed = bit.split(", ") if isinstance(value, list) else [bit]
        if len(printed) != len(several):  # a comma inside a name
            printed, several = [bit], [value]
        for number, (word, one) in enumerate(zip(printed, several, strict=True)):
            said += ", " if number else ""
            node = names(said, field, one)
            facts.append(Fact(word, len(said), one, form, where, node))
            said += word
    return replace(sentence, text=said, facts=tuple(facts))


def split(sentence: Sentence) -> Iterator[Sentence]:
    """Give the sentences of a text one by one: ends are looked for between facts, never inside."""
    covered = {i for f in sentence.facts for i in range(f.at, f.at + len(f.text))}
    ends = [
        m.end() for m in _END.finditer(sentence.text)
        if m.start() not in covered
        and (m.end() in covered or sentence.text[m.end() : m.end() + 1].isupper())
    ]  # fmt: skip
    for start, end in zip([0, *ends], [*ends, len(sentence.text)], strict=True):
        inside = tuple(replace(f, at=f.at - start) for f in sentence.facts if start <= f.at < end)
        yield replace(sentence, text=sentence.text[start:end].rstrip(), facts=inside)


def fields(sentence: Sentence, text: str, *, only_order: bool = False) -> list[str] | None:
    """Give which field of a template each fact of a sentence fills; None where it is no such text.

    All other words must be the template's, or with `only_order` may be any.
    """
    said = _marked(sentence, only_order)
    for asked, known in _patterns(text, only_order):
        if found := asked.fullmatch(said):
            return [f for n, f in enumerate(known) for _ in range(found[n + 1].count("\x01"))]
    return None


def _marked(sentence: Sentence, only_order: bool) -> str:
    """Give a sentence with a mark in the place of each fact."""
    said, at = "", 0
    for fact in sentence.facts:
        said += "" if only_order else sentence.text[at : fact.at]
        said += f"\x01{fact.source.column}:{fact.form}\x02"
        at = fact.at + len(fact.text)
    rest = "" if only_order else sentence.text[at:]
    return f"{said}{rest}"


@cache
def _patterns(text: str, only_order: bool) -> list[tuple["re.Pattern[str]", list[str]]]:
    """Give what the whole of a template matches, and each of its sentences, with their fields."""
    pieces: list[tuple[str, list[str]]] = [("", [])]
    joint = "" if only_order else ", "
    for words, field, form, _ in Formatter().parse(" ".join(text.split())):
        for number, bit in enumerate(re.split(r"(?<=[.!?])\s+(?=[A-Z]|$)", words)):
            if number:
                pieces.append(("", []))
            asked, known = pieces[-1]
            pieces[-1] = (asked + ("" if only_order else re.escape(bit)), known)
        if field is not None:
            asked, known = pieces[-1]
            mark = re.escape(f"\x01{field.rpartition('.')[2]}:{form or ''}\x02")
            one = f"((?:{mark}(?:{joint}{mark})*)?" + (")" if only_order else "|unknown|None)")
            pieces[-1] = (asked + one, [*known, field])
    pieces = [p for p in pieces if p[0] or p[1] or only_order]
    whole = (
        ("" if only_order else "\\ ").join(p for p, _ in pieces),
        [f for _, k in pieces for f in k],
    )
    return [(re.compile(p), k) for p, k in (whole, *pieces)]


def of_part(part: Part, words: str, ids: Sequence[tuple[str, int]] = (),
            edges: Sequence[Edge] = ()) -> Sentence:  # fmt: skip
    """Give a sentence that is yet to be filled."""
    return Sentence(part, "", words, ids=tuple(ids), edges=tuple(edges))


def loose(text: str, *, counts: bool = True) -> Counter[str]:
    """Give what in mere words says more than words: numbers, made names, counts, denials."""
    names = (m[0].strip(".:/-") for m in _NAME.finditer(text))
    said = (m[0].lower() for m in _COUNTS.finditer(text) if counts)
    return Counter(w for w in (*names, *said) if w)


def plain(sentence: Sentence) -> str:
    """Give the words of a sentence with its facts taken out."""
    said, at = "", 0
    for fact in sentence.facts:
        said += sentence.text[at : fact.at] + " … "
        at = fact.at + len(fact.text)
    return said + sentence.text[at:]


def bare(text: str) -> str:
    """Give the words of a template without its fields."""
    return " … ".join(words for words, _, _, _ in Formatter().parse(" ".join(text.split())))


def fields_in(text: str) -> list[str]:
    """Give the fields of a template in order."""
    return [field for _, field, _, _ in Formatter().parse(text) if field is not None]
