"""Tables of an export in a SQLite file: opened read-only, read in batches, damage named."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from adbc_driver_sqlite import dbapi

from teller.ingest.readers.nsys_tables import (
    BATCH_ROWS,
    NEEDED,
    at_ids,
    column_type,
    picked,
    typed,
)
from teller.ingest.source import Remark

MAGIC: Final = b"SQLite format 3\x00"
BAD: Final = (AdbcError, pa.ArrowException, OSError)  # what the driver says of bad content
_HEADER: Final = 100
_MANY_IDS: Final = 20_000
_IN_ONE: Final = 2_000
# As it stands; then with all values cast to the wanted types; then in ever smaller steps, since a
# batch in which the file is damaged is lost as a whole.
_ATTEMPTS: Final = (
    (False, BATCH_ROWS), (True, BATCH_ROWS), (True, 4096), (True, 256), (True, 16),
)  # fmt: skip
_BATCH_OPTION: Final = "adbc.sqlite.query.batch_rows"


class SqliteTables:
    """One open SQLite file; `path` is the one that people know, `file` the one to read."""

    def __init__(self, path: Path, file: Path) -> None:
        self.path = str(path)
        self.remarks: list[Remark] = []
        self._uri = uri(file)
        self._cut = size_remark(path, file)
        if self._cut:
            self.remarks.append(self._cut)
        self._columns = self._schema()
        self._database = dbapi.connect(self._uri)
        if self._cut:
            self._run("PRAGMA writable_schema=ON")  # else SQLite refuses all of a file that was cut

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def columns(self, table: str) -> frozenset[str]:
        """Give the names of a table's columns; none where there is no such table."""
        return self._columns.get(table, frozenset())

    def is_used(self, table: str, columns: Sequence[str]) -> bool:
        """Tell whether any row has a value in one of the columns."""
        have = [f'"{c}" IS NOT NULL' for c in columns if c in self.columns(table)]
        if not have:
            return False
        try:
            found = self._run(f'SELECT 1 FROM "{table}" WHERE {" OR ".join(have)} LIMIT 1')
        except BAD:
            return True
        return bool(found.num_rows)

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Give all rows in stored order; of a damaged table those before the damage."""
        if not self.columns(table):
            return
        given = 0
        for cast, size in _ATTEMPTS:
            query = self._select(table, columns, cast) + f" LIMIT -1 OFFSET {given}"
            try:
                for batch in self._stream(query, size):
                    rows = typed(batch, columns)
                    given += rows.num_rows
                    yield rows
            except BAD as err:
                problem = err
            else:
                return
        self.remarks.append(self._damage(table, given, problem))

    def strings(self, ids: pa.Array) -> pa.Array:
        """Give the texts of distinct ids, null where there is none."""
        wanted = ids.drop_null().to_pylist()
        if not self.columns(NEEDED) or not wanted:
            return pa.nulls(len(ids), pa.string())
        if len(wanted) > _MANY_IDS:
            return picked(self, ids)
        keys, values = [], []
        for first in range(0, len(wanted), _IN_ONE):
            some = ",".join(map(str, wanted[first : first + _IN_ONE]))
            where = f" WHERE id IN ({some})"
            for batch in self._guarded(self._select(NEEDED, ("id", "value"), True) + where):
                keys.append(batch["id"])
                values.append(batch["value"])
        if not keys:
            return pa.nulls(len(ids), pa.string())
        return at_ids(pa.concat_arrays(keys), pa.concat_arrays(values), ids)

    def _guarded(self, query: str) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._stream(query):
                yield typed(batch, ("id", "value"))
        except BAD as err:
            if not any(r.place == f"table {NEEDED}" for r in self.remarks):
                self.remarks.append(self._damage(NEEDED, None, err))

    def _select(self, table: str, columns: Sequence[str], cast: bool) -> str:
        """Give a query whose columns have one type each.

        The driver takes the type of a column from the first rows, where all may be null: text is
        never null here, and when a later value does not fit, all is cast on a second try.
        """
        have = self.columns(table)
        said = []
        for column in columns:
            parts = [f'"{c}"' for c in column.split("|") if c in have]
            if not parts:
                continue
            value = f"ifnull({parts[0]},{parts[1]})" if len(parts) > 1 else parts[0]
            text = column_type(column) == pa.string()
            if cast:
                value = f"CAST({value} AS {'TEXT' if text else 'INTEGER'})"
            said.append(f'{f"ifnull({value},{_EMPTY})" if text else value} AS "{column}"')
        return f'SELECT {", ".join(said) or "0 AS nothing"} FROM "{table}"'

    def _stream(self, query: str, size: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with closing(self._database.cursor()) as cursor:
            cursor.adbc_statement.set_options(**{_BATCH_OPTION: str(size)})
            cursor.execute(query)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def _run(self, query: str) -> pa.Table:
        with closing(self._database.cursor()) as cursor:
            cursor.execute(query)
            return cursor.fetch_arrow_table()

    def _schema(self) -> dict[str, frozenset[str]]:
        try:
            with closing(connected(self._uri, cut=self._cut is not None)) as database:
                return {
                    table: frozenset(_column_names(database, table))
                    for table in table_names(database)
                }
        except sqlite3.Error as err:
            self.remarks.append(Remark(
                self.path, "byte 0", f"the list of tables cannot be read: {err}",
                "export the report again",
            ))  # fmt: skip
            return {}

    def _damage(self, table: str, rows: int | None, err: Exception) -> Remark:
        kept = f"; the {rows} rows before that are used" if rows else ""
        why = re.sub(r"^.*query: |\s+$", "", " ".join(str(err).split()))
        return Remark(
            self.path, f"table {table}", f"cannot be read to its end: {why}{kept}",
            "export the report again",
        )  # fmt: skip


_EMPTY: Final = "''"


def uri(file: Path) -> str:
    """Give the name under which SQLite opens a file without locks, journal or any write."""
    return f"file:{quote(str(file.absolute()))}?mode=ro&immutable=1"


def connected(where: str, *, cut: bool = False) -> sqlite3.Connection:
    """Open a database for questions about its schema."""
    database = sqlite3.connect(where, uri=True)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    if cut:
        database.execute("PRAGMA writable_schema=ON")
    return database


def table_names(database: sqlite3.Connection) -> list[str]:
    """Give the names of all tables and views."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    return [str(name) for (name,) in database.execute(query)]


def _column_names(database: sqlite3.Connection, table: str) -> list[str]:
    try:
        rows: list[Any] = database.execute(
            "SELECT name FROM pragma_table_info(?)", (table,)
        ).fetchall()
    except sqlite3.Error:
        return []
    return [str(name) for (name,) in rows]


def size_remark(path: Path, file: Path) -> Remark | None:
    """Say when the file is shorter than its own header tells."""
    with file.open("rb") as opened:
        header = opened.read(_HEADER)
    size = file.stat().st_size
    page = int.from_bytes(header[16:18], "big")
    expected = int.from_bytes(header[28:32], "big") * (1 << 16 if page == 1 else page)
    if size >= expected and len(header) == _HEADER:
        return None
    whole = f"{size} bytes of {expected}"
    what = whole if len(header) == _HEADER else f"it ends inside its header of {_HEADER} bytes"
    return Remark(
        str(path), f"byte {size}", f"the file is cut: {what}",
        "copy or export it again; what could be read is used",
    )  # fmt: skip
