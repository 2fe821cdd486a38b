"""The costs of one step: work of the program, at this load, on these ranks, under these effects.

Draws come from the step's own generator, in an order that effects do not change, so that a replay
without them draws the same.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np

from teller.lab.simulator import catalog, links
from teller.lab.simulator.effects import Effects, Pause
from teller.lab.simulator.links import Wire
from teller.lab.simulator.motion import NEVER_NS, Costs
from teller.lab.simulator.program import CLASSES, Amounts, Bools, Floats, Ints, Program
from teller.lab.simulator.scene import Scene

_STREAM, _COPY = CLASSES.index("stream"), CLASSES.index("copy")
SPIKE_NS: Final = 400_000.0
Sign = tuple[str, str, bool, tuple[float, ...]]  # group, op, own, size


@dataclass(frozen=True, slots=True)
class Speeds:
    """What a device reaches, by class of kernel."""

    flops: Floats
    bytes: Floats
    floor_ns: Floats


def speeds(scene: Scene) -> Speeds:
    """Give what the devices of a scene reach."""
    gpu, reached = scene.gpu, catalog.numbers()["reached"]
    flops = [gpu.flops * reached["gemm_flops"], gpu.flops * reached["attention_flops"],
             gpu.flops * 0.06, gpu.flops]  # fmt: skip
    moved = [gpu.memory * reached[k] for k in ("gemm_memory", "attention_memory", "stream")]
    floors = [reached["floor_ns"][c] for c in CLASSES]
    return Speeds(np.array(flops), np.array([*moved, gpu.pcie * 0.8]), np.array(floors, float))


@dataclass(frozen=True, slots=True)
class Owned:
    """Costs, and what of them is each rank's own: with and without what waits for others."""

    costs: Costs
    base_device: Floats  # (ranks, work) without effects
    base_host: Floats  # (ranks, ticks) without effects
    base_pure: Floats  # (ranks, collectives) without effects


@dataclass(slots=True)
class Coster:
    """Works out costs for ranks of one run."""

    scene: Scene
    speeds: Speeds = field(init=False)
    _known: dict[int, list[tuple[Sign, Ints]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look up what the devices reach."""
        self.speeds = speeds(self.scene)

    def cost(
        self, program: Program, ranks: tuple[int, ...], amounts: Amounts, effects: Effects,
        random: np.random.Generator, ready: Floats,
    ) -> Owned:  # fmt: skip
        """Give the costs of a step on these ranks."""
        rows = np.array(ranks)
        noise = _Noise.draw(random, program, len(ranks), self.scene)
        device = self._device(program, rows, amounts, noise.device)
        acting = device * self._factors(program, rows, effects) + self._more(
            program, rows, amounts, effects, device
        )
        there = _there(program, rows, effects)
        if there is not None:
            acting = np.where(there, acting, 0.0)
            device = np.where(program.device.tag == 0, device, 0.0)
        host = self._host(program, rows, noise)
        struck = self._struck(program, rows, host, effects)
        base, pure = self._pure(program, rows, amounts, effects, noise.pure)
        if effects.stuck is not None:
            _stop(program, ranks, effects.stuck, struck)
        if effects.mismatch is not None and effects.mismatch[0] in ranks:
            pure[:, effects.mismatch[1] :] = NEVER_NS
        host_base = np.where(program.host.tick_tag == 0, host, 0.0)
        costs = Costs(struck, acting, there, pure, noise.leave, ready)
        return Owned(costs, device, host_base, base)

    def _device(self, program: Program, rows: Ints, amounts: Amounts, noise: Floats) -> Floats:
        part, speeds = program.device, self.speeds
        columns = amounts.columns
        flops = (columns @ part.flops.T) / speeds.flops[part.bound]
        moved = (columns @ part.bytes.T) / speeds.bytes[part.bound]
        ns = np.maximum(flops, moved) * 1e9 + speeds.floor_ns[part.bound] + part.fixed_ns
        speed = np.array(self.scene.nuisance.device_speed)[rows]
        ns = ns * noise * speed[:, None]
        ns[:, program.collectives.device] = 0.0
        work: Floats = np.maximum(ns, 0.0)
        return work

    def _factors(self, program: Program, rows: Ints, effects: Effects) -> Floats:
        """Give the factor on each kernel of each rank."""
        part = program.device
        by_class = np.stack(
            [effects.device, effects.device, effects.memory, effects.copies], axis=1
        )[rows]
        factors = by_class[:, part.bound]
        for name, values in effects.roles.items():
            if name in program.roles:
                at = part.role == program.roles.index(name)
                factors[:, at] = factors[:, at] * values[rows][:, None]
        return factors

    def _more(
        self, program: Program, rows: Ints, amounts: Amounts, effects: Effects, device: Floats
    ) -> Floats:
        """Give the time of roles that have more tokens on some ranks than on others."""
        out = np.zeros_like(device)
        for name, values in effects.load.items():
            if name not in program.roles:
                continue
            at = np.flatnonzero(program.device.role == program.roles.index(name))
            flops = amounts.tokens[:, None] * program.device.flops[at, 1]
            ns = flops / self.speeds.flops[0] * 1e9
            share = values[rows][:, None] - 1
            out[:, at] = np.maximum(ns * share, -0.5 * device[:, at]) + device[:, at] * share * 0.5
        return out

    def _host(self, program: Program, rows: Ints, noise: "_Noise") -> Floats:
        nuisance = self.scene.nuisance
        host = program.host.tick_ns * nuisance.host_speed * noise.host
        host[noise.spikes > 0] += noise.spikes[noise.spikes > 0]
        return host

    def _struck(self, program: Program, rows: Ints, host: Floats, effects: Effects) -> Floats:
        struck = host * effects.host[rows][:, None]
        for tag, number in zip(program.tags, range(len(program.tags)), strict=True):
            if number:
                off = ~np.isin(rows, list(effects.tags.get(tag, ())))
                struck[np.ix_(off, program.host.tick_tag == number)] = 0.0
        places = {int(r): i for i, r in enumerate(rows)}
        for pause in effects.pauses:
            if pause.rank in places:
                row = places[pause.rank]
                struck[row, _tick_of(pause, program, host[row])] += pause.ns
        return struck

    def _pure(
        self, program: Program, rows: Ints, amounts: Amounts, effects: Effects, noise: Floats
    ) -> tuple[Floats, Floats]:
        """Give pure times without and with effects; one value for all ranks of a group."""
        part = program.collectives
        base = np.zeros((len(rows), len(part.op)))
        acting = base.copy()
        if not part.op:
            return base, acting
        for place, group in enumerate(self.scene.groups):
            at = np.flatnonzero(np.isin(rows, group.ranks))
            if not len(at) or group.desc == "world":
                continue
            wire = links.wire_of(self.scene, group)
            changed = effects.wires.get(place, wire)
            for sign, columns in self._signs(program):
                if sign[0] != group.desc:
                    continue
                size = round(float((amounts.columns[at] @ np.array(sign[3])).max()))
                own, op, engine = sign[2], sign[1], self.scene.engine
                cells = np.ix_(at, columns)
                base[cells] = _pure_ns(wire, op, size, own, engine, None)
                acting[cells] = _pure_ns(changed, op, size, own, engine, effects.pinned)
            if tail := effects.tails.get(place):
                mine = [i for i, g in enumerate(part.group) if g == group.desc]
                acting[at, mine[len(mine) // 2]] += tail
        return base * noise, acting * noise

    def _signs(self, program: Program) -> list[tuple[Sign, Ints]]:
        """Give the distinct collectives of a program, and which ones are alike."""
        known = self._known.get(id(program))
        if known is None:
            part, alike = program.collectives, dict[Sign, list[int]]()
            for c, (group, op) in enumerate(zip(part.group, part.op, strict=True)):
                sign = (group, op, bool(part.own[c]), tuple(part.size[c].tolist()))
                alike.setdefault(sign, []).append(c)
            known = [(sign, np.array(found)) for sign, found in alike.items()]
            self._known[id(program)] = known
        return known


@lru_cache(maxsize=4096)
def _pure_ns(
    wire: Wire, op: str, size: int, own: bool, engine: str, pinned: tuple[str, str] | None
) -> float:
    if own and wire.peer:
        engines = links.custom_ns(engine, wire.ranks, size)
        if engines is not None:
            return engines
    return links.choose(wire, op, size, pinned).pure_ns


def _tick_of(pause: Pause, program: Program, host: Floats) -> int:
    """Give the tick that a pause is in."""
    if pause.tag in program.tags[1:]:
        return int(np.argmax(program.host.tick_tag == program.tags.index(pause.tag))) + 1
    gone = np.cumsum(host)
    return min(int(np.searchsorted(gone, pause.share * gone[-1])), len(gone) - 1)


def _there(program: Program, rows: Ints, effects: Effects) -> Bools | None:
    """Tell which work is there: what has a tag is only on ranks that ask for it."""
    if len(program.tags) == 1:
        return None
    there = np.ones((len(rows), len(program.device.tag)), np.bool_)
    for number, tag in enumerate(program.tags):
        if number:
            off = ~np.isin(rows, list(effects.tags.get(tag, ())))
            there[np.ix_(off, program.device.tag == number)] = False
    return there


def _stop(program: Program, ranks: tuple[int, ...], stuck: tuple[int, int], host: Floats) -> None:
    rank, collective = stuck
    if rank in ranks:
        row = program.collectives.device[collective]
        host[ranks.index(rank), program.device.launched[row]] += NEVER_NS


@dataclass(frozen=True, slots=True)
class _Noise:
    """All that is drawn for a step. What is tagged draws last, so that the rest stays the same."""

    host: Floats
    device: Floats
    pure: Floats
    leave: Floats
    spikes: Floats

    @staticmethod
    def draw(random: np.random.Generator, program: Program, ranks: int, scene: Scene) -> "_Noise":
        nuisance = scene.nuisance
        ticks, work = program.host.tick_tag, program.device.tag
        plain, extra = int((ticks == 0).sum()), int((work == 0).sum())
        host = _normal(random, (ranks, plain))
        device = _normal(random, (ranks, extra))
        count = len(program.collectives.op)
        pure = np.exp(random.standard_normal(count) * 0.02)
        pure *= np.where(random.random(count) < 0.002, random.uniform(1.5, 4.0, count), 1.0)
        leave = random.random((ranks, count)) * nuisance.leave_ns
        spikes = np.zeros((ranks, len(ticks)))
        for row in np.flatnonzero(random.random(ranks) < nuisance.spike_rate):
            spikes[row, int(random.integers(len(ticks)))] = random.exponential(SPIKE_NS)
        return _Noise(
            np.exp(_spread(host, ticks == 0, random) * nuisance.host_sigma),
            np.exp(_spread(device, work == 0, random) * nuisance.kernel_sigma),
            np.broadcast_to(pure, (ranks, count)), leave, spikes,
        )  # fmt: skip


def _normal(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return random.standard_normal(shape, np.float32).astype(np.float64)


def _spread(drawn: Floats, at: Bools, random: np.random.Generator) -> Floats:
    """Put draws where there is no tag, and draw for the rest."""
    if at.all():
        return drawn
    out = np.empty((len(drawn), len(at)))
    out[:, at] = drawn
    out[:, ~at] = _normal(random, (len(drawn), int((~at).sum())))
    return out
