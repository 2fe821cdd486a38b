"""Trace events as they are decoded: values stay the text they are in the file until a column is made.

Text costs less than objects here, keeps every digit of a time, and lets a writer mix types freely.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from teller.ingest.readers.kineto_values import MISSING, Word

NO_ARGS: Final = msgspec.Raw(b"{}")
BYTE: Final = re.compile(r"\(byte (\d+)\)")
EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*(?=\[)')


class Event(msgspec.Struct, gc=False):
    """One object of `traceEvents`; values that become numbers stay text, absent ones are empty."""

    ph: Word = ""
    cat: Word = ""
    name: Word = ""
    pid: Word = None
    tid: Word = None
    ts: msgspec.Raw = MISSING
    dur: msgspec.Raw = MISSING
    args: msgspec.Raw = NO_ARGS


@dataclass(frozen=True, slots=True)
class Stretch:
    """Events that stand together in the text, from a byte on."""

    events: list[Event]
    at: int
    length: int


@dataclass(frozen=True, slots=True)
class Decoded:
    """What decoding events came to: a stretch, or a text that is cut or odd."""

    stretch: Stretch | None = None
    end: int | None = None  # byte of the text after the array's bracket, where that came
    cut: bool = False  # the text ends inside an event
    odd: int = 0  # else the byte of the text that is no JSON, or where a value is no event


_decoder = msgspec.json.Decoder(list[Event])


def decoded(body: bytes, at: int) -> Decoded:
    """Decode events that are separated by commas and stand at a byte of the text."""
    message = b"[" + body + b"]"
    try:
        return Decoded(Stretch(_decoder.decode(message), at, len(body)))
    except msgspec.ValidationError:
        return Decoded(odd=at)
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
        comma = message.rindex(b",", 1, byte) - 1
        return decoded(body[:comma] + b" " + body[comma + 1 :], at)
    return Decoded(odd=at + byte - 1)


def found(body: bytes, number: int, key: str) -> tuple[int, str]:
    """Give where in a stretch a value of an event stands, and the value; a near one's, if absent."""
    message = b"[" + body + b"]"
    try:
        event = _decoder.decode(message)[number]
    except msgspec.DecodeError:  # a stretch that had to be mended
        return 0, ""
    value: msgspec.Raw = getattr(event, key)
    seen = next((v for v in (value, event.ts, event.args) if bytes(v) not in (b"", b"{}")), None)
    if seen is None:
        return 0, ""
    # a Raw is a view of what was decoded, so its address tells its place
    return _address(seen) - _address(message) - 1, bytes(value).decode(errors="replace")


def _address(view: msgspec.Raw | bytes) -> int:
    return int(np.frombuffer(view, np.uint8).ctypes.data)
