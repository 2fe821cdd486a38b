"""Small pieces that modules of `ingest.logs.known` share to turn lines into facts."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import Meant, number
from teller.ingest.logs.shapes import SHAPE, holding, kept
from teller.ingest.records import LINES, MEMBERS, REQUESTS, SAMPLES, Learned

MOST: Final = 300  # characters of a line that a sample keeps
_LARGEST: Final = 2.0**53


def said(text: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Give the first line of each message, cut to a readable length."""
    first = pc.replace_substring_regex(text, r"(?s)\n.*", "")
    return whole(pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(first), 0, MOST))


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Give a column as one array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def filled(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Turn "" into null, as an optional group that did not match leaves it."""
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def having(lines: pa.Table, mark: str) -> pa.Table:
    """Give the lines that hold a mark."""
    return kept(lines, holding(lines, mark))


def parted(lines: pa.Table, *marks: str) -> tuple[pa.Table, pa.Table]:
    """Part lines into those that hold one of the marks, and the others."""
    holds = holding(lines, *marks)
    return kept(lines, holds), kept(lines, ~holds)


def with_text(lines: pa.Table, text: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Set the text to another, which has not the shape that it had."""
    lines = lines.set_column(lines.schema.get_field_index("text"), "text", text)
    return lines.drop_columns([SHAPE]) if SHAPE in lines.column_names else lines


def with_column(lines: pa.Table, name: str, values: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Set a column where values tell it; where they are null, it stays."""
    kept = pc.coalesce(whole(values).cast(lines.schema.field(name).type), whole(lines[name]))
    return lines.set_column(lines.schema.get_field_index(name), name, kept)


def told(lines: pa.Table, **columns: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Give rows of `Meant.told` for these lines; without columns they are just understood."""
    return pa.table({"place": lines["place"]} | {k: whole(v) for k, v in columns.items()})


def labelled(form: str, *values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Fill "{}" of a form with columns; a null gives null."""
    pieces = form.split("{}")
    woven: list[object] = [pieces[0]]
    for value, piece in zip(values, pieces[1:], strict=True):
        woven += [whole(value), piece]
    return pc.binary_join_element_wise(*woven, "")


def integers(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Read whole numbers; what is none, or too large to be one, is null."""
    values = whole(column)
    if pa.types.is_integer(values.type):
        return values
    if not pa.types.is_floating(values.type):
        values = number(values)
    good = pc.less(pc.abs(values), _LARGEST)
    return pc.if_else(good, values, pa.scalar(None, pa.float64())).cast(pa.int64(), safe=False)


def counted(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Write whole numbers as text."""
    return integers(values).cast(pa.string())


def requests(lines: pa.Table, name: pa.ChunkedArray | pa.Array, **columns: object) -> pa.Table:
    """Give rows of `REQUESTS` for these lines; a column is an array or one value for all."""
    made = {field: lines[field] for field in ("rank", "host", "pid", "line")} | {"name": name}
    for field, value in columns.items():
        array = isinstance(value, (pa.Array, pa.ChunkedArray))
        made[field] = value if array else pa.repeat(value, lines.num_rows)
    none = pa.nulls(lines.num_rows)
    return pa.table([whole(made.get(f.name, none)).cast(f.type) for f in REQUESTS], schema=REQUESTS)


def meant(
    samples: Sequence[pa.Table] = (),
    told: Sequence[pa.Table] = (),
    requests: Sequence[pa.Table] = (),
    members: Sequence[pa.Table] = (),
    processes: Mapping[tuple[str, int | None], int] | None = None,
) -> Meant:
    """Put together what a module found in a block; of what is told of a line, the most counts."""
    learned = Learned(
        samples=pa.concat_tables([SAMPLES.empty_table(), *samples]),
        members=pa.concat_tables([MEMBERS.empty_table(), *members]),
        requests=pa.concat_tables([REQUESTS.empty_table(), *requests]),
    )
    known = [
        LINES.field(name) for name in ("place", "params", "step_index", "request", "rank", "host")
    ]
    rows = None
    if told:
        have = {name for table in told for name in table.schema.names}
        schema = pa.schema([field for field in known if field.name in have])
        most_first = sorted(told, key=lambda table: -table.num_columns)
        rows = pa.concat_tables([_as(table, schema) for table in most_first])
        _, first = np.unique(rows["place"].to_numpy(), return_index=True)
        rows = rows.take(np.sort(first))
    return Meant(learned, rows, processes or None)


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    none = pa.nulls(table.num_rows)
    have = set(table.schema.names)
    columns = [table[f.name].cast(f.type) if f.name in have else none.cast(f.type) for f in schema]
    return pa.table(columns, schema=schema)
