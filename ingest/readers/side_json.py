"""JSON of side files: objects a line, or one document, with what cannot be read counted."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, TypeVar

import msgspec

from teller.ingest.readers.side_lines import Lines, head_lines
from teller.ingest.readers.side_tables import Unread

T = TypeVar("T")
Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]  # a number that a column can hold

LARGEST: Final = 1 << 28  # bytes of one document
_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def opening(head: bytes) -> bytes:
    """Give the first character that is no space and no mark: `{` or `[` of JSON."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]


def first_object(head: bytes) -> dict[str, Any]:
    """Give the object that the first filled line holds; an empty one if it holds none."""
    line = next((line for line in head_lines(head) if line.strip()), "")
    try:
        value = msgspec.json.decode(line)
    except _BROKEN:
        return {}
    return value if isinstance(value, dict) else {}


def objects(lines: Lines, kind: type[T], unread: Unread) -> Iterator[tuple[list[T], list[int]]]:
    """Give what each line holds, a block at a time, with the lines' numbers.

    `kind` is what a line is to be, as msgspec takes it; another line is counted.
    """
    decoder = msgspec.json.Decoder(kind)
    for first, raw in lines.raw_blocks():
        raw = raw.removeprefix(b"\xef\xbb\xbf") if first == 1 else raw
        parts = raw.removesuffix(b"\n").split(b"\n")
        filled = [(first + at, part) for at, part in enumerate(parts) if part.strip(b" \t\r\0")]
        try:
            values = decoder.decode_lines(b"\n".join(part for _, part in filled))
        except _BROKEN:
            values = []
        if len(values) == len(filled):  # an object over several lines is one value
            yield values, [at for at, _ in filled]
        else:
            yield _one_by_one(decoder, filled, unread)


def documents(lines: Lines, kind: type[T], unread: Unread) -> list[T]:
    """Give the one document of a file, or those that each line holds, as `kind`."""
    whole, size = list[bytes](), 0
    for piece in lines.text.pieces():
        size += len(piece)
        if size > LARGEST:
            lines.left_out = True
            break
        whole.append(piece)
    raw = b"".join(whole).removeprefix(b"\xef\xbb\xbf")
    try:
        return [msgspec.json.decode(raw, type=kind)]
    except _BROKEN:
        pass
    try:  # what Python writes of a mean of nothing, NaN, only Python reads
        return [msgspec.convert(json.loads(raw), kind)]
    except (*_BROKEN, ValueError):
        parts = [(at, part) for at, part in enumerate(raw.split(b"\n"), 1) if part.strip()]
        return _one_by_one(msgspec.json.Decoder(kind), parts, unread)[0]


def _one_by_one(
    decoder: "msgspec.json.Decoder[T]", filled: list[tuple[int, bytes]], unread: Unread
) -> tuple[list[T], list[int]]:
    values, numbers = list[T](), list[int]()
    for at, part in filled:
        try:
            values.append(decoder.decode(part))
            numbers.append(at)
        except _BROKEN:
            unread.add([at])
    return values, numbers
