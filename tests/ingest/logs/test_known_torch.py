"""What lines of PyTorch's watchdog and launcher mean, in the grammars of all years."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from teller.ingest.logs.known import torch

Lines = Callable[..., pa.Table]

WORK = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=57, OpType=ALLGATHER, "
    "NumelIn=1, NumelOut=4, Timeout(ms)=600000) ran for 600038 milliseconds before timing out."
)
DONE = "last enqueued work: 39, last started work: 19 (_ALLGATHER_BASE), last completed work: 17"


def samples(lines: pa.Table, name: str) -> list[tuple[float, str, int | None]]:
    """Give value, text and rank of the samples of a name."""
    made = torch.knowing().learn(lines).learned.samples
    rows = made.filter(pc.equal(made["name"], name)).to_pylist()
    return [(row["value"], row["text"], row["rank"]) for row in rows]


@pytest.mark.parametrize(
    ("prefix", "header", "rank", "group"),
    [
        ("[Rank 3] ", None, 3, ""),  # 2023: no group is named
        ("[PG 0 Rank 3] ", 3, 3, " group 0"),  # 2024
        ("[PG ID 5 PG GUID 37(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] ", 9, 9, " group 37"),  # 2025
        ("[PG ID 5 PG GUID 37(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] ", None, None, " group 37"),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 6]  ", None, 6, " group 0"),
    ],
)
def test_a_timeout_in_each_grammar(
    lines: Lines, prefix: str, header: int | None, rank: int | None, group: str
) -> None:
    table = lines([prefix + WORK], rank=header)
    text = f"ALLGATHER NumelIn=1 NumelOut=4 Timeout(ms)=600000 ran for 600038 ms{group}"
    assert samples(table, "watchdog.timeout") == [(57, text, rank)]
    assert samples(table, "watchdog.elements") == [(1, "ALLGATHER", rank)]


def test_a_line_gets_its_rank(lines: Lines) -> None:
    texts = [f"[Rank 3] {WORK}", f"[PG ID 5 PG GUID 37(tp) Rank 1] {WORK}"]
    told = torch.knowing().learn(lines(texts)).told
    assert told is not None
    assert told.to_pylist() == [{"place": 0, "rank": 3}, {"place": 1, "rank": None}]


def test_a_line_that_a_terminal_wrapped_is_the_same(lines: Lines) -> None:
    wrapped = "[Rank 0] " + WORK.replace("Numel", "Num\n    el").replace("ran for", "ran\nfor")
    assert samples(lines([wrapped]), "watchdog.elements") == [(1, "ALLGATHER", 0)]


@pytest.mark.parametrize(
    ("text", "work", "enqueued", "completed"),
    [
        (
            "[PG 1 Rank 1] Timeout at NCCL work: 7753, last enqueued NCCL work: 7755, last "
            "completed NCCL work: 7752.",
            7753,
            7755,
            7752,
        ),
        (
            "[PG ID 2 PG GUID 3 Rank 3] Exception (either an error or timeout) detected by watchdog"
            " at work: 32, last enqueued NCCL work: 32, last completed NCCL work: 31.",
            32,
            32,
            31,
        ),
        (
            "[PG ID 1 PG GUID 1 Rank 1]  failure detected by watchdog at work sequence id: 1 PG "
            "status: last enqueued work: 547, last completed work: -1",
            1,
            547,
            -1,
        ),
        ("[PG ID 1 PG GUID 1 Rank 1] PG status: " + DONE, None, 39, 17),
        (
            "[PG ID 0 PG GUID 0(default_pg) Rank 4] Received a dump signal due to a collective "
            "timeout from  rank 7 and we will try our best to dump the debug info. Last enqueued "
            "NCCL work: 56118, last completed NCCL work: 56118.This is most likely caused by",
            None,
            56118,
            56118,
        ),
    ],
)
def test_how_far_a_group_came(
    lines: Lines, text: str, work: int | None, enqueued: int, completed: int
) -> None:
    table = lines([text], rank=12)
    assert [value for value, *_ in samples(table, "watchdog.last_enqueued")] == [enqueued]
    assert [value for value, *_ in samples(table, "watchdog.last_completed")] == [completed]
    assert [value for value, *_ in samples(table, "watchdog.timeout")] == [work] * bool(work)
    (member,) = torch.knowing().learn(table).learned.members.to_pylist()
    assert (member["last_enqueued"], member["last_completed"]) == (enqueued, completed)
    assert member["rank"] == 12
    assert member["group_name"] in text


def test_the_last_started_work_is_kept(lines: Lines) -> None:
    table = lines(["[PG ID 1 PG GUID 1(tp) Rank 1] PG status: " + DONE])
    (member,) = torch.knowing().learn(table).learned.members.to_pylist()
    assert (member["last_started"], member["desc"], member["group_rank"]) == (19, "tp", 1)


def test_a_counter_that_nothing_set_is_left_out_and_said(lines: Lines) -> None:
    text = "[PG 1 Rank 1] last enqueued NCCL work: 5, last completed NCCL work: 93459313471793."
    table = lines([text])
    assert samples(table, "watchdog.last_completed") == []
    assert samples(table, "watchdog.last_enqueued") == [(5, "group 1", None)]
    ((_, words, _),) = samples(table, "log.unread")
    assert words == "last completed work 93459313471793 was never set"
    (member,) = torch.knowing().learn(table).learned.members.to_pylist()
    assert member["last_completed"] is None


def test_a_watchdog_that_stood_still(lines: Lines) -> None:
    text = "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in"
    assert samples(lines([text], rank=2), "watchdog.stuck") == [(480e9, "process group", 2)]


def test_the_launcher_tells_which_rank_died_of_what(lines: Lines) -> None:
    summary = (
        "train.py FAILED\nFailures:\n[1]:\n  time      : 2024-01-01_10:00\n  host      : node-b\n"
        "  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 222)\n  error_file: <N/A>\n"
        "  traceback : To enable traceback see: https://x\nRoot Cause (first observed failure):\n"
        "[0]:\n  time      : 2024-01-01_09:59:59\n  host      : node-a\n"
        "  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 1234)\n  error_file: <N/A>\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 1234"
    )
    line = "failed (exitcode: -9) local_rank: 3 (pid: 1234) of binary: /usr/bin/python"
    rows = torch.knowing().learn(lines([line, summary])).learned.samples.to_pylist()
    died = {(row["rank"], row["host"], row["pid"], row["value"], row["text"]) for row in rows}
    assert died == {
        (None, None, 1234, -9, "failed (exitcode: -9) local_rank: 3 (pid: 1234)"),
        (5, "node-b", 222, 1, "To enable traceback see: https://x"),
        (3, "node-a", 1234, -9, "Signal 9 (SIGKILL) received by PID 1234"),
    }


def test_the_real_case_shows_two_sizes_of_one_collective(shared: Path, lines: Lines) -> None:
    path = shared / "cases" / "o05_fr_allgather_size_mismatch" / "watchdog.log"
    table = lines(path.read_text().splitlines())
    assert {value for value, *_ in samples(table, "watchdog.timeout")} == {48211}
    elements = [(value, text) for value, text, _ in samples(table, "watchdog.elements")]
    assert elements == [(151968, "_ALLGATHER_BASE"), (164632, "_ALLGATHER_BASE")]
