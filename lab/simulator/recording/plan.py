"""How a run was recorded: by which tools, of which release, for how long, and by which clocks.

Nothing here depends on what happened, so nothing about a file tells of a fault.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from teller.lab.simulator.happened import Ints
from teller.lab.simulator.scene import Scene

NSYS: Final = ("2.9.1", "3.4.0", "3.7.4", "3.13.2", "3.17.2", "3.24.0", "3.24.14", "3.25.0")
KINETO: Final = ("2021", "2023", "2024", "2025", "2026")
NCCL: Final = ("2.18.5", "2.21.5", "2.25.1", "2.27.7", "2.29.2")
RECORDER: Final = ("2.4", "2.9", "2.10")
DMESG: Final = ("iso", "human", "boot")

# what is drawn, and how often
_SHARES: Final = {
    "nsys": 0.55,  # else Kineto; both in `both` of runs
    "both": 0.08,
    "graph_mode": 0.3,  # whole graphs in one row
    "payload": 0.3,  # NVTX payloads exported as JSON
    "operators": 0.7,  # nsys with ranges of PyTorch's operators
    "python": 0.15,  # ranges of the interpreter
    "told": 0.7,  # Kineto knows of collectives what PyTorch's process groups know
    "flows": 0.7,
    "nccl_log": 0.6,
    "nccl_calls": 0.35,  # NCCL_DEBUG_SUBSYS has COLL
    "flight_recorder": 0.35,
    "recorder_json": 0.4,
    "engine_log": 0.85,
    "prometheus": 0.5,
    "gpu_csv": 0.4,
    "gpu_dmon": 0.15,
    "client": 0.5,
    "kernel_log": 0.4,
    "otlp": 0.2,
    "inspector": 0.15,
    "per_host": 0.55,  # one file of nsys for all processes of a host, not one a worker
    "packed": 0.4,
    "repeated_pids": 0.35,
    "lost": 0.12,
    "zoned": 0.2,  # local times that are not UTC
    "colour": 0.3,
    "requests_logged": 0.35,  # a line as a request comes
    "early": 0.1,  # the device's clock was converted badly
    "two_windows": 0.15,
    "part": 0.5,  # profilers ran for a part of the run
}
_RELEASES: Final = {  # how often each release wrote the traces; engines of today have the newer
    "nsys": (0.04, 0.06, 0.1, 0.15, 0.2, 0.15, 0.15, 0.15),
    "kineto": (0.03, 0.07, 0.15, 0.4, 0.35),
}
_OFFSET_NS: Final = (2e4, 2e7)  # of a host's clock, log-uniform
_DRIFT_PPM: Final = 8.0
_LOST: Final = (0.002, 0.08)
_ZONES: Final = (-8 * 3600, -5 * 3600, 3600, 2 * 3600, 8 * 3600)


@dataclass(frozen=True, slots=True)
class Clock:
    """A host's clock: it shows the true time, an offset, and what it drifted since the run's 0."""

    offset_ns: int = 0
    drift_ppm: float = 0.0

    def at(self, time_ns: Ints) -> Ints:
        """Give what it shows at true times, in ns since `Scene.t0_epoch_ns`."""
        drift = np.rint(time_ns * (self.drift_ppm * 1e-6)).astype(np.int64)
        shown: Ints = time_ns + self.offset_ns + drift
        return shown

    def one(self, time_ns: int) -> int:
        """Give what it shows at one moment."""
        return int(self.at(np.array([time_ns], np.int64))[0])


@dataclass(frozen=True, slots=True)
class Window:
    """When profilers ran: true ns since the run's 0."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Recording:
    """Which files a run leaves; None and False are: this was not recorded."""

    seed: int
    run: str  # opaque
    clocks: tuple[Clock, ...]  # by host
    shares: tuple[tuple[float, float], ...]  # of the run, in which profilers ran
    nsys: str | None = None  # version of the export's schema
    graph_mode: Literal["node", "graph"] = "node"
    payload: bool = False
    operators: bool = True
    python: bool = False
    per: Literal["rank", "host"] = "rank"
    kineto: str | None = None  # generation
    told: bool = True
    flows: bool = True
    early_ns: int = 0  # device spans stand so much before their time
    nccl: str = "2.27.7"  # release, whether it logs or not
    nccl_log: bool = False
    nccl_calls: bool = False
    flight_recorder: Literal["pickle", "json"] | None = None
    recorder_version: str = "2.9"
    engine_log: bool = False
    requests_logged: bool = False
    colour: bool = False
    zone_s: int = 0  # of local times in logs, seconds east of UTC
    prometheus: bool = False
    gpu_csv: bool = False
    gpu_dmon: bool = False
    client: bool = False
    kernel_log: str | None = None  # form of its times
    otlp: bool = False
    inspector: bool = False
    packed: bool = False
    repeated_pids: bool = False
    lost: float = 0.0  # share of calls and device work that the profiler dropped

    def pid(self, scene: Scene, rank: int) -> int:
        """Give the pid of a rank's worker, as its own system counts."""
        place = scene.places[rank]
        return 30 + 7 * place.device if self.repeated_pids else place.pid

    def api_pid(self, scene: Scene) -> int:
        """Give the pid of the server in front of the engine, on the first host."""
        return 1 if self.repeated_pids else max(1, scene.hosts[0].engine_pid - 41)

    def engine_pid(self, scene: Scene, host: int) -> int:
        """Give the pid of the engine's process on a host."""
        return 27 if self.repeated_pids else scene.hosts[host].engine_pid


def plain(scene: Scene, **other: object) -> Recording:
    """Give a recording with true clocks of the whole run; `other` are fields to set."""
    still = (Clock(),) * len(scene.hosts)
    given = {"seed": 0, "run": "run-000000", "clocks": still, "shares": ((0.0, 1.0),)} | other
    return Recording(**given)  # type: ignore[arg-type]  # fields by name


def draw(scene: Scene, random: np.random.Generator) -> Recording:
    """Draw how a run of this scene is recorded."""
    has = {name: bool(random.random() < share) for name, share in _SHARES.items()}
    json = has["recorder_json"]
    traced: dict[str, object] = {
        "nsys": str(random.choice(NSYS, p=_RELEASES["nsys"]))
        if has["nsys"] or has["both"]
        else None,
        "kineto": str(random.choice(KINETO, p=_RELEASES["kineto"]))
        if has["both"] or not has["nsys"]
        else None,
        "graph_mode": "graph" if has["graph_mode"] else "node",
        # workers of TensorRT-LLM are started by MPI, each with its own profiler
        "per": "host" if has["per_host"] and scene.engine != "trtllm" else "rank",
        "nccl": str(random.choice(NCCL)),
        "flight_recorder": ("json" if json else "pickle") if has["flight_recorder"] else None,
        "recorder_version": "2.4" if json else str(random.choice(RECORDER)),
        "kernel_log": str(random.choice(DMESG)) if has["kernel_log"] else None,
        "zone_s": int(random.choice(_ZONES)) if has["zoned"] else 0,
        "early_ns": int(random.integers(200, 3000)) if has["early"] else 0,
        "lost": float(np.exp(random.uniform(*np.log(_LOST)))) if has["lost"] else 0.0,
    }
    same = (
        "payload", "operators", "python", "told", "flows", "nccl_log", "nccl_calls", "engine_log",
        "requests_logged", "colour", "prometheus", "gpu_csv", "gpu_dmon", "client", "otlp",
        "inspector", "packed", "repeated_pids",
    )  # fmt: skip
    return Recording(
        seed=int(random.integers(1 << 62)),
        run=f"run-{random.integers(1 << 48):012x}",
        clocks=tuple(_clock(random) for _ in scene.hosts),
        shares=_shares(random, part=has["part"], two=has["two_windows"]),
        **traced,  # type: ignore[arg-type]  # fields by name
        **{name: has[name] for name in same},  # type: ignore[arg-type]  # the same
    )


def _clock(random: np.random.Generator) -> Clock:
    size = np.exp(random.uniform(*np.log(_OFFSET_NS)))
    return Clock(int(random.choice((-1, 1)) * size), float(random.normal(0, _DRIFT_PPM)))


def _shares(
    random: np.random.Generator, *, part: bool, two: bool
) -> tuple[tuple[float, float], ...]:
    if not part:
        return ((0.0, 1.0),)
    first, last = sorted(random.uniform(0, 0.3, 2).tolist())
    start, end = first, 1 - last
    if not two:
        return ((start, end),)
    middle = (start + end) / 2
    return (start, middle - 0.05), (middle + 0.05, end)
