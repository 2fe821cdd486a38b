"""A recorded folder as a whole: what TELLER reads out of it is what happened."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.ingest.discover import discover
from teller.lab.manifest import read_manifest
from teller.lab.simulator.recording.plan import Clock, Recording, draw, plain
from teller.lab.simulator.recording.write import record
from teller.pipeline import Options, Silent
from tests.lab.small import MS, US, small

ALL: dict[str, Any] = {
    "nccl": "2.29.2", "nccl_log": True, "nccl_calls": True, "flight_recorder": "pickle",
    "engine_log": True, "prometheus": True, "gpu_csv": True, "gpu_dmon": True, "client": True,
    "kernel_log": "iso", "otlp": True, "inspector": True,
}  # fmt: skip
CLOCKS = (Clock(-40 * US, 1.0), Clock(3 * MS, 5.0))


def ingested(folder: Path, tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "workspace", project=project, rest=rest)
    pipeline.ingest([folder], workspace, Options(), Silent())
    return workspace


def asked(workspace: Workspace, text: str) -> list[dict[str, Any]]:
    with workspace.reader() as store:
        found: list[dict[str, Any]] = store.query(text).to_pylist()
    return found


@pytest.mark.slow
# who counts the operations of a communicator begins with 0 in NCCL and with 1 in PyTorch, so that
# only one of them is recorded here
@pytest.mark.parametrize(
    "how",
    [
        {"nsys": "3.25.0", "payload": True, "engine_log": True, "gpu_csv": True},
        {"kineto": "2026", "flight_recorder": "pickle", "engine_log": True, "client": True},
    ],
)
def test_steps_ranks_and_collectives_are_those_that_happened(
    how: dict[str, Any], tmp_path: Path
) -> None:
    happened = small(steps=20, replayed=())
    record(happened, plain(happened.scene, clocks=CLOCKS, **how), tmp_path / "run")
    workspace = ingested(tmp_path / "run", tmp_path)
    ranks = asked(workspace, "MATCH (r:Rank) RETURN r.rank AS rank, r.host AS host, r.pid AS pid,"
                  " r.clock_offset_ns AS offset ORDER BY rank")  # fmt: skip
    assert [(r["rank"], r["host"], r["pid"]) for r in ranks] == [
        (0, "node-0", 4100), (1, "node-0", 4110), (2, "node-1", 4120), (3, "node-1", 4130)
    ]  # fmt: skip
    # clocks of the second host are 3.04 ms ahead, and 4 ppm faster over 0.4 s
    assert all(abs(r["offset"] + 3_040_000) < 5 * US for r in ranks[2:])
    steps = asked(workspace, "MATCH (s:Step) RETURN s.rank AS rank, s.dur_ns AS dur,"
                  " s.batch_size AS batch, s.phase AS phase")  # fmt: skip
    assert Counter(s["rank"] for s in steps) == dict.fromkeys(range(4), 20)
    assert all(abs(s["dur"] - 15 * MS) < 1000 for s in steps)
    assert Counter((s["phase"], s["batch"]) for s in steps) == {
        ("prefill", 2): 4,
        ("decode", 32): 76,
    }
    joined = asked(workspace, "MATCH (c:Collective) RETURN c.op AS op, c.size_bytes AS size,"
                   " c.ranks_seen AS seen, c.skew_ns AS skew, c.last_rank AS last")  # fmt: skip
    assert len(joined) == 60
    assert {(c["op"], c["seen"], c["last"]) for c in joined} == {("all_reduce", 4, 3)}
    assert {c["size"] for c in joined} == {32 * 4096 * 2}
    assert all(abs(c["skew"] - 120 * US) < 5 * US for c in joined)


def test_every_file_is_in_the_manifest_and_read(tmp_path: Path) -> None:
    happened = small()
    recording = plain(
        happened.scene, nsys="3.24.0", kineto="2025", shares=((0.0, 0.5), (0.5, 1.0)), packed=True,
        **ALL,
    )  # fmt: skip
    made = record(happened, recording, tmp_path)
    assert read_manifest(tmp_path) == made
    there = {p.name for p in tmp_path.iterdir()} - {"manifest.json"}
    assert {f.path for f in made.files} == there
    found = discover([tmp_path])
    assert {c.name for c in found.candidates} == there
    assert len(found.manifests) == 1
    kinds = {c.name: c.format for c in found.candidates}
    same = {"engine_log": "log", "nccl_log": "log", "dmesg": "log"}
    for file in made.files:
        assert kinds[file.path] == same.get(file.kind, file.kind), file.path


def digest(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest()
            for p in folder.iterdir() if p.suffix != ".sqlite"}  # fmt: skip


def test_the_same_recording_makes_the_same_files(tmp_path: Path) -> None:
    happened = small(steps=8)
    recording = plain(happened.scene, kineto="2024", lost=0.05, seed=11, clocks=CLOCKS, **ALL)
    for name in ("one", "two"):
        record(happened, recording, tmp_path / name)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def test_names_and_pids_do_not_tell_a_fault_from_none(tmp_path: Path) -> None:
    sound, hung = small(), small(hang=True)
    recording = plain(sound.scene, nsys="3.25.0", kineto="2025", **ALL)
    # the end of the run is in the names of some profiles
    hung = replace(hung, end_ns=sound.end_ns)
    one, two = record(sound, recording, tmp_path / "a"), record(hung, recording, tmp_path / "b")
    assert one == two


def test_a_recording_is_drawn_from_its_seed_and_all_tools_come_up() -> None:
    made = small().scene

    def drawn(seed: int) -> Recording:
        return draw(made, np.random.default_rng(seed))

    assert drawn(5) == drawn(5)
    many = [drawn(n) for n in range(300)]
    assert all(one.nsys or one.kineto for one in many)
    assert len({one.run for one in many}) == 300
    assert len({one.nsys for one in many}) == 9
    assert len({one.kineto for one in many}) == 6
    for flag in ("payload", "nccl_log", "engine_log", "client", "otlp", "inspector", "packed",
                 "repeated_pids", "told", "flows", "operators"):  # fmt: skip
        share = np.mean([getattr(one, flag) for one in many])
        assert 0.05 < share < 0.95, flag
    assert {len(one.shares) for one in many} == {1, 2}
    for one in many[:40]:
        assert all(0 <= a < b <= 1 for a, b in one.shares)


@pytest.mark.slow
def test_drawn_recordings_can_all_be_read(tmp_path: Path) -> None:
    happened = small(steps=12, hang=True)
    for seed in range(8):
        folder = tmp_path / str(seed)
        record(happened, draw(happened.scene, np.random.default_rng(seed)), folder)
        found = discover([folder])
        assert len(found.candidates) == len(read_manifest(folder).files)
        assert not found.others


@pytest.mark.slow
def test_processes_of_one_report_are_the_ranks_that_the_manifest_knows_by_pid(
    tmp_path: Path,
) -> None:
    happened = small(steps=6, replayed=())
    how = plain(happened.scene, nsys="3.25.0", per="host", repeated_pids=True)
    record(happened, how, tmp_path / "run")
    workspace = ingested(tmp_path / "run", tmp_path)
    ranks = asked(workspace, "MATCH (r:Rank) RETURN r.rank AS rank, r.host AS host, r.pid AS pid,"
                  " r.rank_source AS told ORDER BY rank")  # fmt: skip
    assert [(r["rank"], r["host"], r["pid"]) for r in ranks] == [
        (p.rank, happened.scene.hosts[p.host].name, how.pid(happened.scene, p.rank))
        for p in happened.scene.places
    ]
    assert {r["told"] for r in ranks} == {"manifest"}
