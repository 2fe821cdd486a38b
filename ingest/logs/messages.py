"""Messages out of lines: tracebacks and other continuation lines join the line before them."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.strings import Flags, Ints, flags, ints, join_runs

INNER: Final = r"^(?: {2,}|\t|\s*$)"  # indented, or blank
TABLE_ROW: Final = r"^\s+-?[\d.]+\s+-?[\d.]+\s"  # of a benchmark: a line of its own
TRACEBACK: Final = r"Traceback \(most recent call last\):\s*$"
CHAINED: Final = "^(?:During handling of the above exception|The above exception was the direct)"
GRAVE: Final = pa.array(["warning", "error", "fatal"])


def messages(parts: pa.Table) -> pa.Table:
    """Join continuation lines; a message has the columns of its first line."""
    if parts.num_rows == 0:
        return parts
    rows = parts.combine_chunks()
    text = rows["text"].combine_chunks()
    order, codes = _by_stream(rows)
    called = pc.match_substring_regex(text, TRACEBACK)
    more = _continues(rows, text, flags(called), order, codes)
    rows = _failed(rows, called)
    if more.any():
        at = rows.schema.get_field_index("text")
        rows = rows.set_column(at, "text", _joined(text, order, more))
        keep = np.empty(len(more), np.bool_)
        keep[order] = ~more
        rows = rows.filter(pa.array(keep))
    return rows.drop_columns(["head", "stream", "grammar", "headed"])


def _joined(text: pa.Array, order: Ints, more: Flags) -> pa.Array:
    """Join each line with those that continue it; only these are touched."""
    runs = np.cumsum(~more) - 1
    long = np.flatnonzero((np.bincount(runs) > 1)[runs])
    starts = np.flatnonzero(~more[long])
    joined = join_runs(text.take(pa.array(order[long])), starts, "\n")
    first = order[long[starts]]
    mask: Flags = np.zeros(len(text), np.bool_)
    mask[first] = True
    return pc.replace_with_mask(text, pa.array(mask), joined.take(pa.array(np.argsort(first))))


def _by_stream(parts: pa.Table) -> tuple[Ints, Ints]:
    """Order the lines by whose output they are; a line without any head is its forerunner's."""
    codes = ints(pc.dictionary_encode(parts["stream"].combine_chunks()).indices)
    bare = flags(pc.equal(parts["grammar"], ""))
    last = np.maximum.accumulate(np.where(bare, 0, np.arange(len(bare))))
    return np.argsort(codes[last], kind="stable"), codes


def _continues(rows: pa.Table, text: pa.Array, calls: Flags, order: Ints, codes: Ints) -> Flags:
    """Tell which lines, in that order, continue the one before them in their stream."""
    inner = flags(pc.match_substring_regex(text, INNER))
    if inner.any():
        inner &= ~flags(pc.match_substring_regex(text, TABLE_ROW))
    inner, calls = inner[order], calls[order]
    chained = flags(pc.match_substring_regex(text, CHAINED))[order]
    may = _may_continue(rows, order, codes)
    above = _anchors(~inner)  # the line that is not indented, above each line
    top = above[above]
    raised = calls[above] & ~inner  # the exception itself, under its traceback
    grave = flags(pc.is_in(rows["level"], GRAVE))[order]
    headed = flags(rows["headed"])[order]
    follows = calls & (chained[above] | (grave[above] & headed[above]))
    after = chained & calls[top] & ~calls[above]
    return may & (inner | raised | follows | after)


def _may_continue(rows: pa.Table, order: Ints, codes: Ints) -> Flags:
    head, headed = ints(rows["head"])[order], flags(rows["headed"])[order]
    stream = codes[order]
    bare = flags(pc.equal(rows["grammar"], ""))[order]
    same = np.append(False, head[1:] == head[:-1])
    near = np.append(False, stream[1:] == stream[:-1]) | bare
    near[0] = False
    nccl = flags(pc.equal(rows["origin"], "nccl"))[order]
    may: Flags = (~headed | same) & near & ~nccl & ~np.append(True, nccl[:-1])
    return may


def _anchors(anchor: Flags) -> Ints:
    """Give each row the last anchor before it, row 0 where there is none."""
    at = np.where(anchor, np.arange(len(anchor)), 0)
    return np.maximum.accumulate(np.append(0, at[:-1]))


def _failed(rows: pa.Table, called: pa.Array) -> pa.Table:
    """Set the level of tracebacks that no header gives a level."""
    if not pc.any(called).as_py():
        return rows
    silent = pc.and_(pc.equal(rows["level"], ""), called)
    level: Any = pc.if_else(silent, "error", rows["level"].cast(pa.string()))
    at = rows.schema.get_field_index("level")
    return rows.set_column(at, "level", pc.dictionary_encode(level))
