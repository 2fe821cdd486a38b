"""Nsight Systems SQLite exports of every schema that `nsys_schema` knows, made lazily as real ones.

Times count from the session's start by the host's clock; a table stands only where it has rows.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from adbc_driver_sqlite import dbapi

from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording.nsys_device import device_rows
from teller.lab.simulator.recording.nsys_host import host_rows
from teller.lab.simulator.recording.nsys_meta import Session, meta_rows
from teller.lab.simulator.recording.nsys_process import Process, Rows, Strings
from teller.lab.simulator.recording.nsys_schema import ENUMS, columns, ddl, number
from teller.lab.simulator.recording.plan import Recording, Window
from teller.lab.simulator.recording.seen import seen

_LEAD_NS: Final = (1e9, 3e10)  # from the session's start to the window's
_QUICK: Final = ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE")


def write(
    path: Path, happened: Happened, recording: Recording, ranks: Sequence[int], window: Window
) -> int:
    """Write one export of the ranks of one host; give the number of rows of events."""
    assert recording.nsys is not None
    version, strings = recording.nsys, Strings()
    random = np.random.default_rng((recording.seed, ranks[0], window.start_ns))
    with_engine = recording.per == "host"
    views = [seen(happened, recording, rank, window, engine=with_engine) for rank in ranks]
    base_ns = views[0].start_ns - int(random.uniform(*_LEAD_NS))
    processes = [Process(happened, recording, one, strings, base_ns) for one in views]
    tables = [[*host_rows(one), *device_rows(one)] for one in processes]
    session = Session(recording, tuple(processes), base_ns, version)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        _enums(database, version)
    count = 0
    bulk: Any = dbapi.connect(str(path), autocommit=True)
    with closing(bulk), closing(bulk.cursor()) as cursor:
        for pragma in _QUICK:
            cursor.execute(f"PRAGMA {pragma}")
            cursor.fetchall()
        cursor.execute("BEGIN")
        made: set[str] = set()
        for rows in (one for part in tables for one in part):
            count += _insert(cursor, rows, version, made)
        for rows in meta_rows(session):
            _insert(cursor, rows, version, made)
        cursor.execute("COMMIT")
    return count


def _insert(cursor: Any, rows: Rows, version: str, made: set[str]) -> int:
    """Add rows to a table, which is made with the first; what all rows share is not bound."""
    length = len(next(iter(rows.varies.values())))
    known = columns(rows.table, version)
    if not length or not known:
        return 0
    if rows.table not in made:
        cursor.execute(ddl(rows.table, version))
        made.add(rows.table)
    bound = {name: pa.array(values) for name, values in rows.varies.items() if name in known}
    fixed = {name: _literal(value) for name, value in rows.same.items() if name in known}
    names = ", ".join(f'"{name}"' for name in (*bound, *fixed))
    values = ", ".join((*("?" for _ in bound), *fixed.values()))
    cursor.executemany(f"INSERT INTO {rows.table} ({names}) VALUES ({values})", pa.table(bound))
    return length


def _literal(value: int | str | None) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _enums(database: sqlite3.Connection, version: str) -> None:
    """Make the tables of enumerations, which exports have since 3.0 whether used or not."""
    if number(version) < (3, 0):
        return
    for table, values in ENUMS.items():
        database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, name TEXT, label TEXT)")
        database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", _labelled(values))


def _labelled(values: dict[int, str]) -> Iterable[tuple[int, str, str]]:
    return ((key, name, name) for key, name in values.items())
