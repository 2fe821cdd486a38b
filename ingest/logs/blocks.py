"""The lines of a log file, a block at a time, whatever the bytes are."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.keys import Keys
from teller.ingest.readers.kineto_text import Text

BLOCK_BYTES: Final = 1 << 24
LONGEST_LINE: Final = 1 << 14
# a file is watched for its next line end up to here; what follows in that line is not kept
LONGEST_WAIT: Final = 1 << 20
COLOUR: Final = re.compile(
    rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[()][0-9A-B])"
)
# control characters become blanks, tabs and line ends stay
TAMED: Final = bytes(b if b >= 32 or b in (9, 10, 13) else 32 for b in range(256))
# a progress bar is drawn over itself: its last state stays, behind what a launcher put in front
REDRAWN: Final = r"^((?:\[[^\[\]]{1,40}\](?:<\w+>)?: ?|\([^()]{1,80}\) ?)*)[^\n]*\r"


@dataclass(slots=True)
class Block:
    """Some lines; `first` is the number of the first one, from 1."""

    first: int
    text: pa.Array


@dataclass(slots=True)
class Lines:
    """All lines of a file. The counts say, after `blocks` ran out, what was not as it should be."""

    path: Path
    size: int = BLOCK_BYTES
    long: int = field(default=0, init=False)  # lines that were cut
    foreign: int = field(default=0, init=False)  # blocks that are not UTF-8
    damage: str = field(default="", init=False)  # what stopped decompression
    count: int = field(default=0, init=False)
    keys: Keys = field(default_factory=Keys, init=False)

    def blocks(self) -> Iterator[Block]:
        """Give the lines; the last one may have no line end."""
        source = Text(self.path)
        kept: list[bytes] = []
        held, skipping = 0, False
        for piece in source.pieces():
            more = piece
            if skipping:
                end = more.find(b"\n")
                skipping = end < 0
                more = b"" if skipping else more[end + 1 :]
            kept.append(more)
            held += len(more)
            if held < self.size:
                continue
            whole, rest = _at_line_end(b"".join(kept))
            if not whole and held > LONGEST_WAIT:
                whole, rest, skipping = rest[:LONGEST_WAIT], b"", True
            if whole:
                yield self._block(whole)
            kept, held = [rest], len(rest)
        self.damage = source.damage
        last = b"".join(kept)
        if last:
            yield self._block(last)

    def _block(self, raw: bytes) -> Block:
        text = self._decoded(raw if raw.endswith(b"\n") else raw + b"\n")[:-1]
        lines = pc.split_pattern(pa.array([text]), "\n").flatten()
        first, self.count = self.count + 1, self.count + len(lines)
        return Block(first, self._cut(_redrawn(lines) if "\r" in text else lines))

    def _decoded(self, raw: bytes) -> str:
        raw = self.keys.cut(raw)
        plain = COLOUR.sub(b"", raw) if b"\x1b" in raw else raw
        plain = plain.translate(TAMED)
        if b"\r" in plain:
            plain = plain.replace(b"\r\n", b"\n").rstrip(b"\r")
        if self.count == 0:
            plain = plain.removeprefix(b"\xef\xbb\xbf")
        try:
            return plain.decode()
        except UnicodeDecodeError:
            self.foreign += 1
            return plain.decode(errors="replace")

    def _cut(self, lines: pa.Array) -> pa.Array:
        long = pc.greater(pc.binary_length(lines), LONGEST_LINE)
        many = pc.sum(long).as_py() or 0
        if not many:
            return lines
        self.long += many
        return pc.if_else(long, pc.utf8_slice_codeunits(lines, 0, LONGEST_LINE), lines)


def _at_line_end(raw: bytes) -> tuple[bytes, bytes]:
    end = raw.rfind(b"\n") + 1
    return raw[:end], raw[end:]


def _redrawn(lines: pa.Array) -> pa.Array:
    bars = pc.match_substring(lines, "\r")
    ended = pc.utf8_rtrim(lines, "\r")
    return pc.if_else(bars, pc.replace_substring_regex(ended, REDRAWN, r"\1"), lines)
