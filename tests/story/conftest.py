"""A made run that tells one story: traces, logs, telemetry and a client's table, as files.

Two ranks of one engine decode together, an iteration each 1.5 s. In iteration 7 a kernel of rank 1
takes 400 ms longer, so rank 0 waits in the all-reduce; a line of the engine falls into it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent

BASE = 1_770_000_000  # s, 2026-02-02 02:40:00 UTC
MS = 1000  # traces count microseconds
PERIOD = 1500 * MS
ITERATIONS = 10
LATE = 7
FIRST = "0f8fad5bd9cb469fa16570867728950e"
SECOND = "7c9e6679742540de944be07fc1f90ae7"
Event = dict[str, Any]


def event(cat: str, name: str, ts: int, dur: int, **args: Any) -> Event:
    lane = {"pid": 0, "tid": 7} if cat == "kernel" else {"pid": 100, "tid": 100}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args} | lane


def device(rank: int, at: int) -> dict[str, int]:
    return {"device": rank, "stream": 7, "correlation": at}


def iteration(rank: int, number: int, late: int) -> list[Event]:
    """Give the events of one step: a linear layer, then the all-reduce that joins the ranks."""
    t, at = number * PERIOD, number * 10 + 1
    slow = 400 * MS if number == late else 0
    gemm = 300 * MS + (slow if rank == 1 else 0)
    begin = t + 120 * MS + gemm
    said = {
        "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 4096,
        "Process Group Name": "0", "Process Group Description": "tp",
        "Process Group Ranks": "[0, 1]", "Seq": number,
    }  # fmt: skip
    rids = f"decode rids=['cmpl-{FIRST}-0', 'cmpl-{SECOND}-0']"
    made = [
        event("user_annotation", "execute_context_0(0)_generation_2(2)", t, 600 * MS + slow),
        event("cpu_op", "model.layers.0.mlp", t + 20 * MS, 100 * MS),
        event("cpu_op", "aten::linear", t + 30 * MS, 60 * MS),
        event("cuda_runtime", "cudaLaunchKernel", t + 40 * MS, 10 * MS, correlation=at),
        event("kernel", "gemm_bf16", t + 100 * MS, gemm, **device(rank, at)),
        event("cpu_op", "record_param_comms", t + 150 * MS, 50 * MS, **said),
        event("cuda_runtime", "cudaLaunchKernel", t + 160 * MS, 10 * MS, correlation=at + 1),
        event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", begin,
              t + 500 * MS + slow - begin, **device(rank, at + 1), **said),
    ]  # fmt: skip
    return (
        [*made, event("user_annotation", rids, t + 5 * MS, 590 * MS)] if 3 <= number < 6 else made
    )


def trace(rank: int, late: int = LATE) -> str:
    """Give one rank's trace; all its pids are 100 + rank."""
    own = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2},
           "baseTimeNanoseconds": BASE * 1_000_000_000}  # fmt: skip
    events = [e for n in range(ITERATIONS) for e in iteration(rank, n, late)]
    moved = [e | {"pid": 100 + rank, "tid": 100 + rank} if e["pid"] == 100 else e for e in events]
    return json.dumps(own | {"traceEvents": moved})


SERVICE = f"""\
(APIServer pid=90) INFO 02-02 02:40:00 [logger.py:43] Received request cmpl-{FIRST}-0: params: n=1.
(APIServer pid=90) INFO 02-02 02:40:04 [logger.py:43] Received request cmpl-{SECOND}-0: params: n=1.
(EngineCore_DP0 pid=100) WARNING 02-02 02:40:11 [core.py:466] The step takes longer than usual.
(APIServer pid=90) INFO 02-02 02:40:13 [async_llm.py:420] Finished request cmpl-{FIRST}-0.
"""
CLIENT = f"""\
request_id,start_time,ttft_s,latency_s,prompt_tokens,output_tokens,status
cmpl-{FIRST},{BASE}.200,0.4,12.9,16,9,ok
cmpl-{SECOND},{BASE + 4}.100,0.9,3.0,20,3,ok
other-7,{BASE + 40}.000,0.2,1.0,20,3,ok
"""


TELEMETRY = {
    "resourceSpans": [{"scopeSpans": [{"spans": [{
        "name": "llm_request", "spanId": "01",
        "startTimeUnixNano": f"{BASE}210000000", "endTimeUnixNano": f"{BASE + 13}000000000",
        "attributes": [
            {"key": "gen_ai.request.id", "value": {"stringValue": f"cmpl-{FIRST}-0-1a2b3c4d"}},
            {"key": "gen_ai.latency.time_to_first_token", "value": {"doubleValue": 0.375}},
            {"key": "gen_ai.latency.time_in_queue", "value": {"doubleValue": 0.125}},
        ],
    }]}]}],
}  # fmt: skip


def nccl(rank: int) -> str:
    said = f"node-{rank}:{100 + rank}:{100 + rank} [0] NCCL INFO"
    comm = f"comm 0x55{rank}0 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0xabc1"
    return (
        f"{said} NCCL version 2.26.2+cuda12.2\n{said} {comm} - Init START\n"
        f"{said} Channel 00/0 : {rank}[0] -> {1 - rank}[0] [send] via NET/Socket/0\n"
        f"{said} {comm} - Init COMPLETE\n"
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the run's files."""
    made = tmp_path_factory.mktemp("made-run")
    ranks = [{"rank": r, "host": f"node-{r}", "pid": 100 + r} for r in (0, 1)]
    files = [{"path": f"{kind}{r}.{end}", "kind": kind, "rank": r, "host": f"node-{r}"}
             for r in (0, 1) for kind, end in (("trace", "json"), ("nccl", "log"))]  # fmt: skip
    files += [
        {"path": "service.log", "kind": "log", "host": "node-0"},
        {"path": "client.csv"},
        {"path": "otlp.json"},
    ]
    said = {"schema": "teller.run/1", "run": "made-run", "ranks": ranks, "files": files}
    (made / "manifest.json").write_text(json.dumps(said))
    for rank in (0, 1):
        (made / f"trace{rank}.json").write_text(trace(rank))
        (made / f"nccl{rank}.log").write_text(nccl(rank))
    (made / "service.log").write_text(SERVICE)
    (made / "client.csv").write_text(CLIENT)
    (made / "otlp.json").write_text(json.dumps(TELEMETRY))
    return made


@pytest.fixture(scope="session")
def calm_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write traces of the same run in which no kernel takes longer."""
    made = tmp_path_factory.mktemp("calm-run")
    for rank in (0, 1):
        (made / f"trace{rank}.json").write_text(trace(rank, late=-1))
    return made


@pytest.fixture(scope="session")
def workspace(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Read the run into a workspace."""
    place = Workspace(tmp_path_factory.mktemp("workspace"), project=project, rest=rest)
    pipeline.ingest([folder], place, Options(), Silent())
    return place
