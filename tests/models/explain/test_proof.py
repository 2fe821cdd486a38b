"""The checker refuses a sentence in which anything was changed, and that sentence alone."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller.graph.embedded import EmbeddedStore
from teller.graph.explanation import Edge, Fact, Sentence, Source
from teller.models.explain.proof import Proof
from tests.models.explain.conftest import loaded, told_of

Told = dict[str, tuple[tuple[Sentence, ...], Proof]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    path: Path = tmp_path_factory.mktemp("explained") / "graph.lbdb"
    with EmbeddedStore(path, pool_bytes=128 << 20) as store:
        case = loaded(store)
        made = {by: told_of(case, by) for by in ("rule", "model")}
        yield {by: (one.sentences, proof) for by, (_, one, proof) in made.items()}


def spelt(sentence: Sentence, number: int, text: str, **more: object) -> Sentence:
    """Write another text in the place of one fact, and say so in the fact."""
    old = sentence.facts[number]
    longer = len(text) - len(old.text)
    facts = [replace(f, at=f.at + longer) if f.at > old.at else f for f in sentence.facts]
    facts[number] = replace(old, text=text, **more)  # type: ignore[arg-type]  # fields by name
    said = sentence.text[: old.at] + text + sentence.text[old.at + len(old.text) :]
    return replace(sentence, text=said, facts=tuple(facts))


def other_number(text: str) -> str:
    """Change the first digit of a text."""
    return re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), text, count=1)


def text_alone(s: Sentence, at: int) -> Sentence:
    fact = s.facts[at]
    said = s.text[: fact.at] + "7" + s.text[fact.at + 1 :]
    return replace(s, text=said if said != s.text else s.text.replace("7", "8"))


def text_and_fact(s: Sentence, at: int) -> Sentence:
    old = s.facts[at].text
    new = other_number(old)
    return spelt(s, at, new if new != old else f"{old}x")


def all_of_it(s: Sentence, at: int) -> Sentence:
    """Change text, value and, of a name, the node: only the graph knows better."""
    fact = s.facts[at]
    if isinstance(fact.value, int) and fact.names is not None:
        other = {"Rank": 35400 + (1 - fact.value), "Step": 35010 + (1 - fact.value)}
        named = (fact.names[0], other[fact.names[0]])
        return spelt(s, at, str(1 - fact.value), value=1 - fact.value, names=named)
    if isinstance(fact.value, (int, float)):
        return spelt(s, at, other_number(fact.text), value=fact.value + 1)
    return spelt(s, at, "linear", value="linear")


def other_place(s: Sentence, at: int) -> Sentence:
    fact = s.facts[at]
    moved = replace(fact.source, id=fact.source.id + 1)
    facts = (*s.facts[:at], replace(fact, source=moved), *s.facts[at + 1 :])
    return replace(s, facts=facts)


def no_fact(s: Sentence, at: int) -> Sentence:
    """Say a number without saying where it is from."""
    return replace(s, facts=s.facts[:at] + s.facts[at + 1 :])


CHANGES = (text_alone, text_and_fact, all_of_it, other_place, no_fact)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_changed_figure_or_name_is_refused(told: Told, data: st.DataObject) -> None:
    sentences, proof = told[data.draw(st.sampled_from(sorted(told)))]
    stated = [s for s in sentences if s.facts]
    sentence = data.draw(st.sampled_from(stated))
    change: Callable[[Sentence, int], Sentence] = data.draw(st.sampled_from(CHANGES))
    wrong = change(sentence, data.draw(st.integers(0, len(sentence.facts) - 1)))
    assert wrong != sentence
    refused = [s for s in (*sentences, wrong) if proof.flaw(s)]
    assert refused == [wrong], (change.__name__, wrong.text)


def turned(edge: Edge) -> Edge:
    return Edge(edge.type, edge.dst_kind, edge.dst, edge.src_kind, edge.src)


def elsewhere(edge: Edge) -> Edge:
    return replace(edge, dst=edge.dst + (1 if edge.dst < 35_000 else -1))


def lost(edge: Edge) -> Edge:
    return replace(edge, src=1)


def unknown(edge: Edge) -> Edge:
    return replace(edge, type="MADE")


@pytest.mark.parametrize("change", [turned, elsewhere, lost, unknown])
def test_any_changed_edge_is_refused(told: Told, change: Callable[[Edge], Edge]) -> None:
    sentences, proof = told["rule"]
    for sentence in sentences:
        for number, edge in enumerate(sentence.edges):
            edges = [*sentence.edges]
            edges[number] = change(edge)
            wrong = replace(sentence, edges=tuple(edges))
            assert proof.flaw(wrong), (sentence.text, edges[number])
            assert not proof.flaw(sentence)


def test_a_node_that_is_not_in_the_run_is_refused(told: Told) -> None:
    sentences, proof = told["rule"]
    for sentence in sentences:
        wrong = replace(sentence, ids=(*sentence.ids, ("Span", 99)))
        assert proof.flaw(wrong) == "Span 99 is not in this run"


@pytest.mark.parametrize("more", [" It is 7 times worse.", " So is rank 0.", " DROP", "_"])
def test_a_word_more_is_refused(told: Told, more: str) -> None:
    for sentences, proof in told.values():
        for sentence in sentences:
            assert proof.flaw(replace(sentence, text=sentence.text + more))


def test_words_of_the_finding_may_name_nothing(told: Told) -> None:
    _, proof = told["model"]
    said = Sentence("not_checked", "no rule says this", "finding.not_checked.0")
    assert not proof.flaw(said)
    for words in ("finding.not_checked.1", "finding.id", "nobody.text", "late_gemm.text"):
        assert proof.flaw(replace(said, words=words))


def test_a_fact_out_of_its_place_is_refused(told: Told) -> None:
    sentences, proof = told["rule"]
    late = next(s for s in sentences if s.words == "path.late")
    fact = Fact("all_reduce", late.text.index("all_reduce"), "all_reduce", "",
                Source("Collective", 35201, "op"))  # fmt: skip
    assert fact in late.facts
    swapped = replace(late, facts=late.facts[::-1])
    assert proof.flaw(swapped)
