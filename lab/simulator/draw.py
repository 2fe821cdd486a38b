"""Draws the scene of a run from its seed: engine, model, devices, layout, load and nuisances."""

from dataclasses import dataclass, field
from typing import Final, TypeVar
from zlib import crc32

import numpy as np

from teller.lab.simulator import catalog
from teller.lab.simulator.scene import (
    EngineName,
    Gpu,
    Group,
    Host,
    Load,
    Mode,
    Model,
    Nuisance,
    Place,
    Scene,
)  # fmt: skip

T = TypeVar("T")

ENGINES: Final[tuple[EngineName, ...]] = ("vllm", "sglang", "trtllm")
VERSIONS: Final = {
    "vllm": ("0.9.2", "0.10.1", "0.11.2", "0.14.0"),
    "sglang": ("0.4.9", "0.5.3", "0.5.6"),
    "trtllm": ("1.0.0", "1.1.0rc2"),
}
PER_HOST: Final = 8  # devices


@dataclass(frozen=True, slots=True)
class Layout:
    """How many ranks of each kind of parallelism, and over how many hosts."""

    tp: int
    pp: int = 1
    dp: int = 1
    hosts: int = 1
    prefill: int = field(default=0, repr=False)  # replicas; the name of a run has it by itself

    @property
    def ranks(self) -> int:
        """Give the number of ranks."""
        return self.tp * self.pp * self.dp


DENSE: Final = (
    Layout(2), Layout(2, hosts=2), Layout(4), Layout(4, hosts=2), Layout(8), Layout(8, hosts=2),
    Layout(2, 2), Layout(2, 2, hosts=2), Layout(4, 2, hosts=2), Layout(8, 2, hosts=2),
    Layout(2, dp=2), Layout(16, hosts=2), Layout(8, 4, hosts=4), Layout(8, 8, hosts=8),
)  # fmt: skip
EXPERTS: Final = (
    Layout(2), Layout(4), Layout(1, dp=4), Layout(1, dp=8), Layout(2, dp=4, hosts=2),
    Layout(4, dp=4, hosts=2), Layout(8, dp=2, hosts=2), Layout(1, dp=16, hosts=2),
)  # fmt: skip
DISAGGREGATED: Final = (
    Layout(1, dp=2, hosts=2, prefill=1), Layout(2, dp=2, hosts=2, prefill=1),
    Layout(4, dp=2, hosts=2, prefill=1), Layout(8, dp=2, hosts=2, prefill=1),
    Layout(1, dp=3, hosts=3, prefill=1), Layout(2, dp=3, hosts=3, prefill=1),
    Layout(1, dp=4, hosts=4, prefill=2), Layout(2, dp=4, hosts=2, prefill=2),
    Layout(1, dp=2, prefill=1), Layout(2, dp=2, prefill=1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is not left to chance; "" and None are. `steps` is about how many a run has."""

    engine: str = ""
    model: str = ""
    gpu: str = ""
    mode: str = ""
    layout: Layout | None = None
    steps: int = 160
    largest: int = 16  # ranks
    offload: bool | None = None


def scene(seed: int, wanted: Wanted | None = None) -> Scene:
    """Draw a scene."""
    want = wanted or Wanted()
    random = np.random.default_rng([seed, 1])
    engine: EngineName = want.engine or _pick(random, ENGINES)  # type: ignore[assignment] # checked
    model, gpu, layout = _fitting(random, want)
    mode: Mode = want.mode or _pick(random, ("graph", "graph", "piecewise", "eager"))  # type: ignore[assignment] # checked
    hosts = _hosts(random, layout)
    places = _places(random, layout, model)
    return Scene(
        seed, engine, _pick(random, VERSIONS[engine]), mode, model, gpu, hosts, places,
        _groups(random, layout, places), _nuisance(random, layout.ranks),
        _load(random, model, gpu, layout, want.steps),
        int(1_760_000_000_000_000_000 + random.integers(0, 30_000_000) * 1_000_000_000),
        float(want.steps), bool(random.random() < 0.2) if want.offload is None else want.offload,
        prefill=layout.prefill, settings=_SETTINGS.get(engine, {}) if layout.prefill else {},
    )  # fmt: skip


_SETTINGS: Final = {
    "vllm": {"kv_transfer_config": "KVTransferConfig(kv_connector='NixlConnector', "
             "kv_role='kv_both')"},
}  # fmt: skip


def apart(seed: int) -> np.random.Generator:
    """Give the stream by which it is drawn whether prefill is apart from decode, and how.

    It is a stream of its own, so that all other draws are what they are without it.
    """
    return np.random.default_rng([seed, crc32(b"disaggregated")])


def disaggregated(random: np.random.Generator, largest: int, *, hosts: int = 1) -> Layout:
    """Draw a layout whose prefill is apart from decode, on so many hosts at least."""
    return _pick(random, tuple(c for c in DISAGGREGATED if c.ranks <= largest and c.hosts >= hosts))


def _pick(random: np.random.Generator, things: tuple[T, ...]) -> T:
    return things[int(random.integers(len(things)))]


def _fitting(random: np.random.Generator, want: Wanted) -> tuple[Model, Gpu, Layout]:
    """Draw model, device and layout until the weights leave room for a cache."""
    while True:
        model = catalog.model(want.model or _pick(random, catalog.models()))
        gpu = catalog.gpu(want.gpu or _pick(random, ("h100", "h100", "h200", "a100", "l40s")))
        choices = tuple(c for c in (EXPERTS if model.experts else DENSE) if c.ranks <= want.largest)
        layout = want.layout or _pick(random, choices)
        needed = weights_bytes(model) / (layout.tp * layout.pp)
        fits = model.heads % layout.tp == 0 and model.layers % layout.pp == 0
        fixed = want.model and want.gpu and want.layout
        if fixed or (fits and needed < 0.75 * gpu.memory_gib * 2**30):
            return model, gpu, layout


def weights_bytes(model: Model) -> float:
    """Give the bytes of a model's weights."""
    heads = model.heads * model.head
    attention = model.hidden * (2 * heads + 2 * model.kv_heads * model.head)
    ffn = 3 * model.hidden * model.ffn * max(model.experts, 1)
    return 2.0 * (model.layers * (attention + ffn) + 2 * model.vocab * model.hidden)


def _hosts(random: np.random.Generator, layout: Layout) -> tuple[Host, ...]:
    """Draw the machines; they are named and numbered alike, and hold devices alike."""
    prefix, base = _pick(random, ("gpu", "node", "h", "inst")), int(random.integers(0, 40))
    net, slot = int(random.integers(8, 80)), int(random.integers(8, 80))
    bus = tuple(f"0000:{slot + 17 * i % 176:02x}:00.0" for i in range(PER_HOST))
    nics = tuple(f"mlx5_{i}" for i in range(PER_HOST))
    return tuple(
        Host(
            f"{prefix}-{base + i:02d}", f"10.{net}.0.{10 + i}", int(random.integers(300, 90_000)),
            bus, tuple(_uuid(random) for _ in bus), nics,
        )
        for i in range(layout.hosts)
    )  # fmt: skip


def _uuid(random: np.random.Generator) -> str:
    return "GPU-" + "-".join(random.bytes(n).hex() for n in (4, 2, 2, 2, 6))


def _places(random: np.random.Generator, layout: Layout, model: Model) -> tuple[Place, ...]:
    per_host = -(-layout.ranks // layout.hosts)
    pids = random.integers(400, 90_000, layout.hosts)
    out = []
    for rank in range(layout.ranks):
        tp, rest = rank % layout.tp, rank // layout.tp
        pp, dp = rest % layout.pp, rest // layout.pp
        host, device = divmod(rank, per_host)
        spread = model.experts and layout.dp > 1 and not layout.prefill
        ep = rank if spread else 0
        out.append(Place(rank, host, device, int(pids[host]) + device, tp, pp, dp, ep))
    return tuple(out)


def _groups(
    random: np.random.Generator, layout: Layout, places: tuple[Place, ...]
) -> tuple[Group, ...]:
    found: list[tuple[str, tuple[int, ...]]] = [("world", tuple(p.rank for p in places))]
    kinds = {
        "tp": [(p.pp, p.dp) for p in places], "pp": [(p.tp, p.dp) for p in places],
        "dp": [(p.tp, p.pp) for p in places],
    }  # fmt: skip
    for kind, keys in kinds.items():
        for key in dict.fromkeys(keys):
            members = tuple(p.rank for p, k in zip(places, keys, strict=True) if k == key)
            if len(members) > 1:
                found.append((kind, members))
    if any(p.ep for p in places):
        found.append(("ep", tuple(p.rank for p in places)))
    return tuple(
        Group(str(i), kind, ranks, int(random.integers(1, 2**63)))
        for i, (kind, ranks) in enumerate(found)
    )


def _nuisance(random: np.random.Generator, ranks: int) -> Nuisance:
    return Nuisance(
        host_speed=float(np.exp(random.normal(0, 0.2))),
        device_speed=tuple(np.exp(random.normal(0, 0.004, ranks)).tolist()),
        network_speed=float(np.exp(random.normal(0.1, 0.25))),
        kernel_sigma=float(random.uniform(0.02, 0.07)),
        host_sigma=float(random.uniform(0.12, 0.35)),
        leave_ns=float(random.uniform(200, 1800)),
        spike_rate=float(10 ** random.uniform(-3.2, -1.8)),
        schedule_ns=float(np.exp(random.normal(13.3, 0.45))),  # about .6 ms
        dispatch_ns=float(np.exp(random.normal(11.2, 0.4))),
    )


def _load(random: np.random.Generator, model: Model, gpu: Gpu, layout: Layout, steps: int) -> Load:
    """Draw the load; its rate is the batch that it is to keep, until it is calibrated."""
    batch = float(np.exp(random.uniform(np.log(2.5), np.log(64))))
    output_mu = float(random.uniform(np.log(30), np.log(max(40, steps))))
    output_sigma = float(random.uniform(0.3, 0.8))
    block = 16
    kv = 2 * model.layers / layout.pp * max(model.kv_heads / layout.tp, 1) * model.head * 2
    room = 0.88 * gpu.memory_gib * 2**30 - weights_bytes(model) / (layout.tp * layout.pp)
    return Load(
        rate=batch, prompt_mu=float(random.uniform(4.6, 7.4)),
        prompt_sigma=float(random.uniform(0.3, 0.9)), output_mu=output_mu,
        output_sigma=output_sigma, batch_limit=256,
        token_limit=_pick(random, (2048, 4096, 8192)),
        kv_blocks=int(max(room, 2**31) / (kv * block)), block_tokens=block,
        bursts=float(random.uniform(0, 0.4)),
    )  # fmt: skip
