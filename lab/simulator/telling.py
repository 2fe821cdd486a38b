"""What programs would write to their logs about a run, and what the library says of its wires."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teller.lab.simulator.causes import Cause
from teller.lab.simulator.happened import Note, Request
from teller.lab.simulator.play import Done
from teller.lab.simulator.scene import Scene

_TIMEOUT_MS: Final = 600_000
_STORM_LINES: Final = 6  # a step


def notes(
    scene: Scene, dones: Sequence[Done], causes: Sequence[Cause], requests: Sequence[Request],
    end_ns: int,
) -> tuple[Note, ...]:  # fmt: skip
    """Give all notes in order of time: of healthy life, and those that causes leave."""
    random = np.random.default_rng([scene.seed, 14])
    found = _healthy(scene, requests, end_ns, random)
    for cause in causes:
        acting = [d for d in dones if cause.acts(d.plan.index)]
        if acting:
            found += _of_cause(scene, cause, acting, random)
    return tuple(sorted((n for n in found if n.time_ns <= end_ns), key=lambda n: n.time_ns))


def _healthy(
    scene: Scene, requests: Sequence[Request], end_ns: int, random: np.random.Generator
) -> list[Note]:
    """Say what services say without any fault; some of it looks like one."""
    found = [
        Note(r.arrival_ns, "api", "request_added", {"request": r.name}) for r in requests
    ] if random.random() < 0.5 else []  # fmt: skip
    if scene.model.experts and random.random() < 0.4:
        file = f"E={scene.model.experts},N={scene.model.ffn},device_name={scene.gpu.name}.json"
        found.append(Note(0, "engine 0", "moe_default_config", {"file": file.replace(" ", "_")}))
    if random.random() < 0.3:
        ms = float(np.exp(random.normal(2.5, 0.8)))
        found.append(_gc(int(random.random() * end_ns), "engine 0", ms, random))
    if random.random() < 0.25:
        threads = int(random.integers(1, 9))
        found.append(Note(0, "engine 0", "parallelism_reduced", {"threads": threads}))
    if random.random() < 0.1:
        gone = requests[int(random.integers(len(requests)))] if requests else None
        if gone is not None:
            found.append(Note(end_ns // 2, "api", "request_aborted", {"request": gone.name}))
    return found


def _gc(time_ns: int, source: str, ms: float, random: np.random.Generator) -> Note:
    return Note(time_ns, source, "gc_pause", {
        "ms": ms, "generation": 2, "objects": int(random.integers(1_000, 900_000)),
    })  # fmt: skip


def _of_cause(
    scene: Scene, cause: Cause, acting: Sequence[Done], random: np.random.Generator
) -> list[Note]:
    first = acting[0]
    start = 0 if cause.spec.whole else int(first.begin_ns)
    found = []
    for kind in cause.lines:
        if kind == "storm":
            found += _storm(cause, acting)
        elif kind == "verbose":
            found += _verbose(cause, acting)
        elif kind == "preempted":
            found += _preempted(acting)
        else:
            time = start if kind not in _LATE else start + _LATE[kind]
            source = _SOURCES.get(kind, "engine 0").format(rank=cause.rank, host=cause.host)
            found.append(Note(time, source, kind, _values(scene, cause, kind, random)))
    return found


_SOURCES: Final = {
    "gc_pause": "worker {rank}", "gdr_off": "nccl {rank}", "net_async_event": "nccl {rank}",
    "nccl_env": "nccl {rank}", "watchdog": "worker {rank}", "xid": "kernel {host}",
    "aer": "kernel {host}", "row_remap": "kernel {host}", "custom_allreduce_off": "worker {rank}",
    "health_failed": "api", "lora_load": "api",
}  # fmt: skip
_LATE: Final = {  # ns after the cause
    "watchdog": _TIMEOUT_MS * 1_000_000, "broadcast_wait": 60_000_000_000,
    "engine_dead": 900_000_000, "worker_died": 400_000_000,
}  # fmt: skip


def _values(scene: Scene, cause: Cause, kind: str, random: np.random.Generator) -> dict[str, Any]:
    host = scene.hosts[cause.host]
    place = scene.places[cause.rank]
    nic = host.nics[place.device]
    algorithm = "Ring" if cause.rank % 2 else "Tree"
    values: dict[str, dict[str, Any]] = {
        "net_async_event": {"nic": nic}, "gdr_off": {"nic": nic},
        "nccl_env": {"name": "NCCL_ALGO", "value": algorithm},
        "custom_allreduce_off": {"reason": "it's not supported on more than two PCIe-only GPUs. "
                                 "To silence this warning, specify disable_custom_all_reduce=True "
                                 "explicitly."},
        "watchdog": {"seq": cause.first * 73, "op": "ALLREDUCE", "elements": scene.model.hidden,
                     "timeout_ms": _TIMEOUT_MS, "last_enqueued": cause.first * 73 + 1,
                     "last_completed": cause.first * 73 - 1},
        "broadcast_wait": {"seconds": 60}, "worker_died": {"rank": cause.rank}, "engine_dead": {},
        "row_remap": {"bus": host.bus[place.device]},
        "xid": {"bus": host.bus[place.device], "code": 94, "text": "Contained memory error"},
        "aer": {"bus": host.bus[place.device]},
        "gc_pause": {"ms": cause.severity, "generation": 2,
                     "objects": int(random.integers(10_000, 70_000_000))},
        "parallelism_reduced": {"threads": 1}, "graph_skipped": {"reason": "batch is too large"},
        "compile": {"seconds": cause.severity / 1e3, "what": "dynamic shape"},
        "lora_load": {"name": f"adapter-{cause.layer}", "seconds": cause.severity / 1e3},
        "health_failed": {"seconds": 20},
    }  # fmt: skip
    return values.get(kind, {})


def _storm(cause: Cause, acting: Sequence[Done]) -> list[Note]:
    count = max(1, min(_STORM_LINES * 5, int(cause.severity * _STORM_LINES)))
    return [
        Note(int(d.planned_ns) + 1000 * i, "engine 0", "storm",
             {"text": f"block table of request {i}: {[(d.plan.index + 7 * i) % 977, i]}"})
        for d in acting for i in range(count)
    ]  # fmt: skip


def _verbose(cause: Cause, acting: Sequence[Done]) -> list[Note]:
    return [
        Note(int(d.begin_ns) + 1000 * i, "engine 0", "verbose",
             {"text": f"scheduled {i} of step {d.plan.index}"})
        for d in acting for i in range(max(1, int(cause.severity / 20)))
    ]  # fmt: skip


def _preempted(acting: Sequence[Done]) -> list[Note]:
    return [
        Note(int(d.planned_ns), f"engine {replica}", "preempted",
             {"request": str(b.preempted[0]), "count": len(b.preempted)})
        for d in acting for replica, b in d.plan.batches.items() if b.preempted
    ]  # fmt: skip


def facts(scene: Scene, causes: Sequence[Cause]) -> dict[str, Any]:
    """Give what the library says when it connects: its network, and the transport of each pair."""
    kinds = {c.spec.kind: c for c in causes}
    transports = {}
    for group in scene.groups:
        for a, b in zip(group.ranks, group.ranks[1:] + group.ranks[:1], strict=True):
            transports[f"{a}-{b}"] = _transport(scene, a, b, kinds)
    fallen = "transport_fallback" in kinds
    return {
        "network": "Socket" if fallen else "IB",
        "transports": transports,
        "pinned": _pinned(kinds.get("comm_config")),
    }


def _transport(scene: Scene, a: int, b: int, kinds: dict[str, Cause]) -> str:
    one, two = scene.places[a], scene.places[b]
    if one.host == two.host:
        blocked = kinds.get("p2p_blocked")
        return "SHM/direct/direct" if blocked and blocked.host == one.host else "P2P/CUMEM"
    if "transport_fallback" in kinds:
        return "NET/Socket/0"
    off, shared = kinds.get("gdr_disabled"), kinds.get("wrong_nic")
    direct = "" if off and off.host in (one.host, two.host) else "/GDRDMA"
    nic = 0 if shared and shared.host == one.host else one.device
    return f"NET/IB/{nic}{direct}"


def _pinned(cause: Cause | None) -> str:
    if cause is None:
        return ""
    return "Ring" if cause.rank % 2 else "Tree"
