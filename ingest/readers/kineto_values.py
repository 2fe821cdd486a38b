"""Values out of their text: single ones, and columns exact to the last digit."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import filterfalse
from typing import Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

T = TypeVar("T")
R = TypeVar("R")
Word = str | int | float | None
Key = Word | tuple[Word, ...]
JOINT: Final = "\x1f"  # between the words of a key
MISSING: Final = msgspec.Raw(b"")
QUOTES: Final = '" \t\r\n'
WHOLE: Final = r"^[-+]?\d{1,18}(?:\.0*)?$"
DECIMAL: Final = r"^[-+]?(?:\d{1,22}(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?$"
LONG_FRACTION: Final = r"^([-+]?\d*\.\d{24})\d+$"
NANOSECONDS: Final = pa.decimal128(38, 3)  # of microseconds: its unscaled value is nanoseconds
FINEST: Final = pa.decimal256(76, 30)
BEYOND: Final = pa.scalar(Decimal(10**20), FINEST)  # microseconds: three million years
ASCII: Final = bytes(c if c < 128 else 63 for c in range(256))

_encoder = msgspec.json.Encoder()


def said(value: msgspec.Raw, kind: type[T]) -> T | None:
    """Give a value of a type, or None where it is absent or something else."""
    try:
        return msgspec.json.decode(value, type=kind) if bytes(value) else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def words(value: msgspec.Raw) -> str:
    """Give a value as text: strings without quotes, the rest as it is written; empty for null."""
    text = bytes(value)
    if text[:1] != b'"':
        return "" if text == b"null" else text.decode(errors="replace")
    inside = said(value, str)
    return text[1:-1].decode(errors="replace") if inside is None else inside


def number(value: msgspec.Raw) -> int | None:
    """Give a whole number that is written as a number or in a string."""
    text = words(value).strip()
    return int(text) if re.fullmatch(r"-?\d{1,19}", text) else None


def ranks_of(text: str) -> tuple[int, ...]:
    """Give the ranks of a list like `[0, 1]`; none where it is cut short."""
    whole = re.fullmatch(r"\[\s*\d+(?:\s*,\s*\d+)*\s*\]", text.strip())
    return tuple(map(int, re.findall(r"\d+", text))) if whole else ()


def lines(values: Sequence[msgspec.Raw]) -> bytes:
    """Give values as text, one a line."""
    text = _encoder.encode_lines(values)
    if text.count(b"\n") == len(values):
        return text
    # a list or an object that is laid out over lines: no value of ours
    return _encoder.encode_lines([MISSING if b"\n" in bytes(v) else v for v in values])


def column(texts: Iterable[bytes], count: int) -> pa.BinaryArray:
    """Give lines as an array; each value keeps its quotes and its line end."""
    text = b"".join(texts)
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    assert len(ends) == count
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends + 1
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def bare(values: pa.BinaryArray) -> pa.StringArray:
    """Give values without quotes; null where there was none."""
    text = pc.ascii_trim(_ascii(values).cast(pa.string()), QUOTES)
    absent = pc.or_(pc.equal(text, ""), pc.equal(text, "null"))
    return pc.if_else(absent, None, text) if pc.any(absent).as_py() else text


def integers(values: pa.BinaryArray) -> pa.Int64Array:
    """Give whole numbers, null where there is none or one of more than 18 digits."""
    text = bare(values)
    try:
        return text.cast(pa.int64())
    except pa.ArrowInvalid:
        fits = pc.match_substring_regex(text, WHOLE)
        whole = pc.replace_substring_regex(text, r"^\+|\.0*$", "")
        return pc.if_else(fits, whole, None).cast(pa.int64())


def nanoseconds(values: pa.BinaryArray) -> pa.Int64Array:
    """Give microseconds as nanoseconds, halves rounded to even; null where there is no number."""
    text = bare(values)
    try:
        exact = text.cast(NANOSECONDS)
    except pa.ArrowInvalid:
        exact = _rounded(text)
    if exact.null_count == len(exact):
        return pa.nulls(len(exact), pa.int64())
    words = np.frombuffer(exact.buffers()[1], np.int64)
    words = words[2 * exact.offset : 2 * (exact.offset + len(exact))]
    low, high = words[::2], words[1::2]
    beyond = high != low >> 63  # does not fit 64 bits: 292 years
    absent = beyond | exact.is_null().to_numpy(zero_copy_only=False)
    return pa.array(low, mask=absent)


def _rounded(text: pa.StringArray) -> pa.Array:
    usable = pc.match_substring_regex(text, DECIMAL)
    text = pc.replace_substring_regex(text, LONG_FRACTION, r"\1")
    text = pc.if_else(usable, text, None)
    try:
        exact = text.cast(FINEST)
    except pa.ArrowInvalid:  # an exponent that makes more digits than fit: times out of this world
        plain = pc.invert(pc.match_substring_regex(text, "[eE]"))
        exact = pc.if_else(plain, text, None).cast(FINEST)
    exact = pc.if_else(pc.less(pc.abs(exact), BEYOND), exact, None)
    return pc.round(exact, ndigits=3, round_mode="half_to_even").cast(NANOSECONDS)


def _ascii(values: pa.BinaryArray) -> pa.BinaryArray:
    text = values.buffers()[2].to_pybytes()
    if text.isascii():
        return values
    buffers = [None, values.buffers()[1], pa.py_buffer(text.translate(ASCII))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def ending_number(text: str, otherwise: int) -> int:
    """Give the number at the end of a text like `stream 7`."""
    found = re.search(r"(?<![-\d])\d{1,18}$", text)
    return int(found[0]) if found else otherwise


def coded(values: pa.BinaryArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Give values as numbers, and the text that each number stands for."""
    encoded = values.dictionary_encode()
    texts = [words(msgspec.Raw(token.rstrip(b"\n"))) for token in encoded.dictionary.to_pylist()]
    return encoded.indices.to_numpy().astype(np.int64), texts or [""]


@dataclass(slots=True)
class Codes:
    """Numbers for the distinct values of a column, the same over all its parts."""

    values: list[str] = field(default_factory=list)
    _codes: dict[Key, int] = field(default_factory=dict)
    _by_text: dict[str, int] = field(default_factory=dict)

    def of(self, rows: Sequence[R], value: Callable[[R], Key]) -> npt.NDArray[np.int64]:
        """Give the number of each row's value."""
        try:
            codes = map(self._codes.__getitem__, map(value, rows))
            return np.fromiter(codes, np.int64, len(rows))
        except KeyError:
            # in the order in which they come, so that the steps of reading leave no trace
            for new in filterfalse(self._codes.__contains__, dict.fromkeys(map(value, rows))):
                self._learn(new)
            return self.of(rows, value)

    def _learn(self, value: Key) -> None:
        if isinstance(value, tuple):
            text = JOINT.join(_word(word).replace(JOINT, " ") for word in value)
        else:
            text = _word(value)
        code = self._by_text.setdefault(text, len(self.values))
        if code == len(self.values):
            self.values.append(text)
        self._codes[value] = code


def _word(value: Word) -> str:
    return "" if value is None else str(value)
