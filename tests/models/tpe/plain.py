"""What tokens mean, said without arrays: one merge at a time, one span at a time."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from teller.models.tpe.trees import Forest, Word
from teller.models.tpe.vocabulary import Merge, Vocabulary, kin, stem


@dataclass
class Piece:
    """A token that is being made. Its places are rows, in the order of merging."""

    token: int
    rows: list[int]
    up: int  # row that its first span hangs on; -1: none
    sibling: bool
    merged: bool = field(default=False)


Name = Callable[[Word], Word]


def pieces_of(forest: Forest, vocabulary: Vocabulary, name: Name) -> list[Piece]:
    """Give one piece a row, each hanging on its previous sibling or else on its parent."""
    last_child: dict[tuple[int, int], int] = {}
    base = vocabulary.base_of(forest, name)
    made = []
    for row in range(len(forest)):
        step, parent = int(forest.step[row]), int(forest.parent[row])
        before = last_child.get((step, parent), -1)
        last_child[step, parent] = row
        made.append(Piece(int(base[row]), [row], parent if before < 0 else before, before >= 0))
    return made


def holders(pieces: list[Piece]) -> dict[int, Piece]:
    return {row: piece for piece in pieces for row in piece.rows}


def pair(piece: Piece, above: Piece) -> Merge:
    return Merge(above.token, piece.token, above.rows.index(piece.up), piece.sibling)


def apply(pieces: list[Piece], merge: Merge, token: int) -> list[Piece]:
    """Merge each pair that is like this one, from the top; none takes part twice."""
    holder = holders(pieces)
    used: set[int] = set()
    gone: set[int] = set()
    for piece in sorted(pieces, key=lambda p: p.rows[0]):
        above = holder.get(piece.up)
        if above is None or {id(piece), id(above)} & used or pair(piece, above) != merge:
            continue
        used |= {id(piece), id(above)}
        gone.add(id(piece))
        above.rows += piece.rows
    for piece in pieces:
        if id(piece) in used - gone:
            piece.token = token
    return [p for p in pieces if id(p) not in gone]


def encoded(forest: Forest, vocabulary: Vocabulary) -> list[tuple[int, list[int]]]:
    """Give each token with its rows, both in depth-first order."""
    found: list[tuple[int, list[int]]] = []
    both = [by_step(forest, written(forest, vocabulary, name)) for name in (stem, kin)]
    for step in sorted(both[0]):
        stems, kindred = (one[step] for one in both)
        found += kindred if len(kindred) < len(stems) else stems
    return found


def written(forest: Forest, vocabulary: Vocabulary, name: Name) -> list[tuple[int, list[int]]]:
    pieces = pieces_of(forest, vocabulary, name)
    for number, merge in enumerate(vocabulary.merges):
        pieces = apply(pieces, merge, vocabulary.base_count + number)
    return sorted(((p.token, sorted(p.rows)) for p in pieces), key=lambda t: t[1])


def by_step(
    forest: Forest, tokens: list[tuple[int, list[int]]]
) -> dict[int, list[tuple[int, list[int]]]]:
    found: dict[int, list[tuple[int, list[int]]]] = {}
    for token, rows in tokens:
        found.setdefault(int(forest.step[rows[0]]), []).append((token, rows))
    return found


def trained(forest: Forest, merges: int, largest: int) -> tuple[Merge, ...]:
    """Count all pairs anew before each merge, of steps written with stems and with kin."""
    bare = Vocabulary(tuple(sorted({n(w) for n in (stem, kin) for w in forest.words})), ())
    texts = [pieces_of(forest, bare, name) for name in (stem, kin)]
    found: list[Merge] = []
    size = [1] * bare.base_count
    while len(found) < merges:
        held = [(piece, holders(pieces)) for pieces in texts for piece in pieces]
        pairs = Counter(pair(p, holder[p.up]) for p, holder in held if p.up >= 0)
        fits = {m: n for m, n in pairs.items() if size[m.upper] + size[m.lower] <= largest}
        count = max(fits.values(), default=0)
        if count < 2:
            break
        best = min((m.upper, m.lower, m.at, m.sibling) for m, n in fits.items() if n == count)
        texts = [apply(p, Merge(*best), bare.base_count + len(found)) for p in texts]
        size.append(size[best[0]] + size[best[1]])
        found.append(Merge(*best))
    return tuple(found)
