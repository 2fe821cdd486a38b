"""A made run without steps: an engine short of KV cache, a rank that is missing, a broken file."""

import json
from pathlib import Path
from typing import Final

REPORTS: Final = (  # running, waiting, preempted, share of the KV cache, tokens a second
    (24, 0, 0, 0.61, 900), (24, 0, 0, 0.83, 910), (24, 2, 0, 0.962, 880), (20, 9, 3, 0.991, 610),
    (16, 14, 5, 0.988, 420), (15, 17, 6, 0.994, 300),
)  # fmt: skip
NAME: Final = "5f0c1b8e2d7a4c6f9b3e8a1d0c4f7e26"
BEGIN_NS: Final = 1_770_012_000_000_000_000  # 2026-02-02 06:00:00 UTC


def write(folder: Path) -> Path:
    """Write the run's files."""
    (folder / "service.log").write_text("\n".join(_log()) + "\n")
    for rank in (0, 1):
        (folder / f"nccl_trace_rank_{rank}.json").write_text(json.dumps(_dump(rank)))
    (folder / "clocks.csv").write_text(CLOCKS)
    (folder / "trace5.json").write_text('{"traceEvents": [{"ph": "X", "cat": "ker')
    return folder


CLOCKS: Final = """\
timestamp, index, name, clocks.sm [MHz], clocks.max.sm [MHz], temperature.gpu, power.draw [W]
2026/02/02 06:00:00.000, 0, H100, 1980 MHz, 1980 MHz, 61, 610.10 W
2026/02/02 06:00:00.000, 1, H100, 1980 MHz, 1980 MHz, 62, 612.10 W
2026/02/02 06:00:30.000, 0, H100, 1965 MHz, 1980 MHz, 64, 640.20 W
2026/02/02 06:00:30.000, 1, H100, 1230 MHz, 1980 MHz, 91, 402.70 W
"""


def _log() -> list[str]:
    said = [
        "(EngineCore_DP0 pid=70) INFO 02-02 05:59:40 [kv_cache_utils.py:1087] "
        "GPU KV cache size: 153,600 tokens",
        f"(APIServer pid=60) INFO 02-02 06:00:01 [logger.py:43] Received request cmpl-{NAME}-0: "
        "params: n=1.",
    ]
    for number, (running, waiting, preempted, share, rate) in enumerate(REPORTS):
        when = f"06:00:{10 * number:02}"
        if preempted:
            said.append(
                f"(EngineCore_DP0 pid=70) WARNING 02-02 {when} [scheduler.py:1754] Sequence group "
                f"cmpl-{NAME}-0 is preempted by PreemptionMode.RECOMPUTE mode because there is "
                "not enough KV cache space."
            )
        said.append(
            f"(APIServer pid=60) INFO 02-02 {when} [loggers.py:271] Engine 000: Avg prompt "
            f"throughput: 40.0 tokens/s, Avg generation throughput: {rate}.0 tokens/s, Running: "
            f"{running} reqs, Waiting: {waiting} reqs, Preemptions: {preempted}, "
            f"GPU KV cache usage: {100 * share:.1f}%, Prefix cache hit rate: 2.1%"
        )
    said.append(
        f"(APIServer pid=60) ERROR 02-02 06:00:58 [async_llm.py:440] Request cmpl-{NAME}-0 failed "
        "(engine dead)."
    )
    return said


def _dump(rank: int) -> dict[str, object]:
    """Give a flight recorder's dump: rank 1 never enters operation 4, in which rank 0 stands."""
    last = 4 - rank
    entries = [
        {
            "record_id": n, "pg_id": 0, "process_group": ["0", "default_pg"],
            "collective_seq_id": n, "p2p_seq_id": 0, "op_id": n,
            "profiling_name": "nccl:all_reduce", "time_created_ns": BEGIN_NS + n * 1_000_000_000,
            "input_sizes": [[4096]], "input_dtypes": ["BFloat16"], "output_sizes": [[4096]],
            "output_dtypes": ["BFloat16"], "state": "completed" if n < 4 else "started",
            "time_discovered_started_ns": BEGIN_NS + n * 1_000_000_000 + 90_000,
            "time_discovered_completed_ns": BEGIN_NS + n * 1_000_000_000 + 400_000 if n < 4 else 0,
            "retired": n < 4, "timeout_ms": 600_000, "is_p2p": False,
        }
        for n in range(1, last + 1)
    ]  # fmt: skip
    stands = {
        "last_enqueued_collective": str(last), "last_started_collective": str(last),
        "last_completed_collective": "3",
    }  # fmt: skip
    group = {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}
    return {
        "version": "2.5", "pg_config": {"0": group}, "pg_status": {"0": stands},
        "entries": entries,
    }  # fmt: skip
