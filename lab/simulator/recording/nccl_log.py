"""NCCL's log of each process: how communicators began, what carries them, calls, and notes.

`Happened.facts` says what they go through: `transports` by pair of ranks ("0-1"), as the line of a
channel ends, `network`, `channels`. What is not said is what a healthy machine prints.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from teller.lab.simulator.happened import OPS, Happened, Note
from teller.lab.simulator.recording.columns import distinct, joined, number, picked
from teller.lab.simulator.recording.lines import local
from teller.lab.simulator.recording.notes import said
from teller.lab.simulator.recording.nsys_schema import number as release_of
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.seen import column
from teller.lab.simulator.scene import Group, Scene

_CALLS: Final = {
    "all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter",
    "all_to_all": "AlltoAll", "broadcast": "Broadcast", "send": "Send", "recv": "Recv",
}  # fmt: skip
_BFLOAT16: Final = 9
_STAMPED: Final = (2, 26)  # the release since which warnings have a time


def write_logs(happened: Happened, recording: Recording, folder: Path) -> list[tuple[int, Path]]:
    """Write one file a rank, as NCCL_DEBUG_FILE=nccl.%h.%p does; give which rank has which."""
    found = []
    for rank, place in enumerate(happened.scene.places):
        host = happened.scene.hosts[place.host]
        path = folder / f"nccl.{host.name}.{recording.pid(happened.scene, rank)}.log"
        path.write_text("".join(f"{line}\n" for line in _lines(happened, recording, rank)))
        found.append((rank, path))
    return found


def _lines(happened: Happened, recording: Recording, rank: int) -> Iterator[str]:
    """Give the lines of a rank; calls and notes stand in order of time."""
    scene = happened.scene
    notes = [n for n in happened.notes if n.source == f"nccl {rank}"]
    early = [n for n in notes if n.time_ns <= 0]
    yield from _begin(happened, recording, rank, early)
    timed = [(n.time_ns, line) for n in notes if n.time_ns > 0
             for line in _noted(happened, recording, rank, n)]  # fmt: skip
    if recording.nccl_calls:
        timed += _called(happened, recording, rank)
    for _, line in sorted(timed, key=lambda one: one[0]):
        yield line
    if not happened.joins[rank].end_ns.min(initial=0) < 0 and rank not in happened.dead:
        for group in _groups(scene, rank):
            own = group.ranks.index(rank)
            text = f"comm {_pointer(rank, group)} rank {own} nranks {len(group.ranks)} cudaDev "
            device = scene.places[rank].device
            yield _info(happened, recording, rank, f"{text}{device} busId {_bus(scene, rank)} - "
                        "Destroy COMPLETE", thread=19)  # fmt: skip


def _begin(happened: Happened, recording: Recording, rank: int, early: list[Note]) -> Iterator[str]:
    scene, release = happened.scene, release_of(recording.nccl)
    place = scene.places[rank]
    host = scene.hosts[place.host]
    network = str(happened.facts.get("network", "IB"))
    first = [f"Bootstrap : Using eth0:{host.address}<0>", "cudaDriverVersion 12080"]
    version = f"NCCL version {recording.nccl}+cuda12.8"
    if release >= (2, 25):
        first.append(version)
    else:
        yield version
    first += [f"{n} set by environment to {v}." for n, v in scene.settings.items()
              if n.startswith("NCCL_")]  # fmt: skip
    first.append("NET/Plugin: Could not find: libnccl-net.so.")
    if network == "Socket":
        first += ["NET/IB : No device found.", f"NET/Socket : Using [0]eth0:{host.address}<0>"]
    else:
        listed = " ".join(f"[{i}]{nic}:1/IB" for i, nic in enumerate(host.nics))
        first.append(f"NET/IB : Using {listed} [RO]; OOB eth0:{host.address}<0>")
    if release >= (2, 28):
        first.append(f"Assigned NET plugin {network} to comm")
    first.append(f"Using network {network}")
    for text in first:
        yield _info(happened, recording, rank, text)
    for note in early:
        yield from _noted(happened, recording, rank, note)
    for group in _groups(scene, rank):
        for text in _communicator(happened, recording, rank, group):
            yield _info(happened, recording, rank, text, thread=19)


def _communicator(
    happened: Happened, recording: Recording, rank: int, group: Group
) -> Iterator[str]:
    """Give what is printed as a rank joins a communicator."""
    scene, release = happened.scene, release_of(recording.nccl)
    place, own, size = scene.places[rank], group.ranks.index(rank), len(group.ranks)
    comm = (
        f"comm {_pointer(rank, group)} rank {own} nranks {size} cudaDev {place.device} nvmlDev "
        f"{place.device} busId {_bus(scene, rank)} commId 0x{group.comm:x}"
    )
    call = "ncclCommInitRankConfig " if release >= (2, 21) else ""
    yield f"{f'[Rank {own}] ' if release >= (2, 29) else ''}{call}{comm} - Init START"
    hosts = sorted({scene.places[r].host for r in group.ranks})
    locals_ = [r for r in group.ranks if scene.places[r].host == place.host]
    channels = int(happened.facts.get("channels", 16))
    if release >= (2, 21):
        yield (f"comm {_pointer(rank, group)} rank {own} nRanks {size} nNodes {len(hosts)} "
               f"localRanks {len(locals_)} localRank {locals_.index(rank)} MNNVL 0")  # fmt: skip
    if own == 0:
        ring = " ".join(str(n) for n in range(size))
        for channel in range(channels):
            yield f"Channel {channel:02d}/{channels:02d} :    {ring}"
    yield f"P2P Chunksize set to {131072 if len(hosts) > 1 else 524288}"
    for channel in range(channels):
        yield from _edges(happened, rank, group, channel)
    yield "Connected all rings"
    yield (f"{channels} coll channels, {channels} collnet channels, 0 nvls channels, "
           f"{channels} p2p channels, 2 p2p channels per peer")  # fmt: skip
    if release >= (2, 22):
        total = 0.31 + rank % 5 * 0.01
        yield (f"Init timings - ncclCommInitRankConfig: rank {own} nranks {size} total {total:.2f} "
               "(kernels 0.14, alloc 0.02, bootstrap 0.03, allgathers 0.01, topo 0.05, graphs 0.01,"
               " connections 0.04, rest 0.01)")  # fmt: skip
    yield f"{call}{comm} - Init COMPLETE"


def _edges(happened: Happened, rank: int, group: Group, channel: int) -> Iterator[str]:
    """Give a rank's edges in one channel: what it sends, and over a network what it receives."""
    scene, size = happened.scene, len(group.ranks)
    own = group.ranks.index(rank)
    after, before = (own + 1) % size, (own - 1) % size
    if size == 1:
        return
    way = transport(happened, rank, group.ranks[after])
    peers = {r: scene.places[group.ranks[r]].device for r in (own, after, before)}
    if way.startswith("NET"):
        yield (f"Channel {channel:02d}/0 : {own}[{peers[own]}] -> {after}[{peers[after]}] [send] "
               f"via {way}")  # fmt: skip
    else:
        yield f"Channel {channel:02d}/0 : {own}[{peers[own]}] -> {after}[{peers[after]}] via {way}"
    back = transport(happened, group.ranks[before], rank)
    if back.startswith("NET"):
        yield (f"Channel {channel:02d}/0 : {before}[{peers[before]}] -> {own}[{peers[own]}] "
               f"[receive] via {back}")  # fmt: skip


def transport(happened: Happened, source: int, target: int) -> str:
    """Give what carries data from one rank to another, as a channel's line ends."""
    places = happened.scene.places
    own = happened.facts.get("transports", {}).get(f"{source}-{target}")
    if own:
        return str(own)
    near = places[source].host == places[target].host
    return "P2P/CUMEM" if near else f"NET/IB/{places[source].device}/GDRDMA"


def _groups(scene: Scene, rank: int) -> list[Group]:
    return [g for g in scene.groups if rank in g.ranks]


def _pointer(rank: int, group: Group) -> str:
    return f"0x{0x55B600000000 + (rank << 24) + (group.comm & 0xFFF0):x}"


def _bus(scene: Scene, rank: int) -> str:
    place = scene.places[rank]
    domain, bus, rest = scene.hosts[place.host].bus[place.device].split(":")
    device, function = rest.split(".")
    return f"{int(domain + bus + device + function, 16):x}"


def _called(happened: Happened, recording: Recording, rank: int) -> list[tuple[int, str]]:
    """Give the line of each collective call."""
    joins, scene = happened.joins[rank], happened.scene
    names = ("op", "group", "peer")
    each, which = distinct(*(column(joins, name, np.arange(len(joins.seq))) for name in names))
    begins = [f"{_CALLS[OPS[op]]}: opCount " for op, _, _ in each]
    ends = [
        f" datatype {_BFLOAT16} op 0 root {max(peer, 0)} comm {_pointer(rank, scene.groups[g])} "
        f"[nranks={len(scene.groups[g].ranks)}] stream 0x55b7{rank:02x}9a40"
        for _, g, peer in each
    ]
    numbers = [f"{n:x}" for n in range(int(joins.seq.max(initial=0)) + 1)]
    places = [f" sendbuff 0x7f{rank:02x}{n:02x}000000 recvbuff 0x7f{rank:02x}{n:02x}000000 count "
              for n in range(97)]  # fmt: skip
    if not each:
        return []
    lines = joined(
        f"{_head(happened, recording, rank)} NCCL INFO ", picked(begins, which),
        picked(numbers, joins.seq), picked(places, joins.seq % 97), number(joins.elements),
        picked(ends, which),
    )  # fmt: skip
    return list(zip(joins.host_ns.tolist(), lines.to_pylist(), strict=True))


def _noted(happened: Happened, recording: Recording, rank: int, note: Note) -> Iterator[str]:
    newer = release_of(recording.nccl) >= (2, 27)
    line = (said(note.kind, "nccl_new", note.values) if newer else None) or said(
        note.kind, "nccl", note.values
    )
    if line is None:
        return
    if line.level == "INFO":
        yield _info(happened, recording, rank, line.text, thread=23)
        return
    yield ""
    stamp = ""
    if release_of(recording.nccl) >= _STAMPED:
        host = happened.scene.places[rank].host
        stamp = f"[{local(happened, recording, host, note.time_ns):%Y-%m-%d %H:%M:%S}] "
    head = _head(happened, recording, rank, 23)
    yield f"{stamp}{head} {line.where} NCCL WARN {line.text}"


def _head(happened: Happened, recording: Recording, rank: int, thread: int = 0) -> str:
    place = happened.scene.places[rank]
    pid = recording.pid(happened.scene, rank)
    return f"{happened.scene.hosts[place.host].name}:{pid}:{pid + thread} [{place.device}]"


def _info(happened: Happened, recording: Recording, rank: int, text: str, thread: int = 0) -> str:
    return f"{_head(happened, recording, rank, thread)} NCCL INFO {text}"
