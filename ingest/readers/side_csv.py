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
    bad: list[csv.InvalidRow] = []

    def skip(row: csv.InvalidRow) -> str:
        bad.append(row)
        return "skip"

    names = [str(at) for at in range(len(head.words))]
    made = csv.read_csv(
        io.BytesIO(text.encode()),
        read_options=csv.ReadOptions(
            column_names=names, use_threads=False, block_size=2 * len(text) + (1 << 16)
        ),
        parse_options=csv.ParseOptions(
            delimiter=head.delimiter,
            quote_char='"' if quotes else False,
            ignore_empty_lines=False,
            invalid_row_handler=skip,
        ),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
    all_lines = text.removesuffix("\n").split("\n")
    kept, lost = _numbers(len(all_lines), bad)
    own = pa.array(all_lines, pa.string())
    made = made.append_column("line", pa.array(kept + first, pa.int64()))
    made = made.append_column("text", own.take(pa.array(kept)))
    below = [at + first for at in lost if at + first > head.line and all_lines[at].strip()]
    unread.add(below)
    again = pc.equal(pc.utf8_trim_whitespace(made["text"]), head.text)
    blank = pc.equal(pc.utf8_trim_whitespace(made["text"]), "")
    above = pc.less_equal(made["line"], head.line)
    return made.filter(pc.invert(pc.or_(pc.or_(again, blank), above))).combine_chunks()


def _numbers(size: int, bad: Sequence[csv.InvalidRow]) -> tuple[np.ndarray, list[int]]:
    """Give the lines, from 0, of the rows that were read, and those of the others."""
    lost, shift = [], 0
    for row in bad:  # a quote that is not closed takes lines with it
        start, more = row.number - 1 + shift, row.text.rstrip("\n").count("\n")
        lost += [at for at in range(start, start + more + 1) if at < size]
        shift += more
    return np.setdiff1d(np.arange(size), lost), lost
