"""The graph file that readers see: replaced as a whole, never written to while it is current.

graph/CURRENT                         which file is current, and which runs it holds
graph/<token>-<engine>.lbdb           never changed once it is there
graph/scratch-<token>/                the next one, being made
"""

import hashlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from teller.graph import cypher
from teller.graph.durable import move_whole, write_whole
from teller.graph.embedded import ENGINE
from teller.graph.store import StoreUnreadable

SCHEMA: Final = hashlib.sha256("\n".join(cypher.embedded_ddl()).encode()).hexdigest()[:16]


class Held(msgspec.Struct, frozen=True):
    """A run in the graph, and the generation it was loaded from."""

    run_id: int
    generation: str


class Current(msgspec.Struct, frozen=True):
    """What `CURRENT` says."""

    file: str
    size_bytes: int
    engine: str
    schema: str  # a digest: files of other columns cannot be used
    runs: tuple[Held, ...]

    @property
    def generations(self) -> dict[int, str]:
        """Give the generation of each run that the file holds."""
        return {held.run_id: held.generation for held in self.runs}


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder to make the next graph file in."""

    folder: Path
    file: Path


class Published:
    """The folder of published graph files. Only the holder of the lock may change anything."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is read yet."""
        self.folder = folder
        self._pointer = folder / "CURRENT"

    def look(self) -> Current:
        """Give what is current, or say why it cannot be used."""
        try:
            current = msgspec.json.decode(self._pointer.read_bytes(), type=Current)
        except FileNotFoundError as err:
            raise StoreUnreadable(f"{self.folder}: there is no graph yet") from err
        except msgspec.DecodeError as err:
            raise StoreUnreadable(f"{self._pointer}: cannot be read ({err})") from err
        path = self.path(current)
        if current.engine != ENGINE:
            raise StoreUnreadable(f"{path}: written by {current.engine}, this is {ENGINE}")
        if current.schema != SCHEMA:
            raise StoreUnreadable(f"{path}: its tables are those of another release")
        if not path.is_file() or path.stat().st_size != current.size_bytes:
            raise StoreUnreadable(f"{path}: missing or cut short")
        return current

    def path(self, current: Current) -> Path:
        """Give the path of a published file."""
        return self.folder / current.file

    @contextmanager
    def scratch(self, start: Current | None) -> Iterator[Scratch]:
        """Give a place for the next file, which starts as a copy of `start` or empty."""
        folder = self.folder / f"scratch-{secrets.token_hex(8)}"
        folder.mkdir()
        try:
            made = Scratch(folder, folder / "graph.lbdb")
            if start is not None:
                shutil.copyfile(self.path(start), made.file)
            yield made
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # the next sweep has what stays

    def publish(self, made: Scratch, runs: Mapping[int, str]) -> None:
        """Make a closed scratch file the current one."""
        log = made.file.with_name(f"{made.file.name}.wal")
        assert not log.exists(), "a file with a log beside it is not whole"
        name = f"{secrets.token_hex(8)}-{ENGINE}.lbdb"
        size = made.file.stat().st_size
        move_whole(made.file, self.folder / name)
        held = tuple(Held(run_id, generation) for run_id, generation in sorted(runs.items()))
        said = msgspec.json.encode(Current(name, size, ENGINE, SCHEMA, held))
        write_whole(self._pointer, msgspec.json.format(said, indent=1) + b"\n")
        self.sweep()

    def sweep(self) -> None:
        """Remove all but the current file; on Linux, who reads an old one keeps it."""
        kept = {self._pointer.name}
        with suppress(StoreUnreadable):  # then no file is the current one
            kept.add(self.look().file)
        for path in self.folder.iterdir():
            if path.name in kept:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)  # the next sweep has what stays
            else:
                with suppress(OSError):  # Windows keeps a file that is open; the next sweep has it
                    path.unlink()
