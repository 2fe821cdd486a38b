"""What lines of the kernel and of the fabric manager mean."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from teller.graph.vocabulary import known
from teller.ingest.logs.known import kernel

Lines = Callable[..., pa.Table]


def rows(lines: pa.Table) -> list[tuple[str, float | None, str, int | None, int | None]]:
    """Give name, value, text, pid and device of the samples of lines."""
    made = kernel.knowing().learn(lines).learned.samples.to_pylist()
    assert all(known(row["name"]) for row in made)
    return [tuple(row[k] for k in ("name", "value", "text", "pid", "device_index")) for row in made]


@pytest.mark.parametrize(
    ("text", "name", "value", "pid"),
    [
        ("NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>', name=<unknown>, X", "gpu.xid", 13, None),
        ("NVRM: Xid (PCI:0000:38:00): 43, pid=2924364, name=python, Ch 8", "gpu.xid", 43, 2924364),
        ("NVRM: Xid (PCI:0000:38:00): 31, pid='77', name=python, MMU", "gpu.xid", 31, 77),
        ("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, Contained: SM", "gpu.xid", 94, None),
        ("NVRM: Xid (0000:03:00): 31, Ch 00000010, engmask 00000101", "gpu.xid", 31, None),
        ("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "gpu.lost", None, None),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, Non-fatal, Link 61",
            "gpu.nvswitch_error",
            12028,
            None,
        ),
        (
            "Memory cgroup out of memory: Killed process 2345 (VLLM::EngineCor) total-vm:9kB",
            "host.oom_kill",
            None,
            2345,
        ),
        (
            "python[99]: segfault at 7f79 ip 00 sp 00 error 4 in libnccl.so.2[7f7c+d3]",
            "host.segfault",
            None,
            99,
        ),
        (
            "INFO: task python3:4711 blocked for more than 120 seconds.",
            "host.hung_task",
            120e9,
            4711,
        ),
        (
            "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context",
            "host.peermem_error",
            None,
            None,
        ),
        (
            "pci 0000:3b:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 "
            "link at 0000:3a:00.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)",
            "host.pcie_limited_ratio",
            0.125,
            None,
        ),
        ("pcieport 0000:00:01.0: AER: Corrected error received", "host.pcie_error", None, None),
        (
            "mce: CPU7: temperature above threshold, cpu clock throttled (total events = 9)",
            "host.cpu_hot",
            None,
            None,
        ),
        ("mlx5_core 0000:5e:00.0 ens3f0np0: Link down", "host.nic_link", None, None),
        (
            "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged",
            "host.nic_link",
            None,
            None,
        ),
    ],
)
def test_single_facts(
    lines: Lines, text: str, name: str, value: float | None, pid: int | None
) -> None:
    assert any(mark in text for mark in kernel.MARKS)
    ((found, number, words, who, _),) = rows(lines([text]))
    assert (found, number, who) == (name, pytest.approx(value, rel=1e-3) if value else None, pid)
    assert words in text


def test_an_address_is_joined_to_the_device_that_the_log_names(lines: Lines) -> None:
    knowing = kernel.knowing()
    uuid = "GPU-509665ad-b600-ac93-3616-d754b23d636d"
    knowing.learn(lines([f"NVRM: GPU at PCI:0000:9b:00: {uuid}"]))
    texts = [
        "NVRM: Xid (PCI:0000:9B:00): 119, pid=1, name=x, Timeout after 6s of waiting for RPC "
        "response from GPU4 GSP! Expected function 103",
        "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, name=x, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=x, GPU has fallen off the bus.",
    ]
    samples = knowing.learn(lines(texts)).learned.samples
    xids = samples.filter(pc.equal(samples["name"], "gpu.xid")).to_pylist()
    assert [row["device_index"] for row in xids] == [4, 4, None]
    assert [uuid in row["text"] for row in xids] == [True, True, False]


def test_lines_that_are_understood_are_told(lines: Lines) -> None:
    texts = [
        "NVRM: Xid (PCI:0000:38:00): 79, pid=1, name=x, GPU has fallen off the bus.",
        "NVRM: x",
    ]
    told = kernel.knowing().learn(lines(texts)).told
    assert told is not None
    assert told["place"].to_pylist() == [0]


def test_real_logs_give_each_xid(shared: Path, lines: Lines) -> None:
    count = 0
    for path in sorted((shared / "traces" / "dmesg_xid").glob("*.log")):
        texts = path.read_text(errors="replace").splitlines()
        numbers = [int(n) for t in texts for n in re.findall(r"Xid \(PCI:[^)]*\): (\d+)", t)]
        found = [int(value or 0) for name, value, *_ in rows(lines(texts)) if name == "gpu.xid"]
        assert found == numbers
        count += len(found)
    assert count == 33


def test_real_logs_give_the_rest(shared: Path, lines: Lines) -> None:
    folder = shared / "traces" / "dmesg_xid"
    peermem = rows(lines((folder / "kmsg_peermem.log").read_text().splitlines()))
    assert [row[0] for row in peermem] == ["host.peermem_error"] * 7
    faults = rows(lines((folder / "dmesg_nccl_segfault.iso.log").read_text().splitlines()))
    assert [(row[0], row[3]) for row in faults] == [("host.segfault", 2536443)] * 2
    killed = rows(lines((folder / "dmesg_oom.iso.log").read_text().splitlines()))
    assert sum(row[0] == "host.oom_kill" for row in killed) == 7
    fabric = rows(lines((folder / "fabricmanager.log").read_text().splitlines()))
    assert [(row[0], row[1]) for row in fabric] == [("gpu.nvswitch_error", 12028)]
