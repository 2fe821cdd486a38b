"""The decompressed text of a trace file: piece by piece, with byte offsets and line numbers."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from isal import isal_zlib

GZIP: Final = b"\x1f\x8b"
PIECE: Final = 1 << 15  # compressed bytes at a time: the text that one piece gives stays small
PLAIN_PIECE: Final = 1 << 18
GZIP_BITS: Final = 31
DECODER_ERROR = cast(type[Exception], isal_zlib.error)  # its stub calls the type an instance


@dataclass(slots=True)
class Text:
    """Text of one file. `damage` says, after `pieces` ran out, what stopped decompression."""

    path: Path
    limit: int | None = None  # bytes of text that can be trusted; None: all
    damage: str = field(default="", init=False)
    corrupt: bool = field(default=False, init=False)  # garbled, not merely cut

    def pieces(self) -> Iterator[bytes]:
        """Give the text from the start, as far as it can be decompressed and trusted."""
        at = 0
        for piece in self._all():
            yield piece if self.limit is None else piece[: self.limit - at]
            at += len(piece)
            if self.limit is not None and at >= self.limit:
                return

    def _all(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            if file.read(2) == GZIP:
                file.seek(0)
                yield from self._unzipped(iter(lambda: file.read(PIECE), b""))
                return
            file.seek(0)
            yield from iter(lambda: file.read(PLAIN_PIECE), b"")

    def part(self, at: int, length: int) -> bytes:
        """Give a part of the text again."""
        parts, here = [], 0
        for piece in self.pieces():
            if here < at + length and here + len(piece) > at:
                parts.append(piece[max(0, at - here) : at + length - here])
            here += len(piece)
            if here >= at + length:
                break
        return b"".join(parts)

    def place(self, offset: int) -> str:
        """Give an offset as people look it up: byte, line and column, the latter two from 1."""
        # reads the file again, since counting lines costs and only a damaged file asks
        line, start, at = 1, 0, 0
        for piece in self.pieces():
            part = piece[: offset - at]
            line += part.count(b"\n")
            newest = part.rfind(b"\n")
            start = at + newest + 1 if newest >= 0 else start
            at += len(piece)
            if at >= offset:
                break
        return f"byte {offset} (line {line} column {offset - start + 1})"

    def _unzipped(self, raw: Iterator[bytes]) -> Iterator[bytes]:
        stream, read, begun = isal_zlib.decompressobj(wbits=GZIP_BITS), 0, False
        for piece in raw:
            left, given = piece, 0
            while left:
                try:
                    text = stream.decompress(left)
                except DECODER_ERROR as err:
                    yield from self._last_words(read, given, str(err))
                    return
                begun, given = True, given + len(text)
                if text:
                    yield text
                left = b""
                if stream.eof:  # another member may follow; padding may, too
                    left = stream.unused_data.lstrip(b"\0")
                    stream, begun = isal_zlib.decompressobj(wbits=GZIP_BITS), False
            read += len(piece)
        if begun:
            self.damage = f"the gzip stream ends early, after {read} compressed bytes"

    def _last_words(self, read: int, given: int, why: str) -> Iterator[bytes]:
        """Give what a compressed piece holds beyond what was given, up to the failure."""
        # the fast decoder drops what it had when it fails, so the slow one goes byte by byte
        with self.path.open("rb") as file:
            stream = zlib.decompressobj(wbits=GZIP_BITS)
            for _ in range(0, read, PIECE):
                stream = _fed(stream, file.read(PIECE))[0]
            while byte := file.read(1):
                try:
                    stream, text = _fed(stream, byte)
                except zlib.error as err:
                    why = str(err)
                    break
                new, given = text[given:], max(0, given - len(text))
                if new:
                    yield new
            place = file.tell()
        self.corrupt = True
        self.damage = f"the gzip stream is damaged before compressed byte {place}: {why}"


def _fed(stream: "zlib._Decompress", raw: bytes) -> tuple["zlib._Decompress", bytes]:
    """Give the decoder to go on with, the next member's where one ended, and the text."""
    text = stream.decompress(raw)
    while stream.eof and stream.unused_data.lstrip(b"\0"):
        rest = stream.unused_data.lstrip(b"\0")
        stream = zlib.decompressobj(wbits=GZIP_BITS)
        text += stream.decompress(rest)
    if stream.eof:
        stream = zlib.decompressobj(wbits=GZIP_BITS)
    return stream, text


@dataclass(slots=True)
class Feed:
    """A window on the text: `buffer` begins at byte `at`; it grows at its end on demand."""

    text: Text
    buffer: bytes = b""
    at: int = 0
    ended: bool = False
    _pieces: Iterator[bytes] | None = None

    def fill(self, size: int) -> None:
        """Grow the buffer to a size, or to the end of the text."""
        if self._pieces is None:
            self._pieces = self.text.pieces()
        have, parts = len(self.buffer), [self.buffer]
        while have < size and not self.ended:
            piece = next(self._pieces, None)
            if piece is None:
                self.ended = True
                break
            parts.append(piece)
            have += len(piece)
        if len(parts) > 1:
            self.buffer = b"".join(parts)

    def drop(self, count: int) -> None:
        """Move the start of the buffer on."""
        self.buffer = self.buffer[count:]
        self.at += count

    def skip(self, characters: bytes) -> bytes:
        """Drop leading characters of a set; give the first byte after them, empty at the end."""
        while True:
            rest = self.buffer.lstrip(characters)
            self.at += len(self.buffer) - len(rest)
            self.buffer = rest
            if rest or self.ended:
                return rest[:1]
            self.fill(PLAIN_PIECE)
