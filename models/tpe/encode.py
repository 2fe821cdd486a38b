"""Write step trees as tokens: the merges of a vocabulary, applied in their order.

A merge only makes pairs of later merges, so a pair may go as soon as no overlapping pair comes
before it: all such pairs go at once, and the result is that of one merge at a time.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from teller.models.tpe.pieces import Pieces, free_of_overlap
from teller.models.tpe.shapes import Edges, edges_of, ragged, same_as, subset
from teller.models.tpe.trees import VALUES, Forest, Ints, Word
from teller.models.tpe.vocabulary import UNKNOWN, Vocabulary, kin, stem

LATER: Final = 1 << 31  # the rank of a pair that is in no merge

TOKENS: Final = pa.schema(
    [
        ("step", pa.int64()),  # row of `steps`
        ("token", pa.int64()),
        ("parent", pa.int64()),  # row of the token that holds its parent; -1 at the top
        ("at", pa.int64()),  # which span of that token is the parent; -1 at the top
        ("depth", pa.int64()),  # of its topmost spans, in the step
        ("position", pa.int64()),  # order in the step, by first span
        ("first_row", pa.int64()),  # of its first span in the forest
        ("size", pa.int64()),  # spans
        ("total_ns", pa.int64()),  # durations of its topmost spans
        ("self_ns", pa.int64()),  # self times of all its spans
        ("gap_ns", pa.int64()),  # before its first span
        ("excess_ns", pa.int64()),  # the largest of one of its spans
        ("excess_at", pa.int64()),  # and which span has it
    ]
)
PARTS: Final = pa.schema(
    [
        ("token", pa.int64()),  # row of the token table, ascending
        ("place", pa.int64()),  # in the token, depth first
        ("row", pa.int64()),  # of the forest
        ("word", pa.int64()),  # place in `words` where the token does not give it whole; else -1
        *VALUES,
    ]
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """Steps as tokens, and beside them what each span has of its own."""

    steps: pa.Table  # STEPS of trees
    words: tuple[Word, ...]  # those that tokens do not give whole
    tokens: pa.Table  # TOKENS
    parts: pa.Table  # PARTS: a row a span


def encode(forest: Forest, vocabulary: Vocabulary) -> Encoding:
    """Give the tokens of all steps; each shape of step is worked out once."""
    first, token, base = _spread(forest, vocabulary)
    order = np.argsort(first, kind="stable")  # by token and place, since rows are depth first
    heads = np.flatnonzero(first[order] == order)
    size = np.diff(np.append(heads, len(order)))
    code = np.repeat(np.arange(len(heads)), size)
    place = np.arange(len(order)) - np.repeat(heads, size)
    words, word = _beside(forest, base, vocabulary)
    parts = {"token": code, "place": place, "row": order, "word": word[order]}
    values = forest.values.take(pa.array(order))
    return Encoding(
        steps=forest.steps,
        words=words,
        tokens=_tokens(forest, token, order, heads, size, _inverse(order)),
        parts=pa.table([*parts.values(), *values.columns], schema=PARTS),
    )


def contracted(tree: Edges, base: Ints, vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Give for each row the first row of its piece, and the piece's token at that row."""
    keys = vocabulary.keys()
    sorter = np.argsort(keys)
    ranked = np.append(keys[sorter], np.iinfo(np.int64).max)
    ranks = np.append(sorter, LATER)
    pieces = Pieces(tree, base, vocabulary.sizes())
    rank = _ranks(pieces, np.arange(len(base)), ranked, ranks)
    while len(hit := np.flatnonzero(rank < LATER)):
        least = rank.copy()
        np.minimum.at(least, pieces.up[hit], rank[hit])
        wanted = np.zeros(len(rank), np.bool_)
        wanted[hit] = (least[hit] == rank[hit]) & (least[pieces.up[hit]] == rank[hit])
        lower = free_of_overlap(pieces, wanted, rank)
        changed = pieces.merge(lower, vocabulary.base_count + rank[lower].astype(np.int64))
        rank[lower] = LATER
        rank[changed] = _ranks(pieces, changed, ranked, ranks)
        if pieces.gone.mean() > 0.5:
            rank = rank[pieces.compact()]
    alone = np.flatnonzero(~pieces.gone)
    token = np.full(len(base), -1)
    token[pieces.row[alone]] = pieces.token[alone]
    into = pieces.into
    while (into != into[into]).any():
        into = into[into]
    return into, token


def _ranks(pieces: Pieces, which: Ints, keys: Ints, ranks: Ints) -> Ints:
    key = pieces.keys(which)
    at = np.searchsorted(keys, key)
    return np.where(keys[at] == key, ranks[at], LATER)


def _spread(forest: Forest, vocabulary: Vocabulary) -> tuple[Ints, Ints, Ints]:
    """Work out one step of each shape, and give its pieces to the steps of the same shape.

    What comes back is, by row, the first row of its piece, the token there, and the base token.
    """
    bases = [vocabulary.base_of(forest, name) for name in (stem, kin)]
    same = same_as(forest, _stems(forest))
    shape = np.unique(same)
    rows = subset(forest, shape)
    tree = edges_of(forest, rows)
    sizes = np.diff(forest.starts)
    ends = np.cumsum(sizes[shape])
    written = [contracted(tree, base[rows], vocabulary) for base in bases]
    heads = [np.append(0, np.cumsum(token >= 0)) for _, token in written]
    stems_count, kin_count = (h[ends] - h[ends - sizes[shape]] for h in heads)
    use_kin = (kin_count < stems_count)[np.searchsorted(shape, same)]
    starts, which = forest.starts[:-1], np.repeat(use_kin, sizes)
    twin_start = (ends - sizes[shape])[np.searchsorted(shape, same)]
    twin = ragged(twin_start, sizes)
    into, token = (np.where(which, b[twin], a[twin]) for a, b in zip(*written, strict=True))
    first = into + np.repeat(starts - twin_start, sizes)
    return first, token, np.where(which, bases[1], bases[0])


def _stems(forest: Forest) -> Ints:
    """Give each row a number of its stem, known or not."""
    names = [stem(w) for w in forest.words]
    number = {name: n for n, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], np.int64)[forest.word]


def _beside(forest: Forest, base: Ints, vocabulary: Vocabulary) -> tuple[tuple[Word, ...], Ints]:
    """Give the words that base tokens do not give whole, and by row which of them it has."""
    number = {word: n for n, word in enumerate(vocabulary.words, start=1)}
    whole = np.array([number.get(w, UNKNOWN) for w in forest.words], np.int64)[forest.word]
    rows = (whole == UNKNOWN) | (whole != base)
    used, code = np.unique(forest.word[rows], return_inverse=True)
    word = np.full(len(rows), -1)
    word[rows] = code
    return tuple(forest.words[n] for n in used.tolist()), word


def _tokens(
    forest: Forest, token: Ints, order: Ints, heads: Ints, size: Ints, part_of: Ints
) -> pa.Table:
    """Give the token table; `order` has the rows by token and place, `heads` where tokens start."""
    first = order[heads]
    above = forest.parent[first]
    code = np.repeat(np.arange(len(heads)), size)
    parent = np.where(above >= 0, code[part_of[above]], -1)
    place = part_of[above] - heads[parent]
    step = forest.step[first]
    top = forest.depth[order] == np.repeat(forest.depth[first], size)
    value = {n: forest.values[n].to_numpy()[order] for n in ("dur_ns", "self_ns", "excess_ns")}
    largest, largest_at = _largest(value["excess_ns"], code, heads)
    columns = {
        "step": step,
        "token": token[first],
        "parent": parent,
        "at": np.where(above >= 0, place, -1),
        "depth": forest.depth[first],
        "position": np.arange(len(first)) - np.searchsorted(step, step),
        "first_row": first,
        "size": size,
        "total_ns": _sums(np.where(top, value["dur_ns"], 0), heads),
        "self_ns": _sums(value["self_ns"], heads),
        "gap_ns": forest.values["gap_ns"].to_numpy()[first],
        "excess_ns": largest,
        "excess_at": largest_at,
    }
    return pa.table(columns, schema=TOKENS)


def _sums(numbers: Ints, heads: Ints) -> Ints:
    return np.add.reduceat(numbers, heads) if len(heads) else numbers


def _largest(excess: Ints, code: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """Give the largest excess of each token, and the first place that has it."""
    if not len(heads):
        return excess, excess
    largest = np.maximum.reduceat(excess, heads)
    rows = np.flatnonzero(excess == largest[code])
    _, first = np.unique(code[rows], return_index=True)
    return largest, rows[first] - heads


def _inverse(order: Ints) -> Ints:
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return back
