"""What commands print of a host becomes facts about it, each with its line."""

import gzip
import re
from pathlib import Path

import pyarrow.compute as pc
import pytest

from teller.ingest.readers import host_facts, nccl_topology
from teller.ingest.records import Records
from teller.ingest.source import Reader

TOPO = """\
root@node-a:~# nvidia-smi topo -m
\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPIX\t0-55,112-167\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t56-111\t1\t\tN/A
NIC0\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self

NIC Legend:

  NIC0: mlx5_0
"""
QUERY = """\
==============NVSMI LOG==============

Timestamp                                 : Tue Jun 21 12:58:00 2022
GPU 00000000:D8:00.0
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 3
                Current                   : 1
            Link Width
                Current                   : 8x
    Clocks Throttle Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
        SW Thermal Slowdown               : Not Active
    FB Memory Usage
        Used                              : 2 MiB
    ECC Errors
        Volatile
            SRAM Correctable              : 1
            DRAM Correctable              : 2
        Aggregate
            SRAM Correctable              : 100
    Clocks
        SM                                : 135 MHz
    Max Clocks
        SM                                : 1380 MHz
GPU 00000000:D9:00.0
    Clocks
        SM                                : 1380 MHz
"""
IBSTAT = """\
CA 'mlx5_0'
\tNumber of ports: 1
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 40
"""
DEVINFO = """\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tlink_layer:\t\tEthernet
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t25.0 Gbps (32)
"""
LSPCI = """\
00:01.0 PCI bridge: Intel Corporation Device (rev 04)
\tCapabilities: [110 v1] Access Control Services
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+
00:02.0 PCI bridge: Intel Corporation Device (rev 04)
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-
17:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\tLnkSta:\tSpeed 8GT/s (downgraded), Width x4 (downgraded)
"""
COUNTERS = """\
/sys/class/infiniband/mlx5_0/ports/1/hw_counters/local_ack_timeout_err:12
/sys/class/infiniband/mlx5_0/ports/1/hw_counters/packet_seq_err:3
/sys/class/infiniband/mlx5_1/ports/1/hw_counters/packet_seq_err:0
/sys/class/infiniband/mlx5_1/ports/1/counters/port_xmit_wait:99
"""
XML = """\
<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64">
    <pci busid="0000:16:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:17:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0"><nvlink target="0000:05:00.0" count="18" tclass="0x068000"/></gpu>
      </pci>
      <pci busid="0000:18:00.0" class="0x020700">
        <nic><net name="mlx5_0" dev="0" speed="400000" port="1" gdr="0"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffff0000">
    <pci busid="0000:97:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8">
      <gpu dev="1"><nvlink target="0000:05:00.0" count="18" tclass="0x068000"/></gpu>
    </pci>
  </cpu>
</system>
"""


def read(path: Path, text: str, reader: Reader = host_facts) -> Records:
    path.write_text(text)
    assert reader.looks_like(text.encode(), path)
    (records,) = reader.read(path).records
    return records


def rows(records: Records, name: str, *columns: str) -> list[tuple[object, ...]]:
    table = records.samples.filter(pc.equal(records.samples["name"], name))
    return [tuple(row[c] for c in columns) for row in table.to_pylist()]


@pytest.mark.parametrize(("host", "loaded"), [("node-a", False), ("node-b", True)])
def test_modules_that_are_loaded_are_named_and_the_others_are_not(
    shared: Path, host: str, loaded: bool
) -> None:
    path = shared / f"cases/o02_gdr_off_on_one_node/{host}.lsmod.txt"
    assert host_facts.looks_like(path.read_bytes(), path)
    (records,) = host_facts.read(path).records
    names = [line.split()[0] for line in path.read_text().splitlines()[1:]]
    assert rows(records, "host.module", "text") == [(name,) for name in names]
    assert (("nvidia_peermem", 2) in rows(records, "host.module", "text", "line")) == loaded
    assert rows(records, "host.modules_listed", "value") == [(float(len(names)),)]


def test_gids_have_six_words_with_a_dash_for_what_is_not_there(shared: Path) -> None:
    path = shared / "cases/o14_roce_gid_link_local_only/node-a.gids.txt"
    assert host_facts.looks_like(path.read_bytes(), path)
    (records,) = host_facts.read(path).records
    found = rows(records, "host.gid", "value", "text", "line")
    assert len(found) == 6
    assert found[0] == (
        0.0, "rocep1s0f0 1 fe80:0000:0000:0000:0a00:0001:0000:0000 - v1 enp1s0f0np0", 3,
    )  # fmt: skip
    assert found[3] == (
        3.0, "rocep1s0f0 1 0000:0000:0000:0000:0000:ffff:c000:023d 192.0.2.61 v2 enp1s0f0np0", 6,
    )  # fmt: skip
    assert [text for _, text, _ in found if "192.0.2" in str(text) and "roceP2" in str(text)] == []
    assert rows(records, "host.gid_link_local", "text", "value") == [
        ("rocep1s0f0", 0.0), ("roceP2p1s0f0", 1.0),
    ]  # fmt: skip


def test_each_cable_of_a_fabric_is_given_once(shared: Path) -> None:
    path = shared / "traces/nccl_tests_log/superbench_ibnetdiscover.txt"
    assert host_facts.looks_like(path.read_bytes(), path)
    (records,) = host_facts.read(path).records
    cables, node = set(), ""
    for line in path.read_text().splitlines():
        if found := re.match(r'(?:Switch|Ca)\s+\d+ "([^"]+)"', line):
            node = found[1]
        if found := re.match(r'\[(\d+)\](?:\(\w+\))?\s+"([^"]+)"\[(\d+)\]', line):
            cables.add(frozenset([(node, found[1]), (found[2], found[3])]))
    texts = [str(text) for (text,) in rows(records, "host.topology", "text")]
    assert len(texts) == len(set(texts)) == len(cables)
    assert "RMD701091901003/ibp11s0f0[1] S-0ff08c43215bae48[1] 4xHDR" in texts


def test_a_matrix_of_devices_gives_pairs_with_their_real_names(tmp_path: Path) -> None:
    records = read(tmp_path / "t", TOPO)
    assert rows(records, "host.topology", "text", "line") == [
        ("GPU0 GPU1 NV18", 3), ("GPU0 mlx5_0 PIX", 3), ("GPU1 mlx5_0 SYS", 4),
    ]  # fmt: skip
    assert rows(records, "host.affinity", "device_index", "text") == [
        (0, "0-55,112-167"), (1, "56-111"),
    ]  # fmt: skip
    assert rows(records, "host.numa_node", "device_index", "value") == [(0, 0.0), (1, 1.0)]
    assert records.facts.host == "node-a"


def test_a_full_report_of_devices_is_read_by_its_sections(tmp_path: Path) -> None:
    records = read(tmp_path / "q", QUERY)
    device = ("device_index", "value")
    assert rows(records, "gpu.sm_clock_mhz", *device) == [(0, 135.0), (1, 1380.0)]
    assert rows(records, "gpu.sm_clock_max_mhz", *device) == [(0, 1380.0)]
    assert rows(records, "gpu.pcie_gen", *device) == [(0, 1.0)]
    assert rows(records, "gpu.pcie_gen_max", *device) == [(0, 3.0)]
    assert rows(records, "gpu.pcie_width", *device) == [(0, 8.0)]
    assert rows(records, "gpu.throttle_reasons", *device) == [(0, float(0x8 | 0x40))]
    assert rows(records, "gpu.ecc_errors", *device, "text") == [(0, 3.0, "corrected")]


@pytest.mark.parametrize(
    ("text", "links", "rates"),
    [
        (
            IBSTAT,
            ["mlx5_0:1 Active LinkUp InfiniBand", "mlx5_1:1 Down Disabled"],
            [("mlx5_0:1", 50e9), ("mlx5_1:1", 5e9)],
        ),
        (DEVINFO, ["mlx5_0:1 ACTIVE Ethernet"], [("mlx5_0:1", 12.5e9)]),
        (
            "Infiniband device 'mlx5_0' port 1 status:\n\tstate:\t\t 4: ACTIVE\n"
            "\tphys state:\t 5: LinkUp\n\trate:\t\t 100 Gb/sec (4X EDR)\n"
            "\tlink_layer:\t Ethernet\n",
            ["mlx5_0:1 ACTIVE LinkUp Ethernet"],
            [("mlx5_0:1", 12.5e9)],
        ),
        (
            "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0\n",
            ["mlx5_0:1 state ACTIVE physical_state LINK_UP netdev ens1f0"],
            [],
        ),
    ],
)
def test_links_are_told_alike_by_all_commands(
    tmp_path: Path, text: str, links: list[str], rates: list[tuple[str, float]]
) -> None:
    records = read(tmp_path / "l", text)
    assert rows(records, "host.nic_link", "text") == [(link,) for link in links]
    assert rows(records, "net.link_rate_bytes_per_s", "text", "value") == rates


def test_bridges_that_redirect_and_slow_links_are_seen(tmp_path: Path) -> None:
    records = read(tmp_path / "l", LSPCI)
    assert [value for (value,) in rows(records, "host.acs", "value")] == [1.0, 0.0]
    assert str(rows(records, "host.acs", "text")[0][0]).startswith("00:01.0 SrcValid+")
    assert rows(records, "gpu.pcie_gen", "value", "text") == [(3.0, "17:00.0")]
    assert rows(records, "gpu.pcie_width_max", "value", "text") == [(16.0, "17:00.0")]


def test_counters_of_a_device_add_up(tmp_path: Path) -> None:
    records = read(tmp_path / "c", COUNTERS)
    assert rows(records, "net.retransmits", "text", "value") == [
        ("mlx5_0:1", 15.0), ("mlx5_1:1", 0.0),
    ]  # fmt: skip
    assert rows(records, "prom:port_xmit_wait", "text", "value") == [("mlx5_1:1", 99.0)]
    records = read(
        tmp_path / "e",
        "NIC statistics:\n  rx_prio3_pause: 55\n  tx_prio3_pause: 5\n  rx_discards_phy: 7\n",
    )
    assert rows(records, "net.pause_frames", "value") == [(60.0,)]
    assert rows(records, "net.drops", "value") == [(7.0,)]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (
            "nr_periods 10\nnr_throttled 4\nthrottled_usec 1500\n",
            "host.throttled_ns",
            (1.5e6, "", 3),
        ),
        ("nr_periods 10\nnr_throttled 4\nthrottled_time 7\n", "host.throttled_ns", (7.0, "", 3)),
        ("200000 100000\n", "host.cpu_quota", (2.0, "", 1)),
        ("max 100000\n", "host.cpu_quota", (None, "no quota", 1)),
        ("physcpubind: 0 1 2 3 8 \nnodebind: 0 \n", "host.affinity", (None, "0-3,8", 1)),
        ("physcpubind: 0 1 2 3 8 \nnodebind: 1 \n", "host.numa_node", (1.0, None, 2)),
        ("pid 12's current affinity mask: ff0\n", "host.affinity", (None, "4-11", 1)),
        ("pid 12's current affinity list: 0-3\n", "host.affinity", (None, "0-3", 1)),
        ("Pid:\t7\nCpus_allowed_list:\t0-7\n", "host.affinity", (None, "0-7", 2)),
        (
            "python3 (7, #threads: 4)\n---\nse.sum_exec_runtime : 12.5\n",
            "process.cpu_ns",
            (12.5e6, None, 3),
        ),
    ],
)
def test_what_a_process_may_use_of_the_cpus(
    tmp_path: Path, text: str, name: str, expected: tuple[object, ...]
) -> None:
    records = read(tmp_path / "c", text)
    assert rows(records, name, "value", "text", "line") == [expected]


def test_several_commands_in_one_file_are_all_read(tmp_path: Path) -> None:
    modules = "Module                  Size  Used by\nnvidia 5 0\n\n"
    records = read(tmp_path / "all", "Linux node-c 5.15.0 x86_64\n" + modules + IBSTAT)
    assert rows(records, "host.module", "text", "line") == [("nvidia", 3)]
    assert len(rows(records, "host.nic_link", "text")) == 2
    assert records.facts.host == "node-c"


def test_a_cut_table_says_what_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "lsmod.gz"
    path.write_bytes(
        gzip.compress(b"Module   Size  Used by\r\nnvidia 5 0\r\n\x00\xff\r\nib_core 43")
    )
    reading = host_facts.read(path)
    assert rows(reading.records[0], "host.module", "text") == [("nvidia",)]
    assert [(r.place, r.what) for r in reading.remarks] == [
        ("line 3", "2 lines are no fact, and left out")
    ]


def test_a_topology_of_nccl_gives_paths_as_the_matrix_does(tmp_path: Path) -> None:
    records = read(tmp_path / "topo.xml", XML, nccl_topology)
    assert rows(records, "host.topology", "text") == [
        ("GPU0 mlx5_0 PIX",), ("GPU0 GPU1 NV18",), ("mlx5_0 GPU1 SYS",),
    ]  # fmt: skip
    assert rows(records, "host.affinity", "device_index", "text") == [(0, "0-15"), (1, "16-31")]
    assert rows(records, "nccl.gdr_disabled", "text") == [("mlx5_0",)]
    assert rows(records, "net.link_rate_bytes_per_s", "value") == [(50e9,)]
    assert rows(records, "gpu.pcie_gen", "device_index", "value") == [(0, 5.0), (1, 4.0)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (XML[:200], "is no XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]>' + XML, "document type"),
        ('<system version="1"></system>', "holds no device"),
    ],
)
def test_a_topology_that_is_none_is_refused(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "topo.xml"
    path.write_text(text)
    reading = nccl_topology.read(path)
    assert not reading.records
    assert what in reading.remarks[0].what
