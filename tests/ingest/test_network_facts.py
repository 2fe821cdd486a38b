"""Facts of networks that rules ask for: edges, addresses, link-local devices, noted slow-downs."""

from pathlib import Path

from teller.ingest.readers import host_facts, log, note
from teller.ingest.source import Reading
from teller.ingest.who import Told, record_hosts

NCCL = """\
gpu-17:700:700 [0] NCCL INFO Bootstrap: Using bond0:192.0.2.11<0>
gpu-17:700:1102 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eno1:198.51.100.21<0>
gpu-17:700:1102 [0] NCCL INFO Assigned NET plugin IB to comm
gpu-17:700:1102 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
gpu-17:700:1103 [0] NCCL INFO Channel 00/0 : 7[3] -> 0[0] [receive] via NET/IB/0/GDRDMA
gpu-17:700:1103 [0] NCCL INFO Channel 01/0 : 7[3] -> 0[0] [receive] via NET/IB/1/GDRDMA
gpu-17:700:1103 [0] NCCL INFO Channel 02/0 : 7[3] -> 0[0] [receive] via NET/IB/0/GDRDMA
"""
GIDS = """\
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4\t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------\t---\t---
mlx5_0\t1\t0\tfe80:0000:0000:0000:0a00:0001:0000:0000\t\t\tv1\tens0
mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c000:023d\t192.0.2.61\tv2\tens0
mlx5_1\t1\t0\tfe80:0000:0000:0000:0a00:0001:0000:0001\t\t\tv1\tens1
"""
NOTE = """\
{"usual": {"tokens_per_s": 400, "ttft_ms": 80, "users": 8},
 "now": {"tokens_per_s": 100, "ttft_ms": 240, "users": 4}}
"""


def told(reading: Reading, name: str) -> list[tuple[object, ...]]:
    (records,) = reading.records
    rows = records.samples.to_pylist()
    return [(r["value"], r["text"], r["line"]) for r in rows if r["name"] == name]


def test_edges_over_a_network_are_said_once_a_device(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(NCCL, "utf-8")
    reading = log.read(path)
    assert told(reading, "nccl.edge") == [
        (0, "7->0 NET/IB/0/GDRDMA", 5),
        (1, "7->0 NET/IB/1/GDRDMA", 6),
    ]
    assert told(reading, "nccl.address") == [(None, "192.0.2.11", 1), (None, "198.51.100.21", 2)]
    assert told(reading, "nccl.network") == [(None, "IB", 3)]


def test_a_device_with_link_local_addresses_alone_is_said(tmp_path: Path) -> None:
    path = tmp_path / "gids.txt"
    path.write_text(GIDS, "utf-8")
    assert told(host_facts.read(path), "host.gid_link_local") == [
        (0, "mlx5_0", 3),
        (1, "mlx5_1", 5),
    ]


def test_a_note_says_how_much_slower_its_figures_are(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    path.write_text(NOTE, "utf-8")
    assert told(note.read(path), "note.slowdown_ratio") == [
        (4, "tokens_per_s", 2),
        (3, "ttft_ms", 2),
    ]


def test_a_side_file_is_of_the_host_whose_name_it_begins_with(tmp_path: Path) -> None:
    for name, text in (("all.log", NCCL), ("gpu-17.gids.txt", GIDS), ("gpu-1.gids.txt", GIDS)):
        (tmp_path / name).write_text(text, "utf-8")
    readings = [
        log.read(tmp_path / "all.log"),
        host_facts.read(tmp_path / "gpu-17.gids.txt"),
        host_facts.read(tmp_path / "gpu-1.gids.txt"),
    ]
    records = [record for reading in readings for record in reading.records]
    hosts = [host for host, _ in record_hosts(records, Told(), (), ())]
    assert hosts[1:] == ["gpu-17", ""]
