"""Queries that people kept: `notes/queries.jsonl`, a line of JSON each; a later one counts."""

import os
from pathlib import Path
from typing import Final

import msgspec

from teller.errors import BadUsage
from teller.graph.secrets import redact

NAME: Final = "queries.jsonl"
MOST_TEXT: Final = 20_000  # characters


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A query with its name; an empty text takes the name away."""

    name: str
    text: str
    who: str = ""


def keep(folder: Path, kept: Kept) -> None:
    """Add a query to those in a workspace's folder for notes."""
    if not kept.name.strip() or len(kept.name) > 100:
        raise BadUsage("a kept query needs a name of 1 to 100 characters")
    if len(kept.text) > MOST_TEXT:
        raise BadUsage(f"a kept query has {MOST_TEXT:,} characters at most")
    said = msgspec.structs.replace(kept, name=kept.name.strip(), text=redact(kept.text))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, msgspec.json.encode(said) + b"\n")
        finally:
            os.close(handle)
    except OSError as err:
        raise BadUsage(f"{folder / NAME} cannot be written ({err}); look at your rights") from err


def read(folder: Path) -> dict[str, str]:
    """Give the kept queries by name; a line that was cut short is passed over."""
    found: dict[str, str] = {}
    try:
        lines = (folder / NAME).read_bytes().splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            one = msgspec.json.decode(line, type=Kept)
        except msgspec.DecodeError:
            continue
        found.pop(one.name, None)
        if one.text:
            found[one.name] = one.text
    return found
