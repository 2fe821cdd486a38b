"""Nsight Systems SQLite exports, plain or gzip, of any schema; nothing is written beside them."""

import re
import sqlite3
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, cast

from isal import igzip, isal_zlib

from teller.ingest.readers.nsys_reading import reading
from teller.ingest.readers.nsys_sqlite import MAGIC, SqliteTables, connected, table_names, uri
from teller.ingest.readers.nsys_tables import CUPTI, is_export
from teller.ingest.source import Reading, Remark

FORMAT: Final = "nsys_sqlite"

_GZIP: Final = b"\x1f\x8b"
_BROKEN: Final = (EOFError, OSError, zlib.error, cast(type[Exception], isal_zlib.IsalError))
_CHUNK: Final = 1 << 16
_LOOK: Final = 8 << 20  # bytes of a gzip file searched for the schema
_CREATE: Final = re.compile(rb'CREATE TABLE (?:IF NOT EXISTS )?["\[`\']?(\w+)')
_OTHERS: Final = (
    ("rocpd_", "a rocprofiler database (rocpd)"),
    ("DLPROF", "a DLProf database"),
    ("StringTable", "an nvprof or Visual Profiler database"),
    (CUPTI, "an nvprof or Visual Profiler database"),
)  # fmt: skip


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether this is a SQLite file with the tables of an Nsight Systems export."""
    return head.startswith(MAGIC) and is_export(_names(head, path))


def why_not(path: Path) -> str:
    """Say what a SQLite file seems to be, in a few words; empty for an export of Nsight Systems."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    names = sorted(_names(head, path))
    if is_export(names):
        return ""
    for start, what in _OTHERS:
        if any(name.upper().startswith(start.upper()) for name in names):
            return what
    if not names:
        return "a SQLite file without tables"
    more = ", …" if len(names) > 5 else ""
    return f"a SQLite file of another kind (tables {', '.join(names[:5])}{more})"


def read(path: Path) -> Reading:
    """Read one export: a source for each process, and remarks on what was wrong."""
    with _plain(path) as (file, remarks):
        if file.stat().st_size < len(MAGIC):
            return Reading((), (*remarks, _too_short(path)))
        with closing(SqliteTables(path, file)) as tables:
            found = reading(tables, FORMAT)
    return Reading(found.sources, (*remarks, *found.remarks))


def _too_short(path: Path) -> Remark:
    return Remark(str(path), "byte 0", "nothing of the database is there", "copy it again")


def _names(head: bytes, path: Path) -> Iterable[str]:
    """Give the names of the tables: asked of SQLite, else searched in the bytes."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    if not packed:
        try:
            with closing(connected(uri(path))) as database:
                return table_names(database)
        except sqlite3.Error:
            return _searched(head)
    names = set(_searched(head))
    return names if is_export(names) else names | set(_searched(_unpacked(path, _LOOK)))


def _searched(content: bytes) -> list[str]:
    return [name.decode() for name in _CREATE.findall(content)]


def _unpacked(path: Path, most: int) -> bytes:
    try:
        with igzip.IGzipFile(str(path), "rb") as packed:  # type: ignore[no-untyped-call] # its types are partial
            return bytes(packed.read(most))
    except _BROKEN:
        return b""


@contextmanager
def _plain(path: Path) -> Iterator[tuple[Path, list[Remark]]]:
    """Give the file to read; a gzip file is unpacked into a temporary one, as far as it goes."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    if not packed:
        yield path, []
        return
    with tempfile.NamedTemporaryFile(prefix="teller-", suffix=".sqlite") as plain:
        remarks = []
        size = 0
        try:
            with igzip.IGzipFile(str(path), "rb") as stream:  # type: ignore[no-untyped-call] # its types are partial
                while chunk := stream.read(_CHUNK):
                    size += plain.write(chunk)
        except _BROKEN as err:
            remarks = [Remark(
                str(path), f"byte {size} after unpacking", f"the gzip stream is broken: {err}",
                "copy it again; what could be read is used",
            )]  # fmt: skip
        plain.flush()
        yield Path(plain.name), remarks
