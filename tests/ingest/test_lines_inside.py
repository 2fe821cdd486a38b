"""A log line with a fine time is tied to the span that it was written in."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace

RUN = Path(__file__).parents[1] / "data" / "runs" / "simulated" / "run-1a63881eb917"
RANK = 1
LOG = f"worker-rank{RANK}.log"

LONG = """
MATCH (s:Span) WHERE s.rank = $rank AND s.stream IS NULL AND s.dur_ns > 1000000
RETURN s.start_ns AS start_ns, s.dur_ns AS dur_ns ORDER BY s.depth DESC, s.dur_ns DESC LIMIT 3
"""
AROUND = """
MATCH (s:Span) WHERE s.rank = $rank AND s.stream IS NULL
      AND s.start_ns <= $time AND s.end_ns >= $time
RETURN s.id AS id ORDER BY s.depth DESC LIMIT 1
"""
TIED = """
MATCH (l:LogLine)-[:INSIDE]->(s:Span)
RETURN l.time_ns AS time_ns, l.text AS text, s.id AS id ORDER BY time_ns
"""


def test_a_line_is_inside_the_deepest_span_around_its_time(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "first", project=project, rest=rest)
    got = pipeline.ingest([RUN], place, pipeline.Options(), pipeline.Silent())
    with place.reader() as store:
        spans = store.query(LONG, {"rank": RANK}).to_pylist()
    zero = got.runs[0].t0_epoch_ns
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    times = sorted(zero + s["start_ns"] + s["dur_ns"] // 2 for s in spans)
    said = [f"{datetime.fromtimestamp(t / 1e9, UTC):%m%d %H:%M:%S.%f}" for t in times]
    manifest = json.loads((folder / "manifest.json").read_text())
    host = manifest["ranks"][RANK]["host"]
    manifest["files"].append({"path": LOG, "kind": "engine_log", "rank": RANK, "host": host})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / LOG).write_text(
        "".join(
            f"[rank{RANK}]:[W{when} ProcessGroupNCCL.cpp:1476] batch {n} is waiting\n"
            for n, when in enumerate(said)
        )
    )
    place = Workspace(tmp_path / "second", project=project, rest=rest)
    pipeline.ingest([folder], place, pipeline.Options(), pipeline.Silent())
    with place.reader() as store:
        tied = store.query(TIED, {}).to_pylist()
        found = [
            store.query(AROUND, {"rank": RANK, "time": t["time_ns"]}).to_pylist()[0]["id"]
            for t in tied
        ]
    assert len(tied) == len(times) > 0
    assert [t["id"] for t in tied] == found
