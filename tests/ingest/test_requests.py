"""Requests that several sources speak of: one each, the most exact source first."""

from typing import Any

import pyarrow as pa

from teller.ingest.asked import ASKED
from teller.ingest.record_rows import EXTRA, Rows
from teller.ingest.records import LINES, REQUESTS, TABLES
from teller.ingest.requests import Asking, settle
from teller.ingest.source import Facts
from teller.ingest.ties import tie

MS = 1_000_000
S = 1000 * MS
FILES = tuple(Facts(f"in/{f}", f) for f in ("log", "client", "otlp"))
LOG, CLIENT, OTLP = range(3)
ITERATIONS = pa.table(
    {
        "step_index": list(range(10)),
        "start_ns": [i * 100 * MS for i in range(10)],
        "end_ns": [i * 100 * MS + 90 * MS for i in range(10)],
    }
)
STEPS = pa.table(
    {
        "rank": [r for r in (0, 1) for _ in range(10)],
        **{c: ITERATIONS[c].to_pylist() * 2 for c in ITERATIONS.column_names},
    }
)
Row = dict[str, Any]


def table(schema: pa.Schema, rows: list[Row]) -> pa.Table:
    whole = pa.schema([*schema, *(pa.field(*e) for e in EXTRA)])
    filled = [{"place": i, "line": i + 1, "file": LOG, "text": ""} | r for i, r in enumerate(rows)]
    columns = [pa.array([r.get(f.name) for r in filled], f.type) for f in whole]
    return pa.table(columns, schema=whole)


def asking(requests: list[Row], lines: list[Row] = [], ranges: list[Row] = []) -> Asking:  # noqa: B006 - never changed
    none = {name: table(schema, []) for name, schema in TABLES.items()}
    rows = Rows(**none | {"requests": table(REQUESTS, requests), "lines": table(LINES, lines)})
    return settle(rows, FILES, pa.Table.from_pylist(ranges, schema=ASKED), ITERATIONS)


def one(found: Asking) -> Row:
    (row,) = found.table.to_pylist()
    return dict(row)


def served(found: Asking) -> list[tuple[int, str]]:
    _, steps, by, _ = found.served.pairs()
    return list(zip(steps.tolist(), by.to_pylist(), strict=True))


def test_the_most_exact_source_wins_and_is_named() -> None:
    row = one(
        asking(
            [
                {"name": "cmpl-q-0", "file": LOG, "start_ns": 0, "end_ns": 9 * S, "status": "ok"},
                {"name": "q", "file": CLIENT, "start_ns": 3, "ttft_ns": 80, "output_tokens": 11,
                 "end_ns": 1_083},
                {"name": "cmpl-q", "file": OTLP, "queue_ns": 20, "ttft_ns": 70},
            ]
        )
    )  # fmt: skip
    assert row["name"] == "cmpl-q-0"
    assert (row["start_ns"], row["end_ns"], row["ttft_ns"]) == (3, 1_083, 70)
    assert (row["queue_ns"], row["first_token_ns"], row["status"]) == (20, 73, "ok")
    assert row["itl_p50_ns"] == 101  # (1083 - 73) / 10
    assert row["told_by"] == (
        "telemetry: ttft_ns, queue_ns; client: start_ns, end_ns, output_tokens; log: status; "
        "worked out: first_token_ns, itl_p50_ns"
    )


def test_parts_of_one_source_go_before_parts_of_two() -> None:
    row = one(
        asking(
            [
                {"name": "q", "file": CLIENT, "start_ns": 100, "first_token_ns": 180},
                {"name": "q", "file": LOG, "start_ns": 0, "first_token_ns": 1 * S},
                {"name": "q", "file": OTLP, "start_ns": 95},
            ]
        )
    )
    assert (row["start_ns"], row["ttft_ns"], row["first_token_ns"]) == (95, 80, 180)


def test_a_request_that_ended_no_longer_runs_and_a_failure_is_told() -> None:
    rows = [{"name": "q", "status": s} for s in ("running", "ok")]
    assert one(asking(rows))["status"] == "ok"
    assert one(asking([*rows, {"name": "q", "status": "aborted"}]))["status"] == "aborted"
    assert one(asking(rows[:1]))["status"] == "running"


def test_a_request_without_a_name_is_named_after_its_place() -> None:
    rows = [{"file": CLIENT, "line": 7, "ttft_ns": 5}, {"file": CLIENT, "line": 8, "ttft_ns": 6}]
    assert asking(rows).table["name"].to_pylist() == ["client:7", "client:8"]


def test_requests_of_other_names_stay_apart() -> None:
    times = {"start_ns": 0, "end_ns": S, "output_tokens": 5}
    found = asking([{"name": "a", "file": LOG} | times, {"name": "b", "file": CLIENT} | times])
    assert found.table["name"].to_pylist() == ["a", "b"]


def test_a_request_is_served_after_its_queue_until_its_end() -> None:
    row = {"name": "q", "start_ns": 10 * MS, "queue_ns": 200 * MS, "end_ns": 450 * MS}
    assert served(asking([row])) == [(n, "time") for n in (2, 3, 4)]
    assert served(asking([{"name": "q", "start_ns": 5}])) == []
    unfinished = {"name": "q", "start_ns": 10 * MS, "first_token_ns": 150 * MS}
    assert served(asking([unfinished])) == [(0, "time"), (1, "time")]


def test_an_end_to_the_second_reaches_to_the_next() -> None:
    lines = [{"line": 1, "resolution_ns": S, "time_ns": 0, "request": "q"}]
    found = asking([{"name": "q", "start_ns": 0, "end_ns": 0, "line": 1}], lines)
    assert [n for n, _ in served(found)] == list(range(10))
    assert found.served.sure.tolist() == [0.6]


def test_ranges_that_name_most_steps_name_all() -> None:
    row = {"name": "cmpl-q-0", "start_ns": 0, "end_ns": 450 * MS}
    ranges = [{"name": "q", "step_index": n, "start_ns": n * 100 * MS, "end_ns": n * 100 * MS + 9}
              for n in (1, 2, 3)]  # fmt: skip
    assert served(asking([row], ranges=ranges)) == [(n, "range") for n in (1, 2, 3)]
    assert sorted(served(asking([row], ranges=ranges[:1]))) == [
        (1, "range"), (2, "time"), (3, "time"), (4, "time"),
    ]  # fmt: skip


def test_the_first_range_in_a_step_ends_the_queue_where_the_start_is_fine() -> None:
    ranges = [{"name": "q", "step_index": 1, "start_ns": 105 * MS, "end_ns": 106 * MS}]
    row = {"name": "q", "start_ns": 100 * MS, "file": CLIENT, "line": 1}
    assert one(asking([row], ranges=ranges))["queue_ns"] == 5 * MS
    coarse = [{"file": CLIENT, "line": 1, "resolution_ns": S, "time_ns": 0}]
    assert one(asking([row], coarse, ranges))["queue_ns"] is None
    early = row | {"first_token_ns": 104 * MS}  # then ranges do not name every step
    assert one(asking([early], ranges=ranges))["queue_ns"] is None


def test_lines_count_preemptions() -> None:
    lines = [{"request": "q", "text": "Sequence group q is preempted by RECOMPUTE mode"}] * 2
    assert one(asking([{"name": "q"}], lines))["preemptions"] == 2


def test_a_line_about_a_request_is_tied_to_an_iteration_that_served_it() -> None:
    requests = [{"name": "cmpl-q-0", "start_ns": 0, "queue_ns": 310 * MS, "end_ns": 450 * MS,
                 "line": 99}]  # fmt: skip
    said = {"process": "", "request": "q", "resolution_ns": 1}
    lines = [
        said | {"time_ns": 320 * MS, "rank": 1, "resolution_ns": S},  # 3 or 4, of ten steps
        said | {"time_ns": 5 * MS},  # queued: the next that served it
        said | {"time_ns": 495 * MS},  # just ended: the last
        said | {"time_ns": 320 * MS, "request": None, "resolution_ns": S},
    ]
    found = asking(requests, lines)
    tied = tie(found.lines, STEPS, found.served)
    assert found.lines["request"].to_pylist() == ["cmpl-q-0"] * 3 + [None]
    assert tied.step_index.to_pylist() == [3, 3, 4, 3]
    assert tied.step_rank.to_pylist() == [1, 0, 0, 0]
    assert tied.tied_by.to_pylist() == ["request", "request", "request", "time"]
    assert [round(c, 3) for c in tied.confidence.to_pylist()] == [0.45, 0.45, 0.45, 0.086]


def test_ties_by_the_ranges_of_a_request_are_the_surest() -> None:
    ranges = [{"name": "q", "step_index": n, "start_ns": n * 100 * MS, "end_ns": n * 100 * MS + 9}
              for n in (6, 8)]  # fmt: skip
    lines = [{"process": "", "request": "q", "time_ns": 0, "resolution_ns": 700 * MS},
             {"process": "", "request": "q", "time_ns": 700 * MS, "resolution_ns": 1}]  # fmt: skip
    found = asking([{"name": "q"}], lines, ranges)
    tied = tie(found.lines, STEPS, found.served)
    assert list(zip(tied.step_index.to_pylist(), tied.confidence.to_pylist(), strict=True)) == [
        (6, 1.0), (8, 0.5),
    ]  # fmt: skip
