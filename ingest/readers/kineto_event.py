"""Trace events as they are decoded: numbers stay the text of the file until a column is made.

Text costs less than objects here, keeps every digit of a time, and lets a writer mix types freely.
"""

import re
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter, or_
from types import GenericAlias
from typing import Final, cast

import msgspec
import numpy as np

from teller.ingest.readers.kineto_values import MISSING, Word

NO_ARGS: Final = msgspec.Raw(b"{}")
BYTE: Final = re.compile(r"\(byte (\d+)\)")
EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*(?=\[)')


class Event(msgspec.Struct, gc=False):
    """One object of `traceEvents`; values that become numbers stay text, absent ones are empty."""

    cat: Word = ""
    name: Word = ""
    pid: Word = None
    tid: Word = None
    ts: msgspec.Raw = MISSING
    dur: msgspec.Raw = MISSING
    args: msgspec.Raw = NO_ARGS


class AnyEvent(Event, gc=False):
    """An event of a phase that nobody knows."""

    ph: Word = ""


def _event(phase: str) -> type[Event]:
    """Give the type of an event of a phase; of those that are no spans, nothing is read."""
    base = Event if phase in "XBEM" else msgspec.Struct
    kind = type(f"Event{ord(phase)}", (base,), {}, tag_field="ph", tag=phase, gc=False)
    return cast(type[Event], kind)


PHASES: Final = {_event(phase): phase for phase in "XBEMsftiICbneSTpFNODPRcvVaAL(),="}
SPANNING: Final = frozenset("XBE")
SPAN_TYPES: Final = {kind for kind, phase in PHASES.items() if phase in SPANNING}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Events that stand together in the text, from a byte on."""

    events: list[Event]
    spans: list[bool]  # which of them are spans, or begin or end one
    kinds: set[Word]  # their phases
    at: int
    length: int

    @property
    def phases(self) -> list[Word]:
        """Give the phase of each event."""
        return [PHASES[type(e)] if type(e) in PHASES else getattr(e, "ph", "") for e in self.events]


@dataclass(frozen=True, slots=True)
class Decoded:
    """What decoding events came to: a stretch, or a text that is cut or odd."""

    stretch: Stretch | None = None
    end: int | None = None  # byte of the text after the array's bracket, where that came
    cut: bool = False  # the text ends inside an event
    odd: int | None = None  # the byte of the text that is no JSON, where it is that


_decoder: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(
    GenericAlias(list, (reduce(or_, PHASES),))
)
_any_decoder = msgspec.json.Decoder(list[AnyEvent])


def _events(message: bytes, at: int) -> Stretch:
    """Decode a list of events; raises what the decoder raises."""
    length = len(message) - 2
    try:
        events = _decoder.decode(message)
    except msgspec.ValidationError:
        any_events = _any_decoder.decode(message)
        phases = list(map(attrgetter("ph"), any_events))
        spans = list(map(SPANNING.__contains__, phases))
        return Stretch([*any_events], spans, set(phases), at, length)
    types = list(map(type, events))
    spans = list(map(SPAN_TYPES.__contains__, types))
    return Stretch(events, spans, set(map(PHASES.__getitem__, set(types))), at, length)


def decoded(body: bytes | memoryview, at: int) -> Decoded:
    """Decode events that are separated by commas and stand at a byte of the text."""
    message = b"".join((b"[", body, b"]"))
    try:
        return Decoded(_events(message, at))
    except msgspec.ValidationError:
        return Decoded()
    except msgspec.DecodeError as err:
        said, place = str(err), BYTE.search(str(err))
    if place is None:
        return Decoded(cut=True)
    byte = int(place[1])
    if "trailing characters" in said:
        closed = message.rindex(b"]", 0, byte - 1)
        inside = decoded(message[1:closed], at)
        return Decoded(inside.stretch, end=at + closed, odd=inside.odd)
    if "trailing comma" in said:
        comma = message.rindex(b",", 1, byte)
        return decoded(message[1:comma] + b" " + message[comma + 1 : -1], at)
    return Decoded(odd=at + byte - 1)


def found(body: bytes, number: int, key: str) -> tuple[int, str]:
    """Give where in a stretch a value of an event stands, or one near it, and the value."""
    message = b"[" + body + b"]"
    try:
        event = _events(message, 0).events[number]
    except msgspec.DecodeError:  # a stretch that had to be mended
        return 0, ""
    value: msgspec.Raw = getattr(event, key)
    seen = next(filter(bytes, (value, event.ts, event.args)))
    # a Raw is a view of what was decoded, so its address tells its place; a default is none
    place = _address(seen) - _address(message)
    said = bytes(value).decode(errors="replace")
    return (place - 1 if 0 < place < len(message) else 0), said


def _address(view: msgspec.Raw | bytes) -> int:
    return int(np.frombuffer(view, np.uint8).ctypes.data)
