"""The tokens: the base alphabet, the merges in their order, and the fragments they stand for."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from teller.errors import BadUsage
from teller.models.tpe.pieces import packed
from teller.models.tpe.trees import Forest, Ints, Word, depth_first

VERSION: Final = 1
UNKNOWN: Final = 0  # the base token of operators that the alphabet does not have
_NUMBER: Final = re.compile("[0-9]+")


def stem(word: Word) -> Word:
    """Give the word with its numbers taken off: all layers of a model, all tiles of a kernel."""
    return *word[:2], _NUMBER.sub("#", word[2])


def kin(word: Word) -> Word:
    """Give what a word shares with those of other engines: its layer and family."""
    return *word[:2], ""


class Merge(msgspec.Struct, frozen=True, array_like=True):
    """One rule: a lower token that hangs on a place of an upper one becomes part of it."""

    upper: int
    lower: int
    at: int  # place in the upper token, counted in the order of merging
    sibling: bool  # it follows the span there; else it is the first child of it


class Vocabulary(msgspec.Struct, frozen=True):
    """Base tokens are 0 (unknown) and then the words; merge number n makes the token after them.

    A step is written with stems, or with kin where that gives fewer tokens: engines name their
    kernels differently, and call them in the same order. What a token leaves out of an operator's
    name rides beside it.
    """

    words: tuple[Word, ...]  # stems and kin, ascending
    merges: tuple[Merge, ...]
    version: int = VERSION

    @property
    def base_count(self) -> int:
        """Give the number of base tokens, the unknown one among them."""
        return len(self.words) + 1

    def __len__(self) -> int:
        """Give the number of tokens."""
        return self.base_count + len(self.merges)

    def first(self, merges: int) -> "Vocabulary":
        """Give the vocabulary with the first merges only: what a shorter training gives."""
        return msgspec.structs.replace(self, merges=self.merges[:merges])

    def base_of(self, forest: Forest, name: Callable[[Word], Word] = stem) -> Ints:
        """Give the base token of each row, by its stem or its kin."""
        number = {word: n for n, word in enumerate(self.words, start=1)}
        base = [number.get(name(w), UNKNOWN) for w in forest.words]
        return np.array(base, np.int64)[forest.word]

    def sizes(self) -> Ints:
        """Give the number of spans in each token."""
        sizes = [1] * self.base_count
        for merge in self.merges:
            sizes.append(sizes[merge.upper] + sizes[merge.lower])
        return np.array(sizes, np.int64)

    def keys(self) -> Ints:
        """Give the pair of each merge as one number."""
        rules = np.array([msgspec.structs.astuple(m) for m in self.merges], np.int64).reshape(-1, 4)
        return packed(rules[:, 0], rules[:, 1], rules[:, 2], rules[:, 3].astype(np.bool_))

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_bytes(msgspec.json.encode(self) + b"\n")


def load(path: Path) -> Vocabulary:
    """Read a vocabulary; one that is damaged or newer is refused."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Vocabulary)
    except (OSError, msgspec.DecodeError) as err:
        raise BadUsage(f"{path}: no vocabulary that can be read ({err}); train one") from err
    if found.version > VERSION:
        said = f"{path}: version {found.version} is newer than {VERSION}"
        raise BadUsage(f"{said}; train one with this program, or take a newer program")
    if fault := _fault(found.base_count, found.merges):
        raise BadUsage(f"{path}: {fault}; train one anew")
    return found


def _fault(base_count: int, merges: Sequence[Merge]) -> str:
    sizes = [1] * base_count
    for token, merge in enumerate(merges, start=base_count):
        if not (0 <= merge.upper < token and 0 <= merge.lower < token):
            return f"merge {token - base_count} speaks of tokens that come later"
        if not 0 <= merge.at < sizes[merge.upper]:
            return f"merge {token - base_count} has no place {merge.at}"
        sizes.append(sizes[merge.upper] + sizes[merge.lower])
    return ""


@dataclass(frozen=True, slots=True)
class Patterns:
    """What each token stands for, tokens one after the other, each depth first.

    `starts` has the first row of each token, and the number of rows at the end.
    """

    starts: Ints
    base: Ints  # base token
    parent: Ints  # place in the token; -1: the parent of the whole
    depth: Ints  # 0 at its top


def patterns(vocabulary: Vocabulary) -> Patterns:
    """Give the fragment of every token."""
    base = [np.array([n]) for n in range(vocabulary.base_count)]
    parent = [np.array([-1])] * vocabulary.base_count
    for merge in vocabulary.merges:
        above, below = parent[merge.upper], parent[merge.lower]
        hung = above[merge.at] if merge.sibling else merge.at
        base.append(np.append(base[merge.upper], base[merge.lower]))
        parent.append(np.append(above, np.where(below >= 0, below + len(above), hung)))
    starts = np.cumsum([0, *(len(b) for b in base)])
    rows = np.concatenate(parent)
    first = np.repeat(starts[:-1], np.diff(starts))
    depth, position = depth_first(np.where(rows >= 0, rows + first, -1))
    order = np.argsort(position)
    inside = rows[order]
    placed = position[np.maximum(inside + first[order], 0)] - first[order]
    return Patterns(
        starts=starts,
        base=np.concatenate(base)[order],
        parent=np.where(inside >= 0, placed, -1),
        depth=depth[order],
    )
