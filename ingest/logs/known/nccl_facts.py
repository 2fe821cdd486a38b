"""What NCCL says of its surroundings: version, variables, network devices, GPUDirect, peers."""

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import matched, samples
from teller.ingest.logs.known.nccl_lines import short
from teller.ingest.logs.meaning import integers
from teller.ingest.nccl_words import distinct

VERSION: Final = r"\bNCCL version (?P<version>\d+\.\d+(?:\.\d+)?\S*)"
VARIABLE: Final = (
    r"^(?P<variable>NCCL_[A-Z0-9_]+) set (?:by environment )?to (?P<setting>.*?)\.?\s*$"
)
SECRET: Final = r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL"
NETWORK: Final = r"^(?:Using network|Assigned NET plugin) (?P<network>\S.*?)(?: to comm)?\s*$"
ADDRESS: Final = r"(?:^Bootstrap ?: Using|; OOB) (?:\[\d+\])?[\w.@-]+:(?P<address>[^\s<]+)<\d+>"
DEVICES: Final = r"^NET/(?P<net>[\w-]+) ?: Using (?P<devices>\[\d+\].*)$"
DEVICE: Final = re.compile(r"\[(\d+)\]([^\s;\[]+)")
RING: Final = r"use ring PXN \d GDR (?P<gdr>[01])"
GDR_ON: Final = r"GPU Direct RDMA Enabled for (?P<what>.*)$"
GDR_OFF: Final = r"GPU Direct RDMA Disabled for (?P<what>.*)$"
HCA: Final = re.compile(r"'([^']+)'")
NOT_OPEN: Final = (
    r"(?P<what>.*(?:ibv_open_device failed|[Uu]nable to open device|[Ff]ailed to open device).*)$"
)
NO_PEER: Final = (
    r"(?P<what>.*(?:P2P is disabled|peer access is not supported|[Pp]eer.to.[Pp]eer.*"
    r"(?:disabled|not supported)|could not enable P2P|P2P.*(?:not supported|disabled)|"
    r"\bACS\b|IOMMU|\biommu\b).*)$"
)
RAS: Final = (
    r"^(?P<what>RAS .*(?:timeout|timed out|missing|dead|lost|unresponsive|mismatch|failed|error|"
    r"warning|giving up|closed|terminating the|unreachable|reconnect).*)$"
)


def facts(rows: pa.Table) -> list[tuple[pa.Table, pa.Table]]:
    """Give samples of what the lines say, each with the lines that it was read from."""
    version = matched(rows, VERSION, "NCCL version")
    network = matched(rows, NETWORK, "Using network", "Assigned NET plugin")
    ring = matched(rows, RING, "use ring PXN")
    gdr = matched(rows, GDR_ON, "GPU Direct RDMA Enabled")
    no_gdr = matched(rows, GDR_OFF, "GPU Direct RDMA Disabled")
    address = matched(rows, ADDRESS, "Bootstrap", "; OOB ")
    return [
        (samples("nccl.version", version, text=version["version"]), version),
        _variables(rows),
        (samples("nccl.network", network, text=network["network"]), network),
        _devices(rows),
        (samples("nccl.address", address, text=address["address"]), address),
        (samples("nccl.gdr", ring, value=integers(ring["gdr"]), text=ring["text"]), ring),
        (samples("nccl.gdr", gdr, value=1, text=_words(gdr, "text")), gdr),
        (samples("nccl.gdr_disabled", no_gdr, text=distinct(no_gdr["what"], _hca)), no_gdr),
        _told(rows, "nccl.nic_open_failed", NOT_OPEN, "open_device", "open device"),
        _told(rows, "nccl.p2p_disabled", NO_PEER, "P2P", "eer", "ACS", "IOMMU", "iommu"),
        _told(rows, "nccl.ras", RAS, "RAS "),
    ]


def release(rows: pa.Table) -> tuple[int, int] | None:
    """Give the release that the lines name first."""
    version = matched(rows, VERSION, "NCCL version")
    if not version.num_rows:
        return None
    major, minor = version["version"][0].as_py().split(".")[:2]
    return int(major[:4]), int(re.match(r"\d{1,4}", minor)[0])  # type: ignore[index]  # VERSION has it


def _told(rows: pa.Table, name: str, form: str, *words: str) -> tuple[pa.Table, pa.Table]:
    told = matched(rows, form, *words)
    return samples(name, told, text=_words(told, "what")), told


def _variables(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    told = matched(rows, VARIABLE, " set ")
    told = told.filter(pc.invert(pc.match_substring_regex(told["variable"], SECRET)))
    text = pc.binary_join_element_wise(told["variable"], told["setting"], "=")
    return samples("nccl.env", told, text=_short(text)), told


def _devices(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Give a sample for each network device that a line lists."""
    told = matched(rows, DEVICES, ": Using ")
    listed = distinct(told["devices"], _listed, pa.list_(pa.list_(pa.string())))
    each = told.take(pc.list_parent_indices(listed))
    index, device = (pc.list_element(pc.list_flatten(listed), n) for n in (0, 1))
    socket = pc.equal(each["net"], "Socket")
    text = pc.if_else(socket, pc.binary_join_element_wise(device, "Socket", "/"), device)
    return samples("nccl.nic", each, value=integers(index), text=text), told


def _listed(devices: str) -> list[tuple[str, str]]:
    return DEVICE.findall(devices)


def _hca(what: str) -> str:
    """Give a network device's name, else the words that say which."""
    name = HCA.search(what)
    return name[1] if name else what.strip()


def _words(rows: pa.Table, column: str) -> pa.Array:
    return _short(rows[column])


def _short(text: pa.Array | pa.ChunkedArray) -> pa.Array:
    return short(text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text)
