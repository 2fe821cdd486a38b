"""Dumps of the flight recorder: who is in which group, how far, and what waits."""

import gzip
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from teller.ingest.discover import head_of
from teller.ingest.readers import flight_recorder, kineto, recorder_pickle
from teller.ingest.records import JOINS, MEMBERS, Records

NOW = 1_786_500_000_000_000_000


def record(path: Path) -> Records:
    assert flight_recorder.looks_like(head_of(path), path)
    reading = flight_recorder.read(path)
    assert reading.remarks == ()
    (one,) = reading.records
    assert one.joins.schema.equals(JOINS)
    assert one.members.schema.equals(MEMBERS)
    return one


def entry(seq: int, **more: Any) -> dict[str, Any]:
    return {
        "record_id": seq,
        "pg_id": 1,
        "process_group": ("7", "tp"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": NOW + seq,
        "input_sizes": [[3, 5]],
        "input_dtypes": ["BFloat16"],
        "state": "completed",
        "time_discovered_completed_ns": NOW + seq + 40,
        "is_p2p": False,
    } | more


def dump(*entries: dict[str, Any], version: str = "2.10") -> dict[str, Any]:
    library = "comm_lib_version" if version == "2.10" else "nccl_version"
    return {
        "version": version,
        library: "2.28.3",
        "pg_config": {
            "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
            "7": {"name": "7", "desc": "tp", "ranks": "[2, 3]"},
        },
        "pg_status": {
            "0": {"last_enqueued_collective": -1, "last_completed_collective": -1},
            "1": {"last_enqueued_collective": 9, "last_completed_collective": 8},
        },
        "entries": list(entries),
    }


def test_every_dump_of_three_hangs_is_read_with_all_its_entries(shared: Path) -> None:
    files = sorted((shared / "traces/flight_recorder").glob("*/_dump_*"))
    counted = [record(file).joins.num_rows for file in files]
    bytes_of_entries = [file.read_bytes().count(b"scheduled") for file in files]
    assert len(files) == 48
    assert sum(counted) == 709
    # the word stands in a pickle once, later ones point to it
    assert [n > 0 for n in counted] == [n > 0 for n in bytes_of_entries]


def test_the_rank_is_the_last_number_of_the_name(shared: Path) -> None:
    file = shared / "cases/o05_fr_allgather_size_mismatch/nccl_trace_rank_pod-infer-0_3.json"
    facts = record(file).facts
    assert (facts.rank, facts.rank_source, facts.world_size) == (3, "file name", 8)


def test_ranks_without_entries_say_how_far_they_came(shared: Path) -> None:
    one = record(shared / "traces/flight_recorder/nvrx_lock_gil_1st/_dump_14")
    assert (one.joins.num_rows, one.facts.event_count) == (0, 0)
    assert one.members.num_rows == 13
    assert one.members["last_enqueued"].null_count == 0
    assert one.facts.rank == 14


def test_counters_find_their_group_though_both_are_numbered_differently(shared: Path) -> None:
    one = record(shared / "traces/flight_recorder/nvrx_gpu_error_1st/_dump_0")
    pipeline = one.members.filter(pc.equal(one.members["group_name"], "43")).to_pylist()[0]
    assert pipeline["desc"] == "PIPELINE_MODEL_PARALLEL_GROUP"
    assert (pipeline["last_enqueued"], pipeline["last_completed"]) == (11986, 11983)
    assert pipeline["last_started"] is None
    assert (pipeline["group_rank"], pipeline["world_size"], pipeline["rank"]) == (0, 4, 0)


def test_the_odd_rank_of_an_all_gather_shows_its_own_shape(shared: Path) -> None:
    folder = shared / "cases/o05_fr_allgather_size_mismatch"
    last = {}
    for file in sorted(folder.glob("nccl_trace*")):
        one = record(file)
        row = one.joins.filter(pc.equal(one.joins["seq"], 48211)).to_pylist()[0]
        last[one.facts.rank] = (row["shape"], row["size_bytes"], row["state"], row["end_ns"])
    assert last.pop(7) == ("[[13, 12664]]", 13 * 12664 * 2, "started", None)
    assert set(last.values()) == {("[[12, 12664]]", 12 * 12664 * 2, "started", None)}


def test_the_missing_ranks_enqueued_one_less(shared: Path) -> None:
    folder = shared / "cases/o06_fr_dp_zero_token_missing_rank"
    came = {}
    for file in sorted(folder.glob("nccl_trace*")):
        one = record(file)
        row = one.members.filter(pc.equal(one.members["desc"], "ep")).to_pylist()[0]
        came[one.facts.rank] = (row["last_enqueued"], row["last_completed"])
    assert came == {0: (9001, 9000), 1: (9001, 9000), 2: (9000, 9000), 3: (9000, 9000)}


def test_point_to_point_has_its_own_numbers_and_a_peer(tmp_path: Path) -> None:
    file = tmp_path / "host4_trace_2"
    p2p = {"is_p2p": True, "p2p_seq_id": 31, "profiling_name": "nccl:recv 0<-1"}
    file.write_bytes(pickle.dumps(dump(entry(26), entry(26, **p2p)), 2))
    one = record(file)
    assert one.joins["op"].to_pylist() == ["all_reduce", "recv"]
    assert one.joins["seq"].to_pylist() == [26, 31]
    assert one.joins["peer"].to_pylist() == [None, 1]
    assert one.joins["line"].to_pylist() == [1, 2]
    assert one.joins["size_bytes"].to_pylist() == [30, 30]
    assert one.samples.select(["name", "text", "rank"]).to_pylist() == [
        {"name": "nccl.version", "text": "2.28.3", "rank": 2}
    ]


def test_json_with_text_for_numbers_and_no_entries_is_whole(tmp_path: Path) -> None:
    told = dump(version="2.4")
    del told["entries"]
    told["pg_status"] = {"1": {"last_enqueued_collective": "9", "last_started_collective": "-1"}}
    file = tmp_path / "nccl_trace_rank_3"
    file.write_bytes(gzip.compress(json.dumps(told, sort_keys=True).encode()))
    reading = flight_recorder.read(file)
    (one,) = reading.records
    assert one.members["group_name"].to_pylist() == ["0", "7"]
    assert one.members["last_enqueued"].to_pylist() == [None, None]
    assert [r.place for r in reading.remarks] == ["pg_status"]  # no entry says which group is 1


def test_a_rank_that_no_group_has_is_not_taken_from_the_name(tmp_path: Path) -> None:
    file = tmp_path / "dump_2026"
    file.write_bytes(pickle.dumps(dump(entry(1)), 2))
    reading = flight_recorder.read(file)
    assert reading.records[0].facts.rank is None
    assert [r.place for r in reading.remarks] == ["file name"]


class Evil:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_pickle_that_calls_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    trap = tmp_path / "made_by_the_pickle"
    file = tmp_path / "nccl_trace_rank_0"
    file.write_bytes(pickle.dumps(dump(entry(1), entry(2, frames=Evil(trap))), protocol))
    assert flight_recorder.looks_like(head_of(file), file)
    reading = flight_recorder.read(file)
    assert reading.records == ()
    assert "more than data" in reading.remarks[0].what
    assert not trap.exists()


@pytest.mark.parametrize("code", [b"\x82\x01", b"Pid\n", b"Q", b"c", b"R", b"b", b"\x81", b"\x97"])
def test_every_opcode_that_is_no_data_is_refused(code: bytes) -> None:
    with pytest.raises(recorder_pickle.RefusedError):
        recorder_pickle.load(b"\x80\x02}" + code + b".")


@pytest.mark.parametrize("write", [lambda d: pickle.dumps(d, 2), lambda d: json.dumps(d).encode()])
def test_of_a_cut_dump_the_whole_entries_are_had(tmp_path: Path, write: Any) -> None:
    whole = write(dump(*(entry(n) for n in range(40))))
    file = tmp_path / "nccl_trace_rank_2.json"
    file.write_bytes(whole[: len(whole) * 3 // 4])
    reading = flight_recorder.read(file)
    (one,) = reading.records
    had = one.joins.num_rows
    assert 20 < had < 40
    assert one.joins["seq"].to_pylist() == list(range(had))
    assert any("not whole" in r.what for r in reading.remarks)


def test_no_cut_and_no_changed_byte_raises(tmp_path: Path) -> None:
    file = tmp_path / "nccl_trace_rank_2"
    for whole in (pickle.dumps(dump(entry(1), entry(2)), 2), json.dumps(dump(entry(1))).encode()):
        for at in range(0, len(whole), 3):
            for damaged in (whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]):
                file.write_bytes(damaged)
                reading = flight_recorder.read(file)
                assert reading.records or reading.remarks


def test_a_trace_with_groups_in_its_header_is_no_dump(tmp_path: Path) -> None:
    groups = [{"pg_name": "0", "pg_desc": "default_pg", "pg_config": "", "pg_status": ""}]
    trace = {"distributedInfo": {"rank": 0, "pg_config": groups}, "traceEvents": []}
    file = tmp_path / "rank0.json"
    file.write_text(json.dumps(trace))
    assert not flight_recorder.looks_like(head_of(file), file)
    assert kineto.looks_like(head_of(file), file)
