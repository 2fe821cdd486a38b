"""What lines of SGLang mean: batches of all versions, start, trouble, requests."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from teller.graph.vocabulary import known
from teller.ingest.logs.known import sglang

Lines = Callable[..., pa.Table]

DECODE = (
    "Decode batch. #running-req: 48, #token: 91000, token usage: 0.44, cuda graph: False, "
    "gen throughput (token/s): 2310.55, #queue-req: 3, "
)
HYBRID = (
    "Decode batch, #running-req: 2, #full token: 464, full token usage: 0.10, #swa token: 464, "
    "swa token usage: 0.93, accept len: 2.30, accept rate: 0.09, npu graph: True, "
    "gen throughput (token/s): 25.84, #queue-req: 0"
)
PREFILL = (
    "Prefill batch, #new-seq: 2, #new-token: 4674, #cached-token: 46, token usage: 0.03, "
    "#running-req: 1, #queue-req: 5, #pending-token: 9000, cuda graph: True, "
    "input throughput (token/s): 1198.13"
)


def said(lines: pa.Table) -> dict[str, list[tuple[float | None, str | None]]]:
    """Give the samples that lines give, by name: value and text."""
    found: dict[str, list[tuple[float | None, str | None]]] = {}
    for row in sglang.knowing().learn(lines).learned.samples.to_pylist():
        assert known(row["name"])
        found.setdefault(row["name"], []).append((row["value"], row["text"]))
    return found


def test_batches_of_all_versions(lines: Lines) -> None:
    found = said(lines([DECODE, HYBRID, PREFILL], process="DP1 TP0"))
    engine = "engine 1"
    assert sorted(found["engine.running"]) == [(1, engine), (2, engine), (48, engine)]
    assert sorted(found["engine.waiting"]) == [(0, engine), (3, engine), (5, engine)]
    assert found["engine.queued_tokens"] == [(9000, engine)]
    assert sorted(found["engine.kv_usage_ratio"]) == [
        (0.03, engine),
        (0.44, engine),
        (0.93, engine),
    ]
    assert sorted(found["engine.cuda_graph"]) == [(0, "decode"), (1, "decode"), (1, "prefill")]
    assert found["engine.step_tokens"] == [(4674, "prefill")]
    assert found["engine.prompt_tokens_per_s"] == [(1198.13, engine)]
    assert found["engine.accept_ratio"] == [(0.09, engine)]


def test_a_line_keeps_its_figures_by_name(lines: Lines) -> None:
    told = sglang.knowing().learn(lines([DECODE])).told
    assert told is not None
    figures = json.loads(told["params"][0].as_py())
    assert figures["cuda graph"] is False
    assert figures["gen throughput (token/s)"] == 2310.55


def test_server_arguments_are_read_and_keys_are_not(lines: Lines) -> None:
    text = (
        "server_args=ServerArgs(model_path='m/x', api_key='sk-secret', tp_size=8, pp_size=1, "
        "dp_size=8, enable_dp_attention=True, disable_cuda_graph=False, admin_api_key=None)"
    )
    found = said(lines([text]))
    assert {words for _, words in found["engine.option"]} == {
        "tp_size=8",
        "pp_size=1",
        "dp_size=8",
        "enable_dp_attention=True",
        "disable_cuda_graph=False",
    }
    assert found["engine.model"] == [(None, "m/x")]
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("text", "name", "value", "words"),
    [
        (
            "KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: 646, "
            "#new_token_ratio: 0.0980 -> 0.3487",
            "engine.preemptions",
            3,
            "",
        ),
        (
            "Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.9 -> 1.0",
            "engine.preemptions",
            1,
            "",
        ),
        (
            "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 185897, K size: 2.13 GB",
            "engine.kv_tokens",
            185_897,
            "pool",
        ),
        ("max_total_num_tokens=185897, context_len=65536", "engine.max_model_tokens", 65_536, ""),
        (
            "Load weight end. elapsed=109.33 s, type=LagunaForCausalLM",
            "engine.loading_ns",
            109.33e9,
            "weights",
        ),
        (
            "Capture cuda graph end. Time elapsed: 12.5 s. mem usage=0.45 GB.",
            "engine.capture_ns",
            12.5e9,
            "cuda",
        ),
        (
            "Capture target prefill CUDA graph end. elapsed=216.19 s, mem usage=5.24 GB",
            "engine.capture_ns",
            216.19e9,
            "target prefill CUDA",
        ),
        ("Watchdog timeout (self.watchdog_timeout=300)", "watchdog.stuck", 300e9, "scheduler"),
        (
            "Subprocess detokenizer (pid=31379) crashed with exit code -15. Triggering SIGQUIT",
            "process.died",
            -15,
            "Subprocess detokenizer (pid=31379) crashed with exit code -15",
        ),
        (
            "Scheduler hit an exception: Traceback (most recent call last):\n  File x",
            "process.died",
            None,
            "Scheduler hit an exception: Traceback (most recent call last):",
        ),
        (
            "Losing connection with prefill instance (bootstrap_addr: 10.0.0.1:8998), 12 requests "
            "affected",
            "kv.transfer_failed",
            12,
            "10.0.0.1:8998",
        ),
        (
            "LONG GARBAGE COLLECTION DETECTED | Generation 2 | Duration: 0.5230s | # Objects: 7",
            "gc.pause_ns",
            523e6,
            "2",
        ),
    ],
)
def test_single_facts(lines: Lines, text: str, name: str, value: float | None, words: str) -> None:
    assert any(mark in text for mark in sglang.MARKS)
    found = said(lines([text]))[name]
    assert found == [(pytest.approx(value) if value is not None else None, words)]


def test_a_failed_transfer_names_request_room_and_rank(lines: Lines) -> None:
    text = (
        "Decode transfer failed for request rank=5 decode_req.req.rid='9fc6' "
        "decode_req.req.bootstrap_room=8995225476443583209 with exception KVTransferError(x)"
    )
    meant = sglang.knowing().learn(lines([text]))
    (row,) = meant.learned.samples.to_pylist()
    assert (row["name"], row["text"]) == ("kv.transfer_failed", "9fc6")
    assert meant.told is not None
    (told,) = meant.told.to_pylist()
    assert told["request"] == "9fc6"
    assert json.loads(told["params"]) == {"bootstrap_room": 8995225476443583209}


def test_requests_come_and_go_without_what_was_asked(lines: Lines) -> None:
    table = lines(
        [
            "Receive: obj=GenerateReqInput(rid='r1', text='a secret prompt', input_ids=[5, 6])",
            "Finish: obj=GenerateReqInput(rid='r1', text='a secret prompt'), out={'text': 'secret "
            "too', 'meta_info': {'finish_reason': {'type': 'stop'}, 'prompt_tokens': 12, "
            "'completion_tokens': 100, 'e2e_latency': 1.5}}",
            "Abort queued request. rid=r2",
        ],
        time_ns=5,
    )
    meant = sglang.knowing().learn(table)
    rows = {
        (row["name"], row["status"], row["prompt_tokens"], row["output_tokens"])
        for row in meant.learned.requests.to_pylist()
    }
    assert rows == {
        ("r1", "running", None, None),
        ("r1", "ok", 12, 100),
        ("r2", "aborted", None, None),
    }
    assert "secret" not in str(meant)


def test_ranks_only_where_labels_are_sure(lines: Lines) -> None:
    begin = ["Init torch distributed begin."]
    assert sglang.knowing().learn(lines(begin, process="TP3")).processes == {("TP3", None): 3}
    assert sglang.knowing().learn(lines(begin, process="DP1 TP3")).processes is None
    assert sglang.knowing().learn(lines(begin, process="PP1 TP3")).processes is None
    knowing = sglang.knowing()
    knowing.learn(lines(["server_args=ServerArgs(pp_size=1, dp_size=2, enable_dp_attention=True)"]))
    split = knowing.learn(lines(begin, process="DP1 TP3"))
    assert split.processes == {("DP1 TP3", None): 3}


def test_the_real_file_gives_each_batch(shared: Path, lines: Lines) -> None:
    (path,) = (shared / "traces" / "sglang_log").glob("*.log")
    texts = path.read_text(errors="replace").splitlines()
    found = said(lines(texts))
    batches = [text for text in texts if re.search("(Decode|Prefill) batch", text)]
    assert len(found["engine.running"]) == len(batches) == 113
    decoded = [text for text in batches if "Decode" in text]
    rates = [
        float(re.findall(r"gen throughput \(token/s\): ([\d.]+)", text)[0]) for text in decoded
    ]
    assert [value for value, _ in found["engine.generation_tokens_per_s"]] == rates
    assert (None, "sglang") in found["engine.ready"]
    assert found["engine.kv_tokens"][-1] == (185_897, "")


def test_real_cases(shared: Path, lines: Lines) -> None:
    case = shared / "cases" / "o09_single_rank_host_pause_nsys" / "sglang.log"
    table = lines(case.read_text().splitlines())
    samples = sglang.knowing().learn(table).learned.samples
    failed = samples.filter(pc.equal(samples["name"], "engine.health_failed"))
    assert failed["value"].to_pylist() == [20]
    assert set(said(table)["engine.cuda_graph"]) == {(0, "decode")}
