"""What tokens mean, said without arrays: one merge at a time, one span at a time."""

from collections import Counter
from dataclasses import dataclass, field

from teller.models.tpe.trees import Forest
from teller.models.tpe.vocabulary import Merge, Vocabulary, stem


@dataclass
class Piece:
    """A token that is being made. Its places are rows, in the order of merging."""

    token: int
    rows: list[int]
    up: int  # row that its first span hangs on; -1: none
    sibling: bool
    merged: bool = field(default=False)


def pieces_of(forest: Forest, vocabulary: Vocabulary) -> list[Piece]:
    """Give one piece a row, each hanging on its previous sibling or else on its parent."""
    last_child: dict[tuple[int, int], int] = {}
    base = vocabulary.base_of(forest)
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
    pieces = pieces_of(forest, vocabulary)
    for number, merge in enumerate(vocabulary.merges):
        pieces = apply(pieces, merge, vocabulary.base_count + number)
    return sorted(((p.token, sorted(p.rows)) for p in pieces), key=lambda t: t[1])


def trained(forest: Forest, merges: int, largest: int) -> tuple[Merge, ...]:
    """Count all pairs anew before each merge."""
    bare = Vocabulary(tuple(sorted(set(map(stem, forest.words)))), ())
    pieces = pieces_of(forest, bare)
    found: list[Merge] = []
    size = [1] * bare.base_count
    while len(found) < merges:
        holder = holders(pieces)
        pairs = Counter(pair(p, holder[p.up]) for p in pieces if p.up >= 0)
        fits = {m: n for m, n in pairs.items() if size[m.upper] + size[m.lower] <= largest}
        count = max(fits.values(), default=0)
        if count < 2:
            break
        best = min((m.upper, m.lower, m.at, m.sibling) for m, n in fits.items() if n == count)
        pieces = apply(pieces, Merge(*best), bare.base_count + len(found))
        size.append(size[best[0]] + size[best[1]])
        found.append(Merge(*best))
    return tuple(found)
