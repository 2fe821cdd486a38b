"""How long a collective takes once all ranks are there: its pure time.

The library's own model (`src/graph/tuning.cc` of NCCL): latency of an algorithm and protocol plus
bytes over bandwidth, the cheapest pair of all; and measured tables for the engines' own all-reduce.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from teller.lab.simulator.catalog import numbers
from teller.lab.simulator.scene import Group, Scene

PROTOCOLS: Final = ("LL", "LL128", "Simple")
ALGORITHMS: Final = ("ring", "tree")


@dataclass(frozen=True, slots=True)
class Wire:
    """What a group's traffic goes through. `network` counts bytes/s between hosts."""

    ranks: int
    hosts: int
    nvlink: float
    network: float
    hop_us: float = 0.0  # added to each hop between hosts
    peer: bool = True  # devices of a host reach each other directly
    socket: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm and protocol that carry a size, and the time they take."""

    algorithm: str
    protocol: str
    pure_ns: float


def wire_of(scene: Scene, group: Group) -> Wire:
    """Give the healthy wire of a group: NVLink inside of hosts, one NIC a device between them."""
    places = [scene.places[r] for r in group.ranks]
    hosts = len({p.host for p in places})
    nic = numbers()["nccl"]["nic"] / scene.nuisance.network_speed
    per_host = len(places) / hosts
    return Wire(len(places), hosts, scene.gpu.nvlink, nic * per_host)


def custom_ns(engine: str, ranks: int, size_bytes: float) -> float | None:
    """Give the time of the engine's own all-reduce in ns; None where it does not apply."""
    table = numbers()["custom_all_reduce"]
    times = table.get(engine, {}).get(str(ranks))
    if times is None or size_bytes > table["limit_bytes"]:
        return None
    at = np.log(np.array(table["bytes"], float))
    log = np.log(np.array(times) * 1000)
    x = float(np.log(max(size_bytes, table["bytes"][0])))
    if x > at[-1]:  # bandwidth rules beyond the table
        return float(np.exp(log[-1] + (x - at[-1])))
    return float(np.exp(np.interp(x, at, log)))


def choose(wire: Wire, op: str, size_bytes: float, pinned: tuple[str, str] | None = None) -> Choice:
    """Give the cheapest way, as the library picks it, or the pinned one."""
    ways = [
        Choice(a, p, _way_ns(wire, op, size_bytes, a, i))
        for a in ALGORITHMS
        for i, p in enumerate(PROTOCOLS)
        if pinned is None or pinned == (a, p)
    ]
    return min(ways, key=lambda c: c.pure_ns)


def _way_ns(wire: Wire, op: str, size_bytes: float, algorithm: str, protocol: int) -> float:
    law = numbers()["nccl"]
    n, hosts = wire.ranks, wire.hosts
    inside = "hop_nvlink" if wire.peer else "hop_pcie"
    intra = law[inside][algorithm][protocol]
    inter = law["hop_net"][algorithm][protocol] + wire.hop_us
    inter += law["net_overhead"] * (law["simple_factor"] if protocol == 2 else 1)
    inter += law["socket_hop"] if wire.socket else 0
    if algorithm == "tree":
        steps = 2 * ((n / hosts - 1) * intra + np.log2(hosts) * inter)
    else:
        between = 2 * (hosts - 1) if hosts > 1 else 0
        steps = (2 * (n - 1) - between) * intra + between * inter
    factor = {"all_reduce": 1.0, "all_gather": 0.5, "reduce_scatter": 0.5, "all_to_all": 0.5}
    share = factor.get(op, 0.5)
    latency = law["base"][algorithm][protocol] + steps * share
    return float((latency + _bytes_us(wire, share, size_bytes, protocol, algorithm)) * 1000)


def _bytes_us(wire: Wire, share: float, size_bytes: float, protocol: int, algorithm: str) -> float:
    law = numbers()["nccl"]
    inside = wire.nvlink * law["reached"] * (1.0 if wire.peer else 0.08)
    network = law["socket"] if wire.socket else wire.network
    bandwidth = inside if wire.hosts == 1 else min(inside, network)
    bandwidth *= law["share_of_bandwidth"][protocol] * (0.85 if algorithm == "tree" else 1.0)
    moved = 2 * (wire.ranks - 1) / wire.ranks * share * size_bytes
    return float(moved / bandwidth * 1e6)
