"""Tables of requests as load generators write them: CSV with a header, or JSON objects a line."""

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.client_columns import Meaning, meaning, options
from teller.ingest.readers.side_csv import Header, header, tables
from teller.ingest.readers.side_json import first_object, objects, opening
from teller.ingest.readers.side_lines import Lines, head_lines
from teller.ingest.readers.side_tables import Unread, joined, reading
from teller.ingest.records import LINES, REQUESTS, Records
from teller.ingest.source import Facts, Reading

FORMAT: Final = "client"

_PLAIN: Final = (str, int, float, bool)


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins as a table of requests with their times."""
    if opening(head) == b"{":
        return _of_keys(first_object(head)).fits
    return _header(head) is not None


def read(path: Path) -> Reading:
    """Read one table: a request for each row, and a line to point at."""
    lines, unread = Lines(path), Unread()
    _, raw = next(lines.raw_blocks(), (1, b""))
    if opening(raw) == b"{":
        meant = _of_keys(first_object(raw))
        tables_ = _json_tables(lines, meant, unread) if meant.fits else []
        parts = [meant.requests(table) for table in tables_]
    elif (head := _header(raw[: 1 << 16])) is not None:
        meant = _of_words(head)
        parts = [meant.requests(t) for t in tables(lines, head, unread, quotes=True) if t.num_rows]
    else:
        meant, parts = Meaning({}), []
    requests = joined(REQUESTS, [made for made, _ in parts])
    seen = joined(LINES, [line for _, line in parts])
    facts = Facts(str(path), FORMAT, options=options(meant), event_count=requests.num_rows)
    records = Records(facts, meant.clock, lines=seen, requests=requests)
    return reading(lines, records, unread, "request")


def _header(head: bytes) -> Header | None:
    return header(
        head_lines(head), lambda words: meaning(words, [str(i) for i in range(len(words))]).fits
    )


def _of_words(head: Header) -> Meaning:
    return meaning(head.words, [str(at) for at in range(len(head.words))])


def _of_keys(one: dict[str, object]) -> Meaning:
    return meaning(list(one), list(one))


def _json_tables(lines: Lines, meant: Meaning, unread: Unread) -> list[pa.Table]:
    """Give the objects' wanted keys as text, a table a block."""
    made = []
    for values, numbers in objects(lines, dict, unread):
        columns = {
            c.at: [_text(value.get(c.at)) for value in values] for c in meant.columns.values()
        }
        # the line itself is put together again: what it held beside is not needed
        told = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
        shown = [
            pc.binary_join_element_wise(name, pc.fill_null(told[name], "null"), ": ")
            for name in told.column_names
        ]
        text = pc.binary_join_element_wise(*shown, ", ")
        told = told.append_column("line", pa.array(numbers, pa.int64())).append_column("text", text)
        made += [told] if told.num_rows else []
    return made


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, _PLAIN) else None
