"""Simulated flight recorder dumps and Inspector records, read plainly and by our own readers."""

import io
import json
import pickle
from pathlib import Path
from typing import Any, NoReturn

import pytest

from teller.ingest.discover import head_of, reader_for
from teller.ingest.records import Records
from teller.lab.simulator.recording import flight_recorder, inspector
from teller.lab.simulator.recording.plan import RECORDER, Clock, plain
from tests.lab.small import MS, STEP_NS, T0, US, small


class Refusing(pickle.Unpickler):
    """Reads data, and nothing that names a class."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise AssertionError(f"{module}.{name}")


def dumps(folder: Path, form: str, version: str = "2.9", *, hang: bool = True) -> dict[int, Path]:
    happened = small(hang=hang)
    recording = plain(happened.scene, flight_recorder=form, recorder_version=version, nccl="2.27.3")
    return dict(flight_recorder.write_dumps(happened, recording, folder))


def records(path: Path, format_: str) -> Records:
    reader = reader_for(head_of(path), path)
    assert reader is not None
    assert format_ == reader.FORMAT
    [found] = reader.read(path).records
    return found


@pytest.mark.parametrize("version", RECORDER)
def test_a_pickle_is_plain_data_of_protocol_2(version: str, tmp_path: Path) -> None:
    content = dumps(tmp_path, "pickle", version)[0].read_bytes()
    assert content[:2] == b"\x80\x02"
    dump: dict[str, Any] = Refusing(io.BytesIO(content)).load()
    assert dump["version"] == version
    assert dump["comm_lib_version" if version == "2.10" else "nccl_version"] == "2.27.3"
    assert dump["pg_config"]["2"] == {"name": "2", "desc": "tp", "ranks": "[0, 1, 2, 3]"}
    assert dump["pg_status"]["1"] == {
        "last_enqueued_collective": 19, "last_started_collective": -1,
        "last_completed_collective": 18,
    }  # fmt: skip
    last = dump["entries"][-1]
    assert last["state"] == "scheduled"
    assert last["time_discovered_completed_ns"] is None
    assert last["collective_seq_id"] == 19
    assert last["process_group"] == ("2", "tp")


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_the_rank_that_never_came_is_one_behind(form: str, tmp_path: Path) -> None:
    found = {rank: records(path, "flight_recorder") for rank, path in dumps(tmp_path, form).items()}
    last = {rank: one.joins["seq"].to_pylist()[-1] for rank, one in found.items()}
    assert last == {0: 19, 1: 19, 2: 19, 3: 18}
    states = [one.joins["state"].to_pylist().count("scheduled") for one in found.values()]
    assert states == [1, 1, 1, 0]
    members = {m["group_name"]: m for m in found[3].members.to_pylist()}
    assert (members["2"]["last_enqueued"], members["2"]["last_completed"]) == (18, 18)
    assert members["0"]["last_enqueued"] is None


def test_json_has_the_quirks_of_the_older_form(tmp_path: Path) -> None:
    dump = json.loads(dumps(tmp_path, "json", "2.4")[0].read_text())
    assert set(dump["pg_status"]["1"].values()) == {"19", "-1", "18"}
    assert dump["entries"][-1]["time_discovered_completed_ns"] == 0


def test_a_dead_process_leaves_no_dump(tmp_path: Path) -> None:
    happened = small()
    from dataclasses import replace

    died = replace(happened, dead=(2,))
    recording = plain(happened.scene, flight_recorder="pickle")
    assert [rank for rank, _ in flight_recorder.write_dumps(died, recording, tmp_path)] == [0, 1, 3]


def test_times_are_the_hosts(tmp_path: Path) -> None:
    happened, clock = small(), Clock(7 * MS)
    recording = plain(happened.scene, flight_recorder="pickle", clocks=(Clock(), clock))
    path = dict(flight_recorder.write_dumps(happened, recording, tmp_path))[2]
    joins = records(path, "flight_recorder").joins
    true = [T0 + 7 * MS + int(t) for t in happened.joins[2].host_ns]
    assert joins["time_ns"].to_pylist() == true


def test_the_inspector_tells_each_collectives_time(tmp_path: Path) -> None:
    happened = small()
    recording = plain(happened.scene, inspector=True, nccl="2.29.2")
    path = dict(inspector.write_records(happened, recording, tmp_path))[2]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 18
    assert lines[0]["header"] == {
        "id": "0xa292d1d22bddf873", "rank": 2, "n_ranks": 4, "nnodes": 2
    }  # fmt: skip
    # rank 2 comes 80 µs after rank 0, and waits 40 µs for the last
    assert {line["coll_perf"]["coll_exec_time_us"] for line in lines} == {100}
    assert lines[0]["metadata"]["dump_timestamp_us"] * US > T0 + STEP_NS
    assert records(path, "nccl_inspector").joins.num_rows == 18
