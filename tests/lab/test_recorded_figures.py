"""Simulated metrics, tables of devices and of the client, telemetry: read by our own readers."""

import json
from pathlib import Path

import numpy as np
import pytest

from teller.ingest.discover import head_of, reader_for
from teller.ingest.records import Records
from teller.lab.simulator.recording import client, metrics
from teller.lab.simulator.recording.plan import Clock, plain
from teller.lab.simulator.scene import EngineName
from tests.lab.small import MS, T0, scene, small


def records(path: Path, format_: str) -> Records:
    reader = reader_for(head_of(path), path)
    assert reader is not None
    assert format_ == reader.FORMAT
    [found] = reader.read(path).records
    return found


@pytest.mark.parametrize(("name", "running"), [("vllm", 32.0), ("sglang", 32.0), ("trtllm", None)])
def test_scrapes_tell_the_load(name: EngineName, running: float | None, tmp_path: Path) -> None:
    happened = small(of=scene(name, "1.0.0"))
    recording = plain(happened.scene, clocks=(Clock(4 * MS), Clock()))
    [path] = metrics.write_prometheus(happened, recording, tmp_path)
    rows = records(path, "prometheus").samples.to_pylist()
    values = {row["value"] for row in rows if row["name"] == "engine.running"}
    assert values == ({running} if running else set())
    usage = [row for row in rows if row["name"] == "engine.kv_usage_ratio"]
    assert {row["value"] for row in usage} == {0.25}
    assert usage[1]["time_ns"] == (T0 + 54 * MS) // MS * MS


@pytest.mark.parametrize(("kind", "suffix"), [("gpu_csv", "csv"), ("gpu_dmon", "txt")])
def test_tables_of_devices_tell_clock_power_and_heat(
    kind: str, suffix: str, tmp_path: Path
) -> None:
    happened = small()
    happened.gauges.columns["gpu 3 sm_clock_mhz"][1:] = 345
    count = len(happened.gauges.time_ns)
    hot = {f"gpu {r} throttle_reasons": np.full(count, 64.0) for r in range(4)}
    happened.gauges.columns.update(hot)
    recording = plain(happened.scene, gpu_csv=True, gpu_dmon=True)
    made = metrics.write_devices(happened, recording, tmp_path)
    files = {(host, what): path for host, what, path in made}
    path = files[1, kind]
    assert path.suffix == f".{suffix}"
    rows = records(path, kind).samples.to_pylist()
    clocks = [(r["device_index"], r["value"]) for r in rows if r["name"] == "gpu.sm_clock_mhz"]
    assert set(clocks) == {(0, 1980.0), (1, 1980.0), (1, 345.0)}
    assert {r["value"] for r in rows if r["name"] == "gpu.temperature_c"} == {60.0}
    if kind == "gpu_csv":
        assert {r["value"] for r in rows if r["name"] == "gpu.throttle_reasons"} == {64.0}


def test_the_clients_table_has_what_it_saw(tmp_path: Path) -> None:
    happened = small()
    path = client.write_table(happened, plain(happened.scene), tmp_path)
    one, other = records(path, "client").requests.to_pylist()
    assert (one["name"], one["prompt_tokens"], one["output_tokens"]) == ("cmpl-0001", 300, 3)
    assert one["ttft_ns"] == 34 * MS
    assert one["status"] == "ok"
    assert abs(one["start_ns"] - (T0 + MS)) < 1000
    assert (other["status"], other["end_ns"]) == ("timeout", None)


def test_telemetry_is_a_span_a_request(tmp_path: Path) -> None:
    happened = small()
    path = client.write_otlp(happened, plain(happened.scene), tmp_path)
    [request] = records(path, "otlp").requests.to_pylist()
    assert request["name"] == "cmpl-0001"
    assert (request["start_ns"], request["end_ns"]) == (T0 + MS, T0 + 75 * MS)
    assert (request["ttft_ns"], request["queue_ns"]) == (34 * MS, 18 * MS)
    span = json.loads(path.read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["name"] == "llm_request"
    assert (len(span["traceId"]), len(span["spanId"])) == (32, 16)
