"""Nsight Systems exports as a folder: one Parquet or Arrow file for each table."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.ingest.readers.nsys_reading import reading
from teller.ingest.readers.nsys_tables import (
    BATCH_ROWS,
    NEEDED,
    absent,
    is_export,
    picked,
    typed,
)
from teller.ingest.source import Reading, Remark

FORMAT: Final = "nsys_dir"

_PARQUET: Final = ".parquet"
_ARROW: Final = (".arrow", ".arrows", ".feather", ".ipc")
_ENDINGS: Final = (_PARQUET, *_ARROW)


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether this is a folder of tables that are an export of Nsight Systems."""
    return not head and path.is_dir() and is_export(_files(path))


def read(path: Path) -> Reading:
    """Read one folder: a source for each process, and remarks on what was wrong."""
    return reading(FolderTables(path), FORMAT)


class FolderTables:
    """The tables of a folder. A file that cannot be read is named, and its table is absent."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.remarks: list[Remark] = []
        self._files = _files(path)
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """Give the names of a table's columns; none where there is no such table."""
        if table not in self._columns:
            self._columns[table] = self._schema(table)
        return self._columns[table]

    def is_used(self, table: str, columns: Sequence[str]) -> bool:
        """Tell whether the table has one of the columns; their values are cheap to read here."""
        return any(c in self.columns(table) for c in columns)

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Give all rows in stored order; of a damaged file those before the damage."""
        have = self.columns(table)
        if not have:
            return
        wanted = [c for column in columns for c in column.split("|") if c in have]
        given = 0
        try:
            for batch in _batches(self._files[table], wanted):
                rows = typed(_merged(batch, columns), columns)
                given += rows.num_rows
                yield rows
        except (pa.ArrowException, OSError) as err:
            self._damaged(table, f"{err}; the {given} rows before that are used")

    def strings(self, ids: pa.Array) -> pa.Array:
        """Give the texts of distinct ids, null where there is none."""
        if not self.columns(NEEDED) or not len(ids):
            return pa.nulls(len(ids), pa.string())
        return picked(self, ids)

    def _schema(self, table: str) -> frozenset[str]:
        if table not in self._files:
            return frozenset()
        try:
            return frozenset(_schema(self._files[table]).names)
        except (pa.ArrowException, OSError) as err:
            self._damaged(table, str(err))
            return frozenset()

    def _damaged(self, table: str, why: str) -> None:
        file = self._files[table]
        self.remarks.append(Remark(
            str(file), f"table {table}", f"cannot be read: {' '.join(why.split())}",
            "export the report again",
        ))  # fmt: skip


def _files(folder: Path) -> dict[str, Path]:
    return {
        file.name.split(".")[0]: file
        for file in sorted(folder.iterdir())
        if file.suffix in _ENDINGS and file.is_file()
    }


def _schema(file: Path) -> pa.Schema:
    if file.suffix == _PARQUET:
        return pq.read_schema(file)
    with pa.OSFile(str(file)) as opened:
        return _ipc(opened).schema


def _batches(file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if file.suffix == _PARQUET:
        with pq.ParquetFile(file) as opened:
            yield from opened.iter_batches(BATCH_ROWS, columns=list(columns))
        return
    with pa.OSFile(str(file)) as opened:
        reader = _ipc(opened)
        if isinstance(reader, pa.RecordBatchFileReader):
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number).select(list(columns))
        else:
            for batch in reader:
                yield batch.select(list(columns))


def _ipc(opened: pa.NativeFile) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """Open Arrow's stream format, which the exporter writes, or its file format."""
    try:
        return pa.ipc.open_stream(opened)
    except pa.ArrowInvalid:
        opened.seek(0)
        return pa.ipc.open_file(opened)


def _merged(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Join the alternatives of a column, `first|second`, into one."""
    names, arrays = list(batch.schema.names), list(batch.columns)
    for column in columns:
        parts = [batch[c] for c in column.split("|") if c in batch.schema.names]
        if "|" in column:
            names.append(column)
            arrays.append(pc.coalesce(*parts) if parts else absent(column, batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, names=names)
