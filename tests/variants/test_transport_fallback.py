"""Sockets where RDMA should be, and what looks like it: chosen, nothing else there, one host."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.variants.nccl_logs import World

LOOK_ALIKES = ("chosen", "chosen and slow", "no device", "one host", "healthy", "chosen", "healthy")
NEVER = ("p2p_blocked", "comm_library", "collective_missing_rank", "collective_mismatch")


def note(folder: Path, world: World, *, slower: float) -> None:
    name = world.random.choice(("baseline_note.json", "usual.json", "note.json"))
    figures = {"gen_tokens_per_s": 400.0, "allreduce_ms": 40.0}
    now = {"gen_tokens_per_s": 400.0 / slower, "allreduce_ms": 40.0 * (slower - 1)}
    (folder / name).write_text(json.dumps({"last_week": figures, "now": now}, indent=1), "utf-8")


def fallen(world: World) -> list[str]:
    """Let all hosts, or one, fail to open their device; give those."""
    struck = world.hosts if world.random.random() < 0.7 else [world.random.choice(world.hosts)]
    device = world.random.choice(("mlx5_bond_0", "mlx5_0", "bnxt_re0", "rocep1s0f0"))
    for rank in range(world.size):
        mine = world.host(rank) in struck
        world.begin(rank, *(["NCCL_IB_DISABLE=0"] if world.seed % 2 else []))
        if mine:
            world.say(rank, "Call to ibv_open_device failed", warns="misc/ibvwrap.cc:106")
            word = f"NET/IB : Unable to open device {device}"
            world.say(rank, word, warns="transport/net_ib.cc:593")
            world.say(rank, "NET/IB : No device found.")
        world.network(rank, *([] if mine else [f"{device}:1/IB"]))
        world.joins(rank, "START")
        world.edges(rank, "P2P/CUMEM", "NET/Socket/{}" if mine else "NET/IB/{}")
        world.joins(rank, "COMPLETE")
    return sorted(struck)


def looks_alike(world: World, kind: str) -> None:
    """Let a run have the same words for another reason, or none of them."""
    chosen = kind.startswith("chosen")
    device = [] if chosen or kind in ("no device", "one host") else ["mlx5_0:1/IB", "mlx5_1:1/IB"]
    for rank in range(world.size):
        variable = world.random.choice(("NCCL_IB_DISABLE=1", "NCCL_NET=Socket"))
        world.begin(rank, *([variable] if chosen else []))
        if kind == "one host":
            world.say(rank, "Call to ibv_open_device failed", warns="misc/ibvwrap.cc:106")
        elif not device:
            world.say(rank, "NET/IB : No device found.")
        world.network(rank, *device)
        world.joins(rank, "START")
        over = "NET/IB/{}/GDRDMA" if device else "NET/Socket/{}"
        world.edges(rank, "P2P/CUMEM", over)
        world.joins(rank, "COMPLETE")
    world.serves()


@pytest.mark.parametrize("seed", range(20))
def test_sockets_are_told_by_why_they_are_used(
    seed: int, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    kind = "" if seed < 13 else LOOK_ALIKES[seed - 13]
    world = World(seed, 1, 1) if kind == "one host" else World(seed)
    if kind:
        looks_alike(world, kind)
        folder = world.write(tmp_path / "run")
        if kind == "chosen and slow":
            note(folder, world, slower=8.0)
        right(folder, "comm_config" if kind == "chosen and slow" else "")
        return
    struck = fallen(world)
    folder = world.write(tmp_path / "run")
    slower = world.random.choice((0.0, 3.0, 10.0))
    if slower:
        note(folder, world, slower=slower)
    said = right(folder, "transport_fallback", {"hosts": struck}, NEVER)
    first = said["findings"][0]
    assert len(first["culprit"]["ranks"]) != 1
    if slower:
        assert first["numbers"]["slowdown_ratio"] == pytest.approx(slower)
