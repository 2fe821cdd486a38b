"""Figures that a line names: `key: value`, `key = value` or JSON, whatever their number and order.

Versions of engines add, drop and move fields. So a line is cut at its commas, and each piece that
names a figure is kept; what is asked for is then taken by name. Pieces come again and again with
other numbers, so what a piece says is read once for each form, the piece with 0 for its number.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import ABOUT, number, samples
from teller.ingest.logs.meaning import whole
from teller.ingest.logs.strings import Ints, cut, flags, ints

_PAIR: Final = (
    r"""^(?:.*[:.\]{]\s*)?["'\\]*(?P<key>#?[A-Za-z][\w #()/-]*?)["'\\]*\s*[:=]\s*["'\\]*"""
    r"""(?P<value>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|True|False|true|false)\s*"""
    r"""(?P<unit>%|[A-Za-z][A-Za-z/]*)?["'\\\s}.)]*$"""
)


_NUMBER: Final = r"\d+(?:\.\d+)?"
_BLANKS: Final = r",\s+"
_ODD_BLANKS: Final = r",(?:\s\s|[^\S ])"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Figures of lines, in order: `row` counts the lines from 0, `value` of True is 1."""

    lines: pa.Table
    row: Ints
    form: Ints  # which of the keys and units it has
    keys: pa.Array
    units: pa.Array
    value: npt.NDArray[np.float64]
    params: pa.Array  # a line's figures as a JSON object; keys carry their units: "Running (reqs)"

    def samples(self, name: str, *keys: str, unit: str | None = None, scale: float = 1.0,
                text: pa.Array | str = "") -> pa.Table:  # fmt: skip
        """Give a sample for each figure of one of these keys; `text` has a value a line, or one.

        A figure in percent is given as a ratio. With `unit`, a figure without it is left out: in a
        line that was cut, the last figure may be cut too.
        """
        wanted = pc.is_in(self.keys, pa.array(keys, pa.string()))
        if unit is not None:
            wanted = pc.and_(wanted, pc.equal(self.units, unit))
        at = np.flatnonzero(flags(wanted)[self.form])
        rows = pa.array(self.row[at])
        value = pa.array(self.value[at] * scale)
        percent = flags(pc.equal(self.units, "%"))[self.form[at]]
        if percent.any():
            value = pc.if_else(pa.array(percent), pc.round(pc.divide(value, 100), 6), value)
        said = text if isinstance(text, str) else text.take(rows)
        return samples(name, self.lines.select(ABOUT).take(rows), value=value, text=said)

    def of(self, *keys: str) -> pa.Array:
        """Give a line's figure of the first of these keys that it has, or null."""
        found = np.full(self.lines.num_rows, np.nan)
        for key in reversed(keys):
            at = np.flatnonzero(flags(pc.equal(self.keys, key))[self.form])
            found[self.row[at]] = self.value[at]
        return pa.array(found, from_pandas=True)


def pairs(lines: pa.Table, separator: str = _BLANKS) -> Pairs:
    """Read the named figures of lines; `separator` is a pattern."""
    cut_ = _split(whole(lines["text"]), separator)
    pieces = cut_.flatten().dictionary_encode()  # most pieces come again: "Waiting: 0 reqs"
    form, forms = _read(pieces.dictionary)
    place = ints(pieces.indices)
    good = np.flatnonzero(flags(forms.good)[form][place])
    place, row = place[good], ints(pc.list_parent_indices(cut_))[good]
    counts = np.bincount(row, minlength=lines.num_rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    text = _numerals(pieces.dictionary, form, forms)
    written = pc.binary_join_element_wise(forms.label.take(pa.array(form)), _plain(text), "")
    listed = pa.ListArray.from_arrays(offsets, written.take(pa.array(place)))
    params = pc.binary_join_element_wise("{", pc.binary_join(listed, ", "), "}", "")
    params = pc.if_else(pa.array(counts > 0), params, pa.scalar(None, pa.string()))
    value = _values(text)[place]
    return Pairs(lines, row, form[place], forms.key, forms.unit, value, params)


@dataclass(frozen=True, slots=True)
class _Forms:
    """What forms of pieces say; `good` tells which name a figure."""

    good: pa.Array
    key: pa.Array
    unit: pa.Array
    label: pa.Array  # what the figure is called in JSON, with the colon
    value: pa.Array  # of the form: 0 or what stands for it, True, …
    one: pa.Array  # the form's only number is its value
    zero: pa.Array  # where it begins, bytes
    size: pa.Array  # of the form, bytes


def _split(text: pa.Array, separator: str) -> pa.ListArray:
    """Cut lines; a plain comma and blank are found much faster than a pattern."""
    plain = separator == _BLANKS and not _any(pc.match_substring_regex(text, _ODD_BLANKS))
    return whole(pc.split_pattern(text, ", ") if plain else pc.split_pattern_regex(text, separator))


def _any(column: pa.Array) -> bool:
    return bool(pc.any(column, min_count=0).as_py())


def _read(pieces: pa.Array) -> tuple[Ints, _Forms]:
    """Give each piece's form, and what the forms say; odd pieces are their own form."""
    form = pc.replace_substring_regex(pieces, _NUMBER, "0")
    odd = pc.greater(pc.count_substring(form, "0"), 1)
    coded = pc.if_else(odd, pieces, form).dictionary_encode()
    forms = coded.dictionary
    read = pc.extract_regex(forms, _PAIR)
    key, value, unit = (pc.struct_field(read, name) for name in ("key", "value", "unit"))
    label = pc.if_else(
        pc.equal(unit, ""), key, pc.binary_join_element_wise(key, " (", unit, ")", "")
    )
    label = pc.binary_join_element_wise('"', label, '": ', "")
    one = pc.and_(pc.is_in(value, pa.array(["0", "-0", "+0"])), _single(forms))
    zero = pc.find_substring(forms, "0")
    told = _Forms(read.is_valid(), key, unit, label, value, one, zero, pc.binary_length(forms))
    return ints(coded.indices), told


def _single(forms: pa.Array) -> pa.Array:
    """Tell which forms hold one number, and so as 0."""
    return pc.and_(
        pc.equal(pc.count_substring(forms, "0"), 1),
        pc.equal(pc.count_substring_regex(forms, r"\d"), 1),
    )


def _numerals(pieces: pa.Array, form: Ints, forms: _Forms) -> pa.Array:
    """Give the figure of each piece as it is printed; what names none has any text."""
    text = forms.value.take(pa.array(form))
    there = np.flatnonzero(flags(forms.one)[form])
    if not len(there):
        return text
    some, of = pieces.take(pa.array(there)), form[there]
    at = ints(forms.zero)[of]
    size = ints(pc.binary_length(some)) - ints(forms.size)[of] + 1
    number_ = cut(cut(some, at)[1], size)[0]
    sign = pc.replace_substring(forms.value.filter(forms.one), "0", "")
    if _any(pc.not_equal(sign, "")):
        signs = pc.replace_substring(text.take(pa.array(there)), "0", "")
        number_ = pc.binary_join_element_wise(signs, number_, "")
    mask = np.zeros(len(text), np.bool_)
    mask[there] = True
    return pc.replace_with_mask(text, pa.array(mask), number_)


def _values(text: pa.Array) -> npt.NDArray[np.float64]:
    """Read figures; True is 1."""
    lower = pc.utf8_lower(text)
    true, false = pc.equal(lower, "true"), pc.equal(lower, "false")
    plain = pc.if_else(true, "1", pc.if_else(false, "0", lower))
    return np.asarray(number(plain).to_numpy(zero_copy_only=False), np.float64)


def _plain(text: pa.Array) -> pa.Array:
    """Write numbers as JSON does: no sign +, no zeros in front; true and false are small."""
    lower = pc.utf8_lower(text)
    if not _any(pc.match_substring_regex(lower, r"^(?:\+|-?0\d)")):
        return lower
    return pc.replace_substring_regex(lower, r"^\+?(-?)0*(\d)", r"\1\2")
