"""A small run by hand, as the engine would give it: two hosts with two ranks each, one TP group.

Every step runs `layers` layers, each a product and an all-reduce over all four ranks; steps in
`replayed` run from a CUDA graph. Rank r enters each collective `late_ns[r]` after rank 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from teller.lab.simulator.happened import (
    NEVER,
    OPS,
    CopyKind,
    DeviceKind,
    DeviceSpans,
    Gauges,
    Happened,
    HostKind,
    HostSpans,
    Joins,
    Note,
    Request,
    Steps,
)
from teller.lab.simulator.scene import (
    EngineName,
    Gpu,
    Group,
    Host,
    Load,
    Model,
    Nuisance,
    Place,
    Scene,
)

US: Final = 1_000
MS: Final = 1_000_000
S: Final = 1_000_000_000
STEP_NS: Final = 20 * MS
T0: Final = 1_790_000_000_123_456_789  # 2026-09-21
STREAM: Final = 7
COMM_STREAM: Final = 21
GEMM: Final = (
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>"
    "(cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8::Params)"
)
NORM: Final = "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, int)"
RING: Final = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STEP: Final = "execute_context_{}({})_generation_{}({})"


def scene(engine: EngineName = "vllm", version: str = "0.11.0", **other: Any) -> Scene:
    """Give the scene of the small run."""
    hosts = tuple(
        Host(f"node-{h}", f"10.0.0.{h + 1}", 4000 + h,
             (f"0000:1{h}:00.0", f"0000:9{h}:00.0"),
             (f"GPU-0000000{h}-aaaa-bbbb-cccc-000000000000",
              f"GPU-0000000{h}-aaaa-bbbb-cccc-000000000001"), ("mlx5_0", "mlx5_1"))
        for h in range(2)
    )  # fmt: skip
    places = tuple(Place(r, r // 2, r % 2, 4100 + 10 * r, r, 0, 0, r) for r in range(4))
    ranks = (0, 1, 2, 3)
    settings = {"NCCL_IB_HCA": "mlx5", "tensor_parallel_size": "4"}
    given = {
        "seed": 7, "engine": engine, "engine_version": version, "mode": "piecewise",
        "model": Model("Qwen/Qwen3-8B", 36, 4096, 32, 8, 128, 12288, 151936),
        "gpu": Gpu("NVIDIA H100 80GB HBM3", 989e12, 3.35e12, 450e9, 55e9, 80, 1980, 700),
        "hosts": hosts, "places": places,
        "groups": (Group("0", "world", ranks, 0x54FE282D32A87D85),
                   Group("2", "tp", ranks, 0xA292D1D22BDDF873)),
        "nuisance": Nuisance(1.0, (1.0,) * 4, 1.0, 0.05, 0.1, 1e3, 0.0, 4e5, 1e5),
        "load": Load(4.0, 6.0, 0.5, 4.0, 0.5, 64, 8192, 10_000, 16),
        "t0_epoch_ns": T0, "seconds": 1.0, "settings": settings,
    } | other  # fmt: skip
    return Scene(**given)


@dataclass
class _Rank:
    """What one rank did, row by row."""

    names: dict[str, int]
    host: list[tuple[int, ...]] = field(default_factory=list)
    device: list[tuple[int, ...]] = field(default_factory=list)
    joins: list[tuple[int, ...]] = field(default_factory=list)
    correlation: int = 100

    def name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names))

    def range(self, text: str, kind: HostKind, start: int, end: int, step: int, **more: int) -> int:
        row = {"process": 0, "thread": 0, "correlation": 0, "collective": NEVER, "size": 0} | more
        self.host.append((self.name(text), kind, row["process"], row["thread"], start, end,
                          row["correlation"], step, row["collective"], row["size"]))  # fmt: skip
        return row["correlation"]

    def call(self, text: str, start: int, end: int, step: int, **more: int) -> int:
        self.correlation += 1
        return self.range(text, HostKind.RUNTIME, start, end, step,
                          correlation=self.correlation, **more)  # fmt: skip

    def work(self, text: str, start: int, end: int, launch: int, step: int, **m: int) -> None:
        row = {"kind": DeviceKind.KERNEL, "stream": STREAM, "graph": 0, "node": 0,
               "collective": NEVER, "size": 0, "copy": 0, "pageable": 0} | m  # fmt: skip
        self.device.append((self.name(text), row["kind"], row["stream"], start, end, launch,
                            step, row["graph"], row["node"], row["collective"], row["size"],
                            row["copy"], row["pageable"]))  # fmt: skip


def small(
    steps: int = 6,
    layers: int = 3,
    *,
    replayed: Sequence[int] = (2, 3),
    late_ns: Sequence[int] = (0, 40 * US, 80 * US, 120 * US),
    hang: bool = False,
    notes: Sequence[Note] = (),
    of: Scene | None = None,
) -> Happened:
    """Give a run; with `hang` the last all-reduce never ends, and rank 3 never comes to it."""
    of = of or scene()
    names: dict[str, int] = {}
    ranks = [_Rank(names) for _ in of.places]
    size = 32 * of.model.hidden * 2
    for rank, made in enumerate(ranks):
        for step in range(steps):
            graph = step in replayed
            _step(made, rank, step, layers, graph, max(late_ns), late_ns[rank], size)
    end = (steps + 1) * STEP_NS
    if hang:
        for rank, made in enumerate(ranks):
            _hang(made, rank, end - STEP_NS, steps)
    return Happened(
        of, tuple(names),
        tuple(_host(r.host) for r in ranks), tuple(_device(r.device) for r in ranks),
        tuple(_joins(r.joins) for r in ranks), tuple(_steps(steps, replayed) for _ in ranks),
        _requests(end), tuple(sorted(notes, key=lambda n: n.time_ns)), _gauges(end, len(ranks)),
        end, facts={"channels": 2},
    )  # fmt: skip


def _step(
    made: _Rank, rank: int, step: int, layers: int, graph: bool, last: int, late: int, size: int
) -> None:
    t = (step + 1) * STEP_NS
    if rank == 0:
        made.range("schedule", HostKind.ENGINE, t - 900 * US, t - 500 * US, step, process=1)
    label = STEP.format(0, 0, 32, 32) if step else STEP.format(2, 600, 0, 0)
    made.range(label, HostKind.STEP, t, t + 15 * MS, step)
    made.range("gpu_model_runner: preprocess", HostKind.PHASE, t + 50 * US, t + 400 * US, step)
    copy = made.call("cudaMemcpyAsync", t + 100 * US, t + 112 * US, step, size=4096)
    made.work("Memcpy HtoD (Pinned -> Device)", t + 120 * US, t + 122 * US, copy, step,
              kind=DeviceKind.MEMCPY, copy=CopyKind.H2D, size=4096)  # fmt: skip
    made.range("gpu_model_runner: forward", HostKind.PHASE, t + 500 * US, t + 9 * MS, step)
    launch = made.call("cudaGraphLaunch", t + 510 * US, t + 900 * US, step) if graph else 0
    for layer in range(layers):
        # uneven, or a collective could be taken for the one before
        at = t + 1 * MS + layer * 2 * MS + ((step + 1) * (layer + 2)) ** 2 * 37 % 691 * US
        _layer(made, layer, at, step, launch, last, late, size)
    made.range("pthread_cond_wait", HostKind.OS, t + 1 * MS, t + 9 * MS, step, thread=2)
    made.range("gpu_model_runner: sample", HostKind.PHASE, t + 10 * MS, t + 14 * MS, step)
    made.call("cudaStreamSynchronize", t + 10 * MS + 20 * US, t + 13 * MS, step)


def _layer(
    made: _Rank, layer: int, at: int, step: int, launch: int, last: int, late: int, size: int
) -> None:
    join = len(made.joins)
    joined = {"collective": join, "size": size}
    first = second = launch
    if not launch:
        made.range(f"model.layers.{layer}", HostKind.MODULE, at, at + 300 * US, step)
        made.range("aten::mm", HostKind.OPERATOR, at + 5 * US, at + 30 * US, step)
        first = made.call("cudaLaunchKernel", at + 10 * US, at + 14 * US, step)
        made.range("vllm::all_reduce", HostKind.OPERATOR, at + 40 * US, at + 90 * US, step)
        made.range("ncclAllReduce", HostKind.NCCL, at + 50 * US, at + 80 * US, step, **joined)
        second = made.call("cudaLaunchKernelExC", at + 55 * US, at + 62 * US, step)
    inside = {"graph": 11, "node": 2 * layer} if launch else {}
    made.work(GEMM, at + 20 * US, at + 70 * US, first, step, **inside)
    enter, leave = at + 100 * US + late, at + 160 * US + last
    inside = {"graph": 11, "node": 2 * layer + 1} if launch else {}
    stream = STREAM if launch else COMM_STREAM
    made.work(RING, enter, leave, second, step, stream=stream, **joined, **inside)
    made.joins.append((1, join, OPS.index("all_reduce"), size, size // 2, NEVER, at + 50 * US,
                       enter, leave, step))  # fmt: skip


def _hang(made: _Rank, rank: int, at: int, step: int) -> None:
    made.range(STEP.format(0, 0, 32, 32), HostKind.STEP, at + STEP_NS // 2, NEVER, step)
    if rank == 3:
        return
    join = len(made.joins)
    launch = made.call("cudaLaunchKernelExC", at + 11 * MS, at + 11 * MS + 7 * US, step)
    made.work(RING, at + 12 * MS, NEVER, launch, step, stream=COMM_STREAM, collective=join)
    made.joins.append((1, join, 0, 65536, 32768, NEVER, at + 11 * MS, at + 12 * MS, NEVER, step))


def _column(rows: list[tuple[int, ...]], place: int, kind: Any) -> Any:
    return np.array([row[place] for row in rows], kind)


def _host(rows: list[tuple[int, ...]]) -> HostSpans:
    rows = sorted(rows, key=lambda r: (r[4], -r[5]))
    kinds = (np.int32, np.uint8, np.uint8, np.uint8, np.int64, np.int64, np.int64, np.int32,
             np.int32, np.int64)  # fmt: skip
    return HostSpans(*(_column(rows, i, k) for i, k in enumerate(kinds)))


def _device(rows: list[tuple[int, ...]]) -> DeviceSpans:
    rows = sorted(rows, key=lambda r: r[3])
    kinds = (np.int32, np.uint8, np.int32, np.int64, np.int64, np.int64, np.int32, np.int32,
             np.int64, np.int32, np.int64, np.uint8, np.bool_)  # fmt: skip
    return DeviceSpans(*(_column(rows, i, k) for i, k in enumerate(kinds)))


def _joins(rows: list[tuple[int, ...]]) -> Joins:
    kinds = (np.int32, np.int64, np.int32, np.int64, np.int64, np.int32, np.int64, np.int64,
             np.int64, np.int32)  # fmt: skip
    return Joins(*(_column(rows, i, k) for i, k in enumerate(kinds)))


def _steps(steps: int, replayed: Sequence[int]) -> Steps:
    index = np.arange(steps, dtype=np.int32)
    first = index == 0
    start = (index.astype(np.int64) + 1) * STEP_NS
    return Steps(
        index, np.where(first, 2, 0).astype(np.int32), np.where(first, 0, 32).astype(np.int32),
        np.where(first, 600, 0).astype(np.int32), np.where(first, 0, 32).astype(np.int32),
        6000 + 32 * index.astype(np.int64), start, start + 15 * MS,
        np.isin(index, list(replayed)),
    )  # fmt: skip


def _requests(end: int) -> tuple[Request, ...]:
    asked = Request("cmpl-0001", 0, 1 * MS, 2 * MS, 20 * MS, 35 * MS, 75 * MS, 300, 3, 0, (0, 1, 2))
    other = replace(asked, name="cmpl-0002", arrival_ns=3 * MS, end_ns=NEVER, output_tokens=5)
    return asked, other


def _gauges(end: int, ranks: int) -> Gauges:
    time = np.arange(0, end, 50 * MS, dtype=np.int64)
    flat = np.ones(len(time))
    columns = {"engine 0 running": 32 * flat, "engine 0 waiting": 0 * flat,
               "engine 0 kv_usage": 0.25 * flat, "engine 0 preemptions": 0 * flat}  # fmt: skip
    for rank in range(ranks):
        columns |= {f"gpu {rank} sm_clock_mhz": 1980 * flat, f"gpu {rank} power_w": 500 * flat,
                    f"gpu {rank} temperature_c": 60 * flat}  # fmt: skip
    return Gauges(time, columns)
