"""What NCCL's debug lines mean: who joins whom, how, over what, and what went wrong."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from teller.graph import vocabulary
from teller.ingest.logs.knowledge import Meant
from teller.ingest.logs.known import nccl
from teller.ingest.records import JOINS, LINES, MEMBERS, PATHS, SAMPLES

HEADER = re.compile(r"([\w.-]+):(\d+):\d+ (?:\[-?\d+\] )?((?:[\w/.]+:\d+ )?)NCCL (INFO|WARN) (.*)")
START = "ncclCommInitRank comm 0xa0 rank 0 nranks 4 cudaDev 0 nvmlDev 3 busId 1b000 "


def lines(text: str, first: int = 1) -> pa.Table:
    """Give lines as the log reader leaves them: the message, and who wrote it."""
    rows = [
        {
            "place": 4 * number,
            "line": number,
            "host": m[1],
            "pid": int(m[2]),
            "origin": "nccl",
            "process": "",
            "level": {"INFO": "info", "WARN": "warning"}[m[4]],
            "text": m[3] + m[5],
        }
        for number, line in enumerate(text.splitlines(), first)
        if (m := HEADER.search(line))
    ]
    return pa.Table.from_pylist(rows, LINES)


def said(*messages: str, level: str = "INFO") -> pa.Table:
    return lines("\n".join(f"node-a:7:8 [0] NCCL {level} {m}" for m in messages))


def learn(table: pa.Table) -> Meant:
    meant = nccl.knowing().learn(table)
    for got, schema in (
        (meant.learned.samples, SAMPLES),
        (meant.learned.members, MEMBERS),
        (meant.learned.joins, JOINS),
        (meant.learned.paths, PATHS),
    ):
        assert got.schema.equals(schema)
    assert all(vocabulary.known(name) for name in meant.learned.samples["name"].to_pylist())
    return meant


def sampled(meant: Meant, name: str) -> list[tuple[float | None, str | None]]:
    rows = meant.learned.samples.filter(pc.equal(meant.learned.samples["name"], name))
    return list(zip(rows["value"].to_pylist(), rows["text"].to_pylist(), strict=True))


def rows(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.select(list(names)).to_pylist()]


def test_every_call_of_a_real_log_is_joined_to_its_communicator(shared: Path) -> None:
    text = (shared / "traces/nccl_log/nccl2.27_2xa100_all_subsys.log").read_text(errors="replace")
    learned = learn(lines(text)).learned
    counts = Counter(re.findall(r"AllReduce: opCount (\w+) ", text))
    assert learned.joins.num_rows == sum(counts.values()) == 990
    assert Counter(learned.joins["seq"].to_pylist()) == {
        int(k, 16) + 1: n for k, n in counts.items()
    }
    assert learned.joins["comm"].unique().to_pylist() == ["54fe282d32a87d85"]
    assert learned.joins["host"].unique().to_pylist() == ["mew0"]  # rows of a table stand before it
    assert Counter(learned.joins["rank"].to_pylist()) == {0: 495, 1: 495}
    assert rows(learned.joins, "op", "size_bytes", "dtype")[0] == ("all_reduce", 1 << 23, "float32")


def test_a_healthy_and_a_faulty_run_differ_in_channels(shared: Path) -> None:
    folder = shared / "traces/nccl_log"
    found = {}
    for name in ("all_subsys", "fault"):
        text = (folder / f"nccl2.27_2xa100_{name}.log").read_text(errors="replace")
        meant = learn(lines(text))
        edges = len(re.findall(r"Channel \d+/\d+ : \d\[\d\] -> ", text))
        assert meant.learned.paths.num_rows == edges
        assert meant.learned.paths["comm"].null_count == 0
        found[name] = ({v for v, _ in sampled(meant, "nccl.channels")}, edges)
    assert found == {"all_subsys": ({24.0}, 48), "fault": ({2.0}, 4)}


@pytest.mark.parametrize("name", ["g2_NVLS", "g2_Ring", "g6_auto"])
def test_algorithms_are_said_once_for_each_size(shared: Path, name: str) -> None:
    file = shared / f"traces/nccl_log/nccl2.29_h100_{name}_tuning.log"
    text = file.read_text(errors="replace")
    meant = learn(lines(text))
    chosen = set(re.findall(r"(\d+) Bytes -> Algo (\w+) proto (\w+)", text))
    got = sampled(meant, "nccl.algorithm")
    assert set(got) == {(float(size), f"{algo}/{proto}") for size, algo, proto in chosen}
    assert meant.learned.members.num_rows == int(name[1])
    assert sampled(meant, "log.unread") == []


def test_a_fallback_to_sockets_shows_device_and_network(shared: Path) -> None:
    file = shared / "cases/o01_ib_unreachable_socket_fallback/node-a.log"
    meant = learn(lines(file.read_text()))
    assert {t for _, t in sampled(meant, "nccl.network")} == {"Socket"}
    words = {t for _, t in sampled(meant, "nccl.nic_open_failed")}
    assert words == {"Call to ibv_open_device failed", "NET/IB : Unable to open device mlx5_bond_0"}
    assert (None, "NCCL_IB_DISABLE=0") in sampled(meant, "nccl.env")  # the dot is no part of it
    assert sampled(meant, "nccl.nic")[0] == (0, "bond0:192.0.2.11<0>/Socket")
    assert rows(meant.learned.members, "comm", "group_rank", "world_size", "device_index") == [
        ("4283fefc63f0cd0e", rank, 8, rank) for rank in range(4)
    ]
    by_transport = Counter(t for (t,) in rows(meant.learned.paths, "transport"))
    assert by_transport == {"P2P/CUMEM": 6, "NET/Socket/0": 4}


def test_direct_memory_access_is_off_on_one_node(shared: Path) -> None:
    folder = shared / "cases/o02_gdr_off_on_one_node"
    off, on = (learn(lines((folder / f"node-{n}.log").read_text())) for n in "ab")
    assert {t for _, t in sampled(off, "nccl.gdr_disabled")} == {"mlx5_0", "mlx5_1"}
    assert {v for v, _ in sampled(off, "nccl.gdr")} == {0}
    assert {v for v, _ in sampled(on, "nccl.gdr")} == {1}
    assert sampled(on, "nccl.nic")[:2] == [(0, "mlx5_0:1/IB"), (1, "mlx5_1:1/IB")]


def test_a_failed_completion_tells_device_and_addresses(shared: Path) -> None:
    file = shared / "cases/o14_roce_gid_link_local_only/node-a.log"
    meant = learn(lines(file.read_text()))
    assert sampled(meant, "nccl.completion_error") == [
        (
            12,
            "device=roceP2p1s0f0 local_gid=fe80::a00:1:1 remote_gid=fe80::a00:3:1 "
            "peer=192.0.2.63 port=40100 vendor_error=129",
        )
    ]
    assert sampled(meant, "nccl.error") == []


@pytest.mark.parametrize(
    ("message", "name", "value", "text"),
    [
        ("NET/IB : Got completion with error 12, opcode 1, len 32602, vendor err 129",
         "nccl.completion_error", 12, "vendor_error=129"),
        ("NET/IB : Got completion from peer 10.0.0.2<3762> with error 5, opcode 0, len 0, vendor "
         "err 249 (Recv) localGid ::ffff:10.0.0.1 remoteGid ::ffff:10.0.0.2",
         "nccl.completion_error", 5, "local_gid=::ffff:10.0.0.1 remote_gid=::ffff:10.0.0.2 "
         "peer=10.0.0.2 port=3762 vendor_error=249"),
        ("transport/net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<3762> with "
         "status=12 opcode=32601 len=0 vendor err 129 (Send) localGid fe80::1 remoteGidsfe80::2 "
         "hca mlx5_4", "nccl.completion_error", 12, "device=mlx5_4 local_gid=fe80::1 "
         "remote_gid=fe80::2 peer=10.0.0.2 port=3762 vendor_error=129"),
        ("NET/IB : mlx5_0:1 Got async event : port error", "nccl.async_event", None,
         "NET/IB : mlx5_0:1 Got async event : port error"),
        ("NET/IB : mlx5_3:1 async fatal event on QP (0x7f): local QP error", "nccl.async_event",
         None, "NET/IB : mlx5_3:1 async fatal event on QP (0x7f): local QP error"),
        ("misc/socket.cc:484 -> 2", "nccl.error", 2, "misc/socket.cc:484 -> 2"),
        ("proxy.cc:1495 (ncclProxyService) -> 3", "nccl.error", 3, "proxy.cc:1495 -> 3"),
        ("Call to connect returned Connection refused, retrying", "nccl.error", None,
         "Call to connect returned Connection refused, retrying"),
        ("[Service thread] Error encountered progressing operation=Connect, res=3, closing "
         "connection", "nccl.error", 3, "[Service thread] Error encountered progressing "
         "operation=Connect, res=3, closing connection"),
        ("Mismatched NCCL version detected : rank 0 version 22705 rank 4 version 22809",
         "nccl.error", None,
         "Mismatched NCCL version detected : rank 0 version 22705 rank 4 version 22809"),
        ("P2P is disabled between connected GPUs 1 and 0. You can repress this message with "
         "NCCL_IGNORE_DISABLED_P2P=1.", "nccl.p2p_disabled", None, "P2P is disabled between "
         "connected GPUs 1 and 0. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1."),
        ("RAS timeout warning (5s): peer 3 unresponsive", "nccl.ras", None,
         "RAS timeout warning (5s): peer 3 unresponsive"),
        ("[0] 1048576 Bytes -> Algo 1 proto 2 time 88.2", "nccl.algorithm", 1048576, "RING/SIMPLE"),
        ("NCCL_IB_HCA set to =mlx5_0,mlx5_1", "nccl.env", None, "NCCL_IB_HCA==mlx5_0,mlx5_1"),
        ("NET/IB : GPU Direct RDMA Disabled for GPU 1b000 / HCA 2 (distance 8 > 5)",
         "nccl.gdr_disabled", None, "GPU 1b000 / HCA 2 (distance 8 > 5)"),
        ("NCCL version 2.18.3+cuda12.2", "nccl.version", None, "2.18.3+cuda12.2"),
        ("16 coll channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer",
         "nccl.channels", 16, ""),
    ],
)  # fmt: skip
def test_lines_of_all_releases(message: str, name: str, value: float | None, text: str) -> None:
    assert sampled(learn(said(message)), name) == [(value, text)]


@pytest.mark.parametrize(
    ("message", "edge"),
    [
        ("Ring 00 : 3[1] -> 0[0] [receive] via NET/IB/0/GDRDMA", (0, 3, 0, "NET/IB/0/GDRDMA")),
        ("Channel 02 : 0[1b000] -> 1[3e000] via direct shared memory",
         (2, 0, 1, "direct shared memory")),
        ("Channel 01/0 : 0[3d000] -> 3[ff0] [send] via NET/IB/0(2)/GDRDMA",
         (1, 0, 3, "NET/IB/0(2)/GDRDMA")),
        ("Channel 05/1 : 0[0] -> 2[2] via P2P/indirect/1[1]", (5, 0, 2, "P2P/indirect/1[1]")),
        ("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", (0, 0, 1, "SHM/direct/direct")),
        ("Channel 00 : 0[b0] -> 1[c0] via P2P/IPC comm 0xa0 nRanks 04", (0, 0, 1, "P2P/IPC")),
    ],
)  # fmt: skip
def test_edges_of_all_releases(message: str, edge: tuple[Any, ...]) -> None:
    paths = learn(said(START + "commId 0xfe - Init START", message)).learned.paths
    assert rows(paths, "channel", "src_rank", "dst_rank", "transport") == [edge]
    assert paths["comm"].to_pylist() == ["fe"]


@pytest.mark.parametrize(
    "message",
    [
        "comm 0xa0 rank 2 nranks 8 cudaDev 1 nvmlDev 5 busId 5d000 commId 0x00AB12 - Init COMPLETE",
        "[Rank 2] ncclCommInitRankConfig comm 0xa0 rank 2 nranks 8 cudaDev 1 nvmlDev 5 busId 5d000 "
        "commId 0xab12 - Init START",
        "ncclCommSplit comm 0xa0 rank 2 nranks 8 cudaDev 1 nvmlDev 5 busId 5d000 parent 0x1 color "
        "0 key 2 commId 0xab12 - Init COMPLETE",
    ],
)
def test_members_of_all_releases(message: str) -> None:
    members = learn(said(message)).learned.members
    assert rows(members, "comm", "group_rank", "world_size", "device_index", "host", "pid") == [
        ("ab12", 2, 8, 5, "node-a", 7)
    ]


@pytest.mark.parametrize(
    ("version", "words", "comm"),
    [
        ("2.27.7", "splitCount 2 color -7 key 0-", "1998e754e7049864"),
        ("2.29.2", "childCount 2 color -7 key 0 -", "1998e754e7049864"),
        ("2.25.1", "splitCount 2 color -7 key 0-", "518c6ae04538e648"),
    ],
)
def test_a_split_gets_the_id_that_the_library_gives_it(version: str, words: str, comm: str) -> None:
    # the ids were made by the library's own functions, compiled
    table = said(
        f"NCCL version {version}+cuda12.9",
        START + "commId 0x54fe282d32a87d85 - Init START",
        f"ncclCommSplit comm 0xb0 rank 1 nranks 2 cudaDev 0 nvmlDev 3 busId 1b000 parent 0xa0 "
        f"{words} Init START",
        "AllGather: opCount 1f sendbuff 0x1 recvbuff 0x2 count 100 datatype 9 op 0 root 0 "
        "comm 0xb0 [nranks=2] stream 0x3",
    )
    learned = learn(table).learned
    assert learned.members["comm"].to_pylist() == ["54fe282d32a87d85", comm]
    assert rows(learned.joins, "comm", "seq", "op", "size_bytes") == [(comm, 32, "all_gather", 200)]


def test_a_pointer_that_is_used_again_means_the_newer_communicator() -> None:
    call = (
        "ReduceScatter: opCount {} sendbuff 0x1 recvbuff 0x2 count 10 datatype 7 op 0 root 0 "
        "comm 0xa0 [nranks=4] stream 0x3"
    )
    table = said(
        START + "commId 0x11 - Init START",
        START + "commId 0x11 - Init COMPLETE",
        call.format("0"),
        "comm 0xa0 rank 0 nranks 4 cudaDev 0 busId 1b000 - Destroy COMPLETE",
        START + "commId 0x22 - Init START",
        call.format("0"),
    )
    learned = learn(table).learned
    assert rows(learned.joins, "comm", "size_bytes") == [("11", 160), ("22", 160)]
    assert learned.members["comm"].to_pylist() == ["11", "22"]


def test_what_was_said_in_an_earlier_block_is_remembered(shared: Path) -> None:
    text = (shared / "traces/nccl_log/nccl2.27_2xa100_fault.log").read_text(errors="replace")
    whole, parts = lines(text), nccl.knowing()
    blocks = [parts.learn(whole.slice(at, 100)).learned for at in range(0, whole.num_rows, 100)]
    at_once = learn(whole).learned
    for name in ("members", "joins", "paths"):
        assert pa.concat_tables([getattr(b, name) for b in blocks]).equals(getattr(at_once, name))


def test_an_abort_is_a_failure_and_a_destroy_is_none() -> None:
    end = "comm 0xa0 rank 0 nranks 4 cudaDev 0 busId 1b000 - {} COMPLETE"
    begin = START + "commId 0x11 - Init START"
    assert sampled(learn(said(begin, end.format("Destroy"))), "nccl.error") == []
    assert sampled(learn(said(begin, end.format("Abort"))), "nccl.error") == [
        (None, "Abort of communicator 11 rank 0")
    ]


def test_other_warnings_are_failures_and_other_programs_are_not_ours() -> None:
    warning = said("Cuda failure 'out of memory'", "the sky is low", level="WARN")
    words = [t for _, t in sampled(learn(warning), "nccl.error")]
    assert words == ["Cuda failure 'out of memory'", "the sky is low"]
    other = [row | {"origin": "vllm"} for row in warning.to_pylist()]
    assert learn(pa.Table.from_pylist(other, LINES)).learned.samples.num_rows == 0


def test_a_garbled_record_is_counted() -> None:
    call = "AllReduce: opCount 3 sendbuff 0x1 recvbuff 0x2 count 1"
    meant = learn(said(call, call + "node-a:7", "Channel 00/0 : 1[1] -> via P2P/CUMEM"))
    assert sampled(meant, "log.unread") == [
        (2, call),
        (1, "Channel 00/0 : 1[1] -> via P2P/CUMEM"),
    ]


def test_secrets_in_variables_are_not_kept() -> None:
    meant = learn(said("NCCL_NET_AUTH_TOKEN set by environment to abc", "NCCL_ALGO set to tree"))
    assert sampled(meant, "nccl.env") == [(None, "NCCL_ALGO=tree")]


def test_the_rank_in_the_run_is_told_only_where_a_process_has_all_ranks_of_its_host() -> None:
    one = START + "commId 0x11 - Init START"
    two = one.replace("0xa0 rank 0", "0xb0 rank 1")
    assert learn(said(one)).learned.members["rank"].to_pylist() == [None]
    assert learn(said(one, two)).learned.members["rank"].to_pylist() == [0, 1]


def test_no_line_raises() -> None:
    words = ["comm 0xa0 rank 99999999999 nranks 4 cudaDev 0 - Init START", "", "Channel", "[0] ",
             "AllReduce: opCount ffffffffffffffffff sendbuff 0 recvbuff 0 count 1 datatype 99 op 0 "
             "root 0 comm 0x1", "AllReduce: opCount ffffffffffffffff sendbuff 0 recvbuff 0 count "
             "999999999999999999 datatype 8 op 0 root 0 comm 0x1 [nranks=9999999]",
             "comm 0x0 rank 1 nranks 2 cudaDev 0 parent 0x9 color 1 key 0 - Init START",
             "NET/IB : Using [999]", "NCCL version 2.x", "\u0000\ud7ff"]  # fmt: skip
    huge = "9" * 40
    words += [f"NET/IB : Using [{huge}]mlx5_0:1/IB", f"x.cc:1 -> {huge}", f"Error: res={huge}",
              f"comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev {huge} - Init START",
              f"Got completion with status={huge}", f"{huge} coll channels, "]  # fmt: skip
    learn(said(*words))
    learn(LINES.empty_table())
