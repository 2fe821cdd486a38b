"""Tables of comma-, semicolon- or tab-separated values as text columns, with line numbers."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from teller.ingest.readers.side_lines import Lines, tame
from teller.ingest.readers.side_tables import Unread

_DELIMITERS: Final = (",", ";", "\t")
HEAD_LINES: Final = 20  # a header stands within so many lines


@dataclass(frozen=True, slots=True)
class Header:
    """A table's header: its number in the file, the line itself, and its words."""

    line: int
    text: str
    delimiter: str
    words: tuple[str, ...]


def header(
    lines: Sequence[str], is_header: Callable[[Sequence[str]], bool], others: int = HEAD_LINES
) -> Header | None:
    """Give the first line that is a header, with at most `others` before it."""
    for at, line in enumerate(lines[: others + 1]):
        delimiter = max(_DELIMITERS, key=line.count)
        words = tuple(word.strip().strip('"').strip() for word in line.split(delimiter))
        if len(words) > 1 and is_header(words):
            return Header(at + 1, line.strip(), delimiter, words)
    return None


def tables(lines: Lines, head: Header, unread: Unread, *, quotes: bool) -> Iterator[pa.Table]:
    """Give all rows as text, a block at a time.

    Columns are "0", "1", … as the header's words stand, `line`, and `text`, the line itself.
    """
    for first, raw in lines.raw_blocks():
        yield _table(first, tame(raw), head, unread, quotes)


def _table(first: int, text: str, head: Header, unread: Unread, quotes: bool) -> pa.Table:
    lines = pa.array(text.replace("\r", " ").removesuffix("\n").split("\n"), pa.string())
    numbers = np.arange(len(lines)) + first
    parsed, lost = _parsed(lines, head, quotes)
    blank = np.asarray(pc.equal(pc.utf8_trim_whitespace(lines), ""))
    unread.add(numbers[lost & ~blank & (numbers > head.line)].tolist())
    again = np.asarray(pc.equal(pc.utf8_trim_whitespace(lines), head.text))
    kept = ~lost
    made = parsed.append_column("line", pa.array(numbers[kept], pa.int64()))
    made = made.append_column("text", lines.filter(pa.array(kept)))
    wanted = (~blank & ~again & (numbers > head.line))[kept]
    return made.filter(pa.array(wanted)).combine_chunks()


def _parsed(lines: pa.Array, head: Header, quotes: bool) -> tuple[pa.Table, np.ndarray]:
    """Give a row for each line that has the header's size, and which lines have not."""
    lost = np.zeros(len(lines), np.bool_)
    if quotes:  # a quote that is not closed on its line would take others with it
        lost |= np.asarray(pc.count_substring(lines, '"')) % 2 == 1
        lines = pc.if_else(pa.array(lost), "", lines)

    def skip(row: csv.InvalidRow) -> str:
        lost[row.number - 1] = True
        return "skip"

    names = [str(at) for at in range(len(head.words))]
    raw = ("\n".join(lines.to_pylist()) + "\n").encode()
    made = csv.read_csv(
        io.BytesIO(raw),
        read_options=csv.ReadOptions(
            column_names=names, use_threads=False, block_size=len(raw) + (1 << 16)
        ),
        parse_options=csv.ParseOptions(
            delimiter=head.delimiter,
            quote_char='"' if quotes else False,
            ignore_empty_lines=False,
            invalid_row_handler=skip,
        ),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
    # a line that was emptied is a row of nothing
    emptied = lost & (np.asarray(pc.utf8_length(lines)) == 0)
    rows = np.ones(len(lines), np.bool_)
    rows[lost & ~emptied] = False
    return made.filter(pa.array(~emptied[rows])), lost
