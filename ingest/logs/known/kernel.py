"""The kernel and fabric manager: Xid, lost GPUs, memory, PCIe, links, heat."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs import phrases
from teller.ingest.logs.knowledge import Meant, matched, number, samples
from teller.ingest.logs.meaning import (
    having,
    integers,
    labelled,
    meant,
    said,
    told,
    whole,
    with_column,
)
from teller.ingest.logs.phrases import LINE, Phrase

_XID: Final = "Xid ("
_SWITCH: Final = "SXid ("
_GPU: Final = ": GPU-"
_LIMITED: Final = "available PCIe bandwidth"
_BUS: Final = r"(?:PCI:)?(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})"
_SECOND: Final = 1e9

_PHRASES: Final = (
    Phrase("gpu.lost", "fallen off the bus", "", LINE),
    Phrase("gpu.lost", "GPU is lost", "", LINE),
    Phrase(
        "gpu.nvswitch_error",
        _SWITCH,
        r"SXid \(PCI:[^)]*\): (?P<value>\d+)",
        LINE,
    ),
    Phrase(
        "gpu.nvswitch_error",
        "detected NVSwitch",
        r"detected NVSwitch .*?error (?P<value>\d+)",
        LINE,
    ),
    Phrase("host.oom_kill", "Kill", r"ut of memory: Kill(?:ed)? process (?P<pid>\d+)", LINE),
    Phrase("host.oom_kill", "oom-kill:", r"oom-kill:(?:.*\bpid=(?P<pid>\d+))?", LINE),
    Phrase("host.oom_kill", "oom_reaper: reaped", r"reaped process (?P<pid>\d+)", LINE),
    Phrase("host.segfault", "segfault at", r"(?P<text>\S+\[(?P<pid>\d+)\]: segfault at .*)"),
    Phrase(
        "host.hung_task",
        "blocked for more than",
        r"(?P<text>task \S+:(?P<pid>\d+) blocked for more than (?P<value>\d+) seconds)",
        "",
        _SECOND,
    ),
    Phrase("host.peermem_error", "nvidia-peermem", r"(?i)\berror\b|fail|invalid", LINE),
    Phrase("host.peermem_error", "nvidia_peermem", r"(?i)\berror\b|fail|invalid", LINE),
    Phrase("host.pcie_error", "PCIe Bus Error", "", LINE),
    Phrase("host.pcie_error", "AER: ", r"(?i)AER: .*(?:error|fatal)", LINE),
    Phrase("host.cpu_hot", "clock throttled", "", LINE),
    Phrase("host.nic_link", "mlx5_", r"(?i)link (?:is )?(?:up|down)|port module event|cable", LINE),
    Phrase("host.nic_link", "mlx5_", r"(?i)health|fatal|syndrome|timeout", LINE),
    Phrase("host.nic_link", "NIC Link is", "", LINE),
    Phrase("host.nic_link", "link status definitely", "", LINE),
    Phrase("host.nic_link", "link becomes ready", "", LINE),
)

MARKS: tuple[str, ...] = (_XID, _GPU, _LIMITED, *phrases.marks(_PHRASES))


class _Knowing:
    """What one kernel log means; addresses are joined to the devices that it names."""

    def __init__(self) -> None:
        self._uuids: dict[str, str] = {}
        self._indexes: dict[str, str] = {}

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines."""
        made, known = phrases.read(lines, _PHRASES)
        named = matched(having(lines, _GPU), rf"GPU at {_BUS}[.\d]*: (?P<uuid>GPU-[0-9a-f-]+)")
        self._uuids |= dict(
            zip(_address(named).to_pylist(), named["uuid"].to_pylist(), strict=True)
        )
        xids, limits = _xids(having(lines, _XID)), _limits(having(lines, _LIMITED))
        made += [self._samples(xids), _limited(limits)]
        return meant(made, [*known, told(named), told(xids), told(limits)])

    def _samples(self, rows: pa.Table) -> pa.Table:
        """Say errors of GPUs; the driver's number of a GPU follows the order on the bus."""
        bus = _address(rows)
        indexed = pc.not_equal(rows["index"], "")
        pairs = zip(
            bus.filter(indexed).to_pylist(), rows["index"].filter(indexed).to_pylist(), strict=True
        )
        self._indexes |= dict(pairs)
        text = said(rows["text"])
        uuid = pc.coalesce(labelled(" [{}]", _looked_up(bus, self._uuids)), pa.scalar(""))
        device = integers(_looked_up(bus, self._indexes))
        rows = with_column(rows, "pid", integers(rows["process_id"]))
        return samples(
            "gpu.xid",
            rows,
            value=number(rows["xid"]),
            text=pc.binary_join_element_wise(text, uuid, ""),
            device_index=device,
        )


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()


def _address(rows: pa.Table) -> pa.Array:
    """Give addresses in one form: four digits of domain, lower case."""
    return pc.replace_substring_regex(pc.utf8_lower(whole(rows["bus"])), r"^0{4}(\w{4}:)", r"\1")


def _looked_up(keys: pa.Array, known: Mapping[str, str]) -> pa.Array:
    """Give what is known of each key, or null."""
    values = pa.array(list(known.values()), pa.string())
    return values.take(pc.index_in(keys, pa.array(list(known), pa.string())))


def _xids(lines: pa.Table) -> pa.Table:
    """Read errors of GPUs."""
    return matched(
        lines,
        rf"\bXid \({_BUS}[^)]*\): (?P<xid>\d+)(?:, pid='?(?P<process_id>\d+))?"
        r"(?:.*\bGPU(?P<index>\d+) GSP\b)?",
    )


def _limits(lines: pa.Table) -> pa.Table:
    """Read which bandwidth a device on PCIe gets, and which it could."""
    return matched(
        lines,
        r"(?P<have>[\d.]+) Gb/s available PCIe bandwidth, limited by .*"
        r"\(capable of (?P<could>[\d.]+) Gb/s",
    )


def _limited(rows: pa.Table) -> pa.Table:
    """Say which share of its bandwidth a device on PCIe gets, and by what it is held."""
    share = pc.divide(number(rows["have"]), number(rows["could"]))
    return samples("host.pcie_limited_ratio", rows, value=share, text=said(rows["text"]))
