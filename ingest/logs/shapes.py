"""Shapes of messages: the text with its numbers collapsed. Many messages have few shapes.

What a word's presence decides is asked of each distinct shape once, not of each message. A module
that sets the text of lines to something else than a piece of it drops the column `shape`.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.strings import Flags, flags

SHAPE: Final = "shape"
RUN: Final = r"\d[\da-fx]*(?:\.\d[\da-fx]*)*"  # a number, decimal or hex
SWALLOWED: Final = r"[\da-fx]*"  # what a number in front takes off a word's beginning


def shapes(text: pa.Array) -> pa.DictionaryArray:
    """Give the shape of each message."""
    return pc.replace_substring_regex(text, RUN, "0").dictionary_encode()


def compacted(lines: pa.Table) -> pa.Table:
    """Give lines whose shapes are only those that they have."""
    coded = _coded(lines)
    used, codes = np.unique(coded.indices.to_numpy(zero_copy_only=False), return_inverse=True)
    only = pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32)), coded.dictionary.take(pa.array(used))
    )
    return lines.set_column(lines.schema.get_field_index(SHAPE), SHAPE, only)


def holding(lines: pa.Table, *words: str) -> Flags:
    """Tell which lines hold one of these words."""
    if words == ("",):
        return np.ones(lines.num_rows, np.bool_)
    if SHAPE not in lines.column_names:
        return flags(_held(lines["text"], words))
    coded = _coded(lines)
    codes = coded.indices.to_numpy(zero_copy_only=False)
    may = flags(pc.match_substring_regex(coded.dictionary, _may(words)))
    sure = may & flags(pc.match_substring_regex(coded.dictionary, _sure(words)))
    holds: Flags = sure[codes]
    open_rows = np.flatnonzero((may & ~sure)[codes])
    if len(open_rows):
        holds[open_rows] = flags(_held(lines["text"].take(pa.array(open_rows)), words))
    return holds


def near(lines: pa.Table, *words: str) -> pa.Table:
    """Give the lines that may hold one of these words, and all that do."""
    if SHAPE not in lines.column_names:
        return kept(lines, flags(_held(lines["text"], words)))
    coded = _coded(lines)
    may = flags(pc.match_substring_regex(coded.dictionary, _may(words)))
    return kept(lines, may[coded.indices.to_numpy(zero_copy_only=False)])


def among(lines: pa.Table) -> Callable[[str], bool]:
    """Give what tells, and quickly, whether any line may hold a word."""
    if SHAPE not in lines.column_names:
        return lambda word: True
    every = "\n".join(_coded(compacted(lines)).dictionary.to_pylist())
    return lambda word: _core(word) in every


def _core(word: str) -> str:
    """Give what is in the shape of each text that holds a word."""
    return re.sub(SWALLOWED, "", re.sub(RUN, "0", word), count=1)


def kept(lines: pa.Table, keep: Flags) -> pa.Table:
    """Give some of the lines; a filter of a wide table costs even where it changes nothing."""
    many = int(np.count_nonzero(keep))
    if many == len(keep):
        return lines
    return lines.filter(pa.array(keep)) if many else lines.slice(0, 0)


def _coded(lines: pa.Table) -> pa.DictionaryArray:
    column = lines[SHAPE].combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # no rows
        return pa.array([], pa.string()).dictionary_encode()
    return column


def _held(text: pa.ChunkedArray, words: tuple[str, ...]) -> pa.ChunkedArray:
    if len(words) == 1:
        return pc.match_substring(text, words[0])
    return pc.match_substring_regex(text, "|".join(map(re.escape, words)))


@cache
def _may(words: tuple[str, ...]) -> str:
    """Give what the shapes of all texts match that hold one of these words."""
    return "|".join(map(_shaped, words))


def _shaped(word: str) -> str:
    shape = re.sub(RUN, "0", word)
    first = re.match(SWALLOWED, shape)[0]  # type: ignore[index]  # it can be empty
    rest = re.escape(shape[len(first) :])
    return f"(?:{first}|0){rest}" if first else rest


@cache
def _sure(words: tuple[str, ...]) -> str:
    """Give what only shapes of texts match that hold one of these words: such without digits."""
    plain = [re.escape(word) for word in words if not re.search(r"\d", word)]
    return "|".join(plain) or r"[^\s\S]"
