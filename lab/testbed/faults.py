"""What can be done to the service: one entry a kind, and what the machine must have for it."""

import math
import random
from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from teller.errors import UnknownName
from teller.lab.testbed.settings import Service

# how the effect on one step is known
Known = Literal[
    "strikes",  # the moments at which the fault itself took time are recorded
    "pure",  # time of collectives once all ranks have arrived
    "held",  # time of one rank against those that do the same work, and of collectives
    "steps",  # length of steps against the healthy steps of equal load
    "queue",  # requests wait; steps need not change
]
Need = Literal["namespaces", "iptables", "delay line"]


class Law(msgspec.Struct, frozen=True, kw_only=True):
    """From which severities are drawn: log-uniform from `low` to `high`, below what can be seen.

    `parameter` is the name of what is set, `digits` how many of its digits count.
    """

    parameter: str
    unit: str
    low: float
    high: float
    usual: float
    digits: int = 2
    whole: bool = True

    def draw(self, draw: random.Random) -> float:
        """Give a severity."""
        if self.low == self.high:
            return self.usual
        drawn = math.exp(draw.uniform(math.log(self.low), math.log(self.high)))
        places = self.digits - 1 - math.floor(math.log10(drawn))
        rounded = round(drawn, places)
        return max(1.0, round(rounded)) if self.whole else rounded


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of disturbance."""

    name: str
    class_: str  # of graph/classes.toml
    culprit: str  # kind of the culprit
    says: str
    law: Law
    known: Known
    component: str = ""
    fixed: dict[str, Any] = {}
    choices: dict[str, tuple[str, ...]] = {}
    needs: tuple[Need, ...] = ()
    benign: bool = False  # a load or a habit: nothing is at fault
    front: bool = False  # acts on rank 0, where requests come in
    held: bool = False  # the struck rank is held on one core while it lasts


MODULES: Final = (
    "layers.{layer}.mlp.down_proj", "layers.{layer}.self_attn.attn",
    "layers.{layer}.mlp.gate_up_proj", "layers.{layer}.self_attn.o_proj",
)  # fmt: skip

# fmt: off
_ALL: Final = (
    Kind(name="net_delay", class_="slow_path", culprit="link", known="pure",
         says="packets of a host are held back on their way out",
         law=Law(parameter="us", unit="µs one way", low=100, high=2000, usual=1000),
         needs=("namespaces", "iptables", "delay line")),
    Kind(name="net_bw", class_="slow_path", culprit="link", known="pure",
         says="a host's link is limited, both ways",
         law=Law(parameter="mbit", unit="Mbit/s", low=20, high=200, usual=60),
         needs=("namespaces",)),
    Kind(name="net_loss", class_="packet_loss", culprit="link", known="pure",
         says="packets to a host are dropped at random",
         law=Law(parameter="pct", unit="% of packets", low=0.3, high=4, usual=1, whole=False),
         needs=("namespaces", "iptables")),
    Kind(name="slow_op", class_="slow_operator", culprit="operator", known="strikes",
         says="one module repeats its own arithmetic",
         law=Law(parameter="ms", unit="ms a call", low=0.5, high=12, usual=8, whole=False),
         choices={"module": MODULES}),
    Kind(name="mem_alloc", class_="device_allocation", culprit="operator", known="strikes",
         says="attention allocates fresh memory at each eighth call",
         law=Law(parameter="mib", unit="MiB an allocation", low=34, high=80, usual=40),
         fixed={"every": 8}),
    Kind(name="gc_pause", class_="host_pause", culprit="rank", known="strikes",
         component="garbage collector", says="collections over many live objects",
         law=Law(parameter="objects", unit="live objects", low=60e3, high=600e3, usual=400e3),
         fixed={"every_ms": 300}),
    Kind(name="freeze", class_="host_pause", culprit="rank", known="strikes",
         component="process", says="the process stands still now and then",
         law=Law(parameter="ms", unit="ms a pause", low=15, high=150, usual=60),
         fixed={"every_ms": 400}),
    Kind(name="cpu_contention", class_="host_contention", culprit="rank", known="held",
         component="cpu", says="other processes compute on the rank's core",
         law=Law(parameter="processes", unit="processes", low=1, high=3, usual=1), held=True),
    Kind(name="cpu_quota", class_="cpu_quota", culprit="rank", known="strikes",
         component="cpu", says="the process may run for a share of each 20 ms only",
         law=Law(parameter="pct", unit="% of a core left", low=25, high=85, usual=50)),
    Kind(name="gil_hog", class_="gil_contention", culprit="rank", known="held",
         component="GIL", says="a thread of pure Python computes in the rank",
         law=Law(parameter="pct", unit="% of the time", low=3, high=60, usual=30),
         fixed={"period_ms": 100}),
    Kind(name="log_storm", class_="log_storm", culprit="component", known="strikes",
         component="logging", says="block tables are logged at each batch, many times, to disk",
         law=Law(parameter="lines", unit="lines a step", low=40, high=600, usual=150),
         fixed={"sync": True}),
    Kind(name="disk_storm", class_="storage_stall", culprit="component", known="held",
         component="disk", says="another process writes to the host's disk",
         law=Law(parameter="mib", unit="MiB a write", low=4, high=64, usual=16)),
    Kind(name="kv_shrink", class_="kv_preemption", culprit="component", known="queue",
         component="KV cache", says="blocks vanish from the cache",
         law=Law(parameter="blocks", unit="blocks taken", low=190, high=235, usual=225, digits=3),
         front=True),
    Kind(name="tokenizer_stall", class_="tokenizer_stall", culprit="component", known="queue",
         component="tokenizer", says="prompts of one long word, of which few tokens are kept",
         law=Law(parameter="characters", unit="characters a prompt", low=1000, high=8000,
                 usual=5000), fixed={"per_s": 4, "keep": 24}, front=True),
    Kind(name="log_verbose", class_="no_effect", culprit="none", known="strikes", benign=True,
         component="logging", says="some more lines a batch, not forced to disk",
         law=Law(parameter="lines", unit="lines a step", low=5, high=40, usual=20),
         fixed={"sync": False}),
    Kind(name="long_prompts", class_="load_growth", culprit="none", known="steps", benign=True,
         says="longer prompts come", front=True,
         law=Law(parameter="words", unit="words a prompt", low=120, high=400, usual=300),
         fixed={"per_s": 3}),
    Kind(name="more_arrivals", class_="load_growth", culprit="none", known="steps", benign=True,
         says="more requests come", front=True,
         law=Law(parameter="per_s", unit="requests a second more", low=3, high=12, usual=6)),
    Kind(name="healthy", class_="load_growth", culprit="none", known="steps", benign=True,
         says="nothing is done",
         law=Law(parameter="nothing", unit="", low=1, high=1, usual=1)),
)
# fmt: on

KINDS: Final = {kind.name: kind for kind in _ALL}


def kind_named(name: str) -> Kind:
    """Give one kind."""
    if name not in KINDS:
        raise UnknownName("kind of fault", name, KINDS)
    return KINDS[name]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One episode to come: what, how strong, on which rank, how long, after how long a rest."""

    kind: str
    severity: float
    rank: int
    hold_s: float
    rest_s: float
    settings: dict[str, Any] = {}

    @property
    def parameters(self) -> dict[str, Any]:
        """Give all that is set."""
        kind = kind_named(self.kind)
        value = int(self.severity) if kind.law.whole else self.severity
        return {**kind.fixed, **self.settings, kind.law.parameter: value}


def planned(
    name: str, draw: random.Random, of: Service, *, severity: float | None = None,
    rank: int | None = None, hold_s: float | None = None,
) -> Planned:  # fmt: skip
    """Give an episode; what is not said is drawn."""
    kind = kind_named(name)
    strength, drawn_rank = kind.law.draw(draw), draw.randrange(of.world)
    where = 0 if kind.front else drawn_rank if rank is None else rank
    hold, rest = draw.uniform(1.4, 2.2), draw.uniform(1.4, 2.0)
    layers = of.layers // of.pp
    layer = where // of.tp * layers + draw.randrange(layers)
    chosen = {key: draw.choice(values).format(layer=layer) for key, values in kind.choices.items()}
    return Planned(
        kind=name,
        severity=strength if severity is None else severity,
        rank=where,
        hold_s=round(hold if hold_s is None else hold_s, 2),
        rest_s=round(rest, 2),
        settings=chosen,
    )


def lacking(kind: Kind, there: Iterable[Need]) -> list[Need]:
    """Give what a kind needs and the machine does not have."""
    have = set(there)
    return [need for need in kind.needs if need not in have]
