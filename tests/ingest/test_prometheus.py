"""Metrics become samples in the vocabulary's names, whatever engine wrote them."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from teller.ingest.readers import prometheus
from teller.ingest.records import Records

SCRAPES = """\
# HELP vllm:num_requests_running Requests in the batch.
# TYPE vllm:num_requests_running gauge
# scrape 2026-09-12T04:10:00Z
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:num_requests_running{engine="1",model_name="m"} 4
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 4
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 5
vllm:e2e_request_latency_seconds_bucket{engine="0",le="+Inf"} 5
vllm:e2e_request_latency_seconds_sum{engine="0"} 5.25
vllm:prompt_tokens_created{engine="0"} 1.7e9
never_set{a="x}\\"y"} NaN
broken{ 3
# scrape 2026-09-12T04:10:10Z
vllm:num_requests_running{engine="0",model_name="m"} 5
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 6
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 7
"""
FIRST, SECOND = 1_789_186_200_000_000_000, 1_789_186_210_000_000_000


def read(path: Path, text: str | bytes) -> Records:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    assert prometheus.looks_like(path.read_bytes()[:65536], path)
    (records,) = prometheus.read(path).records
    return records


def rows(records: Records, name: str, *columns: str) -> list[tuple[object, ...]]:
    table = records.samples.filter(pa.compute.equal(records.samples["name"], name))
    return [tuple(row[c] for c in columns) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("file", "preemptions", "waiting"), [("t0", 3.0, 0.0), ("t1", 412.0, 16.0)]
)
def test_a_scrape_of_vllm_tells_its_counters(
    shared: Path, file: str, preemptions: float, waiting: float
) -> None:
    path = shared / f"cases/o07_preemption_thrash_v1/metrics_{file}.prom"
    (records,) = prometheus.read(path).records
    about = ("value", "text", "line", "time_ns")
    assert rows(records, "engine.preemptions_total", *about) == [(preemptions, "engine 0", 2, None)]
    assert rows(records, "engine.waiting", *about) == [(waiting, "engine 0", 7, None)]
    assert rows(records, "engine.requests_total", "value") == [(40.0,)]
    assert rows(records, "engine.name", "text") == [("vllm",)]
    assert records.clock == "none"
    assert records.facts.options["scrape"] == path.name


def test_scrapes_in_one_file_have_the_times_that_stand_above_them(tmp_path: Path) -> None:
    records = read(tmp_path / "m.prom", SCRAPES)
    assert records.clock == "utc"
    assert rows(records, "engine.running", "value", "text", "time_ns", "line") == [
        (3.0, "engine 0", FIRST, 4),
        (4.0, "engine 1", FIRST, 5),
        (5.0, "engine 0", SECOND, 14),
    ]


def test_requests_are_summed_over_how_they_finished(tmp_path: Path) -> None:
    records = read(tmp_path / "m.prom", SCRAPES)
    found = rows(records, "engine.requests_total", "value", "text", "time_ns")
    assert found == [(9.0, "engine 0", FIRST), (13.0, "engine 0", SECOND)]


def test_sums_of_histograms_stay_and_their_buckets_go(tmp_path: Path) -> None:
    records = read(tmp_path / "m.prom", SCRAPES)
    others = {n for n in records.samples["name"].to_pylist() if n.startswith("prom:")}
    assert others == {"prom:vllm:e2e_request_latency_seconds_sum"}


def test_a_broken_line_is_counted_and_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.prom"
    path.write_text(SCRAPES)
    (remark,) = prometheus.read(path).remarks
    assert (remark.place, remark.what) == ("line 12", "1 line is no metric, and left out")


def test_stamps_are_milliseconds_and_in_openmetrics_seconds(tmp_path: Path) -> None:
    text = "# TYPE nv_x gauge\nnv_x 1 1789186200000\n"
    assert rows(read(tmp_path / "a", text), "prom:nv_x", "time_ns") == [(FIRST,)]
    text = "# TYPE nv_x gauge\nnv_x 1 1789186200.25\n# EOF\n"
    assert rows(read(tmp_path / "b", text), "prom:nv_x", "time_ns") == [(FIRST + 250_000_000,)]


@pytest.mark.parametrize("name", ["m_20260912T041000Z.prom", "m-1789186200.txt"])
def test_the_time_of_a_file_without_stamps_is_in_its_name(tmp_path: Path, name: str) -> None:
    records = read(tmp_path / name, 'sglang:num_queue_reqs{tp_rank="1"} 7\n')
    assert rows(records, "engine.waiting", "value", "time_ns", "process") == [(7.0, FIRST, "TP1")]
    assert records.clock == "utc"


def test_exporters_of_devices_and_hosts_say_whom_they_are_about(tmp_path: Path) -> None:
    records = read(
        tmp_path / "dcgm",
        'DCGM_FI_DEV_SM_CLOCK{gpu="3",UUID="GPU-1",Hostname="node-b"} 1980\n'
        'DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-1",Hostname="node-b"} 97\n'
        'DCGM_FI_DEV_FB_USED{gpu="3",UUID="GPU-1",Hostname="node-b"} 2\n'
        'DCGM_FI_DEV_XID_ERRORS{gpu="3",Hostname="node-b"} 0\n'
        'DCGM_FI_DEV_POWER_USAGE{gpu="3",Hostname="node-b"} 9223372036854775794\n'
        'node_uname_info{nodename="node-b"} 1\n'
        'node_network_receive_drop_total{device="eth0"} 2\n'
        'node_network_transmit_drop_total{device="eth0"} 3\n'
        'container_cpu_cfs_throttled_seconds_total{pod="p"} 1.5\n',
    )
    about = ("value", "host", "device_index")
    assert rows(records, "gpu.sm_clock_mhz", *about) == [(1980.0, "node-b", 3)]
    assert rows(records, "gpu.utilisation_ratio", *about) == [(pytest.approx(0.97), "node-b", 3)]
    assert rows(records, "gpu.memory_used_bytes", *about) == [(2 * 1024**2, "node-b", 3)]
    assert rows(records, "net.drops", "value", "text") == [(5.0, "eth0")]
    assert rows(records, "host.throttled_ns", "value") == [(1.5e9,)]
    assert {"gpu.xid", "gpu.power_w"}.isdisjoint(records.samples["name"].to_pylist())
    assert records.facts.host == "node-b"


def test_the_size_of_the_kv_cache_is_in_labels_and_old_names_mean_the_same(tmp_path: Path) -> None:
    records = read(
        tmp_path / "m",
        'vllm:cache_config_info{block_size="16",num_gpu_blocks="5000"} 1\n'
        'vllm:gpu_cache_usage_perc{model_name="m"} 0.5\n'
        'ray_vllm:num_requests_waiting{engine="2"} 6\n'
        'nv_trt_llm_request_metrics{request_type="waiting",model="m"} 4\n',
    )
    assert rows(records, "engine.kv_tokens", "value") == [(80_000.0,)]
    assert rows(records, "engine.kv_usage_ratio", "value") == [(0.5,)]
    assert rows(records, "engine.waiting", "value", "text") == [(6.0, "engine 2"), (4.0, "")]


def test_secrets_in_labels_are_gone(tmp_path: Path) -> None:
    records = read(tmp_path / "m", 'vllm:foo{api_key="sk-abcdef0123456789",x="1"} 1\n')
    ((text,),) = rows(records, "prom:vllm:foo", "text")
    assert "sk-abcdef" not in str(text)
    assert 'x="1"' in str(text)


def test_gzip_marks_and_line_ends_make_no_difference(tmp_path: Path) -> None:
    plain = read(tmp_path / "a", SCRAPES).samples
    other = tmp_path / "b"
    other.write_bytes(gzip.compress(b"\xef\xbb\xbf" + SCRAPES.replace("\n", "\r\n").encode()))
    assert prometheus.read(other).records[0].samples == plain


@pytest.mark.parametrize(
    "text", ["", "INFO 09-12 04:10:00 [a.py:1] ready\n", "key value\nother 3\n", '{"a": 1}']
)
def test_other_text_is_no_scrape(tmp_path: Path, text: str) -> None:
    assert not prometheus.looks_like(text.encode(), tmp_path)
