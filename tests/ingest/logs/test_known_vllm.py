"""What lines of vLLM mean: of V0, of V1, and of real files."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from teller.graph.vocabulary import known
from teller.ingest.logs.known import vllm

Lines = Callable[..., pa.Table]

V1 = (
    "Engine 003: Avg prompt throughput: 3011.0 tokens/s, Avg generation throughput: 640.2 tokens/s,"
    " Running: 4 reqs, Waiting: 7 reqs, Deferred: 1 reqs, Preemptions: 2, GPU KV cache usage: 8.8%,"
    " Prefix cache hit rate: 41.0%, External prefix cache hit rate: 3.0%"
)
V0 = (
    "Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 1,234.5 tokens/s, "
    "Running: 3 reqs, Swapped: 1 reqs, Pending: 2 reqs, GPU KV cache usage: 7.5%, "
    "CPU KV cache usage: 0.0%."
)


def said(lines: pa.Table) -> dict[str, list[tuple[float | None, str | None]]]:
    """Give the samples that lines give, by name: value and text."""
    found: dict[str, list[tuple[float | None, str | None]]] = {}
    for row in vllm.knowing().learn(lines).learned.samples.to_pylist():
        assert known(row["name"])
        found.setdefault(row["name"], []).append((row["value"], row["text"]))
    return found


def test_statistics_of_both_generations(lines: Lines) -> None:
    found = said(lines([V1, V0]))
    assert found["engine.running"] == [(4, "engine 3"), (3, "")]
    assert found["engine.waiting"] == [(7, "engine 3"), (2, "")]
    assert found["engine.kv_usage_ratio"] == [(0.088, "engine 3"), (0.075, "")]
    assert found["engine.prefix_hit_ratio"] == [(0.41, "engine 3")]
    assert found["engine.preemptions"] == [(2, "engine 3")]
    assert found["engine.swapped"] == [(1, "")]
    assert found["engine.prompt_tokens_per_s"] == [(3011, "engine 3"), (12.5, "")]


def test_a_line_keeps_its_figures_by_name(lines: Lines) -> None:
    told = vllm.knowing().learn(lines([V1])).told
    assert told is not None
    figures = json.loads(told["params"][0].as_py())
    assert figures["Running (reqs)"] == 4
    assert figures["Preemptions"] == 2
    assert figures["External prefix cache hit rate (%)"] == 3.0


def test_several_engines_in_one_line_are_named_so(lines: Lines) -> None:
    found = said(lines([V1.replace("Engine 003:", "4 Engines Aggregated:")]))
    assert found["engine.running"] == [(4, "4 engines")]


def test_speculation_and_transfers(lines: Lines) -> None:
    found = said(
        lines(
            [
                "SpecDecoding metrics: Mean acceptance length: 1.77, Accepted: 10 tokens, Drafted: "
                "195 tokens, Per-position acceptance rate: 0.538, 0.231, 0.000, Avg Draft "
                "acceptance rate: 5.1%",
                "KV Transfer metrics: Num successful transfers=4, Avg xfer time (ms)=1.381, "
                "P90 xfer time (ms)=2.601, Num failed transfers=2",
            ]
        )
    )
    assert found["engine.accept_ratio"] == [(0.051, "")]
    assert found["kv.transfer_ns"] == [(1_381_000, "average")]
    assert found["kv.transfer_failed"] == [(2, "in the interval")]


def test_an_iteration_has_its_number_time_and_tokens(lines: Lines) -> None:
    text = (
        "Iteration(15): 2 context requests, 7986 context tokens, 14 generation requests, "
        "14 generation tokens, iteration elapsed time: 1115.64 ms, GPU KV cache usage: 4%"
    )
    meant = vllm.knowing().learn(lines([text]))
    rows = meant.learned.samples.to_pylist()
    assert ("step.host_ns", 1_115_640_000, "15") in [
        (row["name"], row["value"], row["text"]) for row in rows
    ]
    assert ("engine.step_tokens", 7986, "prefill") in [
        (row["name"], row["value"], row["text"]) for row in rows
    ]
    assert meant.told is not None
    assert meant.told["step_index"].to_pylist() == [15]
    assert json.loads(meant.told["params"][0].as_py())["context tokens"] == 7986


def test_options_are_read_and_keys_are_not(lines: Lines) -> None:
    config = (
        "Initializing a V1 LLM engine (v0.11.0) with config: model='/models/m8b', "
        "api_key='sk-verysecret', hf_token=None, enforce_eager=True, tensor_parallel_size=4, "
        "max_seq_len=8192"
    )
    args = "non-default args: {'model': 'm', 'api_key': ['sk-other'], 'max_num_seqs': 32}"
    rows = vllm.knowing().learn(lines([config, args])).learned.samples
    options = set(rows.filter(pa.compute.equal(rows["name"], "engine.option"))["text"].to_pylist())
    assert options == {
        "enforce_eager=True",
        "tensor_parallel_size=4",
        "max_seq_len=8192",
        "max_num_seqs=32",
    }
    assert "sk-" not in str(rows.to_pylist())
    found = said(lines([config]))
    assert found["engine.version"] == [(None, "0.11.0")]
    assert found["engine.model"] == [(None, "/models/m8b")]
    assert found["engine.max_model_tokens"] == [(8192, "")]


@pytest.mark.parametrize(
    ("text", "name", "value", "words"),
    [
        ("GPU KV cache size: 1,028,832 tokens", "engine.kv_tokens", 1_028_832, ""),
        (
            "Maximum concurrency for 131,072 tokens per request: 0.31x",
            "engine.max_concurrency",
            0.31,
            "",
        ),
        ("Graph capturing finished in 11 secs, took 1.06 GiB", "engine.capture_ns", 11e9, ""),
        (
            "init engine (profile, create kv cache, warmup model) took 49.83 seconds",
            "engine.init_ns",
            49.83e9,
            "",
        ),
        (
            "init engine (profile, create kv cache, warmup model) took 12.5 s (compilation: 4.0 s)",
            "engine.init_ns",
            12.5e9,
            "",
        ),
        ("vLLM is using nccl==2.27.5", "nccl.version", None, "2.27.5"),
        (
            "Compiling a graph for dynamic shape takes 7.23 s",
            "engine.compile_ns",
            7.23e9,
            "dynamic shape",
        ),
        (
            "Triton kernel JIT compilation during inference: rejection_kernel. This causes a spike",
            "engine.compile_ns",
            None,
            "rejection_kernel",
        ),
        ("Cudagraph is disabled under eager mode", "engine.cuda_graph", 0, ""),
        (
            "GC took 812.500ms to complete. Collected 12 objects in GC generation 2.",
            "gc.pause_ns",
            812.5e6,
            "generation 2",
        ),
        (
            "No available shared memory broadcast block found in 60 second(s).",
            "engine.broadcast_wait_ns",
            60e9,
            "",
        ),
        (
            "Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
            "process.died",
            None,
            "Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
        ),
        (
            "Custom allreduce is disabled because your platform lacks GPU P2P capability",
            "engine.fallback",
            None,
            "Custom allreduce is disabled because your platform lacks GPU P2P capability",
        ),
    ],
)
def test_single_facts(lines: Lines, text: str, name: str, value: float | None, words: str) -> None:
    assert any(mark in text for mark in vllm.MARKS)
    found = said(lines([text]))[name]
    assert found == [(pytest.approx(value) if value is not None else None, words)]


def test_ranks_of_processes(lines: Lines) -> None:
    knowing = vllm.knowing()
    early = "world_size=4 rank=3 local_rank=1 distributed_init_method=tcp://x:1 backend=nccl"
    sure = "rank 3 in world size 4 is assigned as DP rank 0, PP rank 1, TP rank 1, EP rank N/A"
    knowing.learn(lines([early], process="Worker_PP1_TP1", pid=77))
    meant = knowing.learn(lines([sure], process="Worker_PP1_TP1", pid=77))
    assert meant.processes == {("Worker_PP1_TP1", 77): 3}
    assert vllm.knowing().learn(lines([sure])).processes is None  # four ranks share one name
    own = "rank 0 in world size 1 is assigned as DP rank 0, PP rank 0, TP rank 0"
    assert vllm.knowing().learn(lines([own])).processes == {("", None): 0}
    second = lines([own], process="EngineCore_DP1", pid=78)  # counts from 0 for itself
    assert vllm.knowing().learn(second).processes is None


def test_requests_come_and_go_without_their_prompts(lines: Lines) -> None:
    table = lines(
        [
            "Received request cmpl-1: prompt: 'my secret prompt', params: SamplingParams(n=1), "
            "prompt_token_ids: [1, 2, 3], lora_request: None.",
            "Added request cmpl-1.",
            "Finished request cmpl-1.",
            "Aborted request(s) cmpl-2,cmpl-3.",
            "Request chatcmpl-4 failed due to a timeout",
        ],
        time_ns=1_000,
    )
    meant = vllm.knowing().learn(table)
    rows = [
        (row["name"], row["start_ns"], row["end_ns"], row["status"])
        for row in meant.learned.requests.to_pylist()
    ]
    assert sorted(rows, key=str) == [
        ("chatcmpl-4", None, 1_000, "error"),
        ("cmpl-1", 1_000, None, "running"),
        ("cmpl-1", 1_000, None, "running"),
        ("cmpl-1", None, 1_000, "ok"),
        ("cmpl-2", None, 1_000, "aborted"),
        ("cmpl-3", None, 1_000, "aborted"),
    ]
    assert meant.told is not None
    assert "secret" not in str(meant)
    assert meant.told["request"].to_pylist()[:2] == ["cmpl-1", "cmpl-1"]


def test_damaged_lines_give_what_they_have(lines: Lines) -> None:
    cut = V1[: V1.index("8.8%") + 1]
    found = said(lines([cut, V1[40:], "Engine 000: Avg generation throughput: x tokens/s"]))
    assert found["engine.running"] == [(4, "engine 3"), (4, "")]
    assert found["engine.prompt_tokens_per_s"] == [(3011, "engine 3")]
    assert found["engine.kv_usage_ratio"] == [(0.088, "")]  # of "8" nobody knows what it was


def test_real_files_give_a_sample_each_statistics_line(shared: Path, lines: Lines) -> None:
    for path in sorted((shared / "traces" / "vllm_log").glob("*.log")):
        texts = path.read_text(errors="replace").splitlines()
        found = said(lines(texts))
        stats = [text for text in texts if "Avg generation throughput" in text]
        assert len(found.get("engine.running", [])) == len(stats)
        waiting = sum(int(n) for text in stats for n in re.findall(r"Waiting: (\d+) reqs", text))
        assert sum(value or 0 for value, _ in found.get("engine.waiting", [])) == waiting
        tokens = [
            float(n.replace(",", "")) for n in re.findall(r"KV cache size: (\S+)", "\n".join(texts))
        ]
        assert [value for value, _ in found["engine.kv_tokens"]] == tokens
        version = found["engine.version"][0][1] or ""
        assert version.split(".dev")[0] in path.name


def test_real_cases(shared: Path, lines: Lines) -> None:
    cases = shared / "cases"
    full = said(lines((cases / "o07_preemption_thrash_v1/vllm.log").read_text().splitlines()))
    assert full["engine.kv_tokens"] == [(153_600, "")]
    assert max(value or 0 for value, _ in full["engine.waiting"]) == 17
    idle = said(
        lines((cases / "o08_shm_broadcast_idle_is_benign/vllm.log").read_text().splitlines())
    )
    assert len(idle["engine.broadcast_wait_ns"]) == 7
    two = said(
        lines((cases / "o06_fr_dp_zero_token_missing_rank/vllm.log").read_text().splitlines())
    )
    assert {text for _, text in two["engine.running"]} == {"engine 0", "engine 1"}
