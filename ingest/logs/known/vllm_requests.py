"""Requests in lines of vLLM: when they came and how they ended. No prompt is read."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import matched
from teller.ingest.logs.meaning import having, requests, told, whole
from teller.ingest.records import REQUESTS

_BEGINS: Final = (
    ("Received request ", r"^Received request (?P<asked>[^\s:,]+):"),
    ("Added request ", r"^Added request (?P<asked>[^\s,]+?)\.?$"),
)
_ENDS: Final = (  # a mark, a word that stands in the line too, the pattern, what it means
    ("Finished request ", "", r"^Finished request (?P<asked>[^\s,]+?)\.?$", "ok"),
    ("Aborted request", "", r"^Aborted request(?:\(s\))? (?P<asked>[^\s]+?)\.?$", "aborted"),
    ("Request ", " finished", r"^Request (?P<asked>[^\s,]+) finished\b", "ok"),
    ("Request ", " aborted", r"^Request (?P<asked>[^\s,]+) aborted\b", "aborted"),
    (
        "Request ",
        "rejected",
        r"^Request (?P<asked>[^\s,]+) (?:rejected|was rejected)\b",
        "rejected",
    ),
    ("Request ", " failed", r"^Request (?P<asked>[^\s,]+) failed\b", "error"),
)
_PREEMPTED: Final = ("Sequence group ", r"^Sequence group (?P<asked>\S+) is preempted\b")
REQUEST_MARKS: Final = tuple(dict.fromkeys(one[0] for one in (*_BEGINS, *_ENDS, _PREEMPTED)))


def requests_of(lines: pa.Table) -> tuple[pa.Table, list[pa.Table]]:
    """Give rows of requests, and which line speaks of which."""
    made, known = [REQUESTS.empty_table()], []
    for mark, pattern in _BEGINS:
        rows = matched(having(lines, mark), pattern)
        if not rows.num_rows:
            continue
        asked = rows["asked"]
        made.append(requests(rows, asked, start_ns=rows["time_ns"], status="running"))
        known.append(told(rows, request=asked))
    for mark, word, pattern, status in _ENDS:
        rows = matched(having(having(lines, mark), word), pattern)
        if not rows.num_rows:
            continue
        known.append(told(rows, request=rows["asked"]))
        each = _each(rows)
        made.append(requests(each, each["one"], end_ns=each["time_ns"], status=status))
    mark, pattern = _PREEMPTED
    rows = matched(having(lines, mark), pattern)
    known.append(told(rows, request=rows["asked"]))
    return pa.concat_tables(made), [table for table in known if table.num_rows]


def _each(rows: pa.Table) -> pa.Table:
    """Give one row a request: a line may abort several, with commas between."""
    names = whole(pc.split_pattern(rows["asked"], ","))
    return rows.take(pc.list_parent_indices(names)).append_column("one", names.flatten())
