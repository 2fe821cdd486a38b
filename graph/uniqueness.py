"""Where the embedded engine would take one relationship twice, which a server never does.

In one MATCH a server takes each relationship once; the embedded engine goes over it as often as the
pattern lets it. Both answer alike where the pattern itself keeps two relationships apart: by its
shape, by its labels, or by what its WHERE says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Final

from teller.graph.patterns import Chain, Hop, Patterns
from teller.graph.reading import Question
from teller.graph.tokens import Token

# all others lead from cause to effect, or from label to label: no way comes back to its start
CYCLIC: Final = frozenset({"TALKED_TO"})
MOST: Final = 50  # relationships of a MATCH: each is compared with each, and planned with each
_UNEQUAL: Final = ("<>", "!=", "<", ">")
_CLAUSES: Final = ("MATCH",)


@dataclass(slots=True)
class _Known:
    """What a MATCH says of its variables."""

    labels: dict[str, frozenset[str]] = field(default_factory=dict)
    fixed: dict[str, dict[str, str]] = field(default_factory=dict)
    apart: set[frozenset[str]] = field(default_factory=set)
    # name -> those farther on a way that never comes back; with `along`, also itself
    above: dict[str, set[str]] = field(default_factory=dict)
    along: dict[str, set[str]] = field(default_factory=dict)


def twice(question: Question) -> str | None:
    """Say which relationships may be taken twice, and how to write it; None where none may."""
    patterns = Patterns(question)
    seen: set[int] = set()
    for clause in question.clauses:
        if clause.word not in _CLAUSES:
            continue
        first, last = patterns.span(clause)
        where = next((i for i in patterns.direct(first, last) if _is(patterns, i, "WHERE")), last)
        chains = patterns.chains(first, where)
        seen.update(range(first, where))
        if sum(len(chain.hops) for chain in chains) > MOST:
            return f"a MATCH has {MOST} relationships at most: write it as several"
        if said := _in_scope(chains, _known(patterns, chains, where, last)):
            return said
    for chain in patterns.chains(0, len(question.tokens), lone=False):
        if chain.start not in seen and (
            said := _in_scope([chain], _known(patterns, [chain], 0, 0))
        ):
            return said
    return None


def _is(patterns: Patterns, at: int, word: str) -> bool:
    return patterns.tokens[at].word == word


def _in_scope(chains: list[Chain], known: _Known) -> str | None:
    """Say what may be taken twice in what belongs together."""
    hops = [hop for chain in chains for hop in chain.hops]
    for hop in hops:
        if said := _revisits(hop):
            return said
    for one, other in combinations(hops, 2):
        if _may_be_one(one, other, known):
            kind = " or ".join(sorted(one.types & other.types or one.types or other.types))
            ends = _ends(one, other) if one.is_single and other.is_single else ""
            apart = f"say {ends} in its WHERE, or " if ends else ""
            return (
                f"two relationships of this MATCH{' (' + kind + ')' if kind else ''} may be one "
                f"and the same here, and never on a server: {apart}write them in two MATCH clauses"
            )
    return None


def _revisits(hop: Hop) -> str | None:
    if hop.selective or hop.most < 2:
        return None
    stars = f"[:{'|'.join(sorted(hop.types)) or 'TYPE'}*…]"
    if not hop.directed:
        return (
            f"{stars} without a direction goes back over the same relationship here, and never on "
            "a server: give it a direction, or write * TRAIL, which only this engine knows"
        )
    if hop.most >= 3 and (not hop.types or hop.types & CYCLIC):
        return (
            f"{stars} may go in a circle over the same relationship here, and never on a server: "
            "name the types, without TALKED_TO, or write * TRAIL, which only this engine knows"
        )
    return None


def _may_be_one(one: Hop, other: Hop, known: _Known) -> bool:
    if one.types and other.types and not one.types & other.types:
        return False
    if frozenset((one.name, other.name)) in known.apart:
        return False
    if one.directed and other.directed:
        both = one.types | other.types
        goes_on = bool(one.types and other.types) and not both & CYCLIC
        if goes_on and (other.src in known.along[one.dst] or one.src in known.along[other.dst]):
            return False
        if not (one.is_single and other.is_single):
            return True
        if other.src == one.dst or one.src == other.dst:
            return False  # one and the same would begin where it ends
        return _same(one.src, other.src, known) and _same(one.dst, other.dst, known)
    if not (one.is_single and other.is_single):
        return True
    straight = _same(one.src, other.src, known) and _same(one.dst, other.dst, known)
    return straight or (_same(one.src, other.dst, known) and _same(one.dst, other.src, known))


def _same(one: str, other: str, known: _Known) -> bool:
    """Tell whether two variables may be one node."""
    if one == other:
        return True
    if frozenset((one, other)) in known.apart:
        return False
    if other in known.above[one] or one in known.above[other]:
        return False
    mine, yours = known.labels.get(one), known.labels.get(other)
    if mine and yours and not mine & yours:
        return False
    a, b = known.fixed.get(one, {}), known.fixed.get(other, {})
    return all(a[key] == b[key] for key in a.keys() & b.keys())


def _known(patterns: Patterns, chains: list[Chain], first: int, last: int) -> _Known:
    known = _Known()
    for chain in chains:
        for node in chain.nodes:
            if node.labels:
                known.labels[node.name] = node.labels
            known.fixed.setdefault(node.name, {}).update(node.fixed)
    names = {node.name for chain in chains for node in chain.nodes}
    steps = [hop for chain in chains for hop in chain.hops if hop.directed]
    ways = [h for h in steps if h.types and not h.types & CYCLIC]
    for name in names:
        known.along[name] = _reached({name}, ways)
        strict = {h.dst for h in ways if h.src in known.along[name] and h.least}
        known.above[name] = _reached(strict, ways) - {name}
    for one, other in _unequal(patterns, first, last):
        known.apart.add(frozenset((one, other)))
    for name, key, value in _equal(patterns, first, last):
        known.fixed.setdefault(name, {})[key] = value
    return known


def _reached(start: set[str], ways: list[Hop]) -> set[str]:
    found = set(start)
    while more := {h.dst for h in ways if h.src in found} - found:
        found |= more
    return found


def _conditions(patterns: Patterns, first: int, last: int) -> Iterator[tuple[bool, list[Token]]]:
    """Give what a WHERE joins by AND, and whether a NOT is before it; of an OR nothing is sure."""
    places = list(patterns.direct(first, last))[1:]
    if any(patterns.tokens[at].word in ("OR", "XOR") for at in places):
        return
    part: list[int] = []
    for at in [*places, None]:
        if at is not None and not _is(patterns, at, "AND"):
            part.append(at)
            continue
        if part:
            words = patterns.tokens[part[0] : part[-1] + 1]
            closing = patterns.question.closing.get(part[-1])
            words += patterns.tokens[part[-1] + 1 : closing + 1] if closing else ()
            denied = words[0].word == "NOT"
            yield denied, list(words[1:] if denied else words)
        part = []


def _unequal(patterns: Patterns, first: int, last: int) -> Iterator[tuple[str, str]]:
    """Give the pairs of variables that a WHERE keeps apart: `a.id <> b.id`, `a <> b`."""
    for denied, words in _conditions(patterns, first, last):
        texts = [t.called if t.kind == "name" else t.text for t in words]
        for sign in ("=",) if denied else _UNEQUAL:
            if texts.count(sign) != 1:
                continue
            at = texts.index(sign)
            left, right = _operand(texts[:at]), _operand(texts[at + 1 :])
            if left and right and left[1] == right[1]:
                yield left[0], right[0]


def _equal(patterns: Patterns, first: int, last: int) -> Iterator[tuple[str, str, str]]:
    """Give what a WHERE fixes: `a.rank = 0`."""
    for denied, words in _conditions(patterns, first, last):
        texts = [t.text for t in words]
        is_plain = len(words) == 5 and words[4].kind in ("number", "string")
        if is_plain and not denied and texts[1] == "." and texts[3] == "=":
            yield words[0].called, words[2].called, words[4].text


def _operand(texts: list[str]) -> tuple[str, str] | None:
    """Read `a`, `a.id` or `id(a)` as a variable and what of it is compared."""
    match texts:
        case [name]:
            return name, ""
        case [name, ".", key]:
            return name, key
        case [("id" | "elementId") as key, "(", name, ")"]:
            return name, f"{key}()"
    return None


def _ends(one: Hop, other: Hop) -> str:
    """Say which two variables must differ, where the query has names for them."""
    for a, b in product((one.src, one.dst), (other.src, other.dst)):
        if a != b and "(" not in a + b and {one.src, one.dst} & {other.src, other.dst} - {a, b}:
            return f"{a}.id <> {b}.id"
    return ""
