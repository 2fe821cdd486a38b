"""The documents of a trace file, one stretch of events after another, in bounded memory."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from teller.ingest.readers.kineto_event import EVENTS_KEY, Stretch, decoded
from teller.ingest.readers.kineto_header import Header, document
from teller.ingest.readers.kineto_repair import Damage, Salvage, TwoWritersError, mended, salvage
from teller.ingest.readers.kineto_text import Feed

# small enough that the decoded events stay in the processor's cache until they are columns
STRETCH: Final = 1 << 18
LONGEST_STRETCH: Final = 1 << 24
LONGEST_HEADER: Final = 1 << 26
WINDOW: Final = 1 << 16
NEAR: Final = 1 << 12
TRIES: Final = 4
SPACE: Final = b" \t\r\n"
BETWEEN: Final = re.compile(rb'\}\s*,(?=\s*\{\s*"(?:ph|cat|name|ts|pid|tid|id|args|dur)"\s*:)')
ANY_BETWEEN: Final = re.compile(rb"\}\s*,(?=\s*\{)")
HEADER_WORDS: Final = (b'"schemaVersion"', b'"distributedInfo"', b'"deviceProperties"')


@dataclass(slots=True)
class Stream:
    """Reads one document after another: `begin`, all `stretches`, `finish`."""

    feed: Feed
    damage: Damage
    size: int = STRETCH
    cut: bool = False  # the text ended inside the document
    bare: bool = False  # the document is a list of events without a header
    _word: bytes = b""
    _closed: bool = False

    def begin(self) -> Header | None:
        """Go to the next document's events; give what stands before them, None without any."""
        self._closed, self._word = False, b""
        first = self.feed.skip(SPACE + b"\xef\xbb\xbf,")
        self.bare = first == b"[" if first else self.bare
        if first == b"[":
            self.feed.drop(1)
            return Header()
        return self._header() if first == b"{" else None

    def stretches(self) -> Iterator[Stretch]:
        """Give the events, a stretch at a time, and note what is damaged."""
        while not self._closed:
            yield from self._next()

    def finish(self) -> Header:
        """Give what stands after the events, and go behind the document."""
        if self.cut or self.bare:
            return Header()
        size = WINDOW
        while True:
            self.feed.fill(size)
            found = document(b'{"":0' + self.feed.buffer)
            if found is not None:
                header, length = found
                self.feed.drop(length - len(b'{"":0'))
                return header
            if self.feed.ended or size > LONGEST_HEADER:
                return self._broken_trailer()
            size *= 4

    def _header(self) -> Header | None:
        size, seen = WINDOW, 0
        while True:
            self.feed.fill(size)
            for key in EVENTS_KEY.finditer(self.feed.buffer, seen):
                header = document(self.feed.buffer[: key.end()] + b"0}")
                if header is not None:
                    return self._into_events(header[0], key.end())
            if self.feed.ended or size > LONGEST_HEADER:
                return None if document(self.feed.buffer) else self._broken_header()
            seen, size = max(0, len(self.feed.buffer) - 64), size * 4

    def _into_events(self, header: Header, key_end: int) -> Header:
        head = self.feed.buffer[:key_end]
        self._word = next((w for w in HEADER_WORDS if w in head), b"")
        self.feed.drop(key_end)
        self.feed.skip(SPACE)
        self.feed.drop(1)  # the bracket
        return header

    def _broken_header(self) -> Header | None:
        """Use a header that is no JSON as far as that goes; give None if there are no events."""
        key = EVENTS_KEY.search(self.feed.buffer)
        if key is None:
            self.cut = any(word in self.feed.buffer for word in HEADER_WORDS)
            return None
        head = self.feed.buffer[: key.end()]
        if any(head.count(word) > 1 for word in HEADER_WORDS):
            raise TwoWritersError
        header = document(mended(head, self.feed.at, self.damage) + b"0}")
        if header is None:
            self.damage.note("header", self.feed.at)
        return self._into_events(header[0] if header else Header.found_in(head), key.end())

    def _broken_trailer(self) -> Header:
        found = document(mended(b'{"":0' + self.feed.buffer, self.feed.at - 5, self.damage))
        self.cut = found is None
        self.feed.drop(found[1] - 5 if found else len(self.feed.buffer))
        return found[0] if found else Header()

    def _next(self) -> Iterator[Stretch]:
        size = self.size
        while True:
            self.feed.fill(size)
            for cut in self._cuts():
                comma = self.feed.buffer[cut - 1 : cut] == b","
                result = decoded(memoryview(self.feed.buffer)[: cut - comma], self.feed.at)
                if result.stretch is not None:
                    yield result.stretch
                    self._go_on(result.end, cut)
                    return
                if not result.cut:
                    yield from self._salvaged(self.feed.buffer[: cut - comma], cut)
                    return
            if self.feed.ended or size > LONGEST_STRETCH:
                yield from self._salvaged(self.feed.buffer, len(self.feed.buffer))
                return
            size *= 2

    def _cuts(self) -> list[int]:
        """Give lengths of the buffer that may end between events, the likeliest first."""
        buffer = self.feed.buffer
        if self.feed.ended:
            return [len(buffer)]
        for pattern, window in (BETWEEN, NEAR), (BETWEEN, WINDOW), (ANY_BETWEEN, WINDOW):
            ends = [m.end() for m in pattern.finditer(buffer, max(0, len(buffer) - window))]
            if ends:
                return ends[: -TRIES - 1 : -1]
        return []

    def _salvaged(self, body: bytes, length: int) -> Iterator[Stretch]:
        kept: Salvage = salvage(body, self.feed.at, self.damage, self._word)
        yield from kept.stretches
        if kept.cut is not None and not self.feed.ended:  # not the end of the text: a broken event
            self.damage.note("broken", kept.cut)
        self._go_on(kept.end, length)

    def _go_on(self, end: int | None, length: int) -> None:
        """Drop what was used; the array has ended, or the text, or there is more."""
        if end is not None:
            self._closed = True
            self.feed.drop(end - self.feed.at)
            return
        self.feed.drop(length)
        if self.feed.ended and not self.feed.buffer.strip(SPACE):
            self.cut = self._closed = True
