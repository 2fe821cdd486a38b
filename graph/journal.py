"""What people say of incidents: `notes/incidents.jsonl`, a line of JSON a note, never changed.

It lies beside the archive, so that neither a rebuild of the graph nor a new diagnosis touches it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from teller.errors import BadUsage
from teller.graph.secrets import redact

NAME: Final = "incidents.jsonl"
MOST_TEXT: Final = 2_000  # characters

Act = Literal["note", "acknowledge", "resolve", "reopen"]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was said of an incident, or done to it."""

    time_epoch_ns: int
    incident: int
    act: Act
    text: str = ""
    who: str = ""


def write(folder: Path, note: Note) -> Note:
    """Add a note to the journal in a workspace's folder for notes; give it as it is kept."""
    if note.act not in get_args(Act):
        raise BadUsage(f"{note.act!r} is nothing to do to an incident; do one of {get_args(Act)}")
    if len(note.text) > MOST_TEXT:
        raise BadUsage(f"a note has {MOST_TEXT:,} characters at most; this one {len(note.text):,}")
    if note.act == "note" and not note.text.strip():
        raise BadUsage("an empty note says nothing; write what was seen or done")
    kept = msgspec.structs.replace(note, text=redact(note.text), who=redact(note.who[:200]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, msgspec.json.encode(kept) + b"\n")  # at once: lines do not mix
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as err:
        raise BadUsage(f"{folder / NAME} cannot be written ({err}); look at your rights") from err
    return kept


def read(folder: Path) -> list[Note]:
    """Give all notes, oldest first; a line that was cut short is passed over."""
    try:
        lines = (folder / NAME).read_bytes().splitlines()
    except OSError:
        return []
    return sorted(_whole(lines), key=lambda note: note.time_epoch_ns)


def _whole(lines: list[bytes]) -> Iterator[Note]:
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=Note)
        except msgspec.DecodeError:
            continue
