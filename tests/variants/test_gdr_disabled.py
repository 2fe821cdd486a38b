"""GPU Direct RDMA off on a host, off on all, and what looks like it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.variants.nccl_logs import World

LOOK_ALIKES = ("all on", "all off", "consumer", "sockets", "one host", "quiet middle", "no word")
MODULES = ("nvidia_uvm", "nvidia", "ib_uverbs", "ib_core")
NEVER = ("transport_fallback", "wrong_nic", "packet_loss")


def modules(world: World, folder: Path, host: str, *, peermem: bool) -> None:
    """Write the list of a host's modules beside its log, or in its folder."""
    names = (*(["nvidia_peermem"] if peermem else []), *MODULES)
    lines = ["Module                  Size  Used by", *(f"{n:22} 188416  2" for n in names)]
    inner = folder / host
    path = inner / "lsmod.txt" if inner.is_dir() else folder / f"{host}.lsmod.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")


def rank_lines(world: World, rank: int, *, direct: bool, told: bool = True) -> None:
    """Write a rank that uses RDMA; `told`: the library says of each card whether it may."""
    world.begin(rank)
    world.network(rank, "mlx5_0:1/IB", "mlx5_1:1/IB")
    world.joins(rank, "START")
    device = rank % world.gpus
    for card in (0, 1) if told else ():
        if direct:
            world.say(rank, f"GPU Direct RDMA Enabled for GPU {device} / HCA {card} "
                            "(distance 4 <= 5), read 1 mode Default")  # fmt: skip
        else:
            world.say(rank, f"NET/IB : GPU Direct RDMA Disabled for HCA {card} 'mlx5_{card}'")
    world.edges(rank, "P2P/CUMEM", "NET/IB/{}/GDRDMA" if direct else "NET/IB/{}")
    world.say(rank, f"Connected all rings, use ring PXN 0 GDR {int(direct)}")
    world.joins(rank, "COMPLETE")


def looks_alike(world: World, kind: str) -> None:
    """Let a run have the same words for another reason, or none of them."""
    for rank in range(world.size):
        if kind == "sockets":
            world.begin(rank)
            world.network(rank)
            world.joins(rank, "START")
            world.edges(rank, "P2P/CUMEM", "NET/Socket/{}")
            world.say(rank, "Connected all rings, use ring PXN 0 GDR 0")
        elif kind == "quiet middle":
            rank_lines(world, rank, direct=True, told=False)
            if rank % world.gpus not in (0, world.gpus - 1):
                world.say(rank, "Connected all rings, use ring PXN 0 GDR 0")
        else:
            rank_lines(world, rank, direct=kind == "all on", told=kind != "no word")
    if kind == "consumer":
        line = "(Worker_TP0 pid=9) INFO 05-03 08:11:00 [cuda.py:40] Device: NVIDIA GeForce RTX 4090"
        world.files[world.hosts[0]].append(line)
    world.serves()


@pytest.mark.parametrize("seed", range(20))
def test_direct_rdma_that_is_off_is_told_by_where_it_is_off(
    seed: int, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    kind = "" if seed < 13 else LOOK_ALIKES[seed - 13]
    world = World(seed, 1, 1) if kind == "one host" else World(seed)
    if kind:
        looks_alike(world, kind)
        folder = world.write(tmp_path / "run")
        everywhere = {"hosts": sorted(world.hosts)}
        right(folder, *(("gdr_disabled", everywhere, NEVER) if kind == "all off" else ("",)))
        return
    several = len(world.hosts) > 2 and world.random.random() < 0.3
    struck = sorted(world.random.sample(world.hosts, 2 if several else 1))
    told = world.random.random() < 0.7
    for rank in range(world.size):
        rank_lines(world, rank, direct=world.host(rank) not in struck, told=told)
    folder = world.write(tmp_path / "run")
    listed = world.random.choice(([], struck, world.hosts))
    for host in listed:
        modules(world, folder, host, peermem=host not in struck)
    ranks = [r for r in range(world.size) if world.host(r) in struck]
    said = right(folder, "gdr_disabled", {"hosts": struck, "ranks": ranks}, NEVER)
    shown = [e["text"] for e in said["findings"][0]["evidence"]]
    assert any("peermem is not among" in text for text in shown) == bool(listed)
