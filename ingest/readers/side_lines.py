"""The lines of a side file, a block at a time, with their numbers, in bounded memory."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.kineto_text import Text

BLOCK: Final = 1 << 23
LONGEST: Final = 1 << 24  # a line that is longer is cut
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;]*m")
SMALL: Final = 1 << 25  # what is read at once is not larger


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, without their ends; `first` is the number of the first, from 1."""

    first: int
    lines: pa.StringArray

    @property
    def numbers(self) -> pa.Int64Array:
        """Give the number of each line."""
        return pa.array(range(self.first, self.first + len(self.lines)), pa.int64())


@dataclass(slots=True)
class Lines:
    """The lines of one file; gzip, byte order marks and CRLF make no difference."""

    path: Path
    text: Text = field(init=False)
    ended: bool = field(default=True, init=False)  # the last line has an end
    left_out: bool = field(default=False, init=False)  # `small` met its limit

    def __post_init__(self) -> None:
        self.text = Text(self.path)

    def raw_blocks(self, size: int = BLOCK) -> Iterator[tuple[int, bytes]]:
        """Give blocks of whole lines as they stand, each with the number of its first line."""
        first, parts, have = 1, [b""], 0
        for piece in self.text.pieces():
            parts.append(piece)
            have += len(piece)
            if have < size:
                continue
            whole = b"".join(parts)
            end = whole.rfind(b"\n") + 1 or (len(whole) if have >= LONGEST else 0)
            parts, have = [whole[end:]], len(whole) - end
            if end:
                yield first, whole[:end]
                first += whole.count(b"\n", 0, end)
        last = b"".join(parts)
        self.ended = last.endswith((b"\n", b"\n\0")) or not last
        if last:
            yield first, last

    def blocks(self, size: int = BLOCK) -> Iterator[Block]:
        """Give all lines, a block at a time."""
        for first, raw in self.raw_blocks(size):
            yield Block(first, pa.array(tame(raw).removesuffix("\n").split("\n"), pa.string()))

    def small(self) -> Block:
        """Give the lines of a file that is small by its nature; what is beyond is left out."""
        parts, have = [], 0
        for piece in self.text.pieces():
            if have + len(piece) > SMALL:
                self.left_out = True
                break
            parts.append(piece)
            have += len(piece)
        text = tame(b"".join(parts))
        self.ended = text.endswith("\n") or not text
        return Block(1, pa.array(text.removesuffix("\n").split("\n") if text else [], pa.string()))


def tame(raw: bytes) -> str:
    """Give text with plain line ends; what is no UTF-8 is replaced, marks and colours are gone."""
    # without its NUL bytes, text in UTF-16, as PowerShell redirects it, is readable too
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"):
        raw = raw.removeprefix(mark)
    raw = _COLOUR.sub(b"", raw) if b"\x1b[" in raw else raw
    return raw.replace(b"\0", b"").replace(b"\r\n", b"\n").decode("utf-8", "replace")


def head_lines(head: bytes) -> list[str]:
    """Give the lines that a file begins with, the last, which may be cut, only if alone."""
    lines = [line.rstrip() for line in tame(head).split("\n")]
    return lines[:-1] if len(lines) > 1 else lines


def found(block: Block, pattern: str) -> pa.Table:
    """Give a row for each line that matches, in columns `line` and the named groups (RE2)."""
    parts = pc.extract_regex(block.lines, pattern)
    keep = parts.is_valid()
    groups = parts.filter(keep)
    columns = {"line": block.numbers.filter(keep)}
    for at in range(groups.type.num_fields):
        columns[groups.type.field(at).name] = groups.field(at)
    return pa.table(columns)


def above(block: Block, pattern: str, lines: pa.ChunkedArray) -> pa.Table:
    """Give for each of some lines, by number, the groups of the last line before that matched."""
    parts = pc.extract_regex(block.lines, pattern)
    at = pc.subtract(lines, block.first)
    return pa.table({
        parts.type.field(i).name: pc.fill_null_forward(pc.struct_field(parts, i)).take(at)
        for i in range(parts.type.num_fields)
    })  # fmt: skip
