"""How lines begin: prefixes of launchers and headers of libraries give time, rank, host, level."""

import pyarrow as pa
import pytest

from teller.ingest.logs.blocks import Block
from teller.ingest.logs.messages import messages
from teller.ingest.logs.parts import PartReader

Row = dict[str, object]


def parsed(*lines: str) -> list[Row]:
    table: list[Row] = messages(PartReader().parts(Block(1, pa.array(lines)))).to_pylist()
    return table


# seconds since 1970 of 2026-03-04 10:02:11, and of the same in the year 2000
YEAR, NO_YEAR = 1_772_618_531, 952_164_131
S = 1_000_000_000

HEADERS: dict[str, Row] = {
    "(Worker_TP0 pid=700) INFO 03-04 10:02:11 [pynccl.py:111] vLLM is": {
        "time_ns": NO_YEAR * S,
        "process": "Worker_TP0",
        "pid": 700,
        "level": "info",
        "origin": "vllm",
        "text": "vLLM is",
        "resolution_ns": S,
    },
    "INFO 03-04 10:02:11 metrics.py:455] Avg": {
        "time_ns": NO_YEAR * S,
        "origin": "vllm",
        "text": "Avg",
    },
    "(VllmWorker rank=3 pid=9) WARNING 03-04 10:02:11 [a/b.py:1] x": {
        "process": "VllmWorker rank=3",
        "pid": 9,
        "level": "warning",
    },
    "(VllmWorker PP0_TP1 pid=12) ERROR 03-04 10:02:11 [a.py:1] x": {
        "process": "VllmWorker PP0_TP1",
        "level": "error",
    },
    "[2026-03-04 10:02:11 DP1 TP3 EP3] Decode batch": {
        "time_ns": YEAR * S,
        "process": "DP1 TP3 EP3",
        "origin": "sglang",
        "text": "Decode batch",
    },
    "[2026-03-04 10:02:11.250] Prefill": {
        "time_ns": YEAR * S + 250_000_000,
        "resolution_ns": 1_000_000,
        "text": "Prefill",
    },
    "[03/04/2026-10:02:11] [TRT-LLM] [RANK 2] [I] iter = 1": {
        "time_ns": YEAR * S,
        "rank": 2,
        "level": "info",
        "origin": "trtllm",
        "text": "iter = 1",
    },
    "[TensorRT-LLM][WARNING] no time": {
        "time_ns": None,
        "level": "warning",
        "origin": "trtllm",
        "text": "no time",
    },
    "I0304 10:02:11.688135 20559 server.cc:1] ready": {
        "time_ns": NO_YEAR * S + 688_135_000,
        "pid": 20559,
        "level": "info",
        "text": "ready",
    },
    "[rank7]:[E304 10:02:11.118254719 ProcessGroupNCCL.cpp:685] Watchdog": {
        "time_ns": NO_YEAR * S + 118_254_719,
        "rank": 7,
        "level": "error",
        "origin": "torch",
        "text": "Watchdog",
        "resolution_ns": 1,
    },
    "[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog": {
        "time_ns": None,
        "level": "error",
        "origin": "torch",
        "text": "[Rank 0] Watchdog",
    },
    "[2026-03-04 10:02:11,238 W 128 131] (raylet) node_manager.cc:31: lost": {
        "time_ns": YEAR * S + 238_000_000,
        "pid": 128,
        "process": "raylet",
        "level": "warning",
        "origin": "ray",
        "text": "lost",
    },
    "2026-03-04 10:02:11,238\tINFO worker.py:1 -- Started": {"origin": "ray", "text": "Started"},
    "node-a:700:1102 [0] NCCL INFO Using network IB": {
        "time_ns": None,
        "host": "node-a",
        "pid": 700,
        "process": "[0]",
        "level": "info",
        "origin": "nccl",
        "text": "Using network IB",
    },
    "[2026-03-04 10:02:11] node-a:7:8 [1] misc/ibvwrap.cc:106 NCCL WARN Call failed": {
        "time_ns": YEAR * S,
        "host": "node-a",
        "level": "warning",
        "text": "Call failed",
    },
    "node-a:7:8 [1] misc/a.cc:10 (func) NCCL WARN Call failed": {"text": "Call failed"},
    "[1,3]<stdout>:node-a:7:8 [1] NCCL INFO x": {"rank": 3, "host": "node-a", "text": "x"},
    "3: node-a:7:8 [1] NCCL INFO x": {"rank": 3, "host": "node-a", "text": "x"},
    "\x28RayWorkerWrapper pid=55, ip=10.0.0.7\x29 INFO 03-04 10:02:11 [a.py:1] x": {
        "process": "RayWorkerWrapper",
        "pid": 55,
        "host": "10.0.0.7",
        "origin": "vllm",
    },
    "2026-03-04T10:02:11.123456789Z stdout F INFO 03-04 12:02:11 [a.py:1] x": {
        "time_ns": YEAR * S + 123_456_789,
        "origin": "vllm",
        "text": "x",
        "resolution_ns": 1,
    },
    "[ 1234.567890] NVRM: Xid": {
        "time_ns": 1_234_567_890_000,
        "origin": "kernel",
        "text": "NVRM: Xid",
    },
    "<4>[ 1234.567890][   T12] mlx5": {"level": "warning", "origin": "kernel", "text": "mlx5"},
    "[Wed Mar  4 10:02:11 2026] NVRM": {"time_ns": YEAR * S, "origin": "kernel", "text": "NVRM"},
    "kern  :err   : 2026-03-04T12:02:11,000000+02:00 NVRM": {
        "time_ns": YEAR * S,
        "level": "error",
        "origin": "kernel",
        "text": "NVRM",
    },
    "6,3964,206764307,-;message": {
        "time_ns": 206_764_307_000,
        "level": "info",
        "origin": "kernel",
        "text": "message",
    },
    "Mar  4 10:02:11 node-a kernel: [12.5] Out of memory": {
        "time_ns": NO_YEAR * S,
        "host": "node-a",
        "origin": "kernel",
        "text": "Out of memory",
    },
    "Mar  4 10:02:11 node-a dockerd[812]: pull": {
        "host": "node-a",
        "process": "dockerd",
        "pid": 812,
        "origin": "",
        "text": "pull",
    },
    "2026-03-04T10:02:11+0000 node-a kernel: NVRM": {
        "time_ns": YEAR * S,
        "host": "node-a",
        "origin": "kernel",
        "text": "NVRM",
    },
    "[Mar 04 2026 10:02:11] [ERROR] [tid 1803] no link": {
        "time_ns": YEAR * S,
        "level": "error",
        "origin": "fabricmanager",
        "text": "no link",
    },
    "2026-03-04 10:02:11.178 | INFO     | __main__:main:334 - hello": {
        "time_ns": YEAR * S + 178_000_000,
        "level": "info",
        "text": "hello",
    },
    "2026-03-04 10:02:11,178 - router - WARNING - hello": {"level": "warning", "text": "hello"},
    "2026-03-04T10:02:11.000001Z  INFO dynamo::http: hello": {
        "time_ns": YEAR * S + 1_000,
        "level": "info",
    },
    "[2026-03-04 10:02:11,619] [INFO] [runner.py:463:main] hello": {
        "time_ns": YEAR * S + 619_000_000,
        "level": "info",
        "text": "hello",
    },
    'INFO:     10.0.0.1:5 - "GET / HTTP/1.1" 200 OK': {"time_ns": None, "level": "info"},
}


@pytest.mark.parametrize("line", HEADERS)
def test_a_header_says_what_it_says(line: str) -> None:
    (row,) = parsed(line)
    expected: Row = HEADERS[line]
    assert {name: row[name] for name in expected} == expected


def test_a_number_in_front_is_a_rank_only_where_headers_follow_such_numbers() -> None:
    rows = parsed("0: INFO 03-04 10:02:11 [a.py:1] x", "0: plain", "7: dwarfs")
    assert [(r["rank"], r["text"]) for r in rows] == [(0, "x"), (0, "plain"), (None, "7: dwarfs")]


def test_a_folded_line_says_how_often_it_came() -> None:
    (row,) = parsed("(Actor pid=1, ip=10.0.0.1) slow [repeated 6x across cluster]")
    assert (row["text"], row["repeated"], row["host"]) == ("slow", 6, "10.0.0.1")


def test_glued_messages_are_split_at_hosts_that_are_known() -> None:
    rows = parsed(
        "38dcf1:1:2 [0] NCCL INFO first",
        "  33554432  -138dcf1:1:3 [1] NCCL INFO second38dcf1:1:4 [2] NCCL INFO third",
    )
    assert [r["text"] for r in rows] == ["first", "  33554432  -1", "second", "third"]
    assert [r["place"] for r in rows] == [4, 8, 9, 10]
    assert [r["line"] for r in rows] == [1, 2, 2, 2]


def test_a_traceback_is_one_message_with_the_line_before_it() -> None:
    head = "(EngineCore_DP0 pid=1) ERROR 03-04 10:02:11 [core.py:700] "
    rows = parsed(
        head + "EngineCore failed",
        head + "Traceback (most recent call last):",
        "(APIServer pid=2) INFO 03-04 10:02:11 [a.py:1] meanwhile",
        head + '  File "a.py", line 1, in f',
        head + "    f()",
        head + "ValueError: bad",
        head + "another one",
    )
    assert [r["process"] for r in rows] == ["EngineCore_DP0", "APIServer", "EngineCore_DP0"]
    assert str(rows[0]["text"]).split("\n")[0] == "EngineCore failed"
    assert str(rows[0]["text"]).endswith("    f()\nValueError: bad")
    assert rows[2]["text"] == "another one"


def test_a_traceback_without_header_is_an_error_of_its_own() -> None:
    rows = parsed(
        "INFO 03-04 10:02:11 [a.py:1] fine",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "KeyError: 1",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        '  File "b.py", line 1, in g',
        "RuntimeError: 2",
        "unrelated",
    )
    assert [r["level"] for r in rows] == ["info", "error", ""]
    assert str(rows[1]["text"]).count("\n") == 6
    assert str(rows[1]["text"]).endswith("RuntimeError: 2")


def test_rows_of_a_table_are_lines_of_their_own() -> None:
    rows = parsed("#  size  count", "     8     2   float", "    16     4   float")
    assert len(rows) == 3


def test_a_message_behind_a_progress_bar_is_a_message() -> None:
    rows = parsed("Loading shards: 7% | 1/15 [00:01<00:20, 1.38it/s][2026-03-04 10:02:11] loaded")
    assert [r["text"] for r in rows][1] == "loaded"
    assert rows[1]["time_ns"] == YEAR * S


def test_a_launcher_that_numbers_nodes_tells_no_rank() -> None:
    rows = parsed(
        "0: (Worker_TP0 pid=7) INFO 03-04 10:02:11 [a.py:1] x",
        "0: (Worker_TP1 pid=8) INFO 03-04 10:02:11 [a.py:1] x",
        "1: (Worker_TP2 pid=7) INFO 03-04 10:02:11 [a.py:1] x",
    )
    assert [r["rank"] for r in rows] == [None, None, None]
