"""Private keys that fill many lines of a log: their lines become `<redacted>`, one for one."""

import re
from dataclasses import dataclass
from typing import Final

GONE: Final = b"<redacted>"
MARK: Final = b"PRIVATE KEY"
BEGIN: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
END: Final = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
LONGEST: Final = 1 << 14  # bytes of a key with what a launcher puts in front of its lines
# where the end is missing: lines that end in what keys are made of, and their headers
LIKELY: Final = re.compile(
    rb"(?:(?:[^\n]*[A-Za-z0-9+/=]{24,}|[A-Za-z0-9+/=]{1,76}|"
    rb"(?:Proc-Type|DEK-Info|Version|Comment): [^\n]*|)[ \r]*\n)*"
)


@dataclass(slots=True)
class Keys:
    """Cuts keys out of a log that comes in blocks of whole lines."""

    inside: bool = False

    def cut(self, raw: bytes) -> bytes:
        """Give the next lines without keys; each line stays a line."""
        if not self.inside and MARK not in raw:
            return raw
        parts, at = [], 0
        while True:
            if not self.inside:
                begin = BEGIN.search(raw, at)
                if begin is None:
                    break
                stop = raw.find(b"\n", begin.end()) + 1 or len(raw)
                self.inside = not END.search(raw, begin.end(), stop)
                parts.append(raw[at:stop])
                at = stop
            if self.inside:
                at = self._skip(raw, at, parts)
            if self.inside:
                break
        return b"".join([*parts, raw[at:]])

    def _skip(self, raw: bytes, at: int, parts: list[bytes]) -> int:
        """Go on to where a key ends; its lines are replaced."""
        end = END.search(raw, at, at + LONGEST)
        if end:
            stop = max(at, raw.rfind(b"\n", 0, end.start()) + 1)
        else:
            found = LIKELY.match(raw, at, at + LONGEST)
            stop = found.end() if found else at
        self.inside = not end and stop >= len(raw)
        parts.append((GONE + b"\n") * raw.count(b"\n", at, stop))
        return stop
