"""Tables of load generators become requests, each with a line to point at."""

import csv
import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from teller.ingest.readers import client, client_results
from teller.ingest.records import Records
from teller.ingest.source import Reader

SECOND = 1_000_000_000
RESULT = (
    '{"date":"20240101-120000","backend":"vllm","request_throughput":1.0,"output_throughput":2.0,'
    '"mean_tpot_ms":NaN,"input_lens":[10,20],"output_lens":[3,0],"ttfts":[0.25,0.0],'
    '"itls":[[0.01,0.03,0.02],[]],"generated_texts":["my words",""],'
    '"errors":["","Timeout on reading data"]}'
)
PROFILE = json.dumps({
    "experiments": [{"requests": [{
        "timestamp": 1_789_185_000_000_000_000,
        "request_inputs": {"payload": "my words"},
        "response_timestamps": [1_789_185_000_100_000_000, 1_789_185_000_110_000_000,
                                1_789_185_000_130_000_000],
    }]}],
})  # fmt: skip


def read(path: Path, text: str, reader: Reader = client) -> Records:
    path.write_text(text)
    assert reader.looks_like(text.encode(), path)
    (records,) = reader.read(path).records
    return records


def requests(records: Records, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row[c] for c in columns) for row in records.requests.to_pylist()]


def of_day(text: str) -> int:
    return (
        int(datetime.fromisoformat(f"2000-01-01T{text}").replace(tzinfo=UTC).timestamp()) * SECOND
    )


def test_times_of_day_stand_on_the_first_day_of_2000_and_say_so(shared: Path) -> None:
    path = shared / "cases/o15_unschedulable_request_blocks_queue/client.csv"
    assert client.looks_like(path.read_bytes(), path)
    (records,) = client.read(path).records
    with path.open(newline="") as opened:
        expected = [
            (row["request"], of_day(row["sent"]), of_day(row["finished"]),
             int(row["prompt_tokens"]), "ok" if row["result"] == "ok" else "timeout", line)
            for line, row in enumerate(csv.DictReader(opened), 2)
        ]  # fmt: skip
    columns = ("name", "start_ns", "end_ns", "prompt_tokens", "status", "line")
    assert requests(records, *columns) == expected
    assert records.clock == "yearless"
    assert records.facts.options == {"day": "unknown"}
    assert records.lines["text"][0].as_py() == "41,07:24:58,101300,client timeout (300 s),07:29:58"
    assert records.lines["request"].to_pylist() == [row[0] for row in expected]
    assert records.lines["line"].to_pylist() == [2, 3, 4, 5, 6, 7]


def test_objects_a_line_give_epoch_times_and_latencies(shared: Path) -> None:
    path = shared / "testbed-prototype/demo-run/client.jsonl.gz"
    content = gzip.decompress(path.read_bytes())
    assert client.looks_like(content, path)
    (records,) = client.read(path).records
    rows = [json.loads(line) for line in content.splitlines()]
    assert records.clock == "utc"
    assert requests(records, "name", "output_tokens") == [(r["id"], r["n"]) for r in rows]
    for row, (start, first, end, ttft, itl) in zip(
        rows,
        requests(records, "start_ns", "first_token_ns", "end_ns", "ttft_ns", "itl_p50_ns"),
        strict=True,
    ):
        assert start == pytest.approx(row["sent"] * 1e9, abs=1000)
        assert first == pytest.approx((row["sent"] + row["ttft"]) * 1e9, abs=1000)
        assert end == pytest.approx((row["sent"] + row["e2e"]) * 1e9, abs=1000)
        assert ttft == pytest.approx(row["ttft"] * 1e9, abs=1)
        assert itl == pytest.approx(row["itl_mean"] * 1e9, abs=1)


def test_units_are_in_the_names_or_told_by_the_size_of_the_figures(tmp_path: Path) -> None:
    named = "id,start_time,ttft_ms,e2e_latency (s)\nr1,2026-09-12T04:10:00Z,250,2.5\n"
    records = read(tmp_path / "a.csv", named)
    start = 1_789_186_200 * SECOND
    assert requests(records, "start_ns", "ttft_ns", "end_ns") == [
        (start, SECOND // 4, start + 5 * SECOND // 2)
    ]
    assert records.clock == "utc"
    records = read(tmp_path / "b.csv", "id;ttft;latency\nr1;250;2500\nr2;350;9000\n")
    assert requests(records, "ttft_ns") == [(SECOND // 4,), (350_000_000,)]
    assert records.facts.options == {"unit": "ms, by the size of the figures"}


def test_a_request_over_midnight_ends_on_the_next_day(tmp_path: Path) -> None:
    records = read(tmp_path / "a.csv", "request,sent,finished\n1,23:59:50,00:00:10\n")
    ((start, end),) = requests(records, "start_ns", "end_ns")
    assert (end, start) == (of_day("23:59:50") + 20 * SECOND, of_day("23:59:50"))


@pytest.mark.parametrize(
    ("told", "meant"),
    [("ok", "ok"), ("200", "ok"), ("True", "ok"), ("client timeout (300 s)", "timeout"),
     ("TimedOut", "timeout"), ("cancelled by user", "aborted"), ("429", "rejected"),
     ("HTTP 503", "rejected"), ("connection reset", "error"), ("", None)],
)  # fmt: skip
def test_how_a_request_ended_is_one_word(tmp_path: Path, told: str, meant: str | None) -> None:
    records = read(
        tmp_path / "a.csv", f"request,sent,finished,result\n1,04:10:00,04:10:01,{told}\n"
    )
    assert requests(records, "status") == [(meant,)]


def test_quoted_fields_rubbish_and_a_cut_end_keep_the_lines_right(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'\xef\xbb\xbfrequest_id,latency_s,error,status\r\n"a,1",1.5,,ok\r\n\r\nrubbish\r\n'
        b"b,2.5,,ok\r\n\xff,\x00\r\nc,3.5"
    )
    reading = client.read(path)
    assert requests(reading.records[0], "name", "line") == [("a,1", 2), ("b", 5)]
    assert [(r.place, r.what) for r in reading.remarks] == [
        ("line 4", "3 lines are no request, and left out")
    ]


def test_prompts_and_secrets_stay_out_of_the_lines(tmp_path: Path) -> None:
    table = "id,latency_s,ttft_s,prompt\n1,2.0,0.5,my words\n"
    assert "my words" not in str(read(tmp_path / "a.csv", table).lines.to_pylist())
    table = "id,latency_s,ttft_s,url\n1,2.0,0.5,http://u:pw@h/\n"
    assert ":pw@" not in str(read(tmp_path / "b.csv", table).lines.to_pylist())
    one = '{"id": "1", "latency": 2.0, "ttft": 0.5, "messages": [{"content": "my words"}]}\n'
    assert "my words" not in str(read(tmp_path / "c.jsonl", one).lines.to_pylist())


def test_broken_objects_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id":"1","latency":2.0,"ttft":0.5}\n[1]\n\n{"id":"2","latency":3.0,"ttft"')
    reading = client.read(path)
    assert requests(reading.records[0], "name", "line") == [("1", 1)]
    assert [r.place for r in reading.remarks] == ["line 2"]


def test_a_benchmark_gives_a_request_for_each_entry(tmp_path: Path) -> None:
    records = read(tmp_path / "vllm.json", RESULT, client_results)
    columns = ("prompt_tokens", "output_tokens", "ttft_ns", "itl_p50_ns", "status", "line")
    expected = [
        (10, 3, 250_000_000, 20_000_000, "ok", 1),
        (20, 0, None, None, "timeout", 2),
    ]
    assert requests(records, *columns) == expected
    assert records.clock == "none"
    assert "my words" not in str(records.lines.to_pylist())
    two = RESULT.replace("NaN", "1") + "\n"
    assert read(tmp_path / "sglang.jsonl", two + two, client_results).requests.num_rows == 4


def test_a_profile_of_genai_perf_has_epoch_times(tmp_path: Path) -> None:
    records = read(tmp_path / "profile_export.json", PROFILE, client_results)
    start = 1_789_185_000 * SECOND
    assert requests(records, "start_ns", "ttft_ns", "itl_p50_ns", "end_ns") == [
        (start, 100_000_000, 15_000_000, start + 130_000_000)
    ]
    assert records.clock == "utc"


def test_a_result_without_its_details_says_how_to_keep_them(tmp_path: Path) -> None:
    path = tmp_path / "sums.json"
    path.write_text('{"request_throughput": 1.0, "output_throughput": 2.0, "completed": 5}')
    assert client_results.looks_like(path.read_bytes(), path)
    reading = client_results.read(path)
    assert not reading.records
    assert "--save-detailed" in reading.remarks[0].remedy


@pytest.mark.parametrize(
    "text",
    ["", "a,b,c\n1,2,3\n", '{"timestamp": 1, "input_length": 5, "output_length": 6}\n',
     "timestamp,index,power.draw [W]\n", "INFO 09-12 04:10:00 [a.py:1] request, sent, done\n"],
)  # fmt: skip
def test_other_tables_are_none_of_requests(tmp_path: Path, text: str) -> None:
    assert not client.looks_like(text.encode(), tmp_path)
