"""What lies in the paths that the user gave: which file is for which reader, and what is none.

A file is recognised by its content. A folder that is an export of its own (a Parquet directory, a
recipe result) is one input; other folders are walked. `manifest.json` says what a run folder holds.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Final

import msgspec

from teller.graph.ids import HEAD_BYTES
from teller.ingest.formats import READERS
from teller.ingest.guard import cleared
from teller.ingest.manifest import Manifest
from teller.ingest.source import Reader, Remark
from teller.ingest.walk import Place, unreadable, walk

MANIFEST: Final = "manifest.json"
BASELINE: Final = "baseline"
CHUNK: Final = 1 << 20
MANY: Final = 8  # files of which the same is said are named one by one up to here


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path that a reader takes: its name below the given folder, and hashes of its content."""

    path: Path
    name: str  # below the folder that the user gave; what people read
    format: str  # the reader's
    head: str  # hash of the first 64 KiB after decompression
    digest: str  # hash of all bytes
    modified_ns: int = 0  # when it was last written, where that tells a missing year
    size: int = 0  # bytes

    @property
    def baseline(self) -> bool:
        """Tell whether its name says that it shows the healthy state."""
        return any(part.lower().startswith(BASELINE) for part in PurePath(self.name).parts)


@dataclass(frozen=True, slots=True)
class Found:
    """All that the paths hold. `others` are files that are no input of ours."""

    candidates: tuple[Candidate, ...]
    manifests: tuple[Manifest, ...] = ()
    others: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()


def places_in(paths: Sequence[Path]) -> tuple[list[Place], list[Remark]]:
    """Give every file and export folder, and remarks on what could not be looked into."""
    return walk(paths, lambda folder: reader_for(b"", folder) is not None)


def discover(paths: Sequence[Path], wanted: Callable[[Path], bool] | None = None) -> Found:
    """Look into every path; where some files alone are `wanted`, into these and the manifests."""
    places, remarks = places_in(paths)
    if wanted is not None:
        places = [p for p in places if p.path.name == MANIFEST or wanted(p.path)]
    candidates: list[Candidate] = []
    manifests: list[Manifest] = []
    others: list[str] = []
    for place in places:
        try:
            one = _look(place)
        except OSError as error:
            remarks.append(unreadable(place.name, error))
            continue
        if isinstance(one, Candidate):
            candidates.append(one)
        elif isinstance(one, Manifest):
            manifests.append(one)
        else:
            remarks += _not_ours(place, one)
            if not place.special:
                others.append(place.name)
    return Found(tuple(candidates), tuple(manifests), tuple(others), tuple(_folded(remarks)))


def _folded(remarks: Sequence[Remark]) -> Iterator[Remark]:
    """Give the remarks, with one for many files of which the same is to be said."""
    alike: dict[tuple[str, str, str], list[Remark]] = {}
    for one in remarks:
        alike.setdefault((one.place, one.what, one.remedy), []).append(one)
    for group in alike.values():
        yield from group if len(group) <= MANY else group[: MANY - 1]
        if len(group) > MANY:
            more = f"{len(group) - MANY + 1} more files like {group[0].path}"
            yield replace(group[0], path=more)


def _look(place: Place) -> "Candidate | Manifest | bytes":
    """Give what a place is; of one that is no input of ours, what it begins with."""
    if place.special:
        return b""
    if manifest := _manifest(place.path, place.name):
        return manifest
    head = b"" if place.path.is_dir() else head_of(place.path)
    reader = reader_for(head, place.path)
    if reader is None:
        return head
    return Candidate(
        place.path,
        place.name,
        reader.FORMAT,
        _hash(head),
        _digest(place.path),
        place.path.stat().st_mtime_ns,
        place.path.stat().st_size,
    )


def _not_ours(place: Place, head: bytes) -> list[Remark]:
    """Say what is to be said of a place that no reader takes."""
    if place.special:
        what = f"is {place.special}, not a file"
        return [Remark(place.name, "", what, "write what it gives to a file, and give that")]
    return _near_miss(place.path, place.name, head)


def reader_for(head: bytes, path: Path) -> Reader | None:
    """Give the reader that takes this content."""
    return next((reader for reader in READERS if reader.looks_like(head, path)), None)


def reader_named(name: str) -> Reader:
    """Give the reader of a format."""
    return next(reader for reader in READERS if name == reader.FORMAT)


def head_of(path: Path) -> bytes:
    """Give the first 64 KiB of a file after decompression; what can be had of a damaged one."""
    with path.open("rb") as file:
        raw = file.read(HEAD_BYTES)
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return zlib.decompressobj(wbits=31).decompress(raw, HEAD_BYTES)
    except zlib.error:
        return raw


def _hash(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _digest(path: Path) -> str:
    """Hash all bytes of a file, or of all files of an export folder with their names."""
    state = blake2b(digest_size=16)
    for part in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        if path.is_dir():
            state.update(part.name.encode())
        with part.open("rb") as file:
            while chunk := file.read(CHUNK):
                state.update(chunk)
    return state.hexdigest()


def begins_with(path: Path, size: int, digest: str) -> bool:
    """Tell whether a file's first bytes are a whole file that was read before."""
    state, left = blake2b(digest_size=16), size
    with path.open("rb") as file:
        while left and (chunk := file.read(min(left, CHUNK))):
            state.update(chunk)
            left -= len(chunk)
    return not left and state.hexdigest() == digest


def is_seen(candidate: Candidate) -> bool:
    """Tell whether the file that was found is what this machine sees under its path."""
    path = candidate.path
    try:
        if path.is_dir():
            return candidate.head == _hash(b"")
        return path.stat().st_size >= candidate.size and _hash(head_of(path)) == candidate.head
    except OSError:
        return False


def _manifest(path: Path, name: str) -> Manifest | None:
    if path.name != MANIFEST:
        return None
    try:
        manifest = msgspec.convert(cleared(msgspec.json.decode(path.read_bytes())), Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    if not manifest.schema.startswith("teller.run/"):
        return None
    return msgspec.structs.replace(manifest, folder=name.removesuffix(MANIFEST))


def _near_miss(path: Path, name: str, head: bytes) -> list[Remark]:
    """Say something of a file that has a trace's name and is none; other files stay unmentioned."""
    tracelike = (".json", ".json.gz", ".sqlite", ".sqlite.gz", ".nsys-rep", ".qdrep", ".db")
    if not path.name.endswith(tracelike) or path.name in ("notes.json", MANIFEST):
        return []
    if path.name.endswith((".nsys-rep", ".qdrep")):
        return [
            Remark(
                name,
                "",
                "is an Nsight Systems report, not an export",
                f"run: nsys export --type sqlite {PurePath(name).name}",
            )
        ]
    if not head:
        remedy = "record it again; the writer was stopped before it wrote"
        return [Remark(name, "byte 0", "the file is empty", remedy)]
    return [
        Remark(
            name,
            "byte 0",
            f"is no trace: {_content(head)}",
            "if it should be one, record it again; otherwise leave it out",
        )
    ]


def _content(head: bytes) -> str:
    start = head.lstrip()[:64].lower()
    if start.startswith((b"<!doctype", b"<html", b"<")):
        return "it holds a web page or XML"
    if start.startswith(b"sqlite format 3"):
        return "it is a SQLite database, but not an export of Nsight Systems"
    if start.startswith((b"{", b"[")):
        return "it is JSON without trace events"
    return "its content is not one of the formats that are read"
