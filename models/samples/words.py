"""Vectors of known strings: operators and log templates, as a cache that ships with the weights."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from teller.models.samples.sample import Reals


class Words:
    """A table of strings with their vectors; a string that is not in it has zeros."""

    def __init__(self, strings: Iterable[str], vectors: Reals, encoder: str = "") -> None:
        """Keep strings and vectors (strings, width); `encoder` says what made them."""
        self.vectors = vectors
        self.encoder = encoder
        self._place = {s: at for at, s in enumerate(strings)}

    @classmethod
    def load(cls, path: Path) -> "Words":
        """Read what `save` wrote."""
        with np.load(path) as held:
            encoder = str(held["encoder"])
            return cls(held["strings"].tolist(), held["vectors"].astype(np.float32), encoder)

    def save(self, path: Path) -> None:
        """Write everything, in half precision, into one compressed file."""
        strings = np.array(list(self._place), np.str_)
        vectors = self.vectors.astype(np.float16)
        np.savez_compressed(path, strings=strings, vectors=vectors, encoder=np.str_(self.encoder))

    @property
    def width(self) -> int:
        """Give the width of a vector."""
        return int(self.vectors.shape[1])

    def __iter__(self) -> Iterator[str]:
        """Go over the strings."""
        return iter(self._place)

    def __contains__(self, string: str) -> bool:
        """Tell whether a string is known."""
        return string in self._place

    def of(self, strings: Iterable[str]) -> Reals:
        """Give the vectors of strings, zeros for those that are not known."""
        at = np.array([self._place.get(s, -1) for s in strings], np.int64)
        found = np.zeros((len(at), self.width), np.float32)
        found[at >= 0] = self.vectors[at[at >= 0]]
        return found

    def with_more(self, strings: Iterable[str], vectors: Reals) -> "Words":
        """Give the table with more strings."""
        more = np.concatenate([self.vectors, vectors])
        return Words([*self._place, *strings], more, self.encoder)
