"""Messages out of lines: tracebacks and other continuation lines join the line before them."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.strings import Flags, Ints, flags, ints, join_runs

INDENTED: Final = r"^(?: {2,}|\t)"
TABLE_ROW: Final = r"^\s+-?[\d.]+\s+-?[\d.]+\s"  # of a benchmark: a line of its own
TRACEBACK: Final = r"Traceback \(most recent call last\):\s*$"
CHAINED: Final = "^(?:During handling of the above exception|The above exception was the direct)"
GRAVE: Final = pa.array(["warning", "error", "fatal"])


def messages(parts: pa.Table) -> pa.Table:
    """Join continuation lines; a message has the columns of its first line."""
    if parts.num_rows == 0:
        return parts
    parts = parts.combine_chunks()
    order = _by_stream(parts)
    rows = parts.take(pa.array(order))
    more = _continues(rows)
    rows = _failed(rows)
    if more.any():
        starts = np.flatnonzero(~more)
        text = join_runs(rows["text"].combine_chunks(), starts, "\n")
        rows = rows.take(pa.array(starts))
        rows = rows.set_column(rows.schema.get_field_index("text"), "text", text)
    return rows.sort_by("place").drop_columns(["head", "stream", "grammar", "headed"])


def _by_stream(parts: pa.Table) -> Ints:
    """Order the lines by whose output they are; a line without any head is its forerunner's."""
    codes = pc.dictionary_encode(parts["stream"].combine_chunks()).indices
    bare = flags(pc.equal(parts["grammar"], ""))
    last = np.maximum.accumulate(np.where(bare, 0, np.arange(len(bare))))
    return np.argsort(ints(codes)[last], kind="stable")


def _continues(rows: pa.Table) -> Flags:
    """Tell which lines continue the one before them in their stream."""
    text = rows["text"]
    inner = flags(pc.match_substring_regex(text, INDENTED))
    inner &= ~flags(pc.match_substring_regex(text, TABLE_ROW))
    inner |= flags(pc.equal(pc.utf8_trim_whitespace(text), ""))
    calls = flags(pc.match_substring_regex(text, TRACEBACK))
    chained = flags(pc.match_substring_regex(text, CHAINED))
    may = _may_continue(rows)
    above = _anchors(~inner)  # the line that is not indented, above each line
    top = above[above]
    raised = calls[above] & ~inner  # the exception itself, under its traceback
    grave = flags(pc.is_in(rows["level"], GRAVE))
    headed = flags(rows["headed"])
    follows = calls & (chained[above] | (grave[above] & headed[above]))
    after = chained & calls[top] & ~calls[above]
    return may & (inner | raised | follows | after)


def _may_continue(rows: pa.Table) -> Flags:
    head, headed = ints(rows["head"]), flags(rows["headed"])
    stream = ints(pc.dictionary_encode(rows["stream"].combine_chunks()).indices)
    bare = flags(pc.equal(rows["grammar"], ""))
    same = np.append(False, head[1:] == head[:-1])
    near = np.append(False, stream[1:] == stream[:-1]) | bare
    near[0] = False
    nccl = flags(pc.equal(rows["origin"], "nccl"))
    may: Flags = (~headed | same) & near & ~nccl & ~np.append(True, nccl[:-1])
    return may


def _anchors(anchor: Flags) -> Ints:
    """Give each row the last anchor before it, row 0 where there is none."""
    at = np.where(anchor, np.arange(len(anchor)), 0)
    return np.maximum.accumulate(np.append(0, at[:-1]))


def _failed(rows: pa.Table) -> pa.Table:
    """Set the level of tracebacks that no header gives a level."""
    silent = pc.and_(pc.equal(rows["level"], ""), pc.match_substring_regex(rows["text"], TRACEBACK))
    level: Any = pc.if_else(silent, "error", rows["level"])
    return rows.set_column(rows.schema.get_field_index("level"), "level", level)
