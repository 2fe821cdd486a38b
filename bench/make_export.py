"""Make an Nsight Systems SQLite export of any size by repeating the rows of a real one in time."""

import argparse
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

PAUSE_NS: Final = 1_000_000  # between two copies
TIMES: Final = ("start", "end", "timestamp")
NUMBERS: Final = ("correlationId", "rangeId", "gridId")  # unique in a process
EVENTS: Final = ("CUPTI_ACTIVITY_KIND_%", "NVTX_EVENTS", "OSRT_API", "NCCL_EVENTS")
WITHOUT_SYNC: Final = ("journal_mode=OFF", "synchronous=OFF", "cache_size=-65536")


def make(path: Path, seed: Path, rows: int) -> int:
    """Write an export of about so many rows of events; give how many it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(seed, path)
    path.chmod(0o644)
    with closing(sqlite3.connect(path)) as database:
        for pragma in WITHOUT_SYNC:
            database.execute(f"PRAGMA {pragma}")
        tables = dict(_tables(database))
        counts = {table: _one(database, f'SELECT count(*) FROM "{table}"') for table in tables}
        held = sum(counts.values())
        copies = max(1, round(rows / held))
        period, numbers = _period(database, tables), _numbers(database, tables)
        database.execute("CREATE TEMP TABLE copies (k INTEGER)")
        database.executemany("INSERT INTO copies VALUES (?)", ((k,) for k in range(1, copies)))
        for table, columns in tables.items():
            _repeat(database, table, columns, period, numbers)
        database.commit()
    return held * copies


def _tables(database: sqlite3.Connection) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give each table of events that has rows, with its columns."""
    told = " OR ".join("name LIKE ?" for _ in EVENTS)
    named = database.execute(f"SELECT name FROM sqlite_master WHERE type = 'table' AND ({told})",
                             EVENTS).fetchall()  # fmt: skip
    for (table,) in named:
        if _one(database, f'SELECT count(*) FROM "{table}"'):
            columns = database.execute("SELECT name FROM pragma_table_info(?)", (table,))
            yield table, tuple(name for (name,) in columns)


def _period(database: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> int:
    first, last = [], []
    for table, columns in tables.items():
        for column in (c for c in TIMES if c in columns):
            first.append(_one(database, f'SELECT min("{column}") FROM "{table}"'))
            last.append(_one(database, f'SELECT max("{column}") FROM "{table}"'))
    return max(last) - min(first) + PAUSE_NS


def _numbers(database: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> dict[str, int]:
    """Give for each kind of number how far it must be moved from copy to copy."""
    moved = {}
    for number in NUMBERS:
        highest = [
            _one(database, f'SELECT ifnull(max("{number}"), 0) FROM "{table}"')
            for table, columns in tables.items()
            if number in columns
        ]
        moved[number] = max(highest, default=0) + 1
    return moved


def _repeat(
    database: sqlite3.Connection, table: str, columns: tuple[str, ...], period: int,
    numbers: dict[str, int],
) -> None:  # fmt: skip
    by = dict.fromkeys(TIMES, period) | numbers
    values = [f's."{c}" + k * {by[c]}' if c in by else f's."{c}"' for c in columns]
    database.execute(f'CREATE TEMP TABLE seed AS SELECT * FROM "{table}" ORDER BY rowid')
    database.execute(
        f'INSERT INTO "{table}" SELECT {", ".join(values)} FROM copies CROSS JOIN seed AS s'
    )
    database.execute("DROP TABLE seed")


def _one(database: sqlite3.Connection, query: str) -> int:
    [(number,)] = database.execute(query).fetchall()
    return int(number)


def main() -> None:
    """Make an export as the command line says."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("path", type=Path)
    said.add_argument("--seed-export", type=Path, required=True)
    said.add_argument("--rows", type=int, default=1_000_000)
    told = said.parse_args()
    make(told.path, told.seed_export, told.rows)


if __name__ == "__main__":
    main()
