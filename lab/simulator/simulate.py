"""One simulated run, whole: scene, causes, play, replays, labels, and what else can be seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from teller.lab.simulator import acts, causes, dialect, draw, gauges, telling
from teller.lab.simulator.batching import Work
from teller.lab.simulator.calibrate import calibrated
from teller.lab.simulator.causes import Cause
from teller.lab.simulator.cells import Cell, cells_of
from teller.lab.simulator.dialect import Dialect
from teller.lab.simulator.draw import Wanted
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.handover import Handover, Instance
from teller.lab.simulator.happened import Happened, Request, Transfer
from teller.lab.simulator.library import Library
from teller.lab.simulator.motion import NEVER_NS
from teller.lab.simulator.play import Done, Player, requests_of
from teller.lab.simulator.scene import Scene
from teller.lab.simulator.truths import Labels

_STUCK: Final = NEVER_NS / 2
_ENDLESS_NS: Final = 1e12
_WATCHED_NS: Final = (30e9, 660e9)  # how long a hang is recorded


@dataclass(frozen=True, slots=True)
class Simulated:
    """A run and its labels. `steps` are (planned, begin, end) in ns by cell."""

    happened: Happened
    labels: tuple[Labels, ...]
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """What to simulate: a seed, the causes by kind, and what is not left to chance.

    `severity` holds for all causes; None draws it. `twin`: play freely without any cause.
    """

    seed: int
    kinds: tuple[str, ...] = ()
    wanted: Wanted = field(default_factory=Wanted)
    severity: float | None = None
    twin: bool = False


def simulate(order: Order) -> Simulated:
    """Simulate a run. The same order gives the same run, bit for bit."""
    scene, names = scene_of(order.seed, order.wanted)
    found = () if order.twin else causes_of(order, scene)
    library = Library(scene, names)

    def acting(step: int, now: int, effects: Effects) -> None:
        acts.apply(found, scene, step, now, effects)

    player = Player(scene, names, library, acting)
    labels = tuple(Labels(c, scene) for c in found)
    played = _play(player, labels, found, order.wanted.steps)
    happened = happened_of(player, played, found, scene)
    for label in labels:
        label.wait(happened.transfers)
    return Simulated(happened, labels, found)


def scene_of(seed: int, wanted: Wanted) -> tuple[Scene, Dialect]:
    """Give the scene of a seed with its rate of requests set, and its names."""
    scene = draw.scene(seed, wanted)
    names = dialect.draw(scene, np.random.default_rng([seed, 2]))
    return calibrated(scene, names, scene.load.rate), names


def causes_of(order: Order, scene: Scene) -> tuple[Cause, ...]:
    """Draw the causes that an order asks for."""
    out = []
    for number, kind in enumerate(order.kinds):
        random = np.random.default_rng([order.seed, 5, number])
        steps, value = order.wanted.steps, order.severity
        out.append(causes.drawn(kind, scene, steps, number, random, value))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Played:
    """What is left of play: requests, and times of steps by cell."""

    requests: list[Work]
    steps: dict[Cell, list[tuple[int, float, float, float]]]  # index, planned, begin, end
    batches: dict[Cell, list[Done]]
    transfers: list[Transfer] = field(default_factory=list)


def _play(
    player: Player, labels: tuple[Labels, ...], found: tuple[Cause, ...], steps: int
) -> Played:
    out = Played([], {}, {})
    cells = cells_of(player.scene)
    if player.scene.prefill:
        return _play_apart(player, labels, found, steps, cells)
    limit = _ENDLESS_NS
    for number, cell in enumerate(cells):
        queue = requests_of(player.scene, cell, len(cells), horizon_ns(player.scene))
        most = steps if number == 0 else steps * 20
        run = player.run(cell, queue, most, limit)
        for _ in _labelled(player, labels, found, cell, run, out):
            pass
        if number == 0:
            limit = limit_of(out, cell)
        out.requests.extend(w for w in queue if w.arrival_ns <= limit)
    return out


def horizon_ns(scene: Scene) -> int:
    """Give until when requests are drawn."""
    return int(scene.seconds * 3e9) + 1_000_000_000


def limit_of(out: Played, cell: Cell) -> float:
    """Give when the first cell's run ended, or how long it is watched where it hangs."""
    told = out.steps[cell]
    if not told:
        return _ENDLESS_NS
    return told[-1][3] if told[-1][3] < _STUCK else told[-1][2] + _WATCHED_NS[0]


def _labelled(
    player: Player, labels: tuple[Labels, ...], found: tuple[Cause, ...], cell: Cell,
    steps: Iterator[Done], out: Played,
) -> Iterator[Done]:  # fmt: skip
    """Give the steps of a cell, each after it was replayed for the labels and is kept."""
    states = [player.fresh() for _ in labels]
    told, batches = out.steps.setdefault(cell, []), out.batches.setdefault(cell, [])
    for done in steps:
        for label, state in zip(labels, states, strict=True):
            effects = Effects(len(player.scene.places))
            others = tuple(c for c in found if c is not label.cause)
            acts.apply(others, player.scene, done.plan.index, int(done.planned_ns), effects)
            again = player.again(cell, done, state, effects)
            label.add(done, again, player.library.names.all)
        told.append((done.plan.index, done.planned_ns, done.begin_ns, done.end_ns))
        batches.append(replace(done, stages=()))
        yield done


def _play_apart(
    player: Player, labels: tuple[Labels, ...], found: tuple[Cause, ...], steps: int,
    cells: tuple[Cell, ...],
) -> Played:  # fmt: skip
    """Play what decodes, and prefill instances as far as that has come."""
    scene, out = player.scene, Played([], {}, {})
    split, limit, instances = scene.prefill, _ENDLESS_NS, []
    outputs: dict[int, int] = {}
    for cell in cells[:split]:
        queue = requests_of(scene, cell, split, horizon_ns(scene))
        outputs.update((w.number, w.output) for w in queue)
        queue = [replace(w, output=1) for w in queue]  # the prefill makes the first token alone
        run = player.run(cell, queue, steps * 20, limit)
        run = _labelled(player, labels, found, cell, run, out)
        instances.append(Instance({w.number: w for w in queue}, run))
    handover = Handover(scene, instances, outputs)
    for number, cell in enumerate(cells[split:]):
        run = player.run(cell, [], steps if number == 0 else steps * 20, limit, handover)
        for _ in _labelled(player, labels, found, cell, run, out):
            pass
        if number == 0:
            limit = handover.limit_ns = limit_of(out, cell)
    handover.play(limit)
    out.requests.extend(w for w in handover.requests() if w.arrival_ns <= limit)
    out.transfers.extend(sorted(handover.transfers, key=lambda t: t.start_ns))
    return out


def happened_of(player: Player, played: Played, found: Sequence[Cause], scene: Scene) -> Happened:
    """Give all that happened, once everything was played."""
    ends = [s[-1] for s in played.steps.values() if s]
    end = max((e[3] if e[3] < _STUCK else _hung(scene, e[2])) for e in ends)
    transfers = tuple(t for t in played.transfers if t.start_ns <= end)
    for transfer in transfers:
        player.engine.receive(transfer)
    host, device, joins, steps = player.columns.done()
    requests = tuple(_request(w, int(end)) for w in played.requests if w.arrival_ns <= end)
    dones = [d for cell in played.batches.values() for d in cell]
    dead = tuple({d.effects.dead for d in dones if d.effects.dead >= 0})
    seen = gauges.gauges(scene, dones, found, int(end), transfers)
    notes = telling.notes(scene, dones, found, requests, int(end))
    facts = telling.facts(scene, found)
    return Happened(
        scene, player.library.names.all, host, device, joins, steps, requests, notes, seen,
        int(end), dead, facts, transfers,
    )  # fmt: skip


def _hung(scene: Scene, since_ns: float) -> float:
    low, high = np.log(_WATCHED_NS)
    random = np.random.default_rng([scene.seed, 12])
    return since_ns + float(np.exp(random.uniform(low, high)))


def _request(work: Work, end_ns: int) -> Request:
    def known(time_ns: int) -> int:
        return time_ns if 0 <= time_ns <= end_ns else -1

    return Request(
        work.name, work.replica, work.arrival_ns, known(work.queued_ns), known(work.scheduled_ns),
        known(work.first_token_ns), known(work.end_ns), work.prompt, work.made, work.preemptions,
        tuple(work.steps),
    )  # fmt: skip
