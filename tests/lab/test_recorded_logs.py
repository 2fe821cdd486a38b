"""Simulated logs, as our own readers understand them, and the dictionary of notes."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller.ingest.discover import head_of, reader_for
from teller.ingest.records import Records
from teller.lab.simulator.happened import Happened, Note
from teller.lab.simulator.recording import engine_log, kernel_log, nccl_log
from teller.lab.simulator.recording.benign import _SHARES, benign
from teller.lab.simulator.recording.notes import DIALECTS, forms, said
from teller.lab.simulator.recording.plan import DMESG, NCCL, Clock, plain
from teller.lab.simulator.scene import EngineName
from tests.lab.small import MS, T0, S, scene, small

VERSIONS: tuple[tuple[EngineName, str], ...] = (
    ("vllm", "0.9.2"), ("vllm", "0.10.1"), ("vllm", "0.11.2"), ("vllm", "0.22.0"),
    ("sglang", "0.4.9"), ("sglang", "0.5.6"), ("trtllm", "1.1.0rc2"),
)  # fmt: skip


def records(path: Path, format_: str = "log") -> Records:
    reader = reader_for(head_of(path), path)
    assert reader is not None
    assert format_ == reader.FORMAT
    [found] = reader.read(path).records
    return found


def figures(found: Records) -> dict[str, list[tuple[float | None, str | None]]]:
    made = defaultdict(list)
    for row in found.samples.to_pylist():
        made[row["name"]].append((row["value"], row["text"]))
    return made


def engine(folder: Path, happened: Happened, **how: Any) -> dict[int, Path]:
    recording = plain(happened.scene, engine_log=True, **how)
    return dict(engine_log.write_logs(happened, recording, folder))


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_an_engines_log_tells_its_start_and_load(
    name: EngineName, version: str, tmp_path: Path
) -> None:
    happened = small(steps=90, of=scene(name, version))
    log = records(engine(tmp_path, happened)[0])
    found = figures(log)
    assert found["engine.name"][0][1] == name
    assert 160_000 in {value for value, _ in found["engine.kv_tokens"]}
    if name == "vllm":
        assert found["engine.running"] == [(32.0, "engine 0")]
        assert found["engine.kv_usage_ratio"] == [(0.25, "engine 0")]
        assert found["engine.prompt_tokens_per_s"] == [(60.0, "engine 0")]
        assert version in {text for _, text in found["engine.version"]}
    if name == "sglang":  # one prefill, then a line each forty decode steps
        assert found["engine.batch_size"] == [(2, "prefill"), (32, "decode"), (32, "decode")]
        assert found["engine.cuda_graph"][-1] == (0, "decode")
    if name == "trtllm":
        assert len(found["step.host_ns"]) == 90
        assert found["step.host_ns"][5] == (15e6, "5")
    unread = [t for t in log.lines["text"].to_pylist() if "{" in t and "}" not in t]
    assert not unread


def test_lines_have_the_clock_of_their_host(tmp_path: Path) -> None:
    happened = small(of=scene("sglang", "0.5.6"))
    slow = Clock(-3 * S)
    recording = plain(happened.scene, clocks=(Clock(), slow), zone_s=3600)
    files = dict(engine_log.write_logs(happened, recording, tmp_path))
    first = [records(files[host]).lines["time_ns"][0].as_py() for host in (0, 1)]
    # the server on the first host starts 91 s before the run, the workers 82 s
    assert first[0] == (T0 - 91 * S) // S * S + 3600 * S
    assert first[1] == (T0 - 85 * S + 22 * 10**7) // S * S + 3600 * S


def test_requests_stand_in_the_log_where_it_logs_them(tmp_path: Path) -> None:
    for name, version in (("vllm", "0.11.2"), ("sglang", "0.5.6")):
        happened = small(of=scene(name, version))  # type: ignore[arg-type]  # both are engines
        log = records(engine(tmp_path, happened, requests_logged=True)[0])
        assert set(log.requests["name"].to_pylist()) == {"cmpl-0001", "cmpl-0002"}


@pytest.mark.parametrize("release", NCCL)
def test_nccls_log_joins_ranks_by_paths_calls_and_settings(release: str, tmp_path: Path) -> None:
    happened = small()
    recording = plain(happened.scene, nccl=release, nccl_log=True, nccl_calls=True)
    files = dict(nccl_log.write_logs(happened, recording, tmp_path))
    log = records(files[1])
    members = log.members.to_pylist()
    assert {(m["comm"], m["group_rank"], m["world_size"]) for m in members} == {
        ("54fe282d32a87d85", 1, 4), ("a292d1d22bddf873", 1, 4)
    }  # fmt: skip
    joins = log.joins.to_pylist()
    assert [j["seq"] for j in joins] == list(range(1, 19))
    assert {(j["op"], j["size_bytes"], j["comm"]) for j in joins} == {
        ("all_reduce", 32 * 4096 * 2, "a292d1d22bddf873")
    }  # fmt: skip
    paths = {(p["src_rank"], p["dst_rank"], p["transport"]) for p in log.paths.to_pylist()}
    assert paths == {(1, 2, "NET/IB/1/GDRDMA")}
    found = figures(log)
    assert found["nccl.version"][0][1].startswith(release)  # type: ignore[union-attr]  # has text
    assert (None, "NCCL_IB_HCA=mlx5") in found["nccl.env"]
    assert not found["nccl.error"]
    assert not found["log.unread"]


def test_facts_say_what_carries_the_data(tmp_path: Path) -> None:
    happened = small()
    carried = {"0-1": "SHM/direct/direct", "3-0": "NET/Socket/0"}
    happened.facts.update(transports=carried, network="Socket")
    files = dict(nccl_log.write_logs(happened, plain(happened.scene), tmp_path))
    log = records(files[0])
    paths = {(p["src_rank"], p["dst_rank"]): p["transport"] for p in log.paths.to_pylist()}
    assert paths == {(0, 1): "SHM/direct/direct", (3, 0): "NET/Socket/0"}
    assert (None, "Socket") in figures(log)["nccl.network"]


NOTES = (
    (Note(5 * MS, "worker 1", "gc_pause", {"ms": 812.5, "generation": 2, "objects": 91}),
     "gc.pause_ns", 812.5e6),
    (Note(5 * MS, "worker 1", "compile", {"seconds": 2.5, "what": "dynamic shape"}),
     "engine.compile_ns", 2.5e9),
    (Note(5 * MS, "engine 0", "broadcast_wait", {"seconds": 60}), "engine.broadcast_wait_ns", 6e10),
    (Note(5 * MS, "worker 0", "moe_default_config", {"file": "E=8.json"}), "engine.fallback", None),
    (Note(5 * MS, "engine 0", "worker_died", {"rank": 1}), "process.died", None),
    (Note(5 * MS, "worker 1", "watchdog", {
        "seq": 8, "op": "ALLREDUCE", "elements": 4096, "timeout_ms": 600_000, "last_enqueued": 9,
        "last_completed": 7}), "watchdog.last_completed", 7.0),
    (Note(5 * MS, "worker 0", "heartbeat", {"seconds": 480}), "watchdog.stuck", 4.8e11),
)  # fmt: skip


@pytest.mark.parametrize(("note", "sample", "value"), NOTES, ids=[n.kind for n, _, _ in NOTES])
def test_a_note_is_read_as_what_it_means(
    note: Note, sample: str, value: float | None, tmp_path: Path
) -> None:
    happened = small(of=scene("vllm", "0.11.2"), notes=[note])
    read = figures(records(engine(tmp_path, happened)[0]))[sample]
    assert read
    if value is not None:
        assert value in {v for v, _ in read}


def test_notes_of_nccl_and_the_kernel_stand_in_their_logs(tmp_path: Path) -> None:
    happened = small(notes=[
        Note(3 * MS, "nccl 1", "completion_error", {"peer": "10.0.0.2<4123>", "status": 12,
                                                   "vendor": 129}),
        Note(4 * MS, "nccl 1", "net_async_event", {"nic": "mlx5_1"}),
        Note(-1, "nccl 1", "gdr_off", {"nic": "mlx5_1"}),
        Note(3 * MS, "kernel 1", "xid", {"bus": "0000:11:00.0", "code": 79, "text": "GPU has fa"
                                         "llen off the bus."}),
        Note(4 * MS, "kernel 1", "aer", {"bus": "0000:11:00"}),
    ])  # fmt: skip
    for release in NCCL:
        recording = plain(happened.scene, nccl=release)
        found = figures(records(dict(nccl_log.write_logs(happened, recording, tmp_path))[1]))
        assert found["nccl.completion_error"][0][0] == 12
        assert (None, "mlx5_1") in found["nccl.gdr_disabled"]
        assert found["nccl.async_event"]
    for form in DMESG:
        recording = plain(happened.scene, kernel_log=form, clocks=(Clock(), Clock(2 * S)))
        log = records(dict(kernel_log.write_logs(happened, recording, tmp_path))[1])
        found = figures(log)
        assert tuple(v for v, _ in found["gpu.xid"]) == (79.0, )  # fmt: skip
        assert found["host.pcie_error"]
        if form != "boot":
            at = [row["time_ns"] for row in log.lines.to_pylist() if "Xid" in row["text"]]
            assert abs(at[0] - (T0 + 3 * MS + 2 * S)) < S


def test_every_kind_of_note_is_written_somewhere_and_has_what_it_needs() -> None:
    values: dict[str, Any] = defaultdict(lambda: "x") | dict.fromkeys(
        ("ms", "p90_ms", "seconds", "timeout_ms", "bytes", "row", "mib"), 7
    )
    for kind, form in forms().items():
        given = {need: values[need] for need in form.needs}
        texts = [said(kind, dialect, given) for dialect in DIALECTS]
        assert form.figures or any(texts), kind
        for one in filter(None, texts):
            assert one.text
            assert not re.search(r"[{}]", one.text.replace("', stream=True)", "")), one.text


def test_what_healthy_services_print_are_known_kinds_and_most_runs_have_some() -> None:
    assert set(_SHARES) <= set(forms())
    happened = small(of=scene(mode="eager"))
    counts = [len(list(benign(happened, plain(happened.scene, seed=n)))) for n in range(60)]
    assert np.mean(np.array(counts) > 0) > 0.6
    kinds = {n.kind for seed in range(600)
             for n in benign(happened, plain(happened.scene, seed=seed))}  # fmt: skip
    assert kinds == set(_SHARES) - {"moe_default_config"}  # of models with experts
    graphs = small()
    assert not any(n.kind == "graph_skipped" for seed in range(60)
                   for n in benign(graphs, plain(graphs.scene, seed=seed)))  # fmt: skip
