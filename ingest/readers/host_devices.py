"""Devices of a host: how they are joined (`nvidia-smi topo -m`), and their state (`-q`)."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from teller.ingest.readers.gpu_csv import REASONS
from teller.ingest.readers.side_lines import Block, found
from teller.ingest.readers.side_tables import Unread, joined, samples

TOPO: Final = r"^\s+GPU0\s+.*(?:CPU Affinity|GPU1)|^GPU0\s+X\s"
QUERY: Final = r"^=+NVSMI LOG=+|^GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s*$"

_DEVICE: Final = re.compile(r"(?:GPU|NIC)\d{1,4}|mlx\d_\w+|bnxt_re\w+|irdma\w+|rocep\w+|ibp\w+")
_MIB: Final = 1048576.0
# fmt: off
# the path of a figure in the report, its sample, what to multiply by, and the sample's text
_FIGURES: Final = (
    (r"Clocks/SM", "gpu.sm_clock_mhz", 1.0, ""),
    (r"Clocks/Memory", "gpu.mem_clock_mhz", 1.0, ""),
    (r"Max Clocks/SM", "gpu.sm_clock_max_mhz", 1.0, ""),
    (r"(?:GPU )?Power Readings/(?:Instantaneous |Average )?Power Draw", "gpu.power_w", 1.0, ""),
    (r"(?:GPU )?Power Readings/(?:Current |Enforced )?Power Limit", "gpu.power_limit_w", 1.0, ""),
    (r"Temperature/GPU Current Temp", "gpu.temperature_c", 1.0, ""),
    (r"Utilization/(?:Gpu|GPU)", "gpu.utilisation_ratio", 0.01, ""),
    (r"FB Memory Usage/Used", "gpu.memory_used_bytes", _MIB, ""),
    (r"PCI/GPU Link Info/PCIe Generation/(?:Device )?Current", "gpu.pcie_gen", 1.0, ""),
    (r"PCI/GPU Link Info/PCIe Generation/Max", "gpu.pcie_gen_max", 1.0, ""),
    (r"PCI/GPU Link Info/Link Width/Current", "gpu.pcie_width", 1.0, ""),
    (r"PCI/GPU Link Info/Link Width/Max", "gpu.pcie_width_max", 1.0, ""),
    (r"ECC Errors/Volatile/(?:SRAM |DRAM )?Correctable", "gpu.ecc_errors", 1.0, "corrected"),
    (r"ECC Errors/Volatile/(?:SRAM |DRAM )?Uncorrectable\w*", "gpu.ecc_errors", 1.0, "uncorrected"),
    (r"Remapped Rows/Correctable Error", "gpu.remapped_rows", 1.0, "corrected"),
    (r"Remapped Rows/Uncorrectable Error", "gpu.remapped_rows", 1.0, "uncorrected"),
)
# fmt: on
_REASON: Final = re.compile(r"Clocks (?:Throttle|Event) Reasons/(?:HW Slowdown/)?([\w ]+)")
Figures = dict[tuple[int, str, str], tuple[float, int]]


def topology(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give how each pair of devices is joined, and the CPUs and the node near each."""
    rows = [
        (line, [cell.strip() for cell in re.split(r"\t+|\s{2,}", text.strip())])
        for line, text in zip(*found(
            block, r"^\s*(?P<row>(?:GPU|NIC|mlx|bnxt|irdma|roce|ib)\w+\s.*)$"
        ).to_pydict().values(), strict=True)
    ]  # fmt: skip
    names = dict(zip(*(found(block, r"^\s*(?P<short>NIC\d+):\s*(?P<name>\S+)\s*$")[c].to_pylist()
                       for c in ("short", "name")), strict=True))  # fmt: skip
    head = next((cells for _, cells in rows if cells[0] == "GPU0" and "X" not in cells), None)
    if head is None:
        return
    body = [(line, cells) for line, cells in rows if "X" in cells and _DEVICE.fullmatch(cells[0])]
    devices = [word for word in head if _DEVICE.fullmatch(word)]
    for at, (line, cells) in enumerate(body):
        if len(cells) <= len(devices):
            unread.add([line])
            continue
        for other, path in zip(devices[at + 1 :], cells[at + 2 :], strict=False):
            a, b = names.get(cells[0], cells[0]), names.get(other, other)
            yield samples("host.topology", 1, text=f"{a} {b} {path}", line=line,
                          device_index=_index(cells[0]))  # fmt: skip
        rest = dict(zip(head[len(devices) :], cells[len(devices) + 1 :], strict=False))
        yield from _near(rest, cells[0], line)


def _near(rest: dict[str, str], device: str, line: int) -> Iterator[pa.Table]:
    index = _index(device)
    cpus, node = rest.get("CPU Affinity", ""), rest.get("NUMA Affinity", "")
    if index is not None and re.fullmatch(r"[\d,-]+", cpus):
        yield samples("host.affinity", 1, text=cpus, line=line, device_index=index)
    if index is not None and re.fullmatch(r"\d{1,4}", node):
        yield samples("host.numa_node", 1, value=float(node), line=line, device_index=index)


def query(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give clocks, power, temperature, errors and links of each device of a full report."""
    told = found(
        block,
        r"^(?P<gap>\s*)(?P<key>[A-Za-z][^:]*?|GPU [0-9A-Fa-f:.]+)\s*(?::\s(?P<value>.*?))?\s*$",
    )
    figures: Figures = {}
    reasons: dict[int, tuple[float, int]] = {}
    path: list[tuple[int, str]] = []
    device = -1
    for line, gap, key, value in zip(*told.to_pydict().values(), strict=True):
        if re.match(r"GPU [0-9A-Fa-f]{8}:", key):
            device, path = device + 1, []
            continue
        path = [step for step in path if step[0] < len(gap)] + [(len(gap), key)]
        where = "/".join(name for _, name in path)
        reason = _REASON.fullmatch(where)
        if reason and value in ("Active", "Not Active"):
            bit = REASONS.get(reason[1].lower().replace(" ", "_"), 0) if value == "Active" else 0
            mask, first = reasons.get(device, (0.0, line))
            reasons[device] = (mask + bit, first)
        else:
            _add(figures, device, where, value, line)
    yield _table([(i, "gpu.throttle_reasons", "", *told) for i, told in reasons.items()])
    yield _table([(*key, *told) for key, told in figures.items()])


def _add(figures: Figures, device: int, path: str, value: str, line: int) -> None:
    """Note a figure; ECC errors of several memories are one sum."""
    amount = re.match(r"\d+(?:\.\d+)?", value)
    for pattern, sample, factor, text in _FIGURES:
        if amount and device >= 0 and re.fullmatch(pattern, path):
            before, first = figures.get((device, sample, text), (0.0, line))
            more = before if sample == "gpu.ecc_errors" else 0.0
            figures[device, sample, text] = (more + float(amount[0]) * factor, first)
            return


def _table(rows: Sequence[tuple[int, str, str, float, int]]) -> pa.Table:
    parts = [
        samples(name, 1, value=value, text=text, line=line, device_index=device)
        for device, name, text, value, line in rows
    ]
    return joined(samples("", 0).schema, parts)


def _index(device: str) -> int | None:
    return int(device[3:]) if device.startswith("GPU") else None
