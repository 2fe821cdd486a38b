"""What commands print of a host: modules, GIDs, links, topology, CPUs, PCIe bridges, counters.

A file may hold the output of several commands; each is read by the function that `KINDS` names.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers import host_cpus, host_devices, host_fabric, host_network, host_pci
from teller.ingest.readers.side_lines import Block, Lines, head_lines
from teller.ingest.readers.side_tables import Unread, joined, reading
from teller.ingest.readers.side_times import civil
from teller.ingest.records import SAMPLES, Records
from teller.ingest.source import Facts, Reading

FORMAT: Final = "host_facts"

Read = Callable[[Block, Unread], Iterator[pa.Table]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A command's output: what a line of it looks like that no other has, and who reads it."""

    command: str
    mark: str  # RE2, of one line near the start
    read: Read


KINDS: Final = (
    Kind("lsmod", host_pci.LSMOD, host_pci.modules),
    Kind("lspci -vvv", host_pci.LSPCI, host_pci.bridges),
    Kind("show_gids", host_network.GIDS, host_network.gids),
    Kind("ibstat", host_network.IBSTAT, host_network.links),
    Kind("ibv_devinfo", host_network.DEVINFO, host_network.links),
    Kind("rdma link", host_network.RDMA_LINK, host_network.rdma_links),
    Kind("ethtool -S", host_network.ETHTOOL, host_network.counters),
    Kind("counters in /sys/class", host_network.SYS_COUNTERS, host_network.counters),
    Kind("ibnetdiscover", host_fabric.IBNETDISCOVER, host_fabric.edges),
    Kind("nvidia-smi topo -m", host_devices.TOPO, host_devices.topology),
    Kind("nvidia-smi -q", host_devices.QUERY, host_devices.query),
    Kind("numactl --show", host_cpus.NUMACTL, host_cpus.numactl),
    Kind("taskset -p", host_cpus.TASKSET, host_cpus.taskset),
    Kind("/proc/PID/status", host_cpus.STATUS, host_cpus.status),
    Kind("/proc/PID/sched", host_cpus.SCHED, host_cpus.sched),
    Kind("cpu.stat", host_cpus.CPU_STAT, host_cpus.cpu_stat),
    Kind("cpu.max", host_cpus.CPU_MAX, host_cpus.cpu_max),
)
NEAR: Final = 25  # lines within which the first command's mark stands
_HOST: Final = (
    r"^[\[(]?[\w.-]+@(?P<host>[\w.-]+)[ :].*[#$]",  # a shell's prompt
    r"^Linux (?P<host>[\w.-]+) \d+\.\d+",  # uname -a
    r"^(?i:host ?name)\s*[:=]\s*(?P<host>[\w.-]+)\s*$",
)


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins with what one of the commands prints."""
    lines = [line for line in head_lines(head) if line.strip()][:NEAR]
    return any(re.search(kind.mark, line) for kind in KINDS for line in lines)


def read(path: Path) -> Reading:
    """Read one file: samples about a host."""
    lines, unread = Lines(path), Unread()
    block = lines.small()
    parts: list[pa.Table] = []
    done: set[Read] = set()
    for kind in KINDS:
        marked = pc.match_substring_regex(block.lines, kind.mark)
        if kind.read not in done and pc.any(marked).as_py():
            done.add(kind.read)
            parts += kind.read(block, unread)
    samples = joined(SAMPLES, parts)
    host = _host(block)
    facts = Facts(str(path), FORMAT, host=host, host_source="content" if host else "",
                  event_count=samples.num_rows)  # fmt: skip
    return reading(lines, _dated(Records(facts, "none", samples=samples), block), unread, "fact")


def _host(block: Block) -> str:
    for pattern in _HOST:
        found = pc.struct_field(pc.extract_regex(block.lines, pattern), "host").drop_null()
        if len(found):
            return str(found[0].as_py())
    return ""


def _dated(records: Records, block: Block) -> Records:
    """Give the samples the time that stands at the head of the file, if one does."""
    ns, zoned = civil(block.lines.slice(0, NEAR))
    times = ns.drop_null()
    if not len(times):
        return records
    at = SAMPLES.get_field_index("time_ns")
    column = pa.repeat(times[0], records.samples.num_rows)
    samples = records.samples.set_column(at, SAMPLES.field(at), column)
    return Records(records.facts, "utc" if pc.any(zoned).as_py() else "local", samples=samples)
