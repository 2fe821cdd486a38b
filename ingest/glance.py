"""What a folder holds at this moment, by sizes and times alone, and whether a file is written out.

Nothing is read here but first and last bytes, and gzip files once to see whether they end.
"""

import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, cast

from isal import igzip, isal_zlib

from teller.graph.ids import HEAD_BYTES
from teller.ingest.discover import CHUNK, MANIFEST, head_of, places_in, reader_for
from teller.ingest.source import Remark

_GZIP: Final = b"\x1f\x8b"
_SQLITE: Final = b"SQLite format 3\x00"
_ZIP: Final = b"PK\x03\x04"
_PARQUET: Final = b"PAR1"
_PICKLE: Final = b"\x80"
# read line by line: a file that goes on growing is worth reading, and its last line may be cut
LINEWISE: Final = (
    "log", "comm_records", "nccl_inspector", "nccl_profiler", "host_metrics", "trtllm_stats",
    "otlp", "prometheus", "gpu_csv", "gpu_dmon", "client",
)  # fmt: skip


class Mark(NamedTuple):
    """What changes when a file does: bytes, and ns since 1970 of content and of its entry."""

    size: int
    modified_ns: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Sight:
    """A file or export folder as it stands; `name` is what people read."""

    path: Path
    name: str
    mark: Mark


def look(folder: Path) -> tuple[list[Sight], list[Remark]]:
    """Give all that lies in a folder; what is gone while looking is left out."""
    places, remarks = places_in([folder])
    sights = []
    for place in places:
        try:
            sights.append(Sight(place.path, place.name, _mark(place.path)))
        except OSError:
            continue
    return sights, remarks


def _mark(path: Path) -> Mark:
    stats = [os.stat(p) for p in (path, *path.rglob("*"))] if path.is_dir() else [os.stat(path)]
    return Mark(
        sum(s.st_size for s in stats),
        max(s.st_mtime_ns for s in stats),
        max(s.st_ctime_ns for s in stats),
    )


def may_grow(path: Path) -> bool:
    """Tell whether a file is of lines, so that one that is still written is worth reading."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        reader = None if packed else reader_for(head_of(path), path)
    except OSError:
        return False
    return reader is not None and reader.FORMAT in LINEWISE


def is_whole(path: Path) -> bool:
    """Tell whether a file ends as its format wants it; true where the format does not tell."""
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            head = file.read(100)
        return _ends(path, head)
    except OSError:
        return True  # the reader says what is wrong with it


def _ends(path: Path, head: bytes) -> bool:
    if head.startswith(_GZIP):
        return _gzip_ends(path)
    if head.startswith(_SQLITE):
        return _sqlite_ends(path, head)
    if head.startswith(_ZIP):
        return zipfile.is_zipfile(path)
    if head.startswith(_PARQUET):
        return _tail(path).endswith(_PARQUET)
    if head.startswith(_PICKLE):
        return _tail(path).endswith(b".")
    if head.lstrip()[:1] in (b"{", b"["):
        return _tail(path).rstrip()[-1:] in (b"}", b"]")
    return path.name != MANIFEST or bool(head)


def _sqlite_ends(path: Path, head: bytes) -> bool:
    """Compare the size with the number of pages in the header, and look for a journal beside."""
    if len(head) < 100:
        return False
    page = int.from_bytes(head[16:18]) or 1
    pages, counter, valid_for = (int.from_bytes(head[a : a + 4]) for a in (28, 24, 92))
    known = counter == valid_for  # else an old writer left the number as it was
    cut = known and path.stat().st_size < pages * (65536 if page == 1 else page)
    beside = (path.with_name(path.name + end) for end in ("-journal", "-wal"))
    return not cut and not any(p.exists() and p.stat().st_size for p in beside)


def _gzip_ends(path: Path) -> bool:
    try:
        with igzip.IGzipFile(str(path), "rb") as file:  # type: ignore[no-untyped-call] # its types are partial
            while file.read(CHUNK):
                pass
    except EOFError:
        return False
    except (OSError, zlib.error, cast(type[Exception], isal_zlib.IsalError)):
        return True  # it will not get better
    return True


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - HEAD_BYTES))
        return file.read()
