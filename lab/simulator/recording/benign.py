"""What healthy services print of themselves, warnings too: no line stands only with a fault."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from teller.lab.simulator.happened import Happened, Note
from teller.lab.simulator.recording.plan import Recording

# a kind, how often a run has it, how many times then, and whose it is
_SHARES: Final = {
    "gc_pause": (0.25, 3, "worker"),
    "moe_default_config": (0.5, 1, "worker"),  # of models with experts
    "gdr_off": (0.1, 1, "nccl"),
    "net_async_event": (0.04, 1, "nccl"),
    "nccl_env": (0.35, 1, "nccl"),
    "request_aborted": (0.3, 2, "api"),
    "compile": (0.12, 1, "worker"),
    "lora_load": (0.06, 1, "api"),
    "verbose": (0.15, 20, "engine"),
    "broadcast_wait": (0.05, 1, "engine"),
    "health_failed": (0.02, 1, "api"),
    "xid": (0.05, 1, "kernel"),
    "aer": (0.08, 2, "kernel"),
    "nic_link": (0.05, 2, "kernel"),
    "cpu_throttled": (0.04, 1, "kernel"),
    "custom_allreduce_off": (0.1, 1, "worker"),
    "graph_skipped": (0.5, 1, "worker"),  # of engines without graphs
    "row_remap": (0.02, 1, "kernel"),
    "storm": (0.08, 8, "engine"),
}
_EARLY: Final = (  # from the start, before the run's 0
    "gdr_off", "nccl_env", "moe_default_config", "custom_allreduce_off", "compile", "xid",
    "nic_link", "graph_skipped", "row_remap",
)  # fmt: skip
_BEFORE_NS: Final = 60_000_000_000
_SETTINGS: Final = (  # as people set them without harm
    ("NCCL_SOCKET_IFNAME", "eth0"), ("NCCL_IB_HCA", "mlx5"), ("NCCL_P2P_LEVEL", "NVL"),
    ("NCCL_ALGO", "Ring,Tree"), ("NCCL_DEBUG", "INFO"),
)  # fmt: skip


def benign(happened: Happened, recording: Recording) -> Iterator[Note]:
    """Give the notes of a run that mean nothing; the same recording gives the same."""
    random = np.random.default_rng((recording.seed, 77))
    for kind, (share, most, whose) in _SHARES.items():
        has, count = random.random() < share, int(random.integers(1, most + 1))
        if not has or not _fits(happened, kind):
            continue
        for _ in range(count):
            at = random.uniform(0, happened.end_ns)
            at = -random.uniform(1, _BEFORE_NS) if kind in _EARLY else at
            source = _source(happened, whose, random)
            yield Note(int(at), source, kind, _values(happened, kind, source, random))


def _fits(happened: Happened, kind: str) -> bool:
    """Tell whether a service of this kind can write it."""
    scene = happened.scene
    needed = {"moe_default_config": scene.model.experts > 0, "graph_skipped": scene.mode == "eager"}
    return needed.get(kind, True)


def _source(happened: Happened, whose: str, random: np.random.Generator) -> str:
    scene = happened.scene
    sizes = {"worker": len(scene.places), "nccl": len(scene.places), "engine": scene.dp,
             "kernel": len(scene.hosts)}  # fmt: skip
    return f"{whose} {random.integers(sizes[whose])}" if whose in sizes else whose


def _values(
    happened: Happened, kind: str, source: str, random: np.random.Generator
) -> dict[str, Any]:
    scene = happened.scene
    number = int(source.rpartition(" ")[2]) if " " in source else 0
    host = scene.hosts[number if source.startswith("kernel") else 0]
    bus = str(random.choice(host.bus)).rpartition(".")[0]
    setting = _SETTINGS[random.integers(len(_SETTINGS))]
    requests = [r.name for r in happened.requests] or ["cmpl-0"]
    known: dict[str, dict[str, Any]] = {
        "gc_pause": {"ms": float(random.uniform(0.2, 9)), "generation": int(random.integers(2)),
                     "objects": int(random.integers(10, 900))},
        "moe_default_config": {
            "file": f"E={scene.model.experts},N=1536,device_name={scene.gpu.name}.json",
        },
        "gdr_off": {"nic": host.nics[0] if host.nics else "mlx5_0"},
        "net_async_event": {"nic": host.nics[0] if host.nics else "mlx5_0"},
        "nccl_env": {"name": setting[0], "value": setting[1]},
        "graph_skipped": {"reason": "To turn on CUDA graph capture, ensure `cudagraph_mode` was "
                          "not manually set to `NONE`"},
        "row_remap": {"bus": bus},
        "storm": {"text": f"block table of request {random.integers(30)}: "
                  f"{[int(random.integers(977)), 3]}"},
        "request_aborted": {"request": str(random.choice(requests))},
        "compile": {"seconds": float(random.uniform(2, 9)), "what": "compile range (1, 8192)"},
        "lora_load": {"name": "support-v3", "seconds": 0.8},
        "verbose": {"text": "Prefix cache lookup took 0.3 ms for 12 blocks"},
        "broadcast_wait": {"seconds": 60},
        "health_failed": {"seconds": 20},
        "xid": {"bus": bus, "code": 31, "text": "Ch 00000008, intr 00000000. MMU Fault: ENGINE "
                "GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f79_7fe00000."},
        "aer": {"bus": bus},
        "nic_link": {"nic": "eth1", "state": str(random.choice(["up", "down"]))},
        "cpu_throttled": {"cpu": int(random.integers(64))},
        "custom_allreduce_off": {"reason": "your platform lacks GPU P2P capability or P2P test "
                                 "failed. To silence this warning, specify "
                                 "disable_custom_all_reduce=True explicitly."},
    }  # fmt: skip
    return known[kind]
