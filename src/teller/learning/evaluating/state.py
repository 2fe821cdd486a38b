"""What an evaluation keeps between days: tables as JSON, predictions a row and set, with hashes."""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from teller.learning.evaluating.bootstrap import Interval
from teller.learning.evaluating.columns import Says

PREDICTIONS: Final = "predictions"

Cell = Interval | float | int | str | None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under one head."""

    title: str
    columns: list[str]
    rows: list[tuple[str, list[Cell]]]


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """How a table came about: it can be made again from this."""

    day: str
    command: str
    draws: int
    times: int  # how often it was made: a test set is to be opened once for each


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One table, with the hashes of what it was made of."""

    name: str
    title: str
    text: str
    parts: list[Part]
    inputs: dict[str, str]
    made: Made


class State:
    """The folder of an evaluation."""

    def __init__(self, folder: Path) -> None:
        """Keep the folder; it is made when something is written."""
        self.folder = folder

    def table(self, name: str) -> Table | None:
        """Give a table as it was left; None where there is none that can be read."""
        try:
            return msgspec.json.decode((self.folder / f"{name}.json").read_bytes(), type=Table)
        except (OSError, msgspec.DecodeError):
            return None

    def tables(self) -> list[Table]:
        """Give all tables that are there, by name."""
        found = [self.table(p.stem) for p in sorted(self.folder.glob("*.json"))]
        return [t for t in found if t is not None]

    def keep(self, table: Table) -> None:
        """Write a table."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{table.name}.json"
        beside = path.with_suffix(".new")
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")
        beside.replace(path)

    def says(self, set_name: str, row: str, key: str) -> Says | None:
        """Give what was predicted for a set, where it was made of the same."""
        try:
            found, made_of = Says.load(self._place(set_name, row))
        except (OSError, KeyError, ValueError):
            return None
        return found if made_of == key else None

    def keep_says(self, set_name: str, row: str, key: str, found: Says) -> None:
        """Write predictions, in the smallest types that hold them."""
        found.compact().save(self._place(set_name, row), key)

    def _place(self, set_name: str, row: str) -> Path:
        return self.folder / PREDICTIONS / f"{set_name}-{slug(row)}.npz"


def slug(name: str) -> str:
    """Give a name that a file can have."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def key_of(*parts: str) -> str:
    """Give one hash of several texts."""
    return blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()


def hash_of(files: Sequence[Path]) -> str:
    """Give one hash of some files."""
    hashed = blake2b(digest_size=12)
    for path in files:
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


def changed(table: Table, inputs: Mapping[str, str]) -> list[str]:
    """Give what a table was made of that is something else now."""
    return [n for n in sorted({*table.inputs, *inputs}) if table.inputs.get(n) != inputs.get(n)]
