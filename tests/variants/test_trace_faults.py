"""Faults that a capture of each rank shows, and what looks like them; traces from a small model.

Each rank has a host that launches and a device that works in order; an all-reduce ends on all
ranks together. What goes wrong is a cause there, so that its effects come of themselves.
"""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

HOSTS = ("node-a", "node-b", "gpu-17", "ip-10-0-3-4", "dgx03", "infer-7f9c-0")
GEMMS = (
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute",
)
ATTENTION = ("flash_fwd_splitkv_kernel", "flashinfer::BatchDecodeWithPagedKVCacheKernel")
NORM, ACT, MOE = "vllm::fused_add_rms_norm_kernel", "vllm::act_and_mul_kernel", "fused_moe_kernel"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LAUNCH_US, PURE_US = 4.0, 24.0


@dataclass
class Rank:
    """One process: when its host and its device are free, and what they did."""

    rank: int
    host: str
    device: int
    now: float = 0.0
    free: float = 0.0
    number: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def call(self, name: str, dur: float, **args: Any) -> None:
        """Run a call of the host."""
        self.span("cuda_runtime", name, self.now, dur, 100, **args)
        self.now += dur + 1.5

    def span(self, cat: str, name: str, at: float, dur: float, tid: int, **args: Any) -> None:
        """Write one event."""
        pid = self.device if cat in ("kernel", "gpu_memcpy") else 4000 + self.rank
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": round(at, 3),
             "dur": round(dur, 3), "args": args}
        )  # fmt: skip

    def arrive(self, late: float = 0.0, call: str = "cudaLaunchKernel", dur: float = 0.0) -> float:
        """Launch something and give when it can begin on the device."""
        self.number += 1
        begin = max(self.now + LAUNCH_US + late, self.free)
        self.call(call, dur or LAUNCH_US, correlation=self.number)
        return begin

    def work(self, name: str, begin: float, dur: float, cat: str = "kernel", **args: Any) -> None:
        """Run what was launched last."""
        args |= {"device": self.device, "stream": 7, "correlation": self.number}
        self.span(cat, name, begin, dur, 7, **args)
        self.free = begin + dur

    def wait(self, name: str = "cudaStreamSynchronize") -> None:
        """Wait for the device."""
        self.call(name, max(self.free - self.now, 0) + 3)


@dataclass
class Service:
    """Ranks that run the same steps, and what is wrong with one of them or all."""

    seed: int
    fault: str

    def __post_init__(self) -> None:
        self.random = random = Random(f"{self.fault} {self.seed}")
        self.kind = self.fault.partition(" ")[0]
        self.size = random.choice((2, 4, 8))
        self.layers, self.steps = random.choice((6, 10)), random.choice((12, 20))
        names = random.sample(HOSTS, 2)
        per_host = self.size if random.random() < 0.4 else max(self.size // 2, 1)
        self.ranks = [
            Rank(r, names[r // per_host], r % per_host, random.uniform(0, 50))
            for r in range(self.size)
        ]
        self.struck = random.randrange(self.size)
        self.onset = random.choice((0, 0, 4))
        self.gemm, self.attention = random.choice(GEMMS), random.choice(ATTENTION)
        self.factor = random.uniform(1.25, 2.0)
        self.scale = random.uniform(0.7, 2.0)
        self.seq = 0
        for step in range(self.steps):
            self.step(step)

    def hit(self, rank: Rank, step: int) -> bool:
        """Tell whether the fault acts on this rank in this step."""
        everywhere = self.fault.endswith("everywhere")
        return step >= self.onset and (everywhere or rank.rank == self.struck)

    def step(self, step: int) -> None:
        """Run one step on all ranks."""
        begun = [rank.now for rank in self.ranks]
        self.skew = self.random.uniform(1.4, 3.0)  # of the experts' tokens, in this step
        for layer in range(self.layers):
            for rank in self.ranks:
                self.layer(rank, step, layer)
            self.meet()
            if self.kind in ("expert_imbalance", "moe_kernel"):
                self.experts(step)
        for rank, at in zip(self.ranks, begun, strict=True):
            rank.arrive(call="cudaMemcpyAsync")
            rank.work("Memcpy DtoH (Device -> Pinned)", max(rank.now, rank.free), 2, "gpu_memcpy")
            rank.wait("cudaEventSynchronize")
            requests = 32 * (3 if self.kind == "batch_imbalance" and self.hit(rank, step) else 1)
            name = f"execute_context_0(0)_generation_{requests}({requests})"
            rank.span("user_annotation", name, at, rank.now - at, 100)
            rank.now += self.random.uniform(60, 70)

    def layer(self, rank: Rank, step: int, layer: int) -> None:
        """Launch one layer, with what goes wrong there."""
        hit = self.hit(rank, step)
        slow = self.factor if hit and self.kind in ("slow_rank", "batch_imbalance") else 1.0
        if step < 1 and self.fault == "warm_up" and layer < 3:
            rank.call("cudaMalloc", 300)
        for name, usual in (
            (NORM, 6), (self.gemm, 40), (self.attention, 55), (self.gemm, 35), (NORM, 6),
            (self.gemm, 70), (ACT, 9), (self.gemm, 45),
        ):  # fmt: skip
            dur = usual * self.scale * slow * self.random.uniform(0.98, 1.02)
            if hit and self.kind == "gpu_shared":  # the other process comes and goes
                dur *= self.random.choice((1.0, 1.3, 2.0, 2.5))
            rank.work(name, rank.arrive(), dur)
            if name == ACT and hit and layer % 3 == 1:
                self.disturb(rank)

    def disturb(self, rank: Rank) -> None:
        """Do in the middle of a layer what stalls the device, or what only looks like it."""
        kind = self.kind
        if kind == "hidden_sync":
            rank.arrive(call="cudaMemcpyAsync")
            rank.work("Memcpy DtoH (Device -> Pinned)", max(rank.now, rank.free), 2, "gpu_memcpy")
            rank.wait()
            rank.now += self.random.uniform(120, 200)  # Python looks at the value
        elif kind == "item":
            begin = max(rank.now, rank.free)
            rank.arrive(call="cudaMemcpyAsync", dur=begin + 5 - rank.now)
            rank.work("Memcpy DtoH (Device -> Pageable)", begin, 2, "gpu_memcpy")
            rank.call("cudaStreamSynchronize", 2)
            rank.now += self.random.uniform(120, 200)
        elif kind == "device_allocation":
            rank.call("cudaMalloc", max(rank.free - rank.now, 0) + self.random.uniform(200, 400))
        elif kind == "blocking_copy":
            begin, dur = max(rank.now, rank.free), self.random.uniform(150, 300)
            rank.arrive(call="cudaMemcpyAsync", dur=begin + dur + 4 - rank.now)
            rank.work("Memcpy HtoD (Pageable -> Device)", begin, dur, "gpu_memcpy")
            rank.now += self.random.uniform(100, 150)
        elif kind == "pinned":  # copies beside the launches cost nothing
            rank.arrive(call="cudaMemcpyAsync")
            rank.work("Memcpy HtoD (Pinned -> Device)", max(rank.now, rank.free), 5, "gpu_memcpy")

    def experts(self, step: int) -> None:
        """Send tokens to their experts and back; a hot expert has more in some steps."""
        self.meet("all_to_allv", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
        for rank in self.ranks:
            more = self.skew if self.kind == "expert_imbalance" else self.factor
            dur = 120 * self.scale * (more if self.hit(rank, step) else 1.0)
            rank.work(MOE, rank.arrive(), dur * self.random.uniform(0.98, 1.02))
        self.meet("all_to_allv", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")

    def meet(self, op: str = "allreduce", kernel: str = NCCL) -> None:
        """Let all ranks meet."""
        begins = [rank.arrive() for rank in self.ranks]
        end = max(begins) + PURE_US
        self.seq += 1
        told: dict[str, Any] = {
            "Collective name": op, "In msg nelems": 65536, "dtype": "BFloat16",
            "Group size": self.size, "Process Group Name": "0", "Seq": self.seq,
            "Process Group Ranks": str(list(range(self.size))),
        }  # fmt: skip
        for rank, begin in zip(self.ranks, begins, strict=True):
            rank.work(kernel, begin, end - begin + self.random.uniform(0, 0.5), **told)

    def write(self, folder: Path) -> None:
        """Write a trace a rank."""
        folder.mkdir()
        order = list(self.ranks)
        self.random.shuffle(order)
        for rank in order:
            text = json.dumps(
                {"schemaVersion": 1, "baseTimeNanoseconds": 1772000000000000000,
                 "distributedInfo": {"backend": "nccl", "rank": rank.rank,
                                     "world_size": self.size},
                 "traceEvents": rank.events}
            )  # fmt: skip
            name = f"{rank.host}_{self.place(rank)}_rank{rank.rank}.pt.trace.json"
            if self.random.random() < 0.2:
                (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
            else:
                (folder / name).write_text(text)
        if self.kind == "slow_rank" and self.random.random() < 0.6:
            self.devices(folder)
        if self.kind == "gpu_shared":
            self.processes(folder)

    def place(self, rank: Rank) -> str:
        """Give a rank's coordinates as vLLM writes them."""
        return f"dp0_pp0_tp{rank.rank}_dcp0_ep0"

    def devices(self, folder: Path) -> None:
        """Write what the devices say beside it: clocks alike, the slow one draws less."""
        lines = ["host,index,timestamp,clocks.sm [MHz],power.draw [W],clocks_event_reasons.active"]
        for second in range(20, 24):
            for rank in self.ranks:
                low = rank.rank == self.struck and "everywhere" not in self.fault
                watts = self.random.uniform(60, 62) if low else self.random.uniform(91, 94)
                lines.append(
                    f"{rank.host},{rank.device},2026/02/25 06:13:{second}.000,2411 MHz,"
                    f"{watts:.1f} W,0x0000000000000000"
                )
        (folder / "clocks.csv").write_text("\n".join(lines) + "\n")

    def processes(self, folder: Path) -> None:
        """Write what nvidia-smi pmon prints on each host."""
        for host in {rank.host for rank in self.ranks}:
            lines = ["# gpu         pid   type     sm    mem    enc    dec    command"]
            for rank in self.ranks:
                own = f"{rank.device:5d} {4000 + rank.rank:11d}     C   97   40   -   -   python3"
                lines += [own] if rank.host == host else []
                if rank.host == host and rank.rank == self.struck:
                    lines.append(
                        f"{rank.device:5d}       91234     C   35   20   -   -   train.bin"
                    )
            (folder / f"{host}.pmon.txt").write_text("\n".join(lines) + "\n")


class Pipeline(Service):
    """Ranks that are stages: each computes its layers and sends what comes out to the next."""

    def place(self, rank: Rank) -> str:
        """Give the stage."""
        return f"dp0_pp{rank.rank}_tp0_dcp0_ep0"

    def step(self, step: int) -> None:
        """Run one step, stage after stage."""
        begun = [rank.now for rank in self.ranks]
        for rank in self.ranks:
            more = 4 if self.kind == "pipeline_imbalance" and rank.rank == self.struck else 0
            for layer in range(self.layers + more):
                self.layer(rank, step, layer)
            if rank.rank + 1 < self.size:
                self.send(rank, self.ranks[rank.rank + 1])
        for rank, at in zip(self.ranks, begun, strict=True):
            rank.wait("cudaEventSynchronize")
            rank.span("user_annotation", "execute_context_0(0)_generation_32(32)", at,
                      rank.now - at, 100)  # fmt: skip
            rank.now += self.random.uniform(60, 70)

    def send(self, one: Rank, other: Rank) -> None:
        """Hand the activations on: both take part, the other has waited since it was free."""
        self.seq += 1
        begins = {rank.rank: rank.arrive() for rank in (one, other)}
        end = max(begins.values()) + PURE_US
        for rank, op in ((one, "send"), (other, "recv")):
            told = {"Collective name": op, "In msg nelems": 65536, "dtype": "BFloat16",
                    "Group size": 2, "Process Group Name": "pp", "Seq": self.seq,
                    "Process Group Ranks": str([one.rank, other.rank])}  # fmt: skip
            begin = begins[rank.rank]
            rank.work("ncclDevKernel_SendRecv", begin, end - begin, "kernel", **told)


SLOW = [f"slow_rank {n}" for n in range(13)]
STALLS = [
    f"{kind} {where}"
    for kind in ("hidden_sync", "item", "device_allocation", "blocking_copy")
    for where in ("one", "everywhere")
]
BENIGN = ["healthy", "pinned everywhere", "warm_up", "slow_rank everywhere", "pinned one"]


@pytest.mark.parametrize("fault", SLOW)
def test_a_slow_device(fault: str, tmp_path: Path, right: Callable[..., dict[str, Any]]) -> None:
    service = Service(int(fault.split()[1]), "slow_rank")
    service.write(tmp_path / "run")
    slow, hosts = service.ranks[service.struck], {rank.host for rank in service.ranks}
    told = len(hosts) == 2 and service.size >= 4
    # a trace does not name its host: names of files do where they tell several apart
    culprit = {"ranks": [slow.rank]} | ({"devices": [f"{slow.host}:{slow.device}"]} if told else {})
    said = right(tmp_path / "run", "slow_rank", culprit)
    if told and (tmp_path / "run" / "clocks.csv").exists():
        shown = [e["text"] for e in said["findings"][0]["evidence"] if "clocks" in e["source"]]
        assert any(" W " in text for text in shown), shown


def test_a_device_that_others_use(tmp_path: Path, right: Callable[..., dict[str, Any]]) -> None:
    seed = next(s for s in range(99) if _of_two_hosts(s))
    service = Service(seed, "gpu_shared")
    service.write(tmp_path / "run")
    slow = service.ranks[service.struck]
    right(tmp_path / "run", "gpu_shared", {"devices": [f"{slow.host}:{slow.device}"]})


def _of_two_hosts(seed: int) -> bool:
    service = Service(seed, "gpu_shared")
    return service.size >= 4 and len({rank.host for rank in service.ranks}) == 2


@pytest.mark.parametrize("fault", STALLS)
def test_calls_that_leave_the_device_idle(
    fault: str, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    service = Service(0, fault)
    service.write(tmp_path / "run")
    klass = fault.split()[0].replace("item", "hidden_sync")
    culprit = {} if fault.endswith("everywhere") else {"ranks": [service.struck]}
    right(tmp_path / "run", klass, culprit)


LOADS = {
    "expert_imbalance one": "expert_imbalance",
    "moe_kernel one": "slow_operator",
    "batch_imbalance one": "batch_imbalance",
}


@pytest.mark.parametrize("fault", LOADS)
@pytest.mark.parametrize("seed", range(3))
def test_ranks_that_get_more_to_do(
    seed: int, fault: str, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    service = Service(seed, fault)
    service.write(tmp_path / "run")
    right(tmp_path / "run", LOADS[fault], {"ranks": [service.struck]})


@pytest.mark.parametrize("seed", range(3))
def test_a_stage_that_has_more_layers(
    seed: int, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    service = Pipeline(seed, "pipeline_imbalance")
    service.write(tmp_path / "run")
    right(tmp_path / "run", "pipeline_imbalance", {"ranks": [service.struck]})


@pytest.mark.parametrize("fault", ["slow_rank", "healthy"])
@pytest.mark.parametrize("seed", range(2))
def test_a_stage_without_more_layers_is_not_uneven(
    seed: int, fault: str, tmp_path: Path, answer: Callable[[Path], dict[str, Any]]
) -> None:
    Pipeline(seed, fault).write(tmp_path / "run")
    said = answer(tmp_path / "run")
    assert "pipeline_imbalance" not in {f["class"] for f in said["findings"]}


@pytest.mark.parametrize("fault", BENIGN)
@pytest.mark.parametrize("seed", range(2))
def test_what_costs_nothing_is_no_fault(
    seed: int, fault: str, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    service = Service(seed, fault)
    service.write(tmp_path / "run")
    right(tmp_path / "run", "")
