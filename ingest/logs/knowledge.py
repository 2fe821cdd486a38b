"""The seam between lines and their meaning.

A module of `ingest.logs.known` knows one program's lines. It names `MARKS`, words of which one
stands in every line that it wants, and gives a `Knowing` for each file, which is shown the wanted
lines in order, a block at a time, and may remember what it saw (a communicator's pointer).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.shapes import kept, near
from teller.ingest.logs.strings import flags
from teller.ingest.records import SAMPLES, Learned


class Knowing(Protocol):
    """What one program's lines in one file mean."""

    def learn(self, lines: pa.Table) -> "Meant":
        """Read lines (columns of `SHOWN_LINES`), each with a mark."""


class Knowledge(Protocol):
    """A module of `ingest.logs.known`."""

    MARKS: tuple[str, ...]

    def knowing(self) -> Knowing:
        """Begin a file."""


@dataclass(frozen=True, slots=True)
class Meant:
    """Facts out of lines, and what is to be set in the lines themselves.

    `told` has a row a line that is understood: its `place`, and any of `params` (JSON object),
    `step_index`, `request`, `rank`, `host`. `ranks` and other findings about whole processes go
    into `learned.members` or, for engines, into `processes`: process label and pid with its rank.
    """

    learned: Learned = field(default_factory=Learned)
    told: pa.Table | None = None
    processes: Mapping[tuple[str, int | None], int] | None = None


WHO: Final = ("time_ns", "rank", "host", "pid", "line")
SHOWN_LINES: Final = ("place", *WHO, "process", "level", "origin", "text")
ABOUT: Final = (*WHO, "process")  # what a sample takes over from its line


def matched(lines: pa.Table, pattern: str, *words: str) -> pa.Table:
    """Give the lines whose text matches, with a string column for each named group (RE2).

    `words`, where given, are such that one of them stands in every text that matches.
    """
    if words:
        lines = near(lines, *words)
    found = pc.extract_regex(lines["text"].combine_chunks(), pattern)
    fits = found.is_valid()
    rows, groups = kept(lines, flags(fits)), found.filter(fits) if found.null_count else found
    for i in range(groups.type.num_fields):
        rows = rows.append_column(groups.type.field(i).name, groups.field(i))
    return rows


def number(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Read numbers as logs print them: thousands separators gone, "" and what is none is null."""
    try:  # most columns hold plain numbers alone
        plain = pc.cast(column, pa.float64())
    except pa.ArrowInvalid:
        return _number(column)
    finite = pc.all(pc.is_finite(plain), min_count=0).as_py()  # "nan" is no number of a log
    return plain if finite else _number(column)


def _number(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    text = pc.replace_substring(column, ",", "")
    good = pc.match_substring_regex(text, r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$")
    only = pc.if_else(good, text, pa.scalar(None, pa.string()))
    return pc.cast(only, pa.float64())


def samples(name: str, rows: pa.Table, *, value: object = None, text: object = None,
            device_index: object = None) -> pa.Table:  # fmt: skip
    """Give one sample a row; `value` and `text` are arrays of that size, or scalars."""
    size = rows.num_rows

    def column(given: object, kind: pa.DataType) -> pa.Array:
        if isinstance(given, (pa.Array, pa.ChunkedArray)):
            return given.cast(kind, safe=False)  # a number beyond 2**53 loses its last digits
        return pa.repeat(pa.scalar(given, kind), size)

    made = {
        "name": column(name, pa.string()),
        "value": column(value, pa.float64()),
        "text": column(text, pa.string()),
        "process": rows["process"].cast(pa.string()),
        "device_index": column(device_index, pa.int64()),
    } | {who: rows[who] for who in WHO}
    return pa.table([made[f.name] for f in SAMPLES], schema=SAMPLES)
