"""Records of communication calls, a JSON object a line: op, group, seq, peer, bytes, t0, t1."""

from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_json import Whole, first_object, objects
from teller.ingest.readers.side_lines import Lines
from teller.ingest.readers.side_tables import Unread, joined, reading, rows
from teller.ingest.records import JOINS, MEMBERS, Records
from teller.ingest.source import OPS, Facts, Reading

FORMAT: Final = "comm_records"


class Call(msgspec.Struct):
    """A call on one rank; times are epoch ns, a peer below 0 is none."""

    op: str
    group: str
    seq: Whole
    t0: Whole
    t1: Whole | None = None
    peer: Whole = -1
    bytes: Whole | None = None


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether the first line is such a record."""
    return {"op", "group", "seq", "t0"} <= first_object(head).keys()


def read(path: Path) -> Reading:
    """Read one rank's records: a join for each call, and how far the rank came in each group."""
    lines, unread = Lines(path), Unread()
    joins = joined(JOINS, [_joins(*made) for made in objects(lines, Call, unread)])
    # calls between two ranks have numbers of their own: a group's counters leave them out
    shared = joins.filter(pc.invert(pc.is_in(joins["op"], pa.array(["send", "recv"]))))
    ends = shared.group_by("group_name", use_threads=False).aggregate(
        [("seq", "max"), ("line", "max")]
    )
    done = shared.filter(pc.equal(shared["state"], "completed"))
    last = {r["group_name"]: r["seq_max"] for r in done.group_by("group_name").aggregate(
        [("seq", "max")]).to_pylist()}  # fmt: skip
    members = rows(MEMBERS, ends.num_rows, {
        "group_name": ends["group_name"], "line": ends["line_max"],
        "last_enqueued": ends["seq_max"], "last_started": ends["seq_max"],
        "last_completed": pa.array(
            [last.get(group) for group in ends["group_name"].to_pylist()], pa.int64()
        ),
    })  # fmt: skip
    facts = Facts(str(path), FORMAT, event_count=joins.num_rows)
    records = Records(facts, "utc", joins=joins, members=members)
    return reading(lines, records, unread, "communication record")


def _joins(calls: list[Call], numbers: list[int]) -> pa.Table:
    op = pa.array([call.op for call in calls], pa.string())
    peer = pa.array([call.peer for call in calls], pa.int64())
    end = pa.array([call.t1 for call in calls], pa.int64())
    return rows(JOINS, len(calls), {
        "group_name": pa.array([call.group for call in calls], pa.string()),
        "seq": pa.array([call.seq for call in calls], pa.int64()),
        "op": pc.if_else(pc.is_in(op, pa.array(OPS)), op, "unknown"),
        "label": op,
        "size_bytes": pa.array([call.bytes for call in calls], pa.int64()),
        "peer": pc.if_else(pc.less(peer, 0), None, peer),
        "state": pc.if_else(end.is_valid(), "completed", "started"),
        "time_ns": pa.array([call.t0 for call in calls], pa.int64()),
        "end_ns": end,
        "line": pa.array(numbers, pa.int64()),
    })  # fmt: skip
