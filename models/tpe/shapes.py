"""Steps that look the same, and the binary tree that their pieces are cut from.

Healthy decode steps repeat: one of each shape is trained on and encoded, the others follow.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.models.tpe.trees import Forest, Ints, narrow

Flags = npt.NDArray[np.bool_]

# of splitmix64, as in `teller.graph.ids`
_STRIDE: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Edges:
    """The left-child right-sibling tree of each step (Knuth, TAOCP 1, 2.3.2): one edge a row.

    A row hangs on its previous sibling where it has one, else on its parent; the first row of a
    step hangs on nothing. A piece that is connected here is a run of siblings under one parent with
    the first children of each: a fragment of the call tree whose structure needs no more words.
    """

    up: Ints  # row; -1 for a step's first
    sibling: Flags  # the row above is the previous sibling


def edges_of(forest: Forest, rows: Ints) -> Edges:
    """Give the edges among these rows, which are whole steps."""
    step, depth = forest.step[rows], forest.depth[rows]
    number = np.full(len(forest) + 1, -1)  # one more: a parent of -1 falls on it
    number[rows] = np.arange(len(rows))
    order = np.argsort(narrow(depth), kind="stable")
    before = np.full(len(rows), -1)
    before[order[1:]] = order[:-1]  # the row before of the same depth: a sibling, if there is one
    above = number[forest.parent[rows]]
    first_child = (above >= 0) & (above == np.arange(len(rows)) - 1)
    alone = (above < 0) & ((before < 0) | (step[before] != step))
    sibling = ~first_child & ~alone
    up = np.where(sibling, before, np.where(first_child, above, -1))
    return Edges(up, sibling)


def same_as(forest: Forest, word: Ints) -> Ints:
    """Give for each step the first step that has the same tree of the same words."""
    starts = forest.starts
    sizes = np.diff(starts)
    place = np.arange(len(forest)) - np.repeat(starts[:-1], sizes)
    mixed = _mix(_mix(_mix(place) ^ forest.depth.astype(np.uint64)) ^ word.astype(np.uint64))
    sums = np.append(
        np.uint64(0), np.cumsum(mixed, dtype=np.uint64)
    )  # wraps, and so do differences
    shape = np.stack([sums[starts[1:]] - sums[starts[:-1]], sizes.astype(np.uint64)])
    _, first, code = np.unique(shape, axis=1, return_index=True, return_inverse=True)
    same: Ints = first[code.reshape(-1)]
    twin = np.repeat(starts[same], sizes) + place
    other = (forest.depth != forest.depth[twin]) | (word != word[twin])
    alone = np.unique(forest.step[other])  # equal sums of unequal trees: never seen, but possible
    same[alone] = alone
    return same


def _mix(numbers: npt.NDArray[np.generic]) -> npt.NDArray[np.uint64]:
    x = numbers.astype(np.uint64) + _STRIDE
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def doubled(tree: Edges) -> Edges:
    """Give the edges of the same rows twice over."""
    below = np.where(tree.up >= 0, tree.up + len(tree.up), -1)
    return Edges(np.append(tree.up, below), np.append(tree.sibling, tree.sibling))


def subset(forest: Forest, steps: Ints) -> Ints:
    """Give the rows of these steps, step after step."""
    starts = forest.starts
    return ragged(starts[steps], starts[steps + 1] - starts[steps])


def ragged(starts: Ints, sizes: Ints) -> Ints:
    """Give `start, start + 1, …` of each part, one part after the other."""
    ends = np.cumsum(sizes)
    rows: Ints = np.arange(int(sizes.sum())) + np.repeat(starts - (ends - sizes), sizes)
    return rows
