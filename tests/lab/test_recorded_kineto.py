"""Simulated Kineto traces, read by `json` alone, by our own reader, and by traceinsight."""

import gzip
import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from teller.ingest.readers import kineto as reader
from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording import kineto
from teller.lab.simulator.recording.plan import KINETO, Clock, Recording, plain
from teller.lab.simulator.recording.seen import windows
from tests.lab.small import STEP_NS, T0, US, scene, small

PEER = Path(__file__).resolve().parents[2] / ".venv-bench" / "bin" / "python"
ASK = """
import json, sys
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_dir=sys.argv[1])
parts = trace.get_temporal_breakdown(visualize=False)
idle, _ = trace.get_idle_time_breakdown(ranks=[0, 1, 2, 3], visualize=False)
overlap = trace.get_comm_comp_overlap(visualize=False)
kinds, kernels = trace.get_gpu_kernel_breakdown(visualize=False)
print("\\n" + json.dumps({
    "compute": parts["compute_time(us)"].tolist(), "other": parts["non_compute_time(us)"].tolist(),
    "idle": sorted(idle["rank"].unique().tolist()), "overlap": overlap.iloc[:, 1].tolist(),
    "kinds": dict(zip(kinds["kernel_type"], kinds["sum"].tolist())),
    "kernels": sorted(set(kernels["name"].str.split("(").str[0])),
}))
"""


def trace(
    folder: Path, happened: Happened, recording: Recording, rank: int = 0, name: str = "t.json"
) -> Path:
    path = folder / name
    [window] = windows(happened, recording)
    kineto.write(path, happened, recording, rank, window)
    return path


def loaded(path: Path) -> Any:
    return json.loads(path.read_bytes())


@pytest.mark.parametrize("generation", KINETO)
def test_every_generation_tells_steps_and_work_as_exactly_as_it_could(
    generation: str, tmp_path: Path
) -> None:
    happened, clock = small(), Clock(-2_345_678, -9.0)
    recording = plain(happened.scene, kineto=generation, clocks=(clock, clock))
    [source] = reader.read(trace(tmp_path, happened, recording, 1)).sources
    grid = 1000 if generation <= "2023" else 1
    device, epoch = happened.device[1], source.facts.epoch_ns or 0
    spans = source.spans.to_pydict()
    work = sorted(s + epoch for s, stream in zip(spans["start_ns"], spans["stream"], strict=True)
                  if stream is not None)  # fmt: skip
    true = sorted((T0 + clock.at(device.start_ns)).tolist())
    assert [w // grid for w in work] == [t // grid for t in true]
    rows = zip(spans["start_ns"], spans["name"], spans["lane"], strict=True)
    steps = sorted(s + epoch for s, name, lane in rows
                   if name.startswith("execute_") and lane.startswith("thread"))  # fmt: skip
    begins = [T0 + clock.one(s) for s in range(STEP_NS, 7 * STEP_NS, STEP_NS)]
    assert [s // grid for s in steps] == [b // grid for b in begins]
    assert source.facts.rank == (None if generation == "2021" else 1)


def test_categories_and_counts_are_what_happened(tmp_path: Path) -> None:
    happened = small(replayed=(2,))
    events = loaded(trace(tmp_path, happened, plain(happened.scene, kineto="2025")))["traceEvents"]
    counts = Counter((e["ph"], e.get("cat")) for e in events)
    layers, steps = 3, 6
    eager = layers * (steps - 1)
    assert counts["X", "kernel"] == 2 * layers * steps
    assert counts["X", "gpu_memcpy"] == steps
    assert counts["X", "cuda_runtime"] == 2 * eager + 1 + 2 * steps
    # mm, vllm::all_reduce and the record of the collective
    assert counts["X", "cpu_op"] == 3 * eager
    assert counts["s", "ac2g"] == counts["f", "ac2g"] == 2 * eager + 1 + steps
    launched = {e["args"]["correlation"] for e in events if e.get("cat") == "kernel"}
    called = {e["args"]["correlation"] for e in events if e.get("cat") == "cuda_runtime"}
    assert launched <= called


def test_kernels_name_their_operator_and_collective_but_in_graphs(tmp_path: Path) -> None:
    happened = small(replayed=(2,))
    events = loaded(trace(tmp_path, happened, plain(happened.scene, kineto="2026")))["traceEvents"]
    ops = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    inside = [e["args"] for e in kernels if "External id" not in e["args"]]
    assert len(inside) == 6
    assert not any("Collective name" in args for args in inside)
    named = Counter(ops[e["args"]["External id"]] for e in kernels if "External id" in e["args"])
    assert named == {"aten::mm": 15, "record_param_comms": 15}
    ring = [e["args"] for e in kernels if "Collective name" in e["args"]]
    assert [args["Seq"] for args in ring] == [*range(1, 7), *range(10, 19)]
    assert {args["Comms Id"] for args in ring} == {0xA292D1D22BDDF873}
    assert {args["Process Group Ranks"] for args in ring} == {"[0, 1, 2, 3]"}


def test_without_groups_of_pytorch_only_kernels_tell_of_collectives(tmp_path: Path) -> None:
    happened = small()
    recording = plain(happened.scene, kineto="2026", told=False)
    path = trace(tmp_path, happened, recording)
    assert b"Collective name" not in path.read_bytes()
    assert b"record_param_comms" not in path.read_bytes()
    [source] = reader.read(path).sources
    assert set(source.calls["op"].to_pylist()) == {"all_reduce"}


def test_a_badly_converted_clock_puts_work_before_its_launch(tmp_path: Path) -> None:
    happened = small()
    recording = plain(happened.scene, kineto="2025", early_ns=20 * US)
    events = loaded(trace(tmp_path, happened, recording))["traceEvents"]
    begun = {e["args"]["correlation"]: e["ts"] for e in events if e.get("cat") == "cuda_runtime"}
    copies = [e for e in events if e.get("cat") == "gpu_memcpy"]
    assert all(e["ts"] == pytest.approx(begun[e["args"]["correlation"]]) for e in copies)


def test_packed_and_plain_are_the_same(tmp_path: Path) -> None:
    happened = small()
    recording = plain(happened.scene, kineto="2024")
    plain_, packed = (trace(tmp_path, happened, recording, 0, f"t.json{e}") for e in ("", ".gz"))

    assert gzip.decompress(packed.read_bytes()) == plain_.read_bytes()


@pytest.mark.slow
def test_traceinsight_parses_them_and_finds_the_same(tmp_path: Path) -> None:
    if not PEER.exists():
        pytest.skip("traceinsight has an environment of its own: python bench/run.py makes it")
    whole = scene(t0_epoch_ns=T0 // 1000 * 1000)  # it counts in whole µs
    happened = replace(small(), scene=whole)
    for rank in range(4):
        recording = plain(whole, kineto="2023")
        trace(tmp_path, happened, recording, rank, f"rank-{rank}.json")
    done = subprocess.run([PEER, "-c", ASK, str(tmp_path)], capture_output=True, text=True,
                          check=True, timeout=120)  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    calls = 18
    assert found["compute"] == [calls * 50] * 4
    # rank r comes 40 µs later than the one before, and all leave together; and six copies of 2 µs
    lasting = [calls * (60 + 120 - 40 * r) for r in range(4)]
    assert found["other"] == [one + 12 for one in lasting]
    assert found["kinds"] == {"COMMUNICATION": sum(lasting), "COMPUTATION": 3600, "MEMORY": 48}
    assert found["idle"] == [0, 1, 2, 3]
    assert found["overlap"] == [0.0] * 4
    assert "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" in found["kernels"]
