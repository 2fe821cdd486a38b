"""NCCL's lines among others, and their text without what stands before the message."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.meaning import whole
from teller.ingest.logs.shapes import holding, kept, near
from teller.ingest.logs.strings import flags

BEFORE: Final = (
    r"^(?:\[-?\d+\] )?(?:[\w./+-]+\.(?:cc|cu|c|h|cpp|cuh):\d+(?: \([^)]*\))? )?"
    r"(?:NCCL (?:INFO|WARN|CALL|ERROR) )?(?:\[Rank \d+\] )?"
)
MOST: Final = 500  # characters of a line that a sample keeps


def own(lines: pa.Table) -> pa.Table:
    """Give NCCL's lines, `text` being the message alone and `raw` what the line had.

    Their shapes are those of `raw`: of `text` they say which words it may hold, not which it does.
    """
    ours = flags(pc.equal(lines["origin"].cast(pa.string()), "nccl"))
    rows = kept(lines, ours | holding(lines, "NCCL "))
    raw = whole(rows["text"])
    at = rows.schema.get_field_index("text")
    bare = pc.replace_substring_regex(raw, BEFORE, "", max_replacements=1)
    return rows.set_column(at, "text", bare).append_column("raw", raw)


def process_of(rows: pa.Table) -> pa.Array:
    """Give host and pid as one word, for each row."""
    host = pc.fill_null(rows["host"].combine_chunks(), "")
    pid = pc.fill_null(rows["pid"].combine_chunks().cast(pa.string()), "")
    return pc.binary_join_element_wise(host, pid, ":")


def short(text: pa.Array) -> pa.Array:
    """Give text as a sample keeps it."""
    return pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(text, 0, MOST))


def with_word(rows: pa.Table, word: str) -> tuple[pa.Table, pa.Table]:
    """Part rows into those whose text has a word, and the others."""
    if not near(rows, word).num_rows:
        return rows.slice(0, 0), rows
    has = flags(pc.match_substring(rows["text"], word))
    return kept(rows, has), kept(rows, ~has)
