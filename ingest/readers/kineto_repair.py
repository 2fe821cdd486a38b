"""What a damaged stretch of events still holds, and a count of what was wrong, kind by kind."""

import re
from dataclasses import dataclass, field
from typing import Final

from teller.errors import TellerError
from teller.ingest.readers.kineto_event import EVENTS_KEY, Stretch, decoded
from teller.ingest.readers.kineto_header import document

# only what begins like an event: a dict inside a list of arguments must not be taken for one
NEXT_EVENT: Final = re.compile(rb',(?=\s*\{\s*"(?:ph|cat|name|ts|pid|tid)"\s*:)')
TRIES: Final = 32
WHOLE: Final = re.compile(rb"\}(?=\s*,)")
CLOSING: Final = re.compile(rb"\}\s*\](?=\s*(?:,\s*\"|\}|\Z))")
CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
NO_JSON: Final = ("control", "not finite", "broken", "header")
BLANKED: Final = bytes(32 if c in b"\t\n\r" else 63 if c < 32 else c for c in range(256))
NOT_FINITE: Final = re.compile(
    rb'((?<!\\)"\s*:\s*|[\[,]\s*)([-+]?(?:inf(?:inity)?|nan))(?=\s*[,}\]])', re.I
)


class TwoWritersError(TellerError):
    """The text holds the beginning of a second trace in the midst of the first."""


@dataclass(slots=True)
class Damage:
    """What was wrong in one text: for each kind how often, where first, and what stood there."""

    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def note(self, kind: str, at: int, count: int = 1, word: str = "") -> None:
        """Count something wrong; the place and the word of the first of its kind are kept."""
        self.counts[kind] = self.counts.get(kind, 0) + count
        self.places.setdefault(kind, at)
        self.words.setdefault(kind, word)

    @property
    def first(self) -> int | None:
        """Give the first byte that was no JSON."""
        return min((at for kind, at in self.places.items() if kind in NO_JSON), default=None)


@dataclass(slots=True)
class Salvage:
    """What a damaged stretch still holds."""

    stretches: list[Stretch]
    end: int | None = None  # byte after the array's bracket, where that came
    cut: int | None = None  # byte where an event begins that the end of the text cuts


def mended(body: bytes, at: int, damage: Damage) -> bytes:
    """Replace what JSON forbids by as many allowed characters, so that offsets stay."""
    odd = decoded(body, at).odd or at
    first = CONTROL.search(body)
    if first:
        count = len(CONTROL.findall(body))
        damage.note("control", at + first.start(), count, f"U+{first[0][0]:04X}")
    elif odd > at and body[odd - at : odd - at + 1] in (b"\t", b"\n", b"\r"):
        damage.note("control", odd, 1, f"U+{body[odd - at]:04X}")
    body = body.translate(BLANKED)
    found = NOT_FINITE.search(body)
    if found:
        body, count = NOT_FINITE.subn(lambda m: m[1] + b'""'.ljust(len(m[2])), body)
        damage.note("not finite", at + found.start(2), count, found[2].decode())
    return body


def salvage(body: bytes, at: int, damage: Damage, header_words: bytes) -> Salvage:
    """Give the events of a stretch that does not decode; single ones that are broken are counted.

    `header_words` is a key that the header had: a second one means a second writer.
    """
    body = mended(body, at, damage)
    whole = decoded(body, at)
    if whole.stretch is not None:
        return Salvage([whole.stretch], whole.end)
    if EVENTS_KEY.search(body) or (header_words and header_words in body):
        raise TwoWritersError
    commas = [m.start() for m in NEXT_EVENT.finditer(body)]
    starts, ends = [0, *(c + 1 for c in commas)], [*commas, len(body)]
    kept, todo = Salvage([]), [(0, len(starts))]
    while todo and kept.end is None:
        low, high = todo.pop()
        piece, place = body[starts[low] : ends[high - 1]], at + starts[low]
        result = decoded(piece, place)
        if result.stretch is not None and (result.end is None or high - low == 1):
            kept.stretches.append(result.stretch)
            kept.end = result.end
        elif high - low == 1:
            _give_up(piece, place, kept, damage, last=high == len(starts))
        else:
            middle = (low + high) // 2
            todo += [(middle, high), (low, middle)]
    return kept


def _give_up(piece: bytes, at: int, kept: Salvage, damage: Damage, *, last: bool) -> None:
    """Leave out one event; the array may still close behind it, or the text end in it."""
    closing = _closing(piece) if last else None
    if last and closing is None:
        kept.cut = at
        _keep_whole(piece, at, kept)
        return
    damage.note("broken", at)
    kept.end = at + closing if closing is not None else None


def _keep_whole(piece: bytes, at: int, kept: Salvage) -> None:
    """Keep what is whole before the cut: the cut event may begin in no way that is known."""
    ends = [m.start() + 1 for m in WHOLE.finditer(piece)][: -TRIES - 1 : -1]
    stretches = (decoded(piece[:end], at).stretch for end in ends)
    kept.stretches += [next(filter(None, stretches), Stretch([], [], set(), at, 0))]


def _closing(piece: bytes) -> int | None:
    """Give where the array closes behind a broken event, told by what follows up to the end."""
    for bracket in reversed([m.end() for m in CLOSING.finditer(piece)]):
        rest = b'{"":0' + piece[bracket:]
        found = document(rest)
        # behind the header there is nothing, or another trace
        if not piece[bracket:].strip() or (found and rest[found[1] :].strip()[:1] in b"{["):
            return bracket
    return None
