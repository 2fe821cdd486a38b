"""The topology that NCCL writes to NCCL_TOPO_DUMP_FILE: how devices of a host are joined."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pyarrow as pa

from teller.ingest.readers.host_cpus import of_mask
from teller.ingest.readers.side_lines import Lines, tame
from teller.ingest.readers.side_tables import Unread, joined, reading, samples
from teller.ingest.records import SAMPLES, Records
from teller.ingest.source import Facts, Reading, Remark

FORMAT: Final = "nccl_topology"

LARGEST: Final = 1 << 23
MOST_DEVICES: Final = 256  # of one host; pairs grow with the square
_GENERATION: Final = {"2.5": 1.0, "5": 2.0, "8": 3.0, "16": 4.0, "32": 5.0, "64": 6.0}
_MBIT: Final = 1e6 / 8


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins as a topology of NCCL."""
    return re.match(r"\s*(?:<\?xml[^>]*>\s*)?<system\s+version=", tame(head[:4096])) is not None


def read(path: Path) -> Reading:
    """Read one topology: samples about the host's devices and links."""
    lines = Lines(path)
    whole = b""
    for piece in lines.text.pieces():
        whole += piece
        if len(whole) > LARGEST:
            return _refused(path, "is larger than a topology of NCCL is")
    text = tame(whole)
    # entities and outer parts come by a document type; a topology has none
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return _refused(path, "has a document type, which a topology of NCCL has not")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return _refused(path, f"is no XML: {error}")
    devices = list(islice(_devices(root, ()), MOST_DEVICES))
    parts = [made for device in devices for made in _about(device)]
    parts += [made for a, b in combinations(devices, 2) for made in _between(a, b)]
    made = joined(SAMPLES, parts)
    facts = Facts(str(path), FORMAT, event_count=made.num_rows)
    return reading(lines, Records(facts, "none", samples=made), Unread(), "device")


def _refused(path: Path, why: str) -> Reading:
    return Reading(remarks=(Remark(str(path), "", why, "write it again with NCCL_TOPO_DUMP_FILE"),))


@dataclass(frozen=True, slots=True)
class _Device:
    """A GPU or a network device, and the elements that it is in, from the outermost."""

    name: str
    index: int | None  # of a GPU
    element: ElementTree.Element
    within: tuple[ElementTree.Element, ...]

    def outer(self, tag: str) -> list[ElementTree.Element]:
        """Give the elements of a kind that it is in, from the outermost."""
        return [one for one in self.within if one.tag == tag]


def _devices(
    element: ElementTree.Element, within: tuple[ElementTree.Element, ...]
) -> Iterator[_Device]:
    number = element.get("dev", "")
    if element.tag == "gpu" and re.fullmatch(r"\d{1,4}", number):
        yield _Device(f"GPU{number}", int(number), element, within)
    elif element.tag == "net":
        yield _Device(element.get("name", f"NIC{number}"), None, element, within)
    if len(within) < 64:  # no topology is as deep
        for child in element:
            yield from _devices(child, (*within, element))


def _about(device: _Device) -> Iterator[pa.Table]:
    """Give what is said of one device: node, CPUs, PCIe link, rate, GPUDirect RDMA."""
    if device.index is not None:
        who = {"device_index": device.index}
        for cpu in device.outer("cpu"):
            if re.fullmatch(r"\d{1,4}", cpu.get("numaid", "")):
                yield samples("host.numa_node", 1, value=float(cpu.get("numaid", "")), **who)
            if cpu.get("affinity"):
                yield samples("host.affinity", 1, text=of_mask(cpu.get("affinity", "")), **who)
        for pci in device.outer("pci")[-1:]:
            speed = re.match(r"(\d+(?:\.5)?)", pci.get("link_speed", ""))
            if speed and speed[1] in _GENERATION:
                yield samples("gpu.pcie_gen", 1, value=_GENERATION[speed[1]], **who)
            if re.fullmatch(r"\d{1,2}", pci.get("link_width", "")):
                yield samples("gpu.pcie_width", 1, value=float(pci.get("link_width", "")), **who)
        return
    speed = re.fullmatch(r"\d{1,9}", device.element.get("speed", ""))
    if speed:
        rate = float(speed[0]) * _MBIT
        yield samples("net.link_rate_bytes_per_s", 1, value=rate, text=device.name)
    if device.element.get("gdr") == "0":
        yield samples("nccl.gdr_disabled", 1, text=device.name)


def _between(a: _Device, b: _Device) -> Iterator[pa.Table]:
    """Give the path between two devices, in the words of `nvidia-smi topo -m`."""
    text = f"{a.name} {b.name} {_nvlink(a, b) or _path(a, b)}"
    yield samples("host.topology", 1, text=text, device_index=a.index)


def _path(a: _Device, b: _Device) -> str:
    common = [one for one, two in zip(a.within, b.within, strict=False) if one is two]
    bridges = [one for one in common if one.tag == "pci"]
    if bridges:
        last = max(len(a.outer("pci")), len(b.outer("pci"))) - len(bridges)
        return "PIX" if last <= 1 else "PXB"
    return "NODE" if any(one.tag == "cpu" for one in common) else "SYS"


def _nvlink(a: _Device, b: _Device) -> str:
    """Give NVn where a's links lead to b, or both lead to switches; "" where none does."""
    if a.index is None or b.index is None:
        return ""
    own, other = a.element.findall("nvlink"), b.element.findall("nvlink")
    bus = [pci.get("busid") for pci in b.outer("pci")[-1:]]
    direct = [link for link in own if link.get("target") in bus]
    switched = [link for link in own if link.get("tclass") == "0x068000"]
    links = direct or (switched if any(o.get("tclass") == "0x068000" for o in other) else [])
    counts = (link.get("count", "") for link in links)
    count = sum(int(one) for one in counts if re.fullmatch(r"\d{1,3}", one))
    return f"NV{count}" if count else ""
