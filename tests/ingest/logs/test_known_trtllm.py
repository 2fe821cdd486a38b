"""What lines of TensorRT-LLM and of Triton mean."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.known import triton, trtllm

Lines = Callable[..., pa.Table]

OLD = (
    "iter = 1201, global_rank = 5, rank = 1, currank_total_requests = 0/0, "
    "host_step_time = 19.5249ms, prev_device_step_time = 18.7533ms, timestamp = 2026-07-07 "
    "08:00:00, num_scheduled_requests: 256, states = {'num_ctx_requests': 1, "
    "'num_ctx_tokens': 12, 'num_generation_tokens': 255}"
)
NEW = (
    "[_torch][RANK 2] iter = 7, global_rank = 2, rank = 2, num_scheduled_requests = 3, "
    "kv_cache_util = 0.125, currank_total_requests = 1/8, host_step_time = 5.0ms, "
    "prev_device_step_time = N/A, timestamp = 08-23-2026 01:02:03, states = {'num_ctx_requests': "
    "0, 'num_ctx_tokens': 0, 'num_generation_tokens': 4}, num_unscheduled = 0"
)


def samples(lines: pa.Table, name: str) -> list[tuple[float | None, str, int | None]]:
    """Give value, text and rank of the samples of a name."""
    made = trtllm.knowing().learn(lines).learned.samples
    rows = made.filter(pc.equal(made["name"], name)).to_pylist()
    return [(row["value"], row["text"], row["rank"]) for row in rows]


def test_both_orders_and_the_device_time_of_the_iteration_before(lines: Lines) -> None:
    table = lines([OLD, NEW])
    assert samples(table, "step.host_ns") == [(19_524_900, "1201", 5), (5_000_000, "7", 2)]
    assert samples(table, "step.device_ns") == [(18_753_300, "1200", 5)]
    assert samples(table, "engine.batch_size") == [(256, "", 5), (3, "", 2)]
    assert samples(table, "engine.kv_usage_ratio") == [(0.125, "", 2)]
    assert (12, "prefill", 5) in samples(table, "engine.step_tokens")
    told = trtllm.knowing().learn(table).told
    assert told is not None
    assert told["step_index"].to_pylist() == [1201, 7]
    assert told["rank"].to_pylist() == [5, 2]


def test_memory_version_and_hang(lines: Lines) -> None:
    table = lines(
        [
            "[MemUsageChange] Allocated 43.87 GiB for max tokens in paged KV cache (229984).",
            "TensorRT-LLM version: 1.3.0rc17",
            "Hang detected on rank 3 in PyExecutor.",
        ]
    )
    assert samples(table, "engine.kv_tokens") == [(229_984, "", None)]
    assert samples(table, "engine.version") == [(None, "1.3.0rc17", None)]
    assert samples(table, "engine.error") == [(None, "Hang detected on rank 3 in PyExecutor.", 3)]


def test_a_real_log_gives_each_iteration_of_each_rank(shared: Path, lines: Lines) -> None:
    for path in sorted((shared / "cases" / "o12_trtllm_host_step_regression").glob("*.log")):
        texts = path.read_text().splitlines()
        table = lines(texts)
        host = samples(table, "step.host_ns")
        assert len(host) == sum("host_step_time = " in text for text in texts)
        assert {rank for *_, rank in host} == {0, 1, 2, 3}
        timed = sum("prev_device_step_time = N/A" not in text for text in texts)
        assert len(samples(table, "step.device_ns")) == timed
        # no iteration is given a device time of another: the last one has none yet
        last = max(int(text) for _, text, _ in host)
        assert max(int(text) for _, text, _ in samples(table, "step.device_ns")) == last - 1


def test_a_damaged_line_gives_no_step(lines: Lines) -> None:
    assert (
        samples(lines([OLD[:60], OLD[30:], "iter = x, host_step_time = 1ms"]), "step.host_ns") == []
    )


def test_triton_statistics_plain_and_quoted(lines: Lines) -> None:
    plain = (
        '{"Active Request Count":249,"Iteration Counter":7210,"Max Request Count":512,'
        '"Timestamp":"12-18-2024 03:35:37","Context Requests":2,"Generation Requests":247,'
        '"Fraction used KV cache blocks":0.5}'
    )
    quoted = '"' + plain.replace('"', '\\"') + '"'
    meant = triton.knowing().learn(lines([plain, quoted]))
    rows = meant.learned.samples
    running = rows.filter(pc.equal(rows["name"], "engine.running"))
    assert running["value"].to_pylist() == [249, 249]
    usage = rows.filter(pc.equal(rows["name"], "engine.kv_usage_ratio"))
    assert usage["value"].to_pylist() == [0.5, 0.5]
    assert meant.told is not None
    assert meant.told["step_index"].to_pylist() == [7210, 7210]
    assert json.loads(meant.told["params"][1].as_py())["Generation Requests"] == 247


def test_triton_loads_serves_and_fails(lines: Lines) -> None:
    texts = [
        "Started HTTPService at 0.0.0.0:8000",
        "failed to load 'ensemble' version 1: Invalid argument: no such model",
        "successfully loaded 'tensorrt_llm'",
    ]
    rows = triton.knowing().learn(lines(texts)).learned.samples.to_pylist()
    assert [(row["name"], row["text"]) for row in rows] == [
        ("engine.ready", "http"),
        ("engine.error", "failed to load 'ensemble' version 1: Invalid argument: no such model"),
    ]
