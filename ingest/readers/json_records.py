"""JSON records, one a line, as columns: block by block, whatever is wrong with single lines."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from teller.ingest.readers.kineto_text import Text

BLOCK: Final = 1 << 24  # bytes of text at a time
LONGEST: Final = 1 << 26  # bytes of one line; a longer one is no record
NUMBER: Final = pa.decimal128(38, 9)  # whole numbers of 64 bits and microseconds, exactly
LINE: Final = "line"
RECORD: Final = r"^[\[\s]*(?P<record>\{.*\})[\s,\]]*$"
FARTHEST_US: Final = Decimal(1 << 62) / 1000
Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Lines:
    """Lines of a file, block by block; `damage` says afterwards what ended the text early."""

    text: Text
    damage: str = ""

    def blocks(self) -> Iterator[tuple[pa.Array, int]]:
        """Give whole lines as text, and the number of the first, from 1."""
        rest, number = b"", 1
        parts: list[bytes] = []
        size = 0
        for piece in self.text.pieces():
            parts.append(piece)
            size += len(piece)
            if size < BLOCK:
                continue
            whole, _, rest = b"".join(parts).rpartition(b"\n")
            if whole or len(rest) > LONGEST:
                lines = _split(whole or rest)
                yield lines, number
                number += len(lines)
                rest = rest if whole else b""
            parts, size = [rest], 0
        if last := b"".join(parts):
            yield _split(last), number
        self.damage = self.text.damage


def _split(text: bytes) -> pa.Array:
    return pc.list_flatten(pc.split_pattern(pa.array([text.decode("utf-8", "replace")]), "\n"))


def spread(text: Text, key: bytes) -> pa.Array:
    """Give one line a record of a text whose records, which begin with a key, fill many lines."""
    parts, size = [], 0
    for piece in text.pieces():
        parts.append(piece)
        size += len(piece)
        if size > LONGEST:
            break
    joined = re.sub(rb"\s*[\r\n]\s*", b" ", b"".join(parts))
    joined = re.sub(rb",\s*\{\s*\}\s*\]\s*$", b"]", joined)  # what some end a list with
    return _split(re.sub(rb'\s*,?\s*\{\s*"' + key + b'"', b'\n{"' + key + b'"', joined))


def records(lines: pa.Array, first: int, schema: pa.Schema) -> tuple[pa.Table, Ints]:
    """Give the records of lines with the schema's columns and their line, and lines that are none.

    Blank lines and brackets of a list around the records are neither.
    """
    found = pc.struct_field(pc.extract_regex(lines, RECORD), "record")
    good = found.is_valid().to_numpy(zero_copy_only=False)
    blank = pc.match_substring_regex(lines, r"^[\[\]\s,]*$").to_numpy(zero_copy_only=False)
    numbers = np.arange(first, first + len(lines))
    table, bad = _read(found.drop_null(), numbers[good], schema)
    return table, np.sort(np.concatenate([bad, numbers[~good & ~blank]]))


def _read(lines: pa.Array, numbers: Ints, schema: pa.Schema) -> tuple[pa.Table, Ints]:
    """Read all lines at once; where that fails, each half by itself."""
    empty = schema.empty_table().append_column(LINE, pa.array([], pa.int64()))
    if not len(lines):
        return empty, numbers
    try:
        table = _parsed(lines, schema)
        if table.num_rows == len(lines):
            return table.append_column(LINE, pa.array(numbers)), numbers[:0]
    except pa.ArrowInvalid:
        pass
    if len(lines) == 1:
        return empty, numbers
    half = len(lines) // 2
    one, two = (_read(lines[at], numbers[at], schema) for at in (slice(half), slice(half, None)))
    return pa.concat_tables([one[0], two[0]]), np.concatenate([one[1], two[1]])


def _parsed(lines: pa.Array, schema: pa.Schema) -> pa.Table:
    listed = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    content = pc.binary_join(listed, "\n")[0].as_py().encode()
    return pj.read_json(
        io.BytesIO(content),
        pj.ReadOptions(use_threads=False, block_size=len(content) + 1),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Give whole numbers of 63 bits; null for fractions and what is beyond."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    fits = pc.and_(pc.less(pc.abs(values), Decimal(1 << 63)), pc.equal(values, pc.floor(values)))
    return pc.cast(pc.if_else(fits, values, None), pa.int64())


def nanoseconds(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Give microseconds as nanoseconds; null for 0, which writers put for no time."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    fits = pc.and_(pc.less(values, FARTHEST_US), pc.greater(values, Decimal(0)))
    exact = pc.cast(pc.round(pc.if_else(fits, values, None), 3), pa.decimal128(22, 3))
    return pc.cast(pc.multiply(exact, Decimal(1000)), pa.int64())
