"""Logs of NCCL as the processes of a run write them: releases, hosts, launchers and files vary."""

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

NAMES = (
    ("node-a", "node-b", "node-c", "node-d"),
    ("gpu-17", "gpu-18", "gpu-21", "gpu-40"),
    ("ip-10-0-3-4", "ip-10-0-3-9", "ip-10-0-7-1", "ip-10-0-7-2"),
    ("3f9ad2c1b0e4", "77ab01c2d3e9", "a0b1c2d3e4f5", "c4d5e6f7a8b9"),
    ("dgx03.lab", "dgx11.lab", "dgx12.lab", "dgx20.lab"),
    ("llm-decode-0", "llm-decode-1", "llm-decode-2", "llm-decode-3"),
)
VERSIONS = ((2, 18, 5), (2, 21, 5), (2, 23, 4), (2, 26, 2), (2, 27, 5), (2, 28, 9), (2, 30, 1))
LAUNCHERS = ("", "", "", "mpirun", "srun")
BEGIN = "2026-05-0{} 08:1{}:{:02}"


@dataclass
class World:
    """The processes of one run: hosts, devices of each, release of NCCL, and what files hold."""

    seed: int
    fewest: int = 2  # hosts
    most: int = 4
    files: dict[str, list[str]] = field(default_factory=dict)  # by host

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.hosts = list(self.random.choice(NAMES)[: self.random.randint(self.fewest, self.most)])
        self.gpus = self.random.choice((1, 2, 4, 8))
        self.version = self.random.choice(VERSIONS)
        self.launcher = self.random.choice(LAUNCHERS)
        self.comm = f"0x{self.random.getrandbits(60) | 1 << 59:x}"
        self.channels = self.random.choice((2, 4))
        self.first_pid = self.random.choice((610, 4100, 81000))
        self.files = {host: [] for host in self.hosts}

    @property
    def size(self) -> int:
        """Give the number of ranks."""
        return self.gpus * len(self.hosts)

    def host(self, rank: int) -> str:
        """Give the host of a rank."""
        return self.hosts[rank // self.gpus]

    def address(self, host: str) -> str:
        """Give the address of a host."""
        return f"198.51.100.{21 + self.hosts.index(host)}"

    def say(self, rank: int, text: str, *, warns: str = "") -> None:
        """Write a line of a rank; `warns` is the place in NCCL's sources that warns."""
        host, device = self.host(rank), rank % self.gpus
        pid = self.first_pid + 61 * device
        head = f"{host}:{pid}:{pid + 400} [{device}] "
        if warns:
            stamp = f"[{BEGIN.format(3, 2, 9)}] " if self.version >= (2, 26, 0) else ""
            place = f"{warns} (ncclSomething)" if self.version >= (2, 30, 0) else warns
            line = f"{stamp}{head}{place} NCCL WARN {text}"
        else:
            line = f"{head}NCCL INFO {text}"
        before = {"mpirun": f"[1,{rank}]<stdout>:", "srun": f"{rank}: "}.get(self.launcher, "")
        self.files[host] += ["", before + line] if warns else [before + line]

    def begin(self, rank: int, *variables: str) -> None:
        """Write how a process begins: addresses, release, variables, plug-in."""
        host = self.host(rank)
        self.say(
            rank, f"Bootstrap{self.random.choice((' ', ''))}: Using eth0:{self.address(host)}<0>"
        )
        self.say(rank, f"NCCL version {'.'.join(map(str, self.version))}+cuda12.9")
        self.say(rank, "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.")
        for variable in variables:
            name, value = variable.split("=", 1)
            self.say(rank, f"{name} set by environment to {value}.")

    def network(self, rank: int, *devices: str) -> None:
        """Write which network a process uses: RDMA devices, or sockets where none is given."""
        oob = f"eth0:{self.address(self.host(rank))}<0>"
        if devices:
            listed = " ".join(f"[{i}]{name}" for i, name in enumerate(devices))
            self.say(rank, f"NET/IB : Using {listed} [RO]; OOB {oob}")
        else:
            self.say(rank, f"NET/Socket : Using [0]{oob}")
        net = "IB" if devices else "Socket"
        if self.version >= (2, 28, 0):
            self.say(rank, f"Assigned NET plugin {net} to comm")
        self.say(rank, f"Using network {net}")

    def joins(self, rank: int, stage: str) -> None:
        """Write that a rank begins or ends to make its communicator."""
        device, pointer = rank % self.gpus, f"0x{0x55D5F5AC0000 + rank * 0x5000:x}"
        name = "ncclCommInitRankConfig " if self.version >= (2, 21, 0) else ""
        self.say(
            rank,
            f"{name}comm {pointer} rank {rank} nranks {self.size} cudaDev {device} nvmlDev "
            f"{device} busId {1 + device}8000 commId {self.comm} - Init {stage}",
        )
        if stage == "START" and self.version >= (2, 21, 0):
            self.say(
                rank,
                f"comm {pointer} rank {rank} nRanks {self.size} nNodes {len(self.hosts)} "
                f"localRanks {self.gpus} localRank {device} MNNVL 0",
            )

    def edges(self, rank: int, inside: str, between: str) -> None:
        """Write the ring's channels of a rank: `between` hosts, where {} is the device's number."""
        size, step = self.size, self.gpus
        for channel in range(self.channels):
            over = between.replace("{}", str(channel % 2))
            for src, dst, way in ((rank - 1, rank, "receive"), (rank, rank + 1, "send")):
                src, dst = src % size, dst % size
                told = f"Channel {channel:02}/0 : {src}[{src % step}] -> {dst}[{dst % step}]"
                if src // step != dst // step:
                    self.say(rank, f"{told} [{way}] via {over}")
                elif way == "send" and src != dst:
                    self.say(rank, f"{told} via {inside}")

    def serves(self, *, rate: float = 400.0) -> None:
        """Write that the engine serves, on the first host."""
        for at in range(5):
            self.files[self.hosts[0]].append(
                f"(APIServer pid=41) INFO 05-03 08:3{at}:11 [loggers.py:271] Engine 000: Avg "
                "prompt throughput: 12.0 tokens/s, Avg generation throughput: "
                f"{rate + at:.1f} tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: "
                "4.1%, Prefix cache hit rate: 0.0%"
            )

    def write(self, folder: Path) -> Path:
        """Write a file a host: beside each other, in folders, or one for all; now and then gzip."""
        way = self.random.choice(("beside", "beside", "folders", "one"))
        folder.mkdir()
        if way == "one":
            lines = [line for host in self.hosts for line in self.files[host]]
            (folder / "all_ranks.out").write_text("\n".join(lines) + "\n", "utf-8")
            return folder
        ending = self.random.choice((".log", ".out", ".txt", ".log.gz"))
        for host in self.random.sample(self.hosts, len(self.hosts)):
            path = (
                folder / host / f"serve{ending}" if way == "folders" else folder / f"{host}{ending}"
            )
            path.parent.mkdir(exist_ok=True)
            raw = ("\n".join(self.files[host]) + "\n").encode()
            path.write_bytes(gzip.compress(raw, mtime=0) if ending.endswith("gz") else raw)
        return folder
