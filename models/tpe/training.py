"""Learn a vocabulary: the most frequent pair becomes a token, again and again.

Byte-pair encoding (Sennrich, Haddow and Birch, "Neural machine translation of rare words with
subword units", 2016) on the edges of step trees in place of neighbours in a text.
"""

import heapq
from typing import Final

import msgspec
import numpy as np

from teller.models.tpe.pieces import (
    MAX_SIZE,
    PLACE_BITS,
    TOKEN_BITS,
    Pieces,
    free_of_overlap,
)
from teller.models.tpe.shapes import doubled, edges_of, same_as, subset
from teller.models.tpe.trees import Forest, Ints
from teller.models.tpe.vocabulary import Merge, Vocabulary, kin, stem

MERGES: Final = 512
LARGEST: Final = 64
LEAST: Final = 2  # a pair that is seen once saves nothing elsewhere


def train(forest: Forest, merges: int = MERGES, largest: int = LARGEST) -> Vocabulary:
    """Give the vocabulary of that many merges, or of fewer where no pair is left that repeats.

    No token has more spans than `largest`: one that is a whole step says nothing of where it is.
    Each step is counted twice, with stems and with kin; steps of one shape are counted at once.
    Equal counts are ordered by the pair, so that the same steps give the same vocabulary in any
    order.
    """
    words = {name(w) for name in (stem, kin) for w in forest.words}
    bare = Vocabulary(words=tuple(sorted(words)), merges=())
    stems = bare.base_of(forest)
    shape, times = np.unique(same_as(forest, stems), return_counts=True)
    rows = subset(forest, shape)
    base = np.append(stems[rows], bare.base_of(forest, kin)[rows])
    weight = np.repeat(times, np.diff(forest.starts)[shape])
    sizes = np.ones(bare.base_count + merges, np.int64)
    pieces = Pieces(doubled(edges_of(forest, rows)), base, sizes)
    start, most = bare.base_count, min(largest, MAX_SIZE)
    found = _merges(pieces, np.append(weight, weight), start, merges, most)
    return msgspec.structs.replace(bare, merges=tuple(found))


def _merges(pieces: Pieces, weight: Ints, first: int, wanted: int, largest: int) -> list[Merge]:
    key = pieces.keys(np.arange(len(weight)))
    pairs = Pairs()
    pairs.add(key, weight)
    found: list[Merge] = []
    while len(found) < wanted and (best := pairs.most()) is not None:
        merge = unpacked(best)
        token = first + len(found)
        pieces.sizes[token] = pieces.sizes[merge.upper] + pieces.sizes[merge.lower]
        if pieces.sizes[token] > largest:
            pairs.bar(best)
            continue
        lower = free_of_overlap(pieces, key == best, key)
        changed = pieces.merge(lower, np.full(len(lower), token))
        old = np.concatenate([lower, changed])
        pairs.add(key[old], -weight[old])
        key[lower] = -1
        key[changed] = pieces.keys(changed)
        pairs.add(key[changed], weight[changed])
        found.append(merge)
        if pieces.gone.mean() > 0.5:
            kept = pieces.compact()
            key, weight = key[kept], weight[kept]
    return found


class Pairs:
    """How often each pair is there, and which is there most."""

    def __init__(self) -> None:
        self._count: dict[int, int] = {}
        self._barred: set[int] = set()
        self._heap: list[tuple[int, int]] = []  # entries with counts of the past are passed over

    def add(self, key: Ints, times: Ints) -> None:
        """Count pairs; -1 is none."""
        known, code = np.unique(key, return_inverse=True)
        sums = np.zeros(len(known), np.int64)
        np.add.at(sums, code, times)
        for pair, more in zip(known.tolist(), sums.tolist(), strict=True):
            if pair >= 0 and more:
                now = self._count[pair] = self._count.get(pair, 0) + more
                heapq.heappush(self._heap, (-now, pair))

    def most(self) -> int | None:
        """Give the pair that is there most, the least of several; none where none repeats."""
        while self._heap:
            count, pair = self._heap[0]
            if self._count[pair] == -count and pair not in self._barred:
                return pair if -count >= LEAST else None
            heapq.heappop(self._heap)
        return None

    def bar(self, pair: int) -> None:
        """Never give this pair again."""
        self._barred.add(pair)


def unpacked(key: int) -> Merge:
    """Give the merge of a packed pair."""
    at = key >> 1 & (1 << PLACE_BITS) - 1
    lower = key >> 1 + PLACE_BITS & (1 << TOKEN_BITS) - 1
    return Merge(key >> 1 + PLACE_BITS + TOKEN_BITS, lower, at, bool(key & 1))
