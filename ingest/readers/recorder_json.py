"""JSON of one document, with what is whole of it where the end is missing."""

import re
from typing import Final

import msgspec

TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]|"', re.DOTALL)
AT: Final = re.compile(r"byte (\d+)")
CLOSERS: Final = {ord("{"): b"}", ord("["): b"]"}
DEEPEST: Final = 64


def load(content: bytes) -> tuple[object, str]:
    """Give what a document holds, and what broke it: "" for a whole one; None for nothing."""
    text = content.decode("utf-8", "replace").encode().removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(text), ""
    except (msgspec.DecodeError, RecursionError) as error:
        why = str(error)
    at = AT.search(why)
    try:
        return msgspec.json.decode(_closed(text[: int(at[1])] if at else text)), why
    except (msgspec.DecodeError, RecursionError):
        return None, why


def _closed(text: bytes) -> bytes:
    """Cut after the last object or list that is whole, and close those around it."""
    opened: list[int] = []
    end, around = 0, b""
    for token in TOKEN.finditer(text):
        sign = token[0][0]
        if token[0] == b'"' or len(opened) > DEEPEST:
            break
        if sign in CLOSERS:
            opened.append(sign)
        elif sign in b"]}":
            if not opened or CLOSERS[opened.pop()][0] != sign:
                break
            end, around = token.end(), b"".join(CLOSERS[sign] for sign in reversed(opened))
    return text[:end] + around
