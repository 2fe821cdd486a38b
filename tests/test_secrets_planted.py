"""Secrets that stand anywhere in a run's files are nowhere in what is stored, printed or shown."""

import contextlib
import io
import json
import os
import pickle
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from teller import cli

BASE = 1_772_618_400_000_000_000
HEAD = "(EngineCore_DP0 pid=700) INFO 03-04 10:00:0{} [core.py:1] "
CORE = re.compile(r"(\d\d)Planted")
KEY_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC{}"


@dataclass
class Planted:
    """Gives secrets that are all different, and remembers them."""

    all: dict[str, str] = field(default_factory=dict)

    def __call__(self, where: str, form: str = "Zq{}xW7") -> str:
        secret = form.format(f"{len(self.all):02d}Planted{len(self.all):02d}")
        self.all[where] = secret
        return secret


def service(plant: Planted) -> str:
    """Give a log of a service with what people log of their surroundings."""
    key = [plant(f"pem {n}", KEY_BODY + "A" * 20) for n in range(3)]
    said = [
        f"Initializing a V1 LLM engine (v0.10.0) with config: model='m', api_key='{plant('vllm')}'",
        f"non-default args: {{'model': 'm', 'api_key': ['{plant('args')}'], 'port': 8000}}",
        f"args: Namespace(host=None, hf_token='{plant('namespace')}', ssl_keyfile_password="
        f"'{plant('password')}')",
        f"Headers: {{'Authorization': 'Bearer {plant('bearer')}', 'Cookie': 'session="
        f"{plant('cookie')}; a=b', 'Proxy-Authorization': 'Basic {plant('basic')}'}}",
        f"x-api-key: {plant('header')}",
        f"pulling https://user:{plant('login')}@example.org/model",
        f"pulling https://{plant('token login')}@example.org/model",
        f"pulling https://{plant('slash login')}/x@example.org/model",
        f"GET https://b.s3.amazonaws.com/m?X-Amz-Credential={plant('credential')}"
        f"&X-Amz-Signature={plant('signature')}&sig={plant('sig')}&X-Amz-Security-Token="
        f"{plant('security token')}",
        f"posting to https://hooks.slack.com/services/T01/B02/{plant('webhook')}",
        f"export OPENAI_API_KEY={plant('export')}",
        f"MODEL_SECRET_ARN -> {plant('arrow')}",
        f"using {plant('form hf', 'hf_{}AbCdEfGhIjK')} and {plant('form sk', 'sk-proj-{}aBcDe')}",
        f"--api-key {plant('flag')} --port 8000",
        "-----BEGIN RSA PRIVATE KEY-----",
    ]
    lines = [HEAD.format(n % 10) + text for n, text in enumerate(said)]
    lines += [*key, "-----END RSA PRIVATE KEY-----"]
    lines += [
        HEAD.format(9) + "Received request cmpl-1: prompt: '" + plant("prompt") + "', params: "
        "SamplingParams(n=1), prompt_token_ids: None, lora_request: None.",
        "[2026-03-04 10:00:09 TP0] server_args=ServerArgs(model_path='m', tp_size=1, api_key='"
        f"{plant('sglang')}', admin_api_key='{plant('sglang admin')}', ssl_keyfile_password='"
        f"{plant('sglang password')}')",
        f"node-a:700:701 [0] NCCL INFO NCCL_NET_AUTH_TOKEN set by environment to {plant('nccl')}.",
        f"node-a:700:701 [0] NCCL INFO NCCL_SOCKET_SECRET set to {plant('nccl set')}",
        "node-a:700:701 [0] NCCL WARN Call to connect to https://u:"
        f"{plant('nccl warning')}@10.0.0.1 failed : token={plant('nccl token')}",
        HEAD.format(9) + "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation "
        "throughput: 5.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, "
        "Prefix cache hit rate: 0.0%",
        f"ValueError: 401 for Authorization: Bearer {plant('exception')}",
    ]
    return "\n".join(lines) + "\n"


def nsys(plant: Planted, path: Path) -> None:
    """Write an export whose metadata and ranges hold secrets."""
    owner = 1 << 48 | 700 << 24
    variable = "PROCESS_0:ENVIRONMENT_VARIABLE"
    tables: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
        "StringIds": ("id INTEGER PRIMARY KEY, value TEXT", [
            (1, "gemm"), (2, f"load token={plant('nsys string')}"),
        ]),
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            '"start" INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER, '
            "correlationId INTEGER, globalPid INTEGER, shortName INTEGER",
            [(10 + 10 * n, 18 + 10 * n, 0, 7, n, owner, 1) for n in range(40)],
        ),
        "NVTX_EVENTS": (
            '"start" INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, textId INTEGER, '
            "globalTid INTEGER",
            [(1, 300, 59, f"GET https://u:{plant('nvtx')}@h.org", None, owner),
             (301, 400, 59, None, 2, owner)],
        ),
        "META_DATA_CAPTURE": ("name TEXT, value TEXT", [
            (variable, 'RANK="1"'), (variable, f"HF_TOKEN={plant('nsys variable')}"),
            (variable, f"MASTER_ADDR=u:{plant('nsys address')}@h"),
            ("PROCESS_0:COMMAND_LINE", f"serve --api-key {plant('nsys command')}"),
        ]),
        "PROCESSES": ("globalPid INTEGER, pid INTEGER, name TEXT", [
            (owner, 700, f"serve --api-key {plant('nsys process')}"),
        ]),
        "DIAGNOSTIC_EVENT": ("timestamp INTEGER, severity INTEGER, text TEXT", [
            (1, 2, f"could not read https://u:{plant('nsys diagnostic')}@h.org"),
        ]),
    }  # fmt: skip
    with contextlib.closing(sqlite3.connect(path)) as base:
        for name, (columns, rows) in tables.items():
            base.execute(f"CREATE TABLE {name} ({columns})")
            base.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(rows[0]))})", rows)
        base.commit()


def kineto(plant: Planted) -> str:
    """Give a trace whose metadata, names and arguments hold secrets."""

    def event(name: str, cat: str, ts: int, dur: int, **args: object) -> dict[str, object]:
        device = cat == "kernel"
        return {"ph": "X", "cat": cat, "name": name, "pid": 0 if device else 9, "args": args,
                "tid": 7 if device else 9, "ts": ts, "dur": dur}  # fmt: skip

    events = [
        event(f"step Authorization: Bearer {plant('annotation')}", "user_annotation", 0, 500),
        event("aten::mm", "cpu_op", 10, 5, secret=plant("argument")),
        event("gemm", "kernel", 20, 50, device=0, stream=7, correlation=1),
        {"ph": "M", "name": "process_name", "pid": 9, "ts": 0,
         "args": {"name": f"serve --token {plant('kineto process')}"}},
        {"ph": "M", "name": "thread_name", "pid": 9, "tid": 9, "ts": 0,
         "args": {"name": f"api_key={plant('kineto thread')}"}},
    ]  # fmt: skip
    return json.dumps({
        "schemaVersion": 1, "baseTimeNanoseconds": BASE, "username": plant("user"),
        "host_name": f"https://x:{plant('kineto host')}@h.org",
        "distributedInfo": {"rank": 0, "world_size": 2, "pg_config": [
            {"pg_name": "0", "pg_desc": f"token={plant('kineto group')}", "ranks": [0, 1]}]},
        "environment": {"HF_TOKEN": plant("kineto environment")}, "traceEvents": events,
    })  # fmt: skip


def recorder(plant: Planted) -> dict[str, object]:
    """Give a dump whose frames, group and label hold secrets."""
    frame = {"name": f"load(api_key='{plant('frame')}')", "filename": "a.py", "line": 1}
    entry = {
        "record_id": 0, "pg_id": 0, "process_group": ["0", f"password={plant('recorder group')}"],
        "collective_seq_id": 1, "profiling_name": f"nccl:all_reduce token={plant('label')}",
        "state": "scheduled", "time_created_ns": BASE, "input_sizes": [[4]],
        "input_dtypes": ["Float"], "frames": [frame],
    }  # fmt: skip
    config = {"0": {"name": "0", "desc": f"secret={plant('config')}", "ranks": "[0, 1]"}}
    return {"version": "2.5", "pg_config": config, "pg_status": {}, "entries": [entry],
            "nccl_version": f"2.27 https://u:{plant('recorder version')}@h"}  # fmt: skip


def spans(plant: Planted) -> str:
    """Give telemetry whose attributes hold secrets."""

    def said(**values: str) -> list[dict[str, object]]:
        return [{"key": k.replace("__", "."), "value": {"stringValue": v}}
                for k, v in values.items()]  # fmt: skip

    span = {
        "name": "llm_request", "spanId": "01", "startTimeUnixNano": str(BASE),
        "endTimeUnixNano": str(BASE + 10**9),
        "attributes": said(
            gen_ai__request__id=f"r1?token={plant('request id')}",
            gen_ai__prompt=plant("telemetry prompt"),
            http__request__header__authorization=f"Bearer {plant('telemetry header')}",
        ),
    }  # fmt: skip
    resource = said(host__name=f"u:{plant('resource')}", process__command_args=plant("command"),
                    service__name=f"s?api_key={plant('service name')}")  # fmt: skip
    resource[0]["value"] = {"stringValue": f"https://u:{plant('resource host')}@node"}
    group = {"resource": {"attributes": resource}, "scopeSpans": [{"spans": [span]}]}
    return json.dumps({"resourceSpans": [group]})


def metrics(plant: Planted) -> str:
    """Give a scrape whose labels hold secrets."""
    return (
        "# TYPE vllm:num_requests_running gauge\n"
        f'vllm:num_requests_running{{engine="0",api_key="{plant("label key")}"}} 3.0\n'
        f'some_metric{{url="https://u:{plant("label login")}@h/",authorization="Bearer '
        f'{plant("label bearer")}",token="{plant("label token")}"}} 1.0\n'
        f'other_metric{{pod="{plant("label form", "ghp_{}aBcDeFgHiJ")}"}} 1.0\n'
        f'vllm:cache_config_info{{block_size="16",hf_token="{plant("label info")}"}} 1.0\n'
    )


def clients(plant: Planted) -> str:
    """Give a load generator's table with columns that are nobody's business."""
    head = "request_id,start_time,ttft_s,e2e_s,output_tokens,status,error,api_key,headers,url\n"
    rows = (
        f"r{n},{BASE / 1e9 + n:.3f},0.1,1.5,20,error,401 token={plant(f'error {n}')},"
        f"{plant(f'column {n}')},Authorization: Bearer {plant(f'column header {n}')},"
        f"https://h.org/v1?sig={plant(f'column url {n}')}\n"
        for n in range(3)
    )
    return head + "".join(rows)


def devices(plant: Planted) -> str:
    """Give device figures in whose words secrets stand."""
    return (
        "timestamp, index, name, clocks.current.sm [MHz], temperature.gpu\n"
        f"2026/03/04 10:00:00.000, 0, H100 token={plant('device name')}, 1980 MHz, 60\n"
        f"2026/03/04 10:00:01.000, 0, H100 password={plant('device again')}, 1980 MHz, 61\n"
    )


def note(plant: Planted) -> str:
    """Give a note with secrets in its keys, and others that are left out."""
    key = f"tok_s api_key={plant('note key')}"
    return json.dumps({"usual": {key: 100, "ttft_ms": 5}, "now": {key: 50, "ttft_ms": 9},
                       "password": plant("note password")})  # fmt: skip


class _Runs:
    """Would run where a pickle is read as Python reads it."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Callable[..., int], tuple[str]]:
        return os.system, (f"touch {self.proof}",)


@dataclass
class Lair:
    """What the commands left of a folder with planted files."""

    plant: Planted
    workspace: Path
    said: str
    inputs: list[dict[str, Any]]
    proof: Path


def _said(words: list[str], workspace: Path) -> str:
    """Run a command; give all that it prints."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as said,
        contextlib.redirect_stderr(io.StringIO()) as aside,
    ):
        cli.main([*words, "--workspace", str(workspace)])
    return said.getvalue() + aside.getvalue()


@pytest.fixture(scope="module")
def lair(tmp_path_factory: pytest.TempPathFactory) -> Lair:
    folder, home = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("home")
    plant, proof = Planted(), home / "proof"
    texts = {
        "service.log": service(plant),
        "rank0.json": kineto(plant),
        "fr_rank_0.json": json.dumps(recorder(plant)),
        "spans.json": spans(plant),
        "metrics.prom": metrics(plant),
        "clients.csv": clients(plant),
        "nvml.csv": devices(plant),
        "notes.json": note(plant),
        f"run-{plant('file', 'ghp_{}aBcDeFgHiJ')}.log": "INFO 03-04 10:00:00 [a.py:1] Ready\n" * 9,
        f"{plant('report', 'hf_{}AbCdEfGhIjK')}.nsys-rep": "x",
        f"{plant('other file', 'glpat-{}AbCdEfGhIjK')}.txt": "nothing\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    nsys(plant, folder / "rank1.sqlite")
    (folder / "fr_rank_1").write_bytes(pickle.dumps(recorder(plant)))
    harm = recorder(plant) | {"entries": _Runs(proof)}
    (folder / "fr_rank_2").write_bytes(pickle.dumps(harm))
    workspace, page = home / "workspace", home / "page.html"
    said = [
        _said(words, workspace)
        for words in (
            ["doctor", str(folder)],
            ["doctor", str(folder), "--format", "json"],
            ["ingest", str(folder)],
            ["diagnose", str(folder)],
            ["diagnose", str(folder), "--format", "json"],
            ["report", "--output", str(page)],
            ["query", "MATCH (n) RETURN n", "--format", "json"],
            ["query", "MATCH ()-[r]->() RETURN r", "--format", "json"],
        )
    ]
    envelope = json.loads(_said(["ingest", str(folder), "--format", "json"], workspace))
    said.append(json.dumps(envelope))
    told = "\n".join([*said, page.read_text()])
    return Lair(plant, workspace, told, envelope["inputs"], proof)


def _leaks(lair: Lair, text: str) -> set[str]:
    found = set(re.findall(r"(\d\d)Planted", text))
    return {where for where, secret in lair.plant.all.items() if CORE.search(secret)[1] in found}  # type: ignore[index]  # each has it


def _all_of(table: pa.Table) -> str:
    return str(table.schema.metadata) + str(table.to_pylist())


def test_the_files_were_read_for_what_they_are(lair: Lair) -> None:
    assert {str(one["kind"]) for one in lair.inputs} == {
        "log", "nsys_sqlite", "kineto", "flight_recorder", "otlp", "prometheus", "client",
        "gpu_csv", "note",
    }  # fmt: skip
    for kept in (
        "gemm",
        "engine.running",
        "NCCL_",
        "SamplingParams(n=1)",
        "<redacted>",
        "aten::mm",
    ):
        assert kept in lair.said


def test_no_file_of_the_workspace_holds_a_secret(lair: Lair) -> None:
    leaks = {}
    for path in (p for p in lair.workspace.rglob("*") if p.is_file()):
        text = path.read_bytes().decode("latin-1") + str(path)
        if path.suffix == ".parquet":
            text += _all_of(pq.read_table(path))
        if found := _leaks(lair, text):
            leaks[str(path.relative_to(lair.workspace))] = found
    assert not leaks


def test_nothing_that_was_printed_or_asked_shows_a_secret(lair: Lair) -> None:
    assert not _leaks(lair, lair.said)


def test_a_pickle_that_would_run_something_runs_nothing_and_is_named(lair: Lair) -> None:
    assert not lair.proof.exists()
    assert "fr_rank_2" in lair.said
    assert "holds more than data" in lair.said
