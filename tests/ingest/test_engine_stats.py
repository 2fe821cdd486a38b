"""Statistics of engines, monitors of ranks, and records of communication, each a JSON object."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from teller.ingest.readers import comm_records, host_metrics, trtllm_stats
from teller.ingest.records import Records

ITERATIONS = [
    {
        "iter": 7, "iterLatencyMS": 16.5, "hostStepTimeMS": 12.25,
        "timestamp": "05-01-2026 13:05:12.123456", "numActiveRequests": 3, "numQueuedRequests": 2,
        "inflightBatchingStats": {"numContextRequests": 1, "numCtxTokens": 128,
                                  "numGenRequests": 2, "numPausedRequests": 0},
        "kvCacheStats": {"maxNumBlocks": 100, "usedNumBlocks": 25, "tokensPerBlock": 32},
    },
    {"iter": 8, "hostStepTimeMS": 12.5, "prevDeviceStepTimeMS": 9.0, "attentionDpRank": 1,
     "numActiveRequests": 4},
]  # fmt: skip


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def rows(records: Records, name: str, *columns: str) -> list[tuple[object, ...]]:
    table = records.samples.filter(pc.equal(records.samples["name"], name))
    return [tuple(row[c] for c in columns) for row in table.to_pylist()]


@pytest.mark.parametrize(
    "text",
    [json.dumps(ITERATIONS), json.dumps(ITERATIONS, indent=1),
     "\n".join(map(json.dumps, ITERATIONS)) + '\n{"iter": 9, "hos'],
)  # fmt: skip
def test_iterations_give_host_and_device_time(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stats.json"
    path.write_text(text)
    assert trtllm_stats.looks_like(text.encode(), path)
    (records,) = trtllm_stats.read(path).records
    assert rows(records, "step.host_ns", "value", "text") == [(12.25e6, "7"), (12.5e6, "8")]
    assert rows(records, "step.device_ns", "value", "text") == [(9e6, "7")]
    assert rows(records, "engine.running", "value", "text") == [(3.0, ""), (4.0, "engine 1")]
    assert rows(records, "engine.kv_usage_ratio", "value") == [(0.25,)]
    assert rows(records, "engine.kv_tokens", "value") == [(3200.0,)]
    assert rows(records, "engine.step_tokens", "value", "text") == [(128.0, "prefill")]
    ((time,),) = rows(records, "engine.waiting", "time_ns")
    assert time == 1_777_640_712_123_456_000


def test_records_of_calls_become_joins_with_their_times(shared: Path) -> None:
    path = shared / "testbed-prototype/demo-run/comm_rank0.jsonl.gz"
    calls = lines(path)
    assert comm_records.looks_like(json.dumps(calls[0]).encode(), path)
    (records,) = comm_records.read(path).records
    columns = ("op", "group_name", "seq", "size_bytes", "time_ns", "end_ns", "peer")
    found = list(zip(*(records.joins[c].to_pylist() for c in columns), strict=True))
    assert found == [
        (c["op"], c["group"], c["seq"], c["bytes"], c["t0"], c["t1"],
         None if c["peer"] < 0 else c["peer"])
        for c in calls
    ]  # fmt: skip
    assert records.joins["line"].to_pylist() == list(range(1, len(calls) + 1))
    last = {c["group"]: c["seq"] for c in calls}
    assert {m["group_name"]: m["last_completed"] for m in records.members.to_pylist()} == last
    assert records.clock == "utc"


def test_a_call_without_an_end_is_started_and_calls_of_pairs_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    call = '{"op": "%s", "group": "g", "seq": %d, "t0": 1795986167813821877%s}\n'
    path.write_text(
        call % ("all_reduce", 4, ', "t1": 1795986167813821900')
        + call % ("all_reduce", 5, "")
        + call % ("send", 900, ', "t1": 1795986167813821900, "peer": 1')
        + '{"op": "all_reduce", "group": "g", "seq": 1e30, "t0": 1}\nrubbish\n'
    )
    reading = comm_records.read(path)
    (records,) = reading.records
    assert records.joins["state"].to_pylist() == ["completed", "started", "completed"]
    (member,) = records.members.to_pylist()
    assert (member["last_enqueued"], member["last_completed"]) == (5, 4)
    assert [r.what for r in reading.remarks] == [
        "2 lines are no communication record, and left out"
    ]


def test_a_monitor_of_ranks_gives_counters_of_each_process(shared: Path) -> None:
    path = shared / "testbed-prototype/demo-run/metrics.jsonl.gz"
    moments = lines(path)
    assert host_metrics.looks_like(json.dumps(moments[0]).encode(), path)
    (records,) = host_metrics.read(path).records
    nodes = [(m, n) for m in moments for n in m["nodes"]]
    for name, key in (("process.cpu_ns", "oncpu_ns"), ("process.wait_ns", "runq_ns")):
        assert rows(records, name, "rank", "host", "time_ns", "value") == [
            (n["rank"], n["host"], m["t"], float(n[key])) for m, n in nodes
        ]
    retransmits = [(n["rank"], peer, float(t["retrans"]))
                   for _, n in nodes for peer, t in n["tcp"].items()]  # fmt: skip
    assert rows(records, "net.retransmits", "rank", "text", "value") == retransmits


def test_shares_and_rates_are_since_the_moment_before(shared: Path) -> None:
    path = shared / "testbed-prototype/demo-run/metrics.jsonl.gz"
    first, second = lines(path)[:2]
    (records,) = host_metrics.read(path).records
    grown = [sum(c[i] for c in second["cpu"]) - sum(c[i] for c in first["cpu"]) for i in range(8)]
    busy = (sum(grown) - grown[3] - grown[4]) / sum(grown)
    assert rows(records, "host.cpu_usage_ratio", "value", "line")[0] == (pytest.approx(busy), 2)
    tx = [m["nodes"][0]["tcp"]["node-1"]["tx"] for m in (first, second)]
    rate = (tx[1] - tx[0]) * 1e9 / (second["t"] - first["t"])
    sent = [r for r in rows(records, "net.sent_bytes_per_s", "rank", "text", "line", "value")
            if r[:3] == (0, "node-1", 2)]  # fmt: skip
    assert sent == [(0, "node-1", 2, pytest.approx(rate))]


def test_a_monitor_of_a_node_gives_its_devices(shared: Path) -> None:
    path = shared / "traces/nccl_tests_log/superbench_node_monitor.jsonl"
    text = path.read_text().splitlines()
    assert host_metrics.looks_like(path.read_bytes(), path)
    (records,) = host_metrics.read(path).records
    moments = [json.loads(line) for line in text if line.strip()]
    expected = {(line, gpu, moment[f"gpu_usage:{gpu}"] / 100)
                for line, moment in enumerate(moments, 1) for gpu in range(8)}  # fmt: skip
    found = rows(records, "gpu.utilisation_ratio", "line", "device_index", "value")
    assert {(line, gpu, round(float(str(v)), 6)) for line, gpu, v in found} == expected
    assert records.clock == "local"
    assert rows(records, "gpu.utilisation_ratio", "time_ns")[0] == (1_638_764_375_000_000_000,)
