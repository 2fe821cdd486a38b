"""Byte-pair encoding with the textbook merge loop: quadratic in the length of a word."""

import itertools
import re
from collections import Counter
from typing import Final

MERGES: Final = 160
_TEXT: Final = """
the model runs a step of each request and waits for the plan of that rank while tokens are sampled
from logits in parallel groups over the network and the scheduler admits what its cache can hold
"""
WORDS: Final = tuple(_TEXT.split())
_WORD: Final = re.compile(r"\s?\S+|\s+")
_NEVER: Final = 1 << 30


class Tokenizer:
    """Learns its merges from a few lines when it is made; the same every time."""

    def __init__(self, merges: int = MERGES) -> None:
        words = {word: list(word.encode()) for word in _WORD.findall(_TEXT * 2)}
        self._merges: dict[tuple[int, int], int] = {}
        for new in range(256, 256 + merges):
            pairs = Counter(p for ids in words.values() for p in itertools.pairwise(ids))
            if not pairs:
                break
            best = max(sorted(pairs), key=pairs.__getitem__)
            self._merges[best] = new
            words = {word: _merged(ids, best, new) for word, ids in words.items()}
        self._bytes = {i: bytes([i]) for i in range(256)}
        for (left, right), new in self._merges.items():
            self._bytes[new] = self._bytes[left] + self._bytes[right]

    @property
    def size(self) -> int:
        """Give the number of tokens."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """Give the tokens of a text."""
        return [token for word in _WORD.findall(text) for token in self._word(word)]

    def decode(self, tokens: list[int]) -> str:
        """Give the text of tokens."""
        return b"".join(self._bytes.get(t, b"?") for t in tokens).decode("utf-8", "replace")

    def _word(self, word: str) -> list[int]:
        ids = list(word.encode())
        while len(ids) > 1:
            pairs = itertools.pairwise(ids)
            best = min(pairs, key=lambda pair: self._merges.get(pair, _NEVER))
            if best not in self._merges:
                break
            ids = _merged(ids, best, self._merges[best])
        return ids


def _merged(ids: list[int], pair: tuple[int, int], new: int) -> list[int]:
    out: list[int] = []
    at = 0
    while at < len(ids):
        both = at + 1 < len(ids) and (ids[at], ids[at + 1]) == pair
        out.append(new if both else ids[at])
        at += 2 if both else 1
    return out
