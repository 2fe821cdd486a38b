"""Steps of a small decoder on a real device, healthy and disturbed, beside what is simulated.

Each disturbance acts the same whatever the device's clocks do. `record` writes a run folder with
its truth beside it; `compared` holds the spans of two runs against each other. From a shell:

    python -m teller.lab.real_steps record --out real/ --device cuda --steps 200
    teller export --table Span --format parquet -o real.parquet      # after teller ingest real/
    python -m teller.lab.real_steps compare real.parquet simulated.parquet
"""

import argparse
import os
import platform
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.errors import BadUsage
from teller.lab import truth
from teller.lab.manifest import EngineEntry, FileEntry, HostEntry, Manifest, RankEntry
from teller.lab.manifest import write_manifest as write

if TYPE_CHECKING:
    import torch

BATCH: Final = 8
WARM: Final = 10


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What is done to steps, the class that it is, and whether it needs a device of its own."""

    klass: str  # of graph/classes.toml, "" for nothing
    needs_cuda: bool


DISTURBANCES: Final[Mapping[str, Disturbance]] = {
    "healthy": Disturbance("", needs_cuda=False),
    "cpu_contention": Disturbance("host_contention", needs_cuda=False),
    "allocation": Disturbance("device_allocation", needs_cuda=True),
    "extra_sync": Disturbance("hidden_sync", needs_cuda=True),
    "pageable_copy": Disturbance("blocking_copy", needs_cuda=True),
    "graph_off": Disturbance("graph_fallback", needs_cuda=True),
    "colocated_kernel": Disturbance("gpu_shared", needs_cuda=True),
}

Step = Callable[[], Any]


def record(name: str, out: Path, device: str, steps: int, *, hidden: int = 512) -> Path:
    """Record steps under one disturbance, and give the run folder.

    Raises `BadUsage` for a disturbance that the device cannot have.
    """
    import torch

    asked = DISTURBANCES[name]
    if asked.needs_cuda and device == "cpu":
        raise BadUsage(f"{name} needs a CUDA device: run it with --device cuda on one")
    if device == "cuda" and not torch.cuda.is_available():
        raise BadUsage("there is no CUDA device here; --device cpu records the host's part")
    torch.manual_seed(0)
    step = _step(torch.device(device), hidden, graph=device == "cuda" and name != "graph_off")
    disturb = _disturbance(name, torch.device(device), step)
    folder = out / secrets.token_hex(6)  # tells nothing of what is inside
    folder.mkdir(parents=True)
    with torch.inference_mode(), _contended(name):
        for _ in range(WARM):
            disturb()
        activities = [torch.profiler.ProfilerActivity.CPU]
        activities += [torch.profiler.ProfilerActivity.CUDA] if device == "cuda" else []
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(steps):
                with torch.profiler.record_function(
                    f"execute_context_0(0)_generation_{BATCH}({BATCH})"
                ):
                    disturb()
    profiler.export_chrome_trace(str(folder / "rank0.json"))
    _describe(folder, name, asked, steps)
    return folder


def _step(device: "torch.device", hidden: int, *, graph: bool) -> Step:
    """Give one decode step: four layers, replayed as a CUDA graph where `graph` says so."""
    import torch
    from torch import nn

    layers = [
        (nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 4 * hidden),
         nn.Linear(4 * hidden, hidden), nn.LayerNorm(hidden))
        for _ in range(4)
    ]  # fmt: skip
    for one in layers:
        for module in one:
            module.to(device)
    token = torch.randn(BATCH, hidden, device=device)
    keys = torch.randn(BATCH, 8, 256, hidden // 8, device=device)

    def run() -> "torch.Tensor":
        x = token
        for qkv, out, up, down, norm in layers:
            query = qkv(norm(x))[:, :hidden].view(BATCH, 8, 1, -1)
            seen = nn.functional.scaled_dot_product_attention(query, keys, keys)
            x = x + out(seen.reshape(BATCH, hidden))
            x = x + down(nn.functional.silu(up(norm(x))))
        return x

    if not graph:
        return run
    with torch.inference_mode():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run()
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            run()
    replay: Step = captured.replay
    return replay


def _disturbance(name: str, device: "torch.device", step: Step) -> Step:
    """Give the step with what disturbs it; sampling reads a token back, as serving does."""
    import torch

    small = torch.zeros(BATCH, device=device)
    extra: Step = lambda: None  # noqa: E731 - one line each, beside each other
    if name == "extra_sync":
        extra = lambda: [small.sum().item() for _ in range(8)]  # noqa: E731 - the same
    elif name == "pageable_copy":
        host = torch.zeros(4 << 20)
        extra = lambda: host.to(device)  # noqa: E731 - the same
    elif name == "allocation":

        def extra() -> None:
            torch.empty(64 << 20, dtype=torch.uint8, device=device)
            torch.cuda.empty_cache()
    elif name == "colocated_kernel":
        other, large = torch.cuda.Stream(), torch.randn(2048, 2048, device=device)

        def extra() -> None:
            with torch.cuda.stream(other):
                large @ large

    def disturbed() -> None:
        extra()
        step()
        small.argmax().item()

    return disturbed


@contextmanager
def _contended(name: str) -> Iterator[None]:
    """Keep every processor busy with others while it lasts, where that is the disturbance."""
    if name != "cpu_contention":
        with nullcontext():
            yield
        return
    busy = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(busy) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for one in others:
            one.kill()
            one.wait()


def _describe(folder: Path, name: str, asked: Disturbance, steps: int) -> None:
    import torch

    host = platform.node()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    write(Manifest(
        run=folder.name, created=now, tool="teller.lab.real_steps", hosts=(HostEntry(host),),
        ranks=(RankEntry(rank=0, host=host, pid=os.getpid()),),
        engine=EngineEntry("torch", str(torch.__version__)),
        files=(FileEntry(path="rank0.json", kind="kineto", rank=0),),
    ), folder)  # fmt: skip
    episode = truth.Episode(
        class_=asked.klass, fault=name, culprit=truth.Culprit(kind="rank", ranks=(0,)),
        severity=truth.Severity(1, "as it is"), intended=truth.Window(0, 0),
    )  # fmt: skip
    truth.write_truth(truth.Truth(
        run=folder.name, generator={"tool": "teller.lab.real_steps", "steps": steps}, root_seed=0,
        episodes=(episode,) if asked.klass else (),
    ), folder)  # fmt: skip


def compared(real: pa.Table, simulated: pa.Table) -> pa.Table:
    """Give a row for each layer and family of spans: how many a step, how long, how far apart.

    Both tables have `step_index`, `layer`, `family` and `self_ns`, as `teller export --table Span`
    gives them. `distance` is that of Kolmogorov and Smirnov between the own times: 0 alike, 1 not.
    """
    keys = ("layer", "family")
    sides = [_by_kind(t, keys) for t in (real, simulated)]
    rows = []
    for kind in sorted(set(sides[0]) | set(sides[1])):
        (some, own), (other, theirs) = (side.get(kind, (0.0, np.empty(0))) for side in sides)
        both = len(own) and len(theirs)
        rows.append({
            "layer": kind[0], "family": kind[1], "real_per_step": some, "simulated_per_step": other,
            "real_own_ns": float(np.median(own)) if len(own) else None,
            "simulated_own_ns": float(np.median(theirs)) if len(theirs) else None,
            "distance": _distance(own, theirs) if both else None,
        })  # fmt: skip
    return pa.Table.from_pylist(rows, _COMPARED)


_COMPARED: Final = pa.schema([
    ("layer", pa.string()), ("family", pa.string()), ("real_per_step", pa.float64()),
    ("simulated_per_step", pa.float64()), ("real_own_ns", pa.float64()),
    ("simulated_own_ns", pa.float64()), ("distance", pa.float64()),
])  # fmt: skip

Times = npt.NDArray[np.float64]


def _by_kind(spans: pa.Table, keys: tuple[str, ...]) -> dict[tuple[str, str], tuple[float, Times]]:
    inside = spans.filter(pc.is_valid(spans["step_index"]))
    steps = max(pc.count_distinct(inside["step_index"]).as_py(), 1)
    grouped = inside.group_by(list(keys)).aggregate([("self_ns", "list")])
    return {
        (row["layer"] or "", row["family"] or ""): (
            len(row["self_ns_list"]) / steps, np.array(row["self_ns_list"], np.float64),
        )
        for row in grouped.to_pylist()
    }  # fmt: skip


def _distance(one: Times, other: Times) -> float:
    at = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(side), at, "right") / len(side) for side in (one, other)]
    return float(np.abs(below[0] - below[1]).max())


def main() -> None:
    """Record or compare, as the command line says."""
    said = argparse.ArgumentParser(description=__doc__)
    ways = said.add_subparsers(dest="way", required=True)
    recording = ways.add_parser("record")
    recording.add_argument("--out", type=Path, required=True)
    recording.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    recording.add_argument("--steps", type=int, default=200)
    recording.add_argument("--only", choices=tuple(DISTURBANCES))
    comparing = ways.add_parser("compare")
    comparing.add_argument("real", type=Path)
    comparing.add_argument("simulated", type=Path)
    told = said.parse_args()
    if told.way == "compare":
        table = compared(pq.read_table(told.real), pq.read_table(told.simulated))
        sys.stdout.writelines(f"{row}\n" for row in table.to_pylist())
        return
    for name, one in DISTURBANCES.items():
        if told.only in (None, name) and not (one.needs_cuda and told.device == "cpu"):
            sys.stdout.write(f"{name} {record(name, told.out, told.device, told.steps)}\n")


if __name__ == "__main__":
    main()
