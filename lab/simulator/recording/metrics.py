"""Figures over time: scrapes of engines and devices, and what nvidia-smi prints.

Of `Happened.gauges` the columns `gpu <rank> <name>` are used, with the names of `FIGURES`, and
`engine <replica> <name>` with those of `load.KNOWN`; a column that is not there is left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording.lines import local
from teller.lab.simulator.recording.load import load, tokens
from teller.lab.simulator.recording.plan import Recording

# a gauge's name: what DCGM calls it, what nvidia-smi calls it with its unit, and a factor for DCGM
FIGURES: Final = {
    "sm_clock_mhz": ("DCGM_FI_DEV_SM_CLOCK", "clocks.current.sm [MHz]", " MHz"),
    "mem_clock_mhz": ("DCGM_FI_DEV_MEM_CLOCK", "clocks.current.memory [MHz]", " MHz"),
    "power_w": ("DCGM_FI_DEV_POWER_USAGE", "power.draw [W]", " W"),
    "temperature_c": ("DCGM_FI_DEV_GPU_TEMP", "temperature.gpu", ""),
    "utilization_pct": ("DCGM_FI_DEV_GPU_UTIL", "utilization.gpu [%]", " %"),
    "memory_used_mib": ("DCGM_FI_DEV_FB_USED", "memory.used [MiB]", " MiB"),
    "throttle_reasons": ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "clocks_event_reasons.active", ""),
    "pcie_gen": ("DCGM_FI_DEV_PCIE_LINK_GEN", "pcie.link.gen.current", ""),
    "pcie_width": ("DCGM_FI_DEV_PCIE_LINK_WIDTH", "pcie.link.width.current", ""),
    "ecc_uncorrected": (
        "DCGM_FI_DEV_ECC_DBE_VOL", "ecc.errors.uncorrected.volatile.total", "",
    ),
}  # fmt: skip
_DMON: Final = (
    ("pwr", "power_w", "W"), ("gtemp", "temperature_c", "C"), ("sm", "utilization_pct", "%"),
    ("mclk", "mem_clock_mhz", "MHz"), ("pclk", "sm_clock_mhz", "MHz"),
)  # fmt: skip
_COUNTED: Final = ("prompt_tokens", "generation_tokens")


def write_prometheus(happened: Happened, recording: Recording, folder: Path) -> list[Path]:
    """Write what a scraper kept of the engine; give the file."""
    path = folder / "engine-metrics.prom"
    path.write_text("".join(f"{line}\n" for line in _scrapes(happened, recording)))
    return [path]


def _scrapes(happened: Happened, recording: Recording) -> Iterator[str]:
    prefix = {"vllm": "vllm:", "sglang": "sglang:", "trtllm": "trtllm_"}[happened.scene.engine]
    model = f'model_name="{happened.scene.model.name}"'
    for at in happened.gauges.time_ns.tolist():
        stamp = (happened.scene.t0_epoch_ns + recording.clocks[0].one(at)) // 1_000_000
        for replica in range(happened.scene.dp):
            labels = f'{{engine="{replica}",{model}}}'
            for name, value in _of_engine(happened, replica, at).items():
                yield f"{prefix}{name}{labels} {value:g} {stamp}"


def _of_engine(happened: Happened, replica: int, at: int) -> dict[str, float]:
    """Give the figures of an engine at a moment, by the names that it has for them."""
    now, passed = load(happened, replica, at), tokens(happened, replica, 0, at)
    done = sum(0 <= r.end_ns <= at for r in happened.requests if r.replica == replica)
    counted = {"prompt_tokens_total": passed.prompt, "generation_tokens_total": passed.output}
    if happened.scene.engine == "sglang":
        return counted | {"num_running_reqs": now.running, "num_queue_reqs": now.waiting,
                          "token_usage": now.kv_usage,
                          "num_requests_total": done}  # fmt: skip
    if happened.scene.engine == "trtllm":
        return {"kv_cache_utilization": now.kv_usage, "request_success_total": done}
    return counted | {"num_requests_running": now.running, "num_requests_waiting": now.waiting,
                      "kv_cache_usage_perc": now.kv_usage, "request_success_total": done,
                      "num_preemptions_total": now.preemptions}  # fmt: skip


def write_devices(
    happened: Happened, recording: Recording, folder: Path
) -> list[tuple[int, str, Path]]:
    """Write the tables of nvidia-smi and of its monitor; give hosts, kinds and files."""
    found = []
    for number, host in enumerate(happened.scene.hosts):
        if recording.gpu_csv:
            path = folder / f"nvidia-smi-{host.name}.csv"
            path.write_text("".join(f"{line}\n" for line in _csv(happened, recording, number)))
            found.append((number, "gpu_csv", path))
        if recording.gpu_dmon:
            path = folder / f"dmon-{host.name}.txt"
            path.write_text("".join(f"{line}\n" for line in _dmon(happened, recording, number)))
            found.append((number, "gpu_dmon", path))
    return found


def _known(happened: Happened, ranks: list[int]) -> list[str]:
    return [name for name in FIGURES
            if all(f"gpu {r} {name}" in happened.gauges.columns for r in ranks)]  # fmt: skip


def _ranks(happened: Happened, host: int) -> list[int]:
    return [p.rank for p in happened.scene.places if p.host == host]


def _value(happened: Happened, rank: int, name: str, row: int) -> float:
    return float(np.round(happened.gauges.columns[f"gpu {rank} {name}"][row], 2))


def _csv(happened: Happened, recording: Recording, host: int) -> Iterator[str]:
    ranks, about = _ranks(happened, host), happened.scene.hosts[host]
    known = _known(happened, ranks)
    titles = [FIGURES[name][1] for name in known]
    yield ", ".join(["timestamp", "index", "name", "uuid", "pci.bus_id", *titles])
    for row, at in enumerate(happened.gauges.time_ns.tolist()):
        when = local(happened, recording, host, at)
        stamp = f"{when:%Y/%m/%d %H:%M:%S}.{when.microsecond // 1000:03d}"
        for rank in ranks:
            device = happened.scene.places[rank].device
            cells = [_cell(name, _value(happened, rank, name, row)) for name in known]
            yield ", ".join([stamp, str(device), happened.scene.gpu.name, about.uuid[device],
                             f"0000{about.bus[device].upper()}", *cells])  # fmt: skip


def _cell(name: str, value: float) -> str:
    if name == "throttle_reasons":
        return f"0x{int(value):016X}"
    return f"{value:.2f} W" if name == "power_w" else f"{value:g}{FIGURES[name][2]}"


def _dmon(happened: Happened, recording: Recording, host: int) -> Iterator[str]:
    ranks = _ranks(happened, host)
    known = _known(happened, ranks)
    shown = [(word, name, unit) for word, name, unit in _DMON if name in known]
    yield "#Date       Time        gpu" + "".join(f"{word:>8}" for word, _, _ in shown)
    yield "#YYYYMMDD   HH:MM:SS    Idx" + "".join(f"{unit:>8}" for _, _, unit in shown)
    for row, at in enumerate(happened.gauges.time_ns.tolist()):
        when = local(happened, recording, host, at)
        for rank in ranks:
            cells = [f"{_value(happened, rank, name, row):>8.0f}" for _, name, _ in shown]
            device = happened.scene.places[rank].device
            yield f" {when:%Y%m%d}   {when:%H:%M:%S}   {device:>4}" + "".join(cells)
