"""What was recorded reads as an export of Nsight Systems: by TELLER, and by plain SQL."""

import sqlite3
import struct
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.ingest.readers import nsys
from teller.lab.collect import nvtx_sqlite, nvtx_stream
from teller.lab.collect.nvtx_stream import Jump
from teller.pipeline import Options, Silent
from tests.lab.collect.recording import Ran, rows

Recorded = Callable[..., Ran]
STEPS = 30
SECOND = 1_000_000_000
SERVES = Path(__file__).with_name("serves.py")

# The usual query of scripts for Nsight Systems, with process, thread and domain.
RANGES = """
SELECT coalesce(e.text, s.value), d.text, (e.globalTid >> 24) & 0xFFFFFF, e.globalTid & 0xFFFFFF,
       e.start + t.utcEpochNs, e.end - e.start, e.jsonText
FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId
LEFT JOIN NVTX_EVENTS d ON d.eventType = 75 AND d.domainId = e.domainId
  AND d.globalTid >> 24 = e.globalTid >> 24
JOIN TARGET_INFO_SESSION_START_TIME t
WHERE e.eventType = 59 ORDER BY e.start
"""


def test_two_ranks_become_a_run_with_steps_operators_and_matched_collectives(
    recorded: Recorded, tmp_path: Path
) -> None:
    recorded(sys.executable, SERVES, str(STEPS), RANK="0", WORLD_SIZE="2")
    _, both = recorded(sys.executable, SERVES, str(STEPS), RANK="1", WORLD_SIZE="2")
    folder = tmp_path / "run"
    folder.mkdir()
    for stream in both:
        nvtx_sqlite.write([stream], folder / f"rank{stream.rank}.nsys.sqlite")
    workspace = Workspace(tmp_path / "w", project=project, rest=rest)
    got = pipeline.ingest([folder], workspace, Options(), Silent())
    (run,) = got.runs
    assert (list(run.ranks), run.steps) == ([0, 1], STEPS)
    with workspace.reader() as store:
        operators = store.query(
            "MATCH (s:Span) WHERE s.rank = 1 RETURN s.name AS name, count(*) AS n ORDER BY name"
        ).to_pylist()
        together = store.query(
            "MATCH (r:Rank)-[j:JOINED]->(c:Collective) "
            "RETURN c.id AS id, c.size_bytes AS size, count(r) AS ranks"
        ).to_pylist()
    assert {"name": "layers.1.mlp", "n": STEPS} in operators
    assert {"name": "all_reduce", "n": 2 * STEPS} in operators
    assert len(together) == 2 * STEPS
    assert {(c["size"], c["ranks"]) for c in together} == {(4096, 2)}


def test_plain_sql_gives_what_the_stream_holds(
    recorded: Recorded, program: Path, tmp_path: Path
) -> None:
    _, (stream,) = recorded(program, "described")
    made = tmp_path / "one.sqlite"
    nvtx_sqlite.write([stream], made)
    with closing(sqlite3.connect(made)) as database:
        found = database.execute(RANGES).fetchall()
    assert found == [
        (r["name"], r["domain"], stream.pid, r["tid"], r["start_ns"], r["end_ns"] - r["start_ns"],
         r["json"])
        for r in rows(stream)
    ]  # fmt: skip


def test_each_kind_of_event_has_its_own_type(
    recorded: Recorded, program: Path, tmp_path: Path
) -> None:
    _, (stream,) = recorded(program, "threads")
    made = tmp_path / "one.sqlite"
    nvtx_sqlite.write([stream], made)
    with closing(sqlite3.connect(made)) as database:
        found = database.execute(
            "SELECT eventType, count(*), count(DISTINCT coalesce(text, '')), min(rangeId) "
            "FROM NVTX_EVENTS GROUP BY eventType ORDER BY eventType"
        ).fetchall()
        ended = database.execute(
            "SELECT endGlobalTid & 0xFFFFFF FROM NVTX_EVENTS WHERE eventType = 60"
        ).fetchall()
    assert found == [(59, 24_002, 3, None), (60, 1, 1, 1)]
    assert ended == [(r["end_tid"],) for r in rows(stream) if "end_tid" in r]


def test_payloads_stand_in_the_column_of_their_type(
    recorded: Recorded, program: Path, tmp_path: Path
) -> None:
    _, (stream,) = recorded(program, "payloads")
    made = tmp_path / "one.sqlite"
    nvtx_sqlite.write([stream], made)
    with closing(sqlite3.connect(made)) as database:
        found = database.execute(
            "SELECT uint64Value, int64Value, doubleValue, int32Value, floatValue, category "
            "FROM NVTX_EVENTS WHERE eventType = 34 ORDER BY start"
        ).fetchall()
        named = database.execute("SELECT category, text FROM NVTX_EVENTS WHERE eventType = 33")
        assert named.fetchall() == [(7, "memory")]
    assert found[:5] == [
        (-1, None, None, None, None, 7), (None, -5, None, None, None, 7),
        (None, None, 0.5, None, None, 7), (None, None, None, -7, None, 7),
        (None, None, None, None, 0.25, 7),
    ]  # fmt: skip


def chunk(kind: int, body: bytes) -> bytes:
    """Give a chunk of a stream file, as the recorder writes it."""
    body += b"\0" * (-len(body) % 32)
    return struct.pack("<4sHHIIQII", b"TNXT", 1, kind, 7, len(body), 0, 0, 0) + body


def test_a_clock_that_was_set_and_a_sleep_are_found_and_told_by_the_export(tmp_path: Path) -> None:
    utc = 1_796_000_000 * SECOND
    anchors = (  # UTC, steady, boot: two seconds apart
        (utc, 0, 0), (utc + 2 * SECOND, 2 * SECOND, 2 * SECOND),
        (utc + 9 * SECOND, 4 * SECOND, 4 * SECOND), (utc + 14 * SECOND, 6 * SECOND, 9 * SECOND),
    )  # fmt: skip
    session, mark = b"host=h\0pid=7\0", struct.pack("<qQIIIHBB", SECOND, 0, 0, 0, 0, 0, 3, 0)
    file = tmp_path / "h.7.0.nvtx"
    file.write_bytes(
        chunk(1, session)
        + b"".join(chunk(4, struct.pack("<4q", *anchor, 0)) for anchor in anchors)
        + chunk(2, mark)
    )
    stream = nvtx_stream.read(file)
    assert stream.jumps == (
        Jump(utc + 2 * SECOND, 5 * SECOND, "the clock was set"),
        Jump(utc + 9 * SECOND, 3 * SECOND, "the machine slept"),
    )
    made = tmp_path / "one.sqlite"
    nvtx_sqlite.write([stream], made)
    said = [r for r in nsys.read(made).remarks if r.place == "DIAGNOSTIC_EVENT"]
    assert [("clock was set" in r.what, "+5.000000 s" in r.what) for r in said] == [
        (True, True), (False, False),
    ]  # fmt: skip
    assert all("slewed" in r.remedy for r in said)


def test_parent_and_child_stand_in_one_file_on_one_clock(
    recorded: Recorded, program: Path, tmp_path: Path
) -> None:
    _, both = recorded(program, "forks")
    made = tmp_path / "both.sqlite"
    nvtx_sqlite.write(both, made)
    with closing(sqlite3.connect(made)) as database:
        found = database.execute(RANGES.replace("e.end - e.start", "e.end")).fetchall()
        processes = dict(database.execute("SELECT pid, name FROM PROCESSES").fetchall())
    assert [(name, pid) for name, _, pid, *_ in found] == [
        ("around the fork", both[0].pid), ("before", both[0].pid),
        ("of the parent", both[1].pid), ("before", both[1].pid),
    ]  # fmt: skip
    assert found[2][4] >= found[0][4]
    assert processes == {stream.pid: "annotates" for stream in both}
