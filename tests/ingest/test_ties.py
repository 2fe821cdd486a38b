"""Log lines tied to steps: by number, by process and time, each with what it is worth."""

from typing import Any

import pyarrow as pa

from teller.ingest.records import LINES
from teller.ingest.ties import Ties, tie

STEPS = pa.table(
    {
        "rank": [0, 0, 0, 1, 1, 1],
        "step_index": [7, 8, 9, 7, 8, 9],
        "start_ns": [0, 100, 200, 0, 100, 200],
        "end_ns": [90, 190, 290, 90, 190, 290],
    }
)
EXTRA = (("file", pa.int64()), ("input_id", pa.int64()), ("base", pa.int64()))
SCHEMA = pa.schema([*LINES, *(pa.field(*e) for e in EXTRA)])


def lines(*rows: dict[str, Any]) -> pa.Table:
    filled = [{"file": 0, "process": "", "resolution_ns": 1, "place": i} | r
              for i, r in enumerate(rows)]  # fmt: skip
    columns = [pa.array([r.get(f.name) for r in filled], f.type) for f in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def said(tied: Ties) -> list[tuple[Any, ...]]:
    columns = (tied.step_rank, tied.step_index, tied.tied_by, tied.placed_by)
    return list(zip(*(c.to_pylist() for c in columns), strict=True))


def test_a_line_of_a_rank_falls_into_its_step() -> None:
    tied = tie(lines({"time_ns": 120, "rank": 1}), STEPS)
    assert said(tied) == [(1, 8, "process", "clock")]
    assert tied.confidence.to_pylist() == [0.95]


def test_a_line_of_no_rank_falls_into_the_first_ranks_step_and_is_less_sure() -> None:
    tied = tie(lines({"time_ns": 120}), STEPS)
    assert said(tied) == [(0, 8, "time", "clock")]
    assert tied.confidence.to_pylist() == [0.6]


def test_a_coarse_time_is_shared_by_the_steps_it_covers() -> None:
    tied = tie(lines({"time_ns": 0, "rank": 0, "resolution_ns": 300}), STEPS)
    assert said(tied) == [(0, 7, "process", "clock")]
    assert [round(c, 3) for c in tied.confidence.to_pylist()] == [round(0.95 / 3, 3)]


def test_a_line_between_two_steps_is_tied_to_none() -> None:
    assert said(tie(lines({"time_ns": 95, "rank": 0}), STEPS)) == [(None, None, None, "clock")]


def test_a_line_that_gives_the_steps_number_is_sure() -> None:
    tied = tie(lines({"time_ns": 20, "rank": 1, "step_index": 9}), STEPS)
    assert said(tied) == [(1, 9, "number", "clock")]
    assert tied.confidence.to_pylist() == [1.0]


def test_a_line_without_time_takes_that_of_the_one_before_it_of_its_process() -> None:
    rows = lines(
        {"time_ns": 120, "rank": 1, "process": "a"},
        {"time_ns": 220, "rank": 0, "process": "b"},
        {"rank": 1, "process": "a"},
    )
    tied = tie(rows, STEPS)
    assert said(tied)[2] == (1, 8, "process", "order")
    assert tied.time_ns.to_pylist() == [120, 220, 120]
    assert tied.confidence.to_pylist()[2] < tied.confidence.to_pylist()[0] / 2


def test_lines_of_a_file_without_any_time_stay_without() -> None:
    tied = tie(lines({"rank": 0}, {"rank": 0}), STEPS)
    assert said(tied) == [(None, None, None, "")] * 2
    assert tied.time_ns.to_pylist() == [None, None]


def test_a_run_without_steps_keeps_the_numbers_that_lines_give() -> None:
    tied = tie(lines({"time_ns": 5, "step_index": 3}), STEPS.slice(0, 0))
    assert said(tied) == [(None, 3, None, "clock")]


def test_no_lines_are_no_ties() -> None:
    assert said(tie(lines(), STEPS)) == []


def test_a_line_before_the_first_time_of_its_file_takes_that() -> None:
    tied = tie(lines({"rank": 0}, {"time_ns": 220, "rank": 0}), STEPS)
    assert tied.time_ns.to_pylist() == [220, 220]
    assert tied.placed_by.to_pylist() == ["order", "clock"]
