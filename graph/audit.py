"""What was asked of a workspace: `queries.jsonl`, a line of JSON a query, values left out."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from teller.graph.secrets import redact

NAME: Final = "queries.jsonl"
BEFORE: Final = "queries.1.jsonl"
MOST_BYTES: Final = 4 << 20  # then it becomes the one before, whose lines go
MOST_TEXT: Final = 2_000  # characters


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One query and what came of it."""

    time: datetime
    ms: int
    text: str
    rows: int = 0
    truncated: bool = False
    refused: str | None = None
    who: str = ""


def now() -> datetime:
    """Give the time, in UTC."""
    return datetime.now(UTC)


def note(folder: Path, asked: Asked) -> None:
    """Add a line; a workspace that is not there or cannot be written is left as it is."""
    file = folder / NAME
    with suppress(OSError, ValueError):  # the latter: a text that is no Unicode
        kept = msgspec.structs.replace(
            asked,
            text=redact(asked.text[:MOST_TEXT]),
            refused=asked.refused and redact(asked.refused[:MOST_TEXT]),
        )
        line = msgspec.json.encode(kept) + b"\n"
        if file.exists() and file.stat().st_size + len(line) > MOST_BYTES:
            file.replace(folder / BEFORE)
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line)  # at once: lines of several processes do not mix
        finally:
            os.close(handle)
