"""Templates of messages: the text with its parameters as `<*>`, mined as the file streams by.

Words with digits and quoted words are parameters at once, by one pattern over a column. What is
distinct after that goes through a small Drain (He et al., 2017): texts with the same number of
words and the same first word are one template if enough of their words agree.
"""

import json
import re
from dataclasses import dataclass, field
from operator import eq
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.shapes import shapes
from teller.ingest.logs.strings import Ints, flags, ints

HOLE: Final = "<*>"
MASK: Final = r"""(?:"[^"\s]*"|'[^'\s]*'|\w*\d\w*(?:[.,:]\w*\d\w*)*)"""
LENGTH: Final = 400  # characters of the first line that make the template
WORDS: Final = 64
SIMILAR: Final = 0.6  # share of words that agree
MOST: Final = 4096  # templates of a file; what comes later is told apart by its number of words
MOST_ALIKE: Final = 64  # templates with the same first word and number of words
NEW_TEXTS: Final = 4096  # distinct masked texts of a block that are compared
REMEMBERED: Final = 1 << 16
MOST_PARAMS: Final = 24


@dataclass(slots=True)
class Miner:
    """Gives messages the numbers of their templates; `texts` are these as they stand now."""

    words: list[list[str]] = field(default_factory=list)
    _leaves: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    _known: dict[str, int] = field(default_factory=dict)
    _spare: dict[int, int] = field(default_factory=dict)

    def mine(self, text: pa.Array, shape: pa.DictionaryArray | None = None) -> pa.Array:
        """Give the template of each message, int32; `shape` are the messages' shapes."""
        masked, codes = _masked(text, shapes(text) if shape is None else shape)
        used, first = np.unique(codes, return_index=True)
        left = NEW_TEXTS
        ids = np.zeros(len(masked), np.int32)
        for code in used[np.argsort(first)].tolist():
            one = masked[code].as_py()
            known = self._known.get(one)
            if known is None:
                left -= 1
                known = self._place(one.split(" ", WORDS - 1), look=left > 0)
                self._remember(one, known)
            ids[code] = known
        return pa.array(ids[codes])

    @property
    def texts(self) -> list[str]:
        """Give the templates, by number."""
        return [" ".join(words) for words in self.words]

    def _remember(self, masked: str, known: int) -> None:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[masked] = known

    def _place(self, words: list[str], *, look: bool) -> int:
        first = HOLE if HOLE in words[0] else words[0]
        leaf = self._leaves.setdefault((len(words), first), []) if look else []
        best, most = -1, 0
        for number in leaf:
            agree = sum(map(eq, words, self.words[number]))
            if agree > most:
                best, most = number, agree
        if best >= 0 and most >= SIMILAR * len(words):
            self._widen(self.words[best], words)
            return best
        if not look or len(self.words) >= MOST or len(leaf) >= MOST_ALIKE:
            return self._overflow(len(words))
        leaf.append(len(self.words))
        self.words.append(words)
        return leaf[-1]

    def _widen(self, template: list[str], words: list[str]) -> None:
        for at, (old, new) in enumerate(zip(template, words, strict=True)):
            if old != new:
                template[at] = HOLE

    def _overflow(self, size: int) -> int:
        if size not in self._spare:
            self._spare[size] = len(self.words)
            self.words.append([HOLE] * size)
        return self._spare[size]


def _masked(text: pa.Array, shape: pa.DictionaryArray) -> tuple[pa.Array, Ints]:
    """Give masked texts, and which of them each message has."""
    # numbers are collapsed in a shape, so a long text's beginning ends elsewhere in it
    long = np.flatnonzero(flags(pc.greater(pc.binary_length(text), LENGTH)))
    rest = beginning(text.take(pa.array(long))).dictionary_encode()
    every = pa.concat_arrays([beginning(shape.dictionary), rest.dictionary])
    masked = pc.replace_substring_regex(every, MASK, HOLE).dictionary_encode()
    codes = ints(shape.indices).copy()
    codes[long] = len(shape.dictionary) + ints(rest.indices)
    return masked.dictionary, ints(masked.indices)[codes]


def beginning(text: pa.Array) -> pa.Array:
    """Give what of each message makes its template: its first line, not too long."""
    several = pc.match_substring(text, "\n")
    long = flags(pc.or_(several, pc.greater(pc.binary_length(text), LENGTH)))
    if not long.any():
        return text
    some = pc.replace_substring_regex(text.filter(pa.array(long)), r"(?s:\n.*)", "")
    return pc.replace_with_mask(text, pa.array(long), pc.utf8_slice_codeunits(some, 0, LENGTH))


def parameters(text: pa.Array, template: pa.Array, texts: list[str]) -> pa.Array:
    """Give what the holes of each message's template stood for, a JSON list; null without any."""
    if not len(text):
        return text
    shown = _escaped(beginning(text))
    order = np.argsort(ints(template), kind="stable")
    ranked = ints(template)[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))[: len(ranked)]
    parts = []
    for start, stop in zip(starts, [*starts[1:], len(ranked)], strict=True):
        rows = pa.array(order[start:stop])
        parts.append(_of_one(shown.take(rows), texts[ranked[start]]))
    back: Ints = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays([pa.array([], pa.string()), *parts]).take(pa.array(back))


def _of_one(text: pa.Array, template: str) -> pa.Array:
    """Read the holes of one template."""
    fixed = [re.escape(json.dumps(part, ensure_ascii=False)[1:-1]) for part in template.split(HOLE)]
    holes = min(len(fixed) - 1, MOST_PARAMS)
    if holes == 0 or not any(fixed):
        return pa.nulls(len(text), pa.string())
    pattern = fixed[0] + "".join(f"(?P<p{i}>.*?){fixed[i + 1]}" for i in range(holes))
    found = pc.extract_regex(text, f"^{pattern}$" if holes == len(fixed) - 1 else f"^{pattern}")
    pieces: list[Any] = ['["']
    for i in range(holes):
        pieces += [pc.struct_field(found, i), '", "' if i < holes - 1 else '"]']
    return pc.binary_join_element_wise(*pieces, "")


def _escaped(text: pa.Array) -> pa.Array:
    odd = pc.match_substring_regex(text, r'[\\"\t]')
    if not pc.any(odd, min_count=0).as_py():
        return text
    return pc.replace_with_mask(text, odd, _escape(text.filter(odd)))


def _escape(text: pa.Array) -> pa.Array:
    for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("\t", "\\t")):
        text = pc.replace_substring(text, sign, written)
    return text
