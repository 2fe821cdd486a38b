"""How a service and its ranks are set up: what a rank process is told when it starts."""

from pathlib import Path
from typing import Final

import msgspec

NAME: Final = "testbed-service"
VERSION: Final = "1.0"


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The model and the limits of the scheduler; the same on all ranks."""

    tp: int = 2
    pp: int = 1
    hidden: int = 512
    ffn: int = 1408
    heads: int = 8
    layers: int = 8
    vocab: int = 2048
    kv_blocks: int = 256
    block_tokens: int = 16
    max_length: int = 512
    token_limit: int = 128  # new tokens a step
    batch_limit: int = 16  # requests a step
    stat_every_s: float = 2.0
    table_every: int = 50  # batches between two listings of the block tables in the log

    @property
    def world(self) -> int:
        """Give the number of ranks."""
        return self.tp * self.pp

    def model(self) -> dict[str, int]:
        """Give the sizes that a manifest tells."""
        return {
            "layers": self.layers, "hidden": self.hidden, "heads": self.heads,
            "ffn": self.ffn, "vocab": self.vocab,
        }  # fmt: skip


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank process. `folder` has its sockets, and what it leaves at its end."""

    rank: int
    service: Service
    master: str
    port: int
    http_port: int
    interface: str
    folder: str
    profiled: bool = False  # torch's profiler will be asked for: its first start takes long

    @property
    def control(self) -> Path:
        """Give the folder of sockets and results."""
        return Path(self.folder)

    @property
    def log(self) -> Path:
        """Give the service's log on this rank."""
        return self.control / f"rank{self.rank}.log"

    @property
    def tp_rank(self) -> int:
        """Give its place among those that share its layers."""
        return self.rank % self.service.tp

    @property
    def pp_rank(self) -> int:
        """Give its pipeline stage."""
        return self.rank // self.service.tp

    @property
    def process_name(self) -> str:
        """Give the name that vLLM would give the process."""
        if self.rank == 0:
            return "EngineCore_DP0"
        stage = f"PP{self.pp_rank}_" if self.service.pp > 1 else ""
        return f"Worker_{stage}TP{self.tp_rank}"


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the client sends: Poisson arrivals until it is told to end."""

    host: str
    port: int
    rate: float
    seed: int
    warm: int = 6
    out: str  # a file
    control: str  # socket on which more requests are asked for, or the end


class More(msgspec.Struct, frozen=True, kw_only=True):
    """Some requests beside the usual ones; none is the end of all."""

    count: int
    words: int = 20
    characters: int = 0  # above 0: one word of so many, of which the service keeps `keep` tokens
    keep: int = 0
    output_tokens: int = 8
