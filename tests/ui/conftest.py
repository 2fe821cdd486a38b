from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from teller.graph.finding import (
    Cost,
    Culprit,
    Diagnosis,
    Evidence,
    Finding,
    InputSummary,
    Quality,
    RunSummary,
)

T0 = 1_764_425_002_123_456_789
RUN = 4_611_686_018_427_387_905  # past 2**53: a float would round it
NASTY = "gate_up <b>$x^2$</b> | `rm` *a* [red]\x1b[31m{{7*7}} 漢字"

SLOW = Finding(
    id=9_007_199_254_740_993,
    run=RUN,
    klass="slow_operator",
    case_class="slow_operator_one_rank",
    title="layers.3.mlp.gate_up takes 2.9 times as long on rank 5 as on its peers",
    severity="high",
    confidence=0.93,
    culprit=Culprit("operator", ranks=(5,), hosts=("node-b",), operators=("layers.3.mlp.gate_up",)),
    text="From step 40 on, layers.3.mlp.gate_up takes 18.4 ms on rank 5 and 6.3 ms on the other "
    "seven ranks. All other ranks wait for rank 5 in the all-reduce that follows.",
    next_step="Compare the kernel that rank 5 chooses for gate_up with that of rank 4: "
    "teller query --param rank=5",
    ruleset="rules-1",
    first_step=40,
    last_step=77,
    step_count=38,
    start_ns=2_400_000_000,
    end_ns=4_680_000_000,
    cost=Cost(459_800_000, 0.172, 3.68),
    numbers={"ratio": 2.9, "own_excess_ms": 12.1},
    evidence=(
        Evidence(
            "cause", "Span", 9_007_199_254_740_995, "rank5.json:88123", "gate_up took 18.6 ms"
        ),
        Evidence("victim", "Step", 77, "rank0.json:5121", "rank 0 waited 12.0 ms in step 44"),
        Evidence("healthy", "Span", 78, "rank4.json:88121", "gate_up took 6.3 ms on rank 4"),
        Evidence("context", "LogLine", 79, "node-b.log:17", NASTY),
    ),
    against=("The clock of rank 5 is not recorded: a throttled GPU would look the same.",),
    not_checked=("Device counters: none in the recording.",),
    voices={"rules": 0.9, "numeric": 0.97},
)
PAUSE = replace(
    SLOW,
    id=11,
    klass="host_pause",
    case_class="host_pause_single_rank",
    title="Rank 2 stood still for 210 ms in step 95",
    severity="medium",
    confidence=0.81,
    culprit=Culprit("rank", ranks=(2,), hosts=("node-a",)),
    text="No thread of rank 2 ran for 210 ms.",
    next_step="Look for garbage collection on node-a at that time.",
    first_step=95,
    last_step=95,
    step_count=1,
    start_ns=5_700_000_000,
    end_ns=5_910_000_000,
    cost=Cost(210_000_000, 0.031, 1.68),
    evidence=(
        Evidence("cause", "Step", 80, "rank2.json:99", "step 95 of rank 2 has a gap of 210 ms"),
    ),
    against=(),
    not_checked=(),
    voices={"rules": 0.8},
)


@pytest.fixture
def diagnosis() -> Diagnosis:
    return Diagnosis(
        verdict="fault",
        runs=(
            RunSummary(RUN, "night-run", T0, tuple(range(8)), ("node-a", "node-b"), 120, 21_000),
        ),
        findings=(SLOW, PAUSE),
        data_quality=(
            Quality("rank6.json", "byte 4670564", "the file ends inside an event",
                    "record again, or use the 81,200 events before it"),
        ),
        inputs=(
            *(InputSummary(f"rank{r}.json", "kineto", r, 90_000 + r) for r in range(8)),
            InputSummary("notes.txt", "unknown", None, 0, "no input of ours"),
        ),
        notes=("No network counters were recorded.",),
    )  # fmt: skip


@pytest.fixture
def healthy(diagnosis: Diagnosis) -> Diagnosis:
    return replace(diagnosis, verdict="no_fault", findings=(), data_quality=(), notes=())


def _heat_rows(ranks: int = 8, steps: int = 120) -> pa.Table:
    """Give steps of 60 ms, of which 40 to 77 are long since rank 5 is late, and one pause."""
    rng = np.random.default_rng(7)
    rank, step = np.divmod(np.arange(ranks * steps), steps)
    own = rng.normal(48e6, 4e5, ranks * steps)
    late = (step >= 40) & (step <= 77)
    own += np.where(late & (rank == 5), 12.1e6, 0) + np.where((step == 95) & (rank == 2), 210e6, 0)
    dur = 60e6 + np.where(late, 12.1e6, 0) + np.where(step == 95, 210e6, 0)
    dur = dur + rng.normal(0, 3e5, ranks * steps)
    return pa.table({
        "rank": rank,
        "step_index": step,
        "dur_ns": dur.astype("int64"),
        "own_ns": own.astype("int64"),
        "excess_ns": np.maximum(own - 48e6, 0).astype("int64"),
    })  # fmt: skip


def _step_spans() -> pa.Table:
    """Give one step of rank 5: engine ranges and API calls on a thread, kernels on two streams."""
    rows: list[tuple[str, str, str, int | None, int, int, int, int]] = []
    thread, at = "thread 4711", 0
    rows.append(("step[DECODE bs=8]", "engine", thread, None, 0, 0, 72_000_000, 0))
    for layer in range(8):
        slow = layer == 3
        wide = 8_400_000 + 12_100_000 * slow - 1_500_000 * (layer > 3)
        rows.append((f"layers.{layer}", "framework", thread, None, 1, at, at + wide, 0))
        for name, share, own in (("self_attn", 0.35, 0), ("mlp", 0.55, 8_000_000 * slow)):
            begin = at + (0 if name == "self_attn" else round(wide * 0.4))
            end = begin + round(wide * share)
            rows.append((f"layers.{layer}.{name}", "framework", thread, None, 2, begin, end, 0))
            kernel = "gate_up_gemm" if name == "mlp" else "flash_fwd_kernel"
            rows.append(("cudaLaunchKernel", "runtime", thread, None, 3, begin, begin + 300_000, 0))
            rows.append((kernel, "device", "stream 7", 7, 0, begin + 200_000, end - 100_000, own))
        rows.append(("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "comm", "stream 19", 19, 0,
                     at + round(wide * 0.95), at + wide, 0))  # fmt: skip
        at += wide
    names = ("name", "layer", "lane", "stream", "depth", "start_ns", "end_ns", "excess_ns")
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(dict(zip(names, columns, strict=True)))


def _ring_edges(ranks: int = 8, slow: int = 3) -> pa.Table:
    """Give a ring over the ranks whose path `slow` is slow."""
    source = list(range(ranks))
    return pa.table({
        "src_rank": source, "dst_rank": [(r + 1) % ranks for r in source],
        "group_name": ["tp"] * ranks, "op": ["all_reduce"] * ranks, "count": [960] * ranks,
        "size_bytes": [64 << 20 if r % 4 != 3 else 32 << 20 for r in source],
        "pure_p50_ns": [1_900_000 if r == slow else 210_000 + r * 1000 for r in source],
        "pure_p99_ns": [4_100_000 if r == slow else 330_000 for r in source],
        "transport": ["assumed ring"] * ranks,
    })  # fmt: skip


@pytest.fixture
def heat_rows() -> Callable[..., pa.Table]:
    return _heat_rows


@pytest.fixture
def step_spans() -> pa.Table:
    return _step_spans()


@pytest.fixture
def ring_edges() -> Callable[..., pa.Table]:
    return _ring_edges
