"""Every file and export folder below the paths that a user gives: once, with the name people read.

A folder is never left for a place outside: links to folders are named, not followed. Pipes, sockets
and devices are never opened, as reading them may wait for ever.
"""

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from teller.graph.secrets import redact
from teller.ingest.guard import cleared
from teller.ingest.source import Remark

REMEDIES: Final = {
    errno.EACCES: "give yourself the right to read it",
    errno.EPERM: "give yourself the right to read it",
    errno.ENOENT: "it is gone, or a link to nothing: leave it out, or bring it back",
    errno.ELOOP: "it is a link to itself: leave it out",
    errno.ENAMETOOLONG: "its path is too long: move it to a shorter one",
}
KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A file, or a folder that is an export of its own; `special` says what else it is."""

    path: Path
    name: str  # always text, below the given folder
    special: str = ""


def walk(
    paths: Sequence[Path], is_export: Callable[[Path], bool]
) -> tuple[list[Place], list[Remark]]:
    """Give all places, and remarks on what could not be looked into."""
    found = [_Top(path, is_export).look() for path in _distinct(paths)]
    if len(found) > 1:
        found = _told_apart(found)
    places: list[Place] = []
    remarks: list[Remark] = []
    seen: set[str] = set()
    for _, here, said in found:
        for place in here:
            whole = os.path.abspath(place.path)
            if whole not in seen:
                seen.add(whole)
                places.append(place)
        remarks += said
    return _nameable(places), cleared(remarks)


def _nameable(places: list[Place]) -> list[Place]:
    """Give the places with names that hold no secret, and are still told apart."""
    names = redact(pa.array([place.name for place in places], pa.string())).to_pylist()
    taken = Counter(names)
    told = []
    for place, name in zip(places, names, strict=True):
        if name != place.name and taken[name] > 1:
            taken[name] -= 1
            name = f"{name} ({taken[name]})"
        told.append(replace(place, name=name))
    return told


def unreadable(name: str, error: OSError) -> Remark:
    """Say that something cannot be read, why, and what to do."""
    remedy = REMEDIES.get(error.errno or 0, "look at the file and at the disk that holds it")
    return Remark(name, "", f"cannot be read: {error.strerror or error}", remedy)


def printable(name: str) -> str:
    """Give a file's name as text; bytes that are no UTF-8 are spelt out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


Looked = tuple[Path, list[Place], list[Remark]]


@dataclass(frozen=True, slots=True)
class _Top:
    """One path that the user gave."""

    path: Path
    is_export: Callable[[Path], bool]

    def look(self) -> Looked:
        """Give what is at or below the path."""
        name = printable(self.path.name or str(self.path))
        places: list[Place] = []
        remarks: list[Remark] = []
        for one in self._at(self.path, name, first=True):
            remarks.append(one) if isinstance(one, Remark) else places.append(one)
        return self.path, places, remarks

    def _at(self, path: Path, name: str, *, first: bool = False) -> Iterator[Place | Remark]:
        """Give what is at a path, and all that is below it, without recursion: trees are deep."""
        waiting = [(path, name, first)]
        while waiting:
            path, name, first = waiting.pop()
            try:
                mode = path.stat().st_mode
                if not stat.S_ISDIR(mode) or self.is_export(path):
                    yield Place(path, name, _special(mode))
                elif path.is_symlink() and not first:
                    yield from self._linked(path, name)
                else:
                    prefix = "" if first else f"{name}/"
                    inner = sorted(n for n in os.listdir(path) if not n.startswith("."))
                    waiting += [(path / n, prefix + printable(n), False) for n in reversed(inner)]
            except OSError as error:
                yield unreadable(name, error)

    def _linked(self, path: Path, name: str) -> Iterator[Remark]:
        """Name a link to a folder elsewhere; what lies inside is walked anyway."""
        target = path.resolve()
        top = self.path.resolve()
        if target.is_relative_to(top) or top.is_relative_to(target):
            return
        what = "is a link to a folder, which is not followed"
        yield Remark(name, "", what, f"if it belongs to the run, give it too: {target}")


def _special(mode: int) -> str:
    return next((what for test, what in KINDS if test(mode)), "")


def _distinct(paths: Sequence[Path]) -> list[Path]:
    known: dict[str, Path] = {}
    for path in paths:
        known.setdefault(os.path.abspath(path), path)
    return list(known.values())


def _told_apart(found: list[Looked]) -> list[Looked]:
    """Put the given path before names that would stand for several files."""
    leads: tuple[Callable[[Path], str], ...] = (lambda top: top.name, str)
    for lead in leads:
        count = Counter(name for _, places, _ in found for name in {p.name for p in places})
        found = [
            _under(one, printable(lead(one[0]))) if any(count[p.name] > 1 for p in one[1]) else one
            for one in found
        ]
    return found


def _under(found: Looked, lead: str) -> Looked:
    top, places, remarks = found
    named = [Place(p.path, f"{lead}/{p.name}" if p.path != top else lead, p.special)
             for p in places]  # fmt: skip
    told = [Remark(f"{lead}/{r.path}", r.place, r.what, r.remedy) for r in remarks]
    return top, named, told
