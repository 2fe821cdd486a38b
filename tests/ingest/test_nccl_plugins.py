"""What plug-ins of NCCL's profiler record: each operation of each rank, under the same ids."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from teller.ingest.discover import head_of
from teller.ingest.readers import flight_recorder, kineto, nccl_inspector, nccl_profiler
from teller.ingest.records import JOINS, MEMBERS, SAMPLES, Records
from teller.ingest.source import Reader, Reading

READERS: tuple[Reader, ...] = (nccl_inspector, nccl_profiler, flight_recorder, kineto)
DUMP_US = 1_752_867_229_276_385


def read(path: Path) -> Reading:
    takers = [reader for reader in READERS if reader.looks_like(head_of(path), path)]
    assert len(takers) == 1
    reading = takers[0].read(path)
    for one in reading.records:
        assert one.joins.schema.equals(JOINS)
        assert one.members.schema.equals(MEMBERS)
        assert one.samples.schema.equals(SAMPLES)
    return reading


def record(path: Path) -> Records:
    reading = read(path)
    assert reading.remarks == ()
    return reading.records[0]


def rows(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.select(list(names)).to_pylist()]


def inspected(seq: int = 1407, **more: Any) -> dict[str, Any]:
    perf = {
        "coll": "AllReduce",
        "coll_sn": seq,
        "coll_msg_size_bytes": 16384,
        "coll_exec_time_us": 61,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": 277.25,
        "coll_busbw_gbs": 485.5,
    }
    return {
        "header": {"id": "0x0f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1},
        "metadata": {
            "inspector_output_format_version": "v4.0",
            "git_rev": "",
            "rec_mechanism": "profiler_plugin",
            "dump_timestamp_us": DUMP_US,
            "hostname": "node-a",
            "pid": 4711,
        },
        "coll_perf": perf | more,
    }


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def test_the_time_of_a_dump_is_no_time_of_an_operation(tmp_path: Path) -> None:
    one = record(write(tmp_path / "node-a-pid4711.log", inspected()))
    assert rows(one.joins, "comm", "seq", "op", "size_bytes", "state", "time_ns", "end_ns") == [
        ("f8c496ae9f661", 1408, "all_reduce", 16384, "completed", None, None)
    ]
    assert rows(one.members, "comm", "group_rank", "world_size", "host", "pid") == [
        ("f8c496ae9f661", 2, 8, "node-a", 4711)
    ]
    assert rows(one.samples, "name", "value", "text", "time_ns") == [
        ("nccl.busbw_bytes_per_s", 485.5e9, "all_reduce 16384 bytes", DUMP_US * 1000)
    ]
    assert (one.facts.host, one.facts.pid, one.facts.product) == (
        "node-a",
        4711,
        "NCCL Inspector v4.0",
    )


def test_a_verbose_record_tells_when_it_began_and_ended(tmp_path: Path) -> None:
    kernels = [
        {"channel_id": n, "kernel_start_ts": DUMP_US - 500, "kernel_stop_ts": DUMP_US - 400 + n}
        for n in range(3)
    ]
    times = {"coll_start_ts": DUMP_US - 900, "coll_stop_ts": DUMP_US - 890}
    one = record(
        write(
            tmp_path / "a.jsonl",
            inspected(coll="ReduceScatter", event_trace_ts={**times, "kernel_events": kernels}),
            inspected(event_trace_ts={**times, "kernel_events": []}),
        )
    )
    assert rows(one.joins, "time_ns", "end_ns") == [
        ((DUMP_US - 900) * 1000, (DUMP_US - 398) * 1000),
        ((DUMP_US - 900) * 1000, None),
    ]
    assert one.joins["size_bytes"].to_pylist() == [16384 * 8, 16384]  # it counts one rank's share


def test_flattened_records_and_point_to_point_are_the_same_facts(tmp_path: Path) -> None:
    nested = inspected()
    flat = nested["header"] | nested["metadata"] | nested["coll_perf"]
    flat |= {"id": int("0f8c496ae9f661", 16), "coll_exec_time_us": 61.25}
    half = {"header": nested["header"], "metadata": nested["metadata"]}
    half["p2p_perf"] = {"p2p": "Send", "p2p_sn": 4, "p2p_peer": 5, "p2p_msg_size_bytes": 99}
    one = record(write(tmp_path / "a.jsonl", nested, flat, half))
    assert one.joins["comm"].unique().to_pylist() == ["f8c496ae9f661"]
    assert rows(one.joins, "op", "seq", "peer", "size_bytes", "line") == [
        ("all_reduce", 1408, None, 16384, 1),
        ("all_reduce", 1408, None, 16384, 2),
        ("send", 5, 5, 99, 3),
    ]
    assert one.members.num_rows == 1


def test_a_record_that_fills_many_lines_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("\n".join(json.dumps(inspected(seq), indent=2) for seq in (7, 8)) + "\n")
    assert record(file).joins["seq"].to_pylist() == [8, 9]


def test_lines_that_are_none_are_counted_and_the_others_read(tmp_path: Path) -> None:
    lines = [json.dumps(inspected(seq)) for seq in range(50)]
    lines[10] = lines[10][:90]
    lines[20] += lines[21]  # two writers, one line
    lines[30] = json.dumps(inspected(coll_sn={"not": "a number"}))
    lines[40] = '{"hello": 1}'
    file = tmp_path / "a.jsonl"
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    reading = read(file)
    assert reading.records[0].joins.num_rows == 46
    (remark,) = reading.remarks
    assert remark.place == "line 11"
    assert "4 could not be read" in remark.what


@pytest.mark.parametrize("name", ["allreduce_4gpu", "allreduce_4gpu_b"])
def test_a_plug_in_of_records_gives_each_operation_its_real_times(shared: Path, name: str) -> None:
    file = shared / f"traces/nccl_profiler/nccl_minimal_profiler_{name}.jsonl"
    told = [json.loads(line) for line in file.read_text().splitlines()]
    done = [e for e in told if e.get("type") == "ncclProfileColl"]
    calls = {e["eventAddr"]: e for e in told if e.get("type") == "ncclProfileCollApi"}
    kernels = [e for e in told if e.get("type") == "ncclProfileKernelCh"]
    expected = {
        (
            f"{e['commId']:x}",
            e["details"]["seq"] + 1,  # NCCL counts from 0
            e["rank"],
            round(calls[e["parentObj"]]["start"]["ts"] * 1000),
            max(round(k["stop"]["ts"] * 1000) for k in kernels if k["parentObj"] == e["eventAddr"]),
        )
        for e in done
    }
    one = record(file)
    got = rows(one.joins, "comm", "seq", "rank", "time_ns", "end_ns")
    assert len(got) == len(done)
    # a float of microseconds is good to two nanoseconds here
    assert {row[:3] for row in got} == {row[:3] for row in expected}
    for row in got:
        assert any(row[:3] == e[:3] and abs(row[3] - e[3]) < 3 and abs(row[4] - e[4]) < 3
                   for e in expected)  # fmt: skip
    assert Counter(rows(one.joins, "op", "size_bytes", "algo", "proto", "state")) == {
        ("all_reduce", 33554432 * 4, "RING", "SIMPLE", "completed"): len(done)
    }
    assert sorted(rows(one.members, "group_rank", "world_size")) == [(n, 4) for n in range(4)]
    assert (one.clock, one.facts.options["proxy_events"]) == ("boot", "24")


def test_the_example_plug_in_is_read_though_its_json_is_none(shared: Path) -> None:
    file = shared / "traces/nccl_profiler/nccl_example_profiler_p2p_chrome.INVALID.json"
    text = file.read_text()
    begun = re.findall(
        r'"name": "(Send|Recv)", "cat": "P2P", "ph": "b".*"Rank": (\d), "Peer": (\d)', text
    )
    reading = read(file)
    (one,) = reading.records
    assert rows(one.joins, "label", "rank", "peer") == [(n, int(r), int(p)) for n, r, p in begun]
    assert one.joins["comm"].unique().to_pylist() == [f"{12715772615376301750:x}"]
    assert one.joins["size_bytes"].unique().to_pylist() == [268435456 * 4]
    # calls say only when they returned, and no kernel says when it ended
    assert one.joins["time_ns"][0].as_py() == 1_467_848_664  # 1467848.663574 µs
    assert one.joins["end_ns"].null_count == one.joins["state"].null_count == 8
    assert one.facts.options["proxy_events"] == str(text.count('"cat": "PROXY", "ph": "b"'))
    assert [r.place for r in reading.remarks] == ["line 314"]  # where somebody asks about it


def test_the_example_plug_in_in_valid_json_tells_sequence_and_end(tmp_path: Path) -> None:
    def line(name: str, cat: str, ph: str, number: int, ts: float, **args: Any) -> dict[str, Any]:
        one = {"name": name, "cat": cat, "ph": ph, "id": number, "pid": 9, "tid": 1, "ts": ts}
        return one | ({"args": args} if args else {})

    events: list[dict[str, Any]] = []
    for n in range(2):
        coll = {"SeqNum": n, "CommHash": 0xABC, "Rank": 3, "Count": 10, "Datatype": "ncclBfloat16"}
        coll |= {"Algorithm": "RING", "Protocol": "LL", "nChannels": 1}
        events += [
            line("AllGather", "COLL_API", "b", n, 100 + n, count=10),
            line("AllGather", "COLL", "b", n, 200 + n, **coll),
            line("KernelCh", "GPU", "b", 0, 300 + n, Channel=0),
            line("KernelCh", "GPU", "e", 0, 400.5 if n == 0 else 0.0),
            line("AllGather", "COLL", "e", n, 250 + n),
            line("AllGather", "COLL_API", "e", n, 120 + n),
        ]
    file = tmp_path / "trace.json"
    file.write_text("[\n" + "".join(json.dumps(e) + ",\n" for e in events) + "{}]\n")
    want = [
        ("abc", 1, "all_gather", 20, "bfloat16", "RING", "completed", 100_000, 400_500),
        ("abc", 2, "all_gather", 20, "bfloat16", "RING", "started", 101_000, None),
    ]
    names = ("comm", "seq", "op", "size_bytes", "dtype", "algo", "state", "time_ns", "end_ns")
    assert rows(record(file).joins, *names) == want
    file.write_text(json.dumps([*events, {}], indent=1))
    assert rows(record(file).joins, *names) == want


def test_no_cut_and_no_changed_byte_raises(shared: Path, tmp_path: Path) -> None:
    folder = shared / "traces/nccl_profiler"
    wholes = [
        json.dumps(inspected()).encode() * 2,
        (folder / "nccl_minimal_profiler_allreduce_4gpu.jsonl").read_bytes()[:9000],
        (folder / "nccl_example_profiler_p2p_chrome.INVALID.json").read_bytes()[:9000],
    ]
    file = tmp_path / "damaged"
    for whole, reader in zip(wholes, (nccl_inspector, nccl_profiler, nccl_profiler), strict=True):
        for at in range(0, len(whole), 401):
            for damaged in (whole[:at], whole[:at] + b"\xff\x00{" + whole[at + 3 :]):
                file.write_bytes(damaged)
                reading = reader.read(file)
                assert reading.records or reading.remarks


def test_traces_and_logs_are_not_taken(shared: Path) -> None:
    others = [
        p
        for folder in ("kineto", "kineto_inference", "nccl_log", "vllm_log", "flight_recorder")
        for p in (shared / "traces" / folder).rglob("*")
        if p.is_file()
    ]
    assert len(others) > 100
    for path in others:
        head = head_of(path)
        assert not nccl_inspector.looks_like(head, path)
        assert not nccl_profiler.looks_like(head, path)
