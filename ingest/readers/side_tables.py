"""Tables of records out of plain columns, and what is said of lines that could not be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_lines import Lines
from teller.ingest.records import SAMPLES, TABLES, Records
from teller.ingest.source import Reading, Remark


def rows(schema: pa.Schema, size: int, columns: Mapping[str, Any]) -> pa.Table:
    """Give a table of one schema of records: arrays as they are, scalars in each row, else null."""
    return pa.table([_column(columns.get(f.name), f.type, size) for f in schema], schema=schema)


def _column(given: Any, kind: pa.DataType, size: int) -> pa.Array:
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(given, list):
        given = pa.array(given)
    if not isinstance(given, pa.Array):
        given = pa.repeat(pa.scalar(given, pa.string() if pa.types.is_dictionary(kind) else kind),
                          size)  # fmt: skip
    if pa.types.is_dictionary(kind):
        return given.cast(pa.string()).dictionary_encode().cast(kind)
    # a float need not hold all digits of a whole number
    exact = not pa.types.is_floating(kind)
    return given if given.type == kind else given.cast(kind, safe=exact)


def samples(name: str, size: int, **columns: Any) -> pa.Table:
    """Give `size` samples of one name; those without value and text are left out."""
    made = rows(SAMPLES, size, {"name": name} | columns)
    return made.filter(pc.or_(made["value"].is_valid(), made["text"].is_valid()))


def joined(schema: pa.Schema, parts: Sequence[pa.Table]) -> pa.Table:
    """Give all rows in one table."""
    return pa.concat_tables(parts) if parts else schema.empty_table()


def number(text: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Read the number that a text begins with, as in "1980 MHz", "0x20" not; else null."""
    figure = pc.extract_regex(text, r"^\s*(?P<n>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)")
    return pc.cast(pc.struct_field(figure, "n"), pa.float64())


@dataclass(slots=True)
class Unread:
    """Counts lines that look like records and could not be read."""

    count: int = 0
    first: int = 0

    def add(self, lines: pa.Array | pa.ChunkedArray | Sequence[int]) -> None:
        """Count lines by their numbers, which rise."""
        if len(lines):
            first = lines[0]
            self.first = self.first or (first if isinstance(first, int) else first.as_py())
            self.count += len(lines)

    def remark(self, path: Path, what: str) -> tuple[Remark, ...]:
        """Say it, if there is anything to say."""
        if not self.count:
            return ()
        many = f"{self.count} lines are" if self.count > 1 else "1 line is"
        return (Remark(str(path), f"line {self.first}", f"{many} {what}, and left out",
                       "record it again if that is more than a cut end"),)  # fmt: skip


def reading(lines: Lines, records: Records, unread: Unread, kind: str) -> Reading:
    """Give a file's records, if it has any, with what was wrong; `kind` is what it should hold."""
    path = str(lines.path)
    said = list(unread.remark(lines.path, f"no {kind}"))
    if lines.text.damage:
        said.append(Remark(path, "", f"{lines.text.damage}; what comes before is used",
                           "copy or record it again"))  # fmt: skip
    if lines.left_out:
        said.append(Remark(path, "", "the file is larger than such files are; its end is left out",
                           "give only the part that matters"))  # fmt: skip
    size = sum(getattr(records, name).num_rows for name in TABLES)
    if not size:
        said.append(Remark(path, "", f"holds no {kind} that can be used", "record it again"))
        return Reading(remarks=tuple(said))
    return Reading(records=(_settled(records),), remarks=tuple(said))


def _settled(records: Records) -> Records:
    """Say that no row has a time where none has; the clock's kind would mean nothing."""
    times = [records.lines["time_ns"], records.samples["time_ns"], records.joins["time_ns"],
             records.requests["start_ns"], records.requests["end_ns"]]  # fmt: skip
    if any(column.null_count < len(column) for column in times):
        return records
    return replace(records, clock="none")
