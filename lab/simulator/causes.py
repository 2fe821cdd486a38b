"""Causes: drawn for a scene, acting on steps. What each does is in the modules of `acts`."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np

from teller.errors import UnknownName
from teller.lab.simulator import handover
from teller.lab.simulator.scene import Scene
from teller.lab.truth import Culprit

ROLES: Final = ("attention", "qkv", "o_proj", "gate_up", "down", "norm", "act", "lm_head")
# Act on queue and batches, so that a replay of the plan does not show them.
QUEUE: Final = (
    "kv_preemption", "admission_blocked", "tokenizer_stall", "prefill_interference",
    "batch_imbalance", "kv_transfer_slow",
)  # fmt: skip
# Act on requests as they come, which is at prefill where that is apart: causes count decode steps.
_ARRIVALS: Final = ("tokenizer_stall", "prefill_interference", "load_growth", "batch_imbalance")
EXPERT_ROLES: Final = ("attention", "qkv", "experts_up", "experts_down", "topk")


@dataclass(frozen=True, slots=True)
class Spec:
    """One row of `faults.toml`."""

    kind: str
    class_: str
    id: str
    severity: tuple[float, float]
    unit: str
    target: str
    culprit: str
    needs: tuple[str, ...] = ()
    whole: bool = False
    ends: bool = False
    benign: bool = False
    lines: dict[str, float] = field(default_factory=dict)


@cache
def specs() -> dict[str, Spec]:
    """Give all causes by kind."""
    text = files("teller.lab.simulator").joinpath("faults.toml").read_text("utf-8")
    out = {}
    for kind, row in tomllib.loads(text).items():
        row["class_"] = row.pop("class")
        row["severity"] = tuple(row["severity"])
        row["needs"] = tuple(row.get("needs", ()))
        out[kind] = Spec(kind, **row)
    return out


def spec(kind: str) -> Spec:
    """Give one cause by its kind."""
    if kind not in specs():
        raise UnknownName("fault", kind, specs())
    return specs()[kind]


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause in one run. `rank`, `host`, `role` and `layer` say what it strikes."""

    spec: Spec
    number: int
    first: int  # step_index
    last: int
    severity: float
    rank: int = -1
    host: int = -1
    role: str = ""
    layer: int = -1
    lines: tuple[str, ...] = ()
    peer: int = -1  # host on the other side of a struck link: of the prefill

    def acts(self, step: int) -> bool:
        """Tell whether it acts in a step."""
        return self.first <= step <= self.last


def fits(spec: Spec, scene: Scene) -> bool:
    """Tell whether a scene has what a cause needs."""
    if scene.prefill and spec.kind in _ARRIVALS:
        return False
    hosts = len(scene.hosts)
    spread = any(p.ep for p in scene.places)
    if spec.ends and scene.tp == scene.pp == 1 and not spread:
        return False  # nobody would wait for the rank
    of_group = {p.host for p in scene.places if p.pp == 0 and p.dp == 0}
    has = {
        "hosts": hosts > 1 and any(
            len({scene.places[r].host for r in g.ranks}) > 1
            for g in scene.groups if g.desc in ("tp", "ep", "pp")
        ),
        "tensor": scene.tp > 1, "one_host": len(of_group) == 1,
        "own": scene.tp in (2, 4, 8) and len(of_group) == 1 and scene.engine != "trtllm",
        "library": scene.tp > 1 and (len(of_group) > 1 or scene.tp not in (2, 4, 8)),
        "collectives": scene.tp > 1 or spread, "eager": scene.mode == "eager",
        "graph": scene.mode == "graph", "experts": spread, "pipeline": scene.pp > 1,
        "offload": scene.offload, "disaggregated": bool(handover.pairs(scene)),
    }  # fmt: skip
    if spec.target == "role" and spec.kind == "slow_operator":
        return True
    return all(has[n] for n in spec.needs)


def drawn(
    kind: str, scene: Scene, steps: int, number: int, random: np.random.Generator,
    severity: float | None = None,
) -> Cause:  # fmt: skip
    """Draw when a cause acts, how strongly and on what."""
    one = spec(kind)
    low, high = one.severity
    value = float(np.exp(random.uniform(np.log(low), np.log(high))))  # drawn in any case
    value = value if severity is None else severity
    first, last = _window(one, steps, random)
    rank = int(random.integers(len(scene.places)))
    peer = -1
    if scene.prefill:
        decoding = [p.rank for p in scene.places if p.dp >= scene.prefill]
        rank = decoding[rank % len(decoding)]
    if one.target == "stage":
        stage = int(random.integers(scene.pp))
        rank = next(p.rank for p in scene.places if p.pp == stage)
    if one.target == "pair":
        links = handover.pairs(scene)
        peer, struck = links[int(random.integers(len(links)))]
        rank = next(r for r in decoding if scene.places[r].host == struck)
    host = scene.places[rank].host
    roles = EXPERT_ROLES if scene.model.experts else ROLES
    layer = int(random.integers(scene.model.layers))
    lines = tuple(n for n, p in one.lines.items() if random.random() < p)
    return Cause(
        one, number, first, last, value, rank, host, roles[int(random.integers(len(roles)))],
        layer, lines, peer,
    )  # fmt: skip


def _window(one: Spec, steps: int, random: np.random.Generator) -> tuple[int, int]:
    """Draw from one step to nearly all; what is a setting is there always."""
    if one.whole:
        return 0, steps
    if one.kind == "rank_asymmetric_warmup":
        return 0, 0
    length = int(np.exp(random.uniform(0, np.log(max(2, 0.6 * steps)))))
    if one.kind in ("compile_in_serving", "storage_stall", "host_pause", "isolated_spike"):
        length = min(length, 4)
    if one.kind in QUEUE:  # requests must come while it acts
        length = max(length, steps // 3)
    first = int(random.integers(max(1, steps // 8), max(2, steps - length)))
    return first, steps if one.ends else min(steps, first + length - 1)


def culprit(cause: Cause, scene: Scene) -> Culprit:
    """Give the object at fault, as a finding names it."""
    kind, host = cause.spec.culprit, scene.hosts[cause.host].name
    place = scene.places[cause.rank]
    if kind == "rank":
        ranks: tuple[int, ...] = (cause.rank,)
        if cause.spec.target == "stage":
            ranks = tuple(p.rank for p in scene.places if p.pp == place.pp)
        if cause.spec.kind == "batch_imbalance":
            ranks = tuple(p.rank for p in scene.places if p.dp == place.dp)
        return Culprit(kind=kind, ranks=ranks, hosts=(host,))
    if kind == "host":
        return Culprit(kind=kind, hosts=(host,))
    if kind == "device":
        at = (f"{host}:{place.device}",)
        return Culprit(kind=kind, ranks=(cause.rank,), hosts=(host,), devices=at)
    if kind == "link":
        return Culprit(kind=kind, links=_links(cause, scene))
    if kind == "group":
        groups = tuple(g.name for g in scene.groups if g.desc == "tp")
        return Culprit(kind=kind, groups=groups)
    more: dict[str, Any] = {}
    if kind == "component":
        more["components"] = (COMPONENTS[cause.spec.kind],)
    return Culprit(kind=kind, **more)


COMPONENTS: Final = {
    "cpu_launch_bound": "executor", "graph_fallback": "executor", "scheduler_overhead": "scheduler",
    "compile_in_serving": "compiler", "kv_preemption": "kv_cache", "tokenizer_stall": "tokenizer",
    "log_storm": "frontend", "storage_stall": "storage", "prefill_interference": "scheduler",
}  # fmt: skip


def _links(cause: Cause, scene: Scene) -> tuple[tuple[str, str], ...]:
    """Give the links of the struck host that are in use; of all hosts for what strikes all."""
    if cause.peer >= 0:
        return ((scene.hosts[cause.peer].name, scene.hosts[cause.host].name),)
    pairs = set()
    for group in scene.groups:
        if group.desc not in ("tp", "pp", "ep"):
            continue
        hosts = {scene.places[r].host for r in group.ranks}
        for a in hosts:
            for b in hosts - {a}:
                if cause.spec.target == "all" or cause.host in (a, b):
                    pairs.add((scene.hosts[a].name, scene.hosts[b].name))
    return tuple(sorted(pairs))
