"""Small stories of networks, cards and settings: what each must be called, and what is alike."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from teller import pipeline
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent
from tests.variants.nccl_logs import World

Found = dict[str, tuple[str, list[str]]]
Ask = Callable[[Path], Found]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Give a function that diagnoses a folder: class to severity and hosts of its first finding."""

    def found(folder: Path) -> Found:
        workspace = Workspace(tmp_path / "workspace", project=project)
        said: dict[str, Any] = pipeline.diagnose([folder], workspace, Options(), Silent()).to_json()
        told: Found = {}
        for one in said["findings"]:
            told.setdefault(one["class"], (one["severity"], list(one["culprit"]["hosts"])))
        return told

    return found


def world(hosts: int = 2, gpus: int = 4) -> World:
    """Give a run of some hosts with names a, b, c …, all alike."""
    made = World(1)
    made.hosts = [f"node-{letter}" for letter in "abcdef"[:hosts]]
    made.files = {host: [] for host in made.hosts}
    made.gpus, made.version, made.launcher, made.channels = gpus, (2, 27, 5), "", 2
    return made


def starts(
    made: World,
    rank: int,
    *variables: str,
    cards: tuple[str, ...] = ("mlx5_0:1/IB", "mlx5_1:1/IB"),
    inside: str = "P2P/CUMEM",
    between: str = "NET/IB/{}/GDRDMA",
) -> None:
    made.begin(rank, *variables)
    made.network(rank, *cards)
    made.joins(rank, "START")
    made.edges(rank, inside, between)
    made.joins(rank, "COMPLETE")


def test_a_healthy_run_is_silent(tmp_path: Path, ask: Ask) -> None:
    made = world(3)
    for rank in range(made.size):
        starts(made, rank, "NCCL_IB_HCA=mlx5_0,mlx5_1", "NCCL_DEBUG=INFO")
    assert ask(made.write(tmp_path / "run")) == {}


def test_a_variable_that_reached_one_host_is_told(tmp_path: Path, ask: Ask) -> None:
    made = world(3)
    for rank in range(made.size):
        own = ["NCCL_NVLS_ENABLE=2"] if made.host(rank) == "node-b" else []
        starts(made, rank, "NCCL_IB_TIMEOUT=22", *own)
    assert ask(made.write(tmp_path / "run")) == {"comm_config": ("medium", ["node-b"])}


def test_a_pinned_algorithm_weighs_where_a_note_says_it_was_faster(
    tmp_path: Path, ask: Ask
) -> None:
    made = world(2)
    for rank in range(made.size):
        starts(made, rank, "NCCL_ALGO=Tree", "NCCL_PROTO=Simple")
    folder = made.write(tmp_path / "run")
    assert ask(folder) == {"comm_config": ("low", ["node-a", "node-b"])}
    figures = {"usual": {"tokens_per_s": 400.0}, "now": {"tokens_per_s": 250.0}}
    (folder / "note.json").write_text(json.dumps(figures), "utf-8")
    assert ask(folder)["comm_config"] == ("high", ["node-a", "node-b"])


def test_another_release_on_a_host_is_told(tmp_path: Path, ask: Ask) -> None:
    made = world(3)
    for rank in range(made.size):
        made.version = (2, 25, 1) if made.host(rank) == "node-c" else (2, 27, 5)
        starts(made, rank)
    assert ask(made.write(tmp_path / "run")) == {"comm_config": ("medium", ["node-c"])}


def test_a_host_that_uses_fewer_cards_is_told(tmp_path: Path, ask: Ask) -> None:
    made = world(3)
    for rank in range(made.size):
        mine = made.host(rank) == "node-a"
        cards = ("mlx5_0:1/IB",) if mine else ("mlx5_0:1/IB", "mlx5_1:1/IB")
        between = "NET/IB/0/GDRDMA" if mine else "NET/IB/{}/GDRDMA"
        starts(made, rank, cards=cards, between=between)
    assert ask(made.write(tmp_path / "run")) == {"wrong_nic": ("medium", ["node-a"])}


def test_a_host_whose_ranks_share_one_of_two_cards_is_told(tmp_path: Path, ask: Ask) -> None:
    made = world(2)
    for rank in range(made.size):
        mine = made.host(rank) == "node-b"
        starts(made, rank, between="NET/IB/1/GDRDMA" if mine else "NET/IB/{}/GDRDMA")
    assert ask(made.write(tmp_path / "run")) == {"wrong_nic": ("medium", ["node-b"])}


def test_shared_memory_on_one_host_alone_is_told(tmp_path: Path, ask: Ask) -> None:
    made = world(2)
    for rank in range(made.size):
        mine = made.host(rank) == "node-b"
        starts(made, rank, inside="SHM/direct/direct" if mine else "P2P/CUMEM")
    assert ask(made.write(tmp_path / "run")) == {"p2p_blocked": ("medium", ["node-b"])}


def test_shared_memory_that_was_asked_for_is_a_setting(tmp_path: Path, ask: Ask) -> None:
    made = world(2)
    for rank in range(made.size):
        starts(made, rank, "NCCL_P2P_DISABLE=1", inside="SHM/direct/direct")
    assert ask(made.write(tmp_path / "run")) == {"comm_config": ("low", ["node-a", "node-b"])}


ACS = """\
17:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])
\tCapabilities: [148 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
"""


@pytest.mark.parametrize("asked", [False, True])
def test_bridges_that_redirect_are_told_where_ranks_take_a_detour(
    asked: bool, tmp_path: Path, ask: Ask
) -> None:
    made = world(1)
    for rank in range(made.size):
        variables = ["NCCL_P2P_DISABLE=1"] if asked else []
        starts(made, rank, *variables, inside="SHM/direct/direct")
    folder = made.write(tmp_path / "run")
    (folder / "node-a.lspci.txt").write_text(ACS, "utf-8")
    wanted: Found = (
        {"comm_config": ("low", ["node-a"])} if asked else {"p2p_blocked": ("medium", ["node-a"])}
    )
    assert ask(folder) == wanted


@pytest.mark.parametrize(
    ("why", "severity"),
    [
        ("it's not supported on more than two PCIe-only GPUs", "low"),
        ("this process group spans across nodes", "low"),
        ("your platform lacks GPU P2P capability or P2P test failed", "medium"),
    ],
)
def test_the_engines_all_reduce_that_is_off_weighs_by_its_reason(
    why: str, severity: str, tmp_path: Path, ask: Ask
) -> None:
    line = (
        "(Worker_TP0 pid=7) WARNING 03-04 10:02:13 [custom_all_reduce.py:136] Custom allreduce is "
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "vllm.log").write_text(
        f"{line}disabled because {why}. To silence this warning, specify "
        "disable_custom_all_reduce=True explicitly.\n", "utf-8",
    )  # fmt: skip
    assert ask(tmp_path / "run")["custom_allreduce_off"][0] == severity


SMI = (
    "timestamp, index, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, "
    "pcie.link.width.max, utilization.gpu [%]\n"
)


@pytest.mark.parametrize(
    ("third", "wanted"),
    [
        ("5, 5, 16, 16, 91 %", []),
        ("5, 5, 4, 16, 91 %", ["high", "medium"]),
        ("1, 5, 16, 16, 88 %", ["high", "medium"]),
        ("1, 5, 16, 16, 0 %", []),
    ],
)
def test_a_link_below_its_own_is_told_but_not_an_idle_one(
    third: str, wanted: list[str], tmp_path: Path, ask: Ask
) -> None:
    full = "5, 5, 16, 16, 93 %"
    rows = [
        f"2026/05/03 08:10:{second:02}.000, {index}, {third if index == 2 else full}"
        for second in range(5)
        for index in range(4)
    ]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "node-a.smi.csv").write_text(SMI + "\n".join(rows) + "\n", "utf-8")
    found = ask(tmp_path / "run")
    assert ("pcie_degraded" in found) == bool(wanted)
    if wanted:
        assert found["pcie_degraded"][0] in wanted


def test_a_process_that_fell_in_the_library_is_told(shared: Path, ask: Ask) -> None:
    found = ask(shared / "traces/dmesg_xid/dmesg_nccl_segfault.iso.log")
    assert found["comm_library"][0] == "critical"


def test_a_faked_topology_is_a_setting_of_little_weight(shared: Path, ask: Ask) -> None:
    found = ask(shared / "traces/nccl_log/nccl2.27_2xa100_fault.log")
    assert found == {"comm_config": ("low", ["mew0"])}


@pytest.mark.parametrize(("again", "elsewhere"), [(300, 2), (300, 200), (6, 0)])
def test_packets_sent_again_on_one_path_alone_are_told(
    again: int, elsewhere: int, tmp_path: Path, ask: Ask
) -> None:
    hosts = ["node-a", "node-b", "node-c"]
    lines = []
    for at in range(40):
        lost = {("node-a", "node-b"): again, ("node-b", "node-c"): elsewhere}
        grown = min(max(at - 10, 0), 10) / 10
        nodes = [
            {"rank": rank, "host": host, "tcp": {
                peer: {"n": 2, "rtt_us": 20, "retrans": round(grown * lost.get((host, peer), 0)),
                       "tx": at * 10_000, "rx": at * 10_000, "cwnd": 10}
                for peer in hosts if peer != host}}
            for rank, host in enumerate(hosts)
        ]  # fmt: skip
        lines.append(
            json.dumps({"t": 1_795_986_500_000_000_000 + at * 100_000_000, "nodes": nodes})
        )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    found = ask(tmp_path / "run")
    assert ("packet_loss" in found) == (again > 5 * elsewhere + 20)


def test_transfers_of_the_cache_that_fail_are_told(tmp_path: Path, ask: Ask) -> None:
    lines = [
        f"INFO 05-03 08:1{at}:11 [metrics.py:100] KV Transfer metrics: Num successful transfers="
        f"{9 - at}, Num failed transfers={at}, Avg xfer time (ms)=12.5, P90 xfer time (ms)=20.1, "
        "Avg post time (ms)=0.5, P90 post time (ms)=1.0, Avg MB per transfer=40.0, "
        "Throughput (MB/s)=3200.0, Avg number of descriptors=64.0"
        for at in range(5)
    ]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "decode.log").write_text("\n".join(lines) + "\n", "utf-8")
    assert ask(tmp_path / "run")["kv_transfer_slow"][0] == "medium"


@pytest.mark.parametrize("slow", [0.3, 1.0])
def test_a_host_with_a_part_of_the_bus_bandwidth_is_told(
    slow: float, tmp_path: Path, ask: Ask
) -> None:
    (tmp_path / "run").mkdir()
    for number in range(4):
        lines = [
            json.dumps({
                "header": {"id": f"0x{11 + number % 2:x}f", "rank": number, "n_ranks": 4,
                           "nnodes": 4},
                "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "", "hostname":
                             f"node-{number}", "rec_mechanism": "profiler_plugin", "pid": 4100,
                             "dump_timestamp_us": 1_777_000_000_000_000 + at * 1_000_000},
                "coll_perf": {"coll": "AllReduce", "coll_sn": at, "coll_msg_size_bytes": 1 << 26,
                              "coll_exec_time_us": 500, "coll_algobw_gbs": 150.0,
                              "coll_busbw_gbs": 250.0 * (slow if number == 2 else 1.0)},
            })
            for at in range(6)
        ]  # fmt: skip
        (tmp_path / "run" / f"inspector-{number}.log").write_text("\n".join(lines) + "\n", "utf-8")
    found = ask(tmp_path / "run")
    assert found.get("slow_path", ("", []))[1] == (["node-2"] if slow < 1 else [])
