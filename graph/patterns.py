"""The patterns of a query as nodes and relationships: `(a:Span)-[r:CHILD*1..3]->(b)`."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from teller.graph.reading import Clause, Question
from teller.graph.tokens import Token

SELECTIVE: Final = frozenset({"SHORTEST", "WSHORTEST", "TRAIL", "ACYCLIC"})
_NAMES: Final = ("word", "name")


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node: its variable (made up where it has none), labels if named, and fixed values."""

    name: str
    labels: frozenset[str]
    fixed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Hop:
    """A relationship: its ends, its types (none: any), and how many it may stand for."""

    name: str
    src: str
    dst: str
    types: frozenset[str]
    directed: bool
    least: int = 1
    most: float = 1
    selective: bool = False  # the query itself says which of the ways are meant

    @property
    def is_single(self) -> bool:
        """Tell whether it stands for exactly one relationship."""
        return self.least == self.most == 1


@dataclass(frozen=True, slots=True)
class Chain:
    """Nodes and the relationships between them, in their order."""

    start: int  # place among the words
    nodes: tuple[PatternNode, ...]
    hops: tuple[Hop, ...]


class Patterns:
    """The patterns of one query."""

    def __init__(self, question: Question) -> None:
        """Take the words of a query that was checked."""
        self.question = question
        self.tokens = question.tokens
        self._next: dict[int, int] = {}  # place of a clause -> of the one behind it
        latest: dict[int, int] = {}
        for clause in question.clauses:
            if clause.bracket in latest:
                self._next[latest[clause.bracket]] = clause.at
            latest[clause.bracket] = clause.at

    def span(self, clause: Clause) -> tuple[int, int]:
        """Give the places of a clause's words, from behind its own to before the next clause."""
        end = len(self.tokens) if clause.bracket < 0 else self.question.closing[clause.bracket]
        return clause.at + 1, self._next.get(clause.at, end)

    def direct(self, first: int, last: int) -> Iterator[int]:
        """Give the places of words that are in no bracket of their own; of brackets, the first."""
        at = first
        while at < last:
            yield at
            at = self.question.closing.get(at, at) + 1

    def chains(self, first: int, last: int, *, lone: bool = True) -> list[Chain]:
        """Give the patterns among these words; with `lone` also nodes without relationships."""
        found = []
        at = first
        while at < last:
            chain, behind = self._chain(at) if self.tokens[at].text == "(" else (None, at + 1)
            if chain is not None and (chain.hops or lone):
                found.append(chain)
                at = behind
            else:
                at += 1
        return found

    def _chain(self, at: int) -> tuple[Chain | None, int]:
        start, node = at, self._node(at)
        if node is None:
            return None, at + 1
        nodes, hops = [node], []
        at = self.question.closing[at] + 1
        while (step := self._hop(at, nodes[-1].name)) is not None:
            hop, at = step
            following = self._node(at)
            if following is None:
                break
            nodes.append(following)
            hops.append(_joined(hop, following.name))
            at = self.question.closing[at] + 1
        return Chain(start, tuple(nodes), tuple(hops)), at

    def _node(self, at: int) -> PatternNode | None:
        """Read `(name:Label|Other {key: 1})`, or give None for what is none."""
        if self._text(at) != "(":
            return None
        end, here = self.question.closing[at], at + 1
        name = f"({at}"
        if here < end and self._is_name(here):
            name, here = self.tokens[here].called, here + 1
        labels, here = self._labels(here, end)
        fixed: dict[str, str] = {}
        if self._text(here) == "{":
            fixed, here = self._map(here), self.question.closing[here] + 1
        if here != end and self.tokens[here].word != "WHERE":
            return None
        return PatternNode(name, labels, fixed)

    def _hop(self, at: int, src: str) -> tuple[Hop, int] | None:
        """Read `-[name:TYPE*1..3]->`, `<--` and the like; the other end is not known yet."""
        left = self._text(at) == "<"
        here = at + left
        if self._text(here) != "-":
            return None
        here += 1
        name, types, least, most, selective = f"[{at}", frozenset[str](), 1, 1.0, False
        if self._text(here) == "[":
            end = self.question.closing[here]
            name, types, least, most, selective = self._body(here + 1, end)
            here = end + 1
        if self._text(here) != "-":
            return None
        here += 1
        right = self._text(here) == ">"
        here += right
        if self._text(here) in ("+", "*", "{"):  # `->+(b)`: any number of times
            least, most = 0, math.inf
            here = self.question.closing.get(here, here) + 1
        ends = ("", src) if left and not right else (src, "")
        return Hop(name, *ends, types, left != right, least, most, selective), here

    def _body(self, here: int, end: int) -> tuple[str, frozenset[str], int, float, bool]:
        name = f"[{here}"
        if self._is_name(here):
            name, here = self.tokens[here].called, here + 1
        types, here = self._labels(here, end)
        if self._text(here) != "*":
            return name, types, 1, 1, False
        rest = self.tokens[here + 1 : end]
        selective = any(t.word in SELECTIVE for t in rest)
        least, most = _range([t for t in rest if t.kind == "number" or t.text == ".."])
        return name, types, least, most, selective

    def _labels(self, here: int, end: int) -> tuple[frozenset[str], int]:
        found = set()
        while here + 1 < end and self._text(here) in (":", "|", "&") and self._is_name(here + 1):
            found.add(self.tokens[here + 1].called)
            here += 2
            here += self._text(here) == "|" and self._text(here + 1) == ":"  # the old `|:`
        return frozenset(found), here

    def _map(self, at: int) -> dict[str, str]:
        """Give those keys of a map that have a number or a string."""
        found = {}
        for here in range(at + 1, self.question.closing[at] - 2):
            key, colon, value, behind = self.tokens[here : here + 4]
            plain = value.kind in ("number", "string") and behind.text in (",", "}")
            if key.kind in _NAMES and colon.text == ":" and plain:
                found[key.called] = value.text
        return found

    def _is_name(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].kind in _NAMES

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""


def _joined(hop: Hop, other: str) -> Hop:
    return Hop(
        hop.name, hop.src or other, hop.dst or other, hop.types, hop.directed, hop.least, hop.most,
        hop.selective,
    )  # fmt: skip


def _range(said: list[Token]) -> tuple[int, float]:
    """Read what follows the star: `2`, `1..3`, `..3`, `1..`, or nothing."""
    texts = [t.text for t in said]
    if ".." not in texts:
        return (int(texts[0]), int(texts[0])) if texts else (1, math.inf)
    at = texts.index("..")
    return int(texts[at - 1]) if at else 1, int(texts[at + 1]) if at + 1 < len(texts) else math.inf
