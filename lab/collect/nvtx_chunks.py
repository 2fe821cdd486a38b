"""The chunks of a stream file, as the recorder of `native/` writes them: whole, cut or damaged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

MAGIC: Final = b"TNXT"
VERSION: Final = 1
SLOT: Final = np.dtype([
    ("time", "<i8"), ("value", "<u8"), ("text", "<u4"), ("category", "<u4"), ("extra", "<u4"),
    ("domain", "<u2"), ("kind", "u1"), ("payload", "u1"),
])  # fmt: skip
MORE_BYTES: Final = 30  # of a slot that continues the one before it
PUSH, POP, MARK, START, END, TEXT, MORE = range(1, 8)
EXTENDED: Final = 7  # kind of a payload that a schema describes

_HEAD: Final = np.dtype([
    ("magic", "S4"), ("version", "<u2"), ("kind", "<u2"), ("tid", "<u4"), ("bytes", "<u4"),
    ("lost", "<u8"), ("what", "<u4"), ("id", "<u4"),
])  # fmt: skip
_SIZE: Final = SLOT.itemsize
_SESSION, _EVENTS, _DEFINITION, _ANCHOR, _END = range(1, 6)
_DOMAIN, _STRING, _CATEGORY, _THREAD, _SCHEMA, _PROCESS, _OS_NAME = range(1, 8)

Slots = npt.NDArray[np.void]
Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Chunks:
    """All that a file holds, by kind."""

    session: dict[str, str] = field(default_factory=dict)
    anchors: list[tuple[int, int, int]] = field(default_factory=list)  # UTC, monotonic, boot
    parts: list[tuple[int, Slots]] = field(default_factory=list)  # thread, slots, in file order
    domains: dict[int, str] = field(default_factory=dict)
    strings: dict[int, str] = field(default_factory=dict)  # registered ones
    categories: dict[tuple[int, int], str] = field(default_factory=dict)  # by domain and id
    threads: dict[int, str] = field(default_factory=dict)
    schemas: dict[tuple[int, int], "Schema"] = field(default_factory=dict)  # by domain and id
    process: str = ""
    lost: int = 0
    ended: bool = False  # the program closed it
    damaged: int = 0  # bytes that are no chunk


@dataclass(frozen=True, slots=True)
class Entry:
    """One field of a payload."""

    flags: int
    type: int
    offset: int
    detail: int
    name: str


@dataclass(frozen=True, slots=True)
class Schema:
    """What the payloads of an id look like."""

    id: int
    name: str
    size: int
    entries: tuple[Entry, ...]


def read_chunks(content: bytes) -> Chunks:
    """Give all chunks of a file's content; of a last one that was cut, the whole slots."""
    found = Chunks()
    for head, body in _chunks(content, found):
        kind = int(head["kind"])
        found.lost = max(found.lost, int(head["lost"]))
        if kind == _EVENTS:
            slots = np.frombuffer(body[: len(body) // _SIZE * _SIZE], SLOT)
            found.parts.append((int(head["tid"]), slots))
        elif kind == _ANCHOR and len(body) >= 24:
            utc, monotonic, boot = np.frombuffer(body[:24], "<i8").tolist()
            found.anchors.append((utc, monotonic, boot))
        elif kind == _SESSION:
            found.session = dict(_pairs(bytes(body)))
        elif kind == _DEFINITION and len(body) >= 8:
            _define(found, int(head["what"]), int(head["id"]), body)
        found.ended |= kind == _END
    return found


def _chunks(content: bytes, found: Chunks) -> Iterator[tuple[np.void, memoryview]]:
    at, view = 0, memoryview(content)
    while at + _SIZE <= len(content):
        if content[at : at + 4] != MAGIC:
            after = content.find(MAGIC, at + 1)
            after = len(content) if after < 0 else after
            found.damaged += after - at
            at = after
            continue
        head = np.frombuffer(content, _HEAD, 1, at)[0]
        end = at + _SIZE + int(head["bytes"])
        if int(head["version"]) == VERSION:
            yield head, view[at + _SIZE : end]
        at = end
    found.damaged += max(len(content) - at, 0) if at < len(content) else 0


def _pairs(body: bytes) -> Iterator[tuple[str, str]]:
    for text in body.split(b"\0"):
        key, equals, value = text.decode("utf-8", "replace").partition("=")
        if equals:
            yield key, value


def _define(found: Chunks, what: int, number: int, body: memoryview) -> None:
    domain, size = np.frombuffer(body[:8], "<u4").tolist()
    text = bytes(body[8 : 8 + size]).decode("utf-8", "replace")
    if what == _SCHEMA:
        schema = _schema(text)
        if schema is not None:
            found.schemas[domain, schema.id] = schema
    elif what == _CATEGORY:
        found.categories[domain, number] = text
    elif what == _PROCESS:
        found.process = text
    elif what == _OS_NAME:
        found.threads.setdefault(number, text)  # a name that the program gave goes before it
    else:
        named: Mapping[int, dict[int, str]] = {
            _DOMAIN: found.domains, _STRING: found.strings, _THREAD: found.threads,
        }  # fmt: skip
        if what in named:
            named[what][number] = text


def _schema(text: str) -> Schema | None:
    lines = [line.split(" ", 4) for line in text.split("\n")]
    try:
        number, _, _, size = map(int, lines[0][:4])
        entries = tuple(
            Entry(int(flags), int(kind), int(offset), int(detail), name)
            for flags, kind, offset, detail, name in lines[1:]
        )
        return Schema(number, lines[0][4], size, entries)
    except (ValueError, IndexError):
        return None
