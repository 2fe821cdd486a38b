"""RoCE addresses that nobody can reach, and what looks like it: other losses, unused devices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.variants.nccl_logs import World

LOOK_ALIKES = ("unused", "InfiniBand", "loss", "loss", "healthy", "dead peer", "no errors")
CARDS = (("rocep1s0f0", "roceP2p1s0f0"), ("mlx5_0", "mlx5_1"), ("bnxt_re0", "bnxt_re1"))
NEVER = ("collective_missing_rank", "rank_asymmetric_warmup", "compile_in_serving", "packet_loss")


def gids(
    world: World, folder: Path, host: str, cards: tuple[str, str], *, word: str = "v2"
) -> None:
    """Write a host's table of addresses: the second card has link-local ones alone."""
    number = world.hosts.index(host) + 1
    rows = ["DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4\t\tVER\tDEV", "---\t----\t-----\t---\t\t---\t---"]
    for at, card in enumerate(cards):
        for index, version in enumerate(("v1", word)):
            local = f"fe80:0000:0000:0000:0a00:000{number}:0000:000{at}"
            rows.append(f"{card}\t1\t{index}\t{local}\t\t\t{version}\tens{at}np0")
        if not at:
            routed = f"0000:0000:0000:0000:0000:ffff:c633:641{number}"
            rows.append(f"{card}\t1\t2\t{routed}\t{world.address(host)}\t{word}\tens{at}np0")
    inner = folder / host
    path = inner / "gids.txt" if inner.is_dir() else folder / f"{host}.gids.txt"
    path.write_text("\n".join(rows) + "\n", "utf-8")


def runs(world: World, *cards: str) -> None:
    """Let all ranks start up with these devices."""
    for rank in range(world.size):
        world.begin(rank, f"NCCL_IB_HCA==mlx5_0,{cards[0].split(':')[0]}")
        world.network(rank, *cards)
        world.joins(rank, "START")
        world.edges(rank, "P2P/CUMEM", "NET/IB/{}")
        world.say(rank, "Connected all rings, use ring PXN 0 GDR 0")
        world.joins(rank, "COMPLETE")


def fails(world: World, rank: int, peer: str, card: str, *, local: bool, form: int) -> None:
    """Write that an operation of a rank was never acknowledged, as three ages of NCCL say it."""
    here, there = world.address(world.host(rank)), world.address(peer)
    ours, theirs = (
        ("fe80::a00:1:1", "fe80::a00:3:1") if local else (f"::ffff:{here}", f"::ffff:{there}")
    )
    text = (
        f"NET/IB : Got completion from peer {there}<40100> with error 12, opcode 0, len 0, vendor "
        "err 129 (Recv)",
        f"NET/IB : Got completion from peer {there}<40100> with status=12 opcode=0 len=0 vendor "
        f"err 129 (Recv) localGid {ours} remoteGids{theirs} hca {card}",
        f"NET/IB: Got completion from peer {there}<40100> with status=IBV_WC_RETRY_EXC_ERR(12) "
        f"opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Recv localGid {ours} "
        f"remoteGids{theirs} hca {card}",
    )[form]
    world.say(rank, text, warns="transport/net_ib.cc:2472")


def looks_alike(world: World, kind: str, cards: tuple[str, str]) -> None:
    """Let a run have the same words for another reason, or none of them."""
    layer = "IB" if kind == "InfiniBand" else "RoCE"
    used = cards[:1] if kind in ("unused", "healthy", "no errors", "loss", "dead peer") else cards
    runs(world, *(f"{card}:1/{layer}" for card in used))
    if kind == "dead peer":
        world.files[world.hosts[1]].append(
            "(EngineCore_DP0 pid=300) ERROR 05-03 08:10:02 [multiproc_executor.py:154] Worker proc "
            "VllmWorker-1 died unexpectedly, shutting down executor."
        )
    if kind in ("loss", "dead peer"):
        rank = world.gpus - 1
        fails(
            world, rank, world.hosts[1], cards[0], local=False, form=world.random.choice((0, 1, 2))
        )
    else:
        world.serves()


@pytest.mark.parametrize("seed", range(20))
def test_addresses_without_a_route_are_told_from_other_losses(
    seed: int,
    tmp_path: Path,
    right: Callable[..., dict[str, Any]],
    answer: Callable[[Path], dict[str, Any]],
) -> None:
    kind = "" if seed < 13 else LOOK_ALIKES[seed - 13]
    world = World(seed)
    if kind == "dead peer":
        world.version = (2, 27, 5)  # its warnings have a time
    cards = world.random.choice(CARDS)
    if kind:
        looks_alike(world, kind, cards)
        folder = world.write(tmp_path / "run")
        for host in world.hosts if kind != "dead peer" else ():
            gids(world, folder, host, cards, word="IB" if kind == "InfiniBand" else "v2")
        link = sorted(world.hosts[:2])
        if kind == "loss":
            right(folder, "packet_loss", {"links": [link]}, ("roce_gid_unroutable",))
        elif kind == "dead peer":
            found = {f["class"] for f in answer(folder)["findings"] if f["severity"] != "info"}
            assert not found & {"packet_loss", "roce_gid_unroutable"}
        else:
            right(folder, "")
        return
    form = seed % 3
    runs(world, *(f"{card}:1/RoCE" for card in cards))
    struck = world.hosts if form == 0 else world.hosts[: world.random.randint(2, len(world.hosts))]
    for at, host in enumerate(struck[1:]):
        rank = world.gpus - 1 + at * world.gpus
        fails(world, rank, host, cards[1], local=True, form=form)
    folder = world.write(tmp_path / "run")
    tables = form == 0 or world.random.random() < 0.5
    for host in world.hosts if tables else ():
        gids(world, folder, host, cards)
    hosts = sorted(world.hosts if tables else struck)
    right(folder, "roce_gid_unroutable", {"hosts": hosts}, NEVER)
