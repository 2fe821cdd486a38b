"""What is simulated: model, engine, hardware, layout and load of one run, and its nuisances.

A scene is drawn from a seed once a run and never changes. Faults are no part of it.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

EngineName = Literal["vllm", "sglang", "trtllm"]
Mode = Literal["eager", "graph", "piecewise"]

DTYPE_BYTES: Final = 2  # bf16, as all models here are served


@dataclass(frozen=True, slots=True)
class Model:
    """Sizes of a decoder; `experts` is 0 for a dense one. `head` is the size of one head."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    ffn: int
    vocab: int
    experts: int = 0
    experts_used: int = 0


@dataclass(frozen=True, slots=True)
class Gpu:
    """A kind of device: peak bf16 FLOP/s, bytes/s of its memory, of NVLink and of PCIe."""

    name: str
    flops: float
    memory: float
    nvlink: float
    pcie: float
    memory_gib: int
    clock_mhz: int
    power_w: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank runs, and its place in each kind of parallelism."""

    rank: int
    host: int
    device: int
    pid: int
    tp: int
    pp: int
    dp: int
    ep: int


@dataclass(frozen=True, slots=True)
class Host:
    """A machine: its names, the devices' addresses and the NICs by which it is reached."""

    name: str
    address: str
    engine_pid: int
    bus: tuple[str, ...]  # "0000:1b:00.0", one a device
    uuid: tuple[str, ...]
    nics: tuple[str, ...]  # "mlx5_0", …


@dataclass(frozen=True, slots=True)
class Group:
    """A process group; `ranks` are global, in order of the group. `comm` is NCCL's 64-bit id."""

    name: str
    desc: str  # "tp", "pp", "dp", "ep", "world"
    ranks: tuple[int, ...]
    comm: int


@dataclass(frozen=True, slots=True)
class Nuisance:
    """What differs between runs and tells nothing: speeds as factors of 1, times in ns."""

    host_speed: float  # of host code; above 1 is slower
    device_speed: tuple[float, ...]  # by rank; above 1 is slower
    network_speed: float
    kernel_sigma: float  # of log durations of one kernel from launch to launch
    host_sigma: float
    leave_ns: float  # spread of the moments at which ranks leave a collective
    spike_rate: float  # rare heavy events a step and rank
    schedule_ns: float  # what the engine does between steps
    dispatch_ns: float  # from the engine to its workers


@dataclass(frozen=True, slots=True)
class Load:
    """The requests: rate in 1/s, log-normal laws of tokens, and what the engine admits."""

    rate: float
    prompt_mu: float
    prompt_sigma: float
    output_mu: float
    output_sigma: float
    batch_limit: int  # requests
    token_limit: int  # new tokens a step
    kv_blocks: int
    block_tokens: int
    bursts: float = 0.0  # share of requests that come in bursts


@dataclass(frozen=True, slots=True)
class Scene:
    """All of it. `seconds` is the length of the recorded window."""

    seed: int
    engine: EngineName
    engine_version: str
    mode: Mode
    model: Model
    gpu: Gpu
    hosts: tuple[Host, ...]
    places: tuple[Place, ...]
    groups: tuple[Group, ...]
    nuisance: Nuisance
    load: Load
    t0_epoch_ns: int
    seconds: float
    offload: bool = False  # new blocks of the cache are copied to the host in every step
    prefill: int = 0  # first replicas that only prefill, and hand their caches to the others
    deployment: str = "sim"
    settings: dict[str, str] = field(default_factory=dict)  # of the engine and of NCCL, as set

    @property
    def tp(self) -> int:
        """Give the number of ranks that share a layer."""
        return 1 + max(p.tp for p in self.places)

    @property
    def pp(self) -> int:
        """Give the number of pipeline stages."""
        return 1 + max(p.pp for p in self.places)

    @property
    def dp(self) -> int:
        """Give the number of replicas."""
        return 1 + max(p.dp for p in self.places)
