"""What a run folder holds: `teller.run/1`, the same from simulator, testbed and collector."""

from pathlib import Path
from typing import Any, Final

import msgspec

SCHEMA: Final = "teller.run/1"
NAME: Final = "manifest.json"


class HostEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A host."""

    name: str
    address: str = ""


class RankEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rank: where it ran, and its place in each kind of parallelism, None where not known."""

    rank: int
    host: str
    pid: int
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None


class FileEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file: its path in the folder, what it is, and whose."""

    path: str
    kind: str
    rank: int | None = None
    host: str = ""


class EngineEntry(msgspec.Struct, frozen=True):
    """The program that served."""

    name: str
    version: str = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A run folder. `run` is opaque: nothing in it, or in a file's name, tells of a fault."""

    schema: str = SCHEMA
    run: str
    created: str  # ISO 8601, UTC
    tool: str
    hosts: tuple[HostEntry, ...]
    ranks: tuple[RankEntry, ...]
    engine: EngineEntry
    model: dict[str, Any] = {}
    files: tuple[FileEntry, ...] = ()
    log_time: dict[str, Any] = {}  # year and UTC offset of log lines that lack them


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write it into the folder; the last file to be written, so that its presence says whole."""
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (folder / NAME).write_bytes(encoded + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """Give the manifest of a folder."""
    return msgspec.json.decode((folder / NAME).read_bytes(), type=Manifest)
