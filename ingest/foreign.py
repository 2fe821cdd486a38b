"""What files look like that are no input of ours: for people, who may wonder why they are not."""

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final

from teller.ingest.discover import head_of, reader_for
from teller.ingest.walk import walk

MAGIC: Final = (
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"PK\x03\x04", "a zip archive or an Office file"),
    (b"\x7fELF", "a program or library"),
    (b"SQLite format 3", "a database of another program"),
    (b"PAR1", "a Parquet file"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\x80\x02", "a pickle"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
)
ENDINGS: Final = {
    ".py": "source code", ".c": "source code", ".cc": "source code", ".cpp": "source code",
    ".cu": "source code", ".h": "source code", ".rs": "source code", ".go": "source code",
    ".sh": "a script", ".yaml": "settings", ".yml": "settings", ".toml": "settings",
    ".ini": "settings", ".cfg": "settings", ".md": "a text for people", ".rst": "a text for people",
    ".nsys-rep": "an Nsight Systems report: export it with nsys export --type sqlite",
    ".qdrep": "an Nsight Systems report: export it with nsys export --type sqlite",
    ".ncu-rep": "an Nsight Compute report", ".html": "a web page", ".htm": "a web page",
    ".svg": "a picture", ".csv": "a table that is not known", ".tsv": "a table that is not known",
}  # fmt: skip
TEXTUAL: Final = 0.95  # share of printable bytes from which on content is text


def kinds(paths: Sequence[Path], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Give the files of these names below the paths, by what they look like."""
    places, _ = walk(paths, lambda folder: reader_for(b"", folder) is not None)
    at = {place.name: place.path for place in places}
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_kind(at[name]) if name in at else "gone", []).append(name)
    return {kind: tuple(files) for kind, files in sorted(found.items())}


def _kind(path: Path) -> str:
    try:
        head = head_of(path)
    except OSError:
        return "not readable"
    if not head:
        return "empty"
    for magic, kind in MAGIC:
        if head.startswith(magic):
            return kind
    ending = PurePath(path.name.removesuffix(".gz")).suffix.lower()
    if ending in ENDINGS:
        return ENDINGS[ending]
    start = head.lstrip()[:1]
    if start in (b"{", b"["):
        return "JSON of another kind"
    if start == b"<":
        return "XML or a web page"
    plain = sum(32 <= byte < 127 or byte in b"\t\r\n" or byte >= 128 for byte in head[:4096])
    return "text without records" if plain >= TEXTUAL * len(head[:4096]) else "binary data"
