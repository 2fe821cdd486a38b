"""The replay of a run as a run of its own: the same plan step by step, without the causes.

A free twin diverges after the first pause; a replay never does, so what is found in the run and not
in its replay is there because of the causes.
"""

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from teller.errors import BadUsage
from teller.lab.simulator import acts, simulate
from teller.lab.simulator.batching import Work
from teller.lab.simulator.cells import Cell, cells_of
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.library import Library
from teller.lab.simulator.motion import NEVER_NS
from teller.lab.simulator.play import Player, requests_of
from teller.lab.simulator.produce import name_of, recorded, timed, truth_of
from teller.lab.simulator.recording import write
from teller.lab.simulator.simulate import Order, Played, Simulated
from teller.lab.truth import write_truth

_ENDLESS_NS: Final = 1e12
_OTHER_CELLS: Final = 20  # times as many steps as the first, at most


def produce_replay(order: Order, out: Path) -> Path:
    """Write the replay of an order's run as a run folder with its truth: nothing is wrong in it.

    Raises `BadUsage` where prefill and decode are apart: their plans depend on each other's times.
    """
    run = replayed(order)
    name = f"run-{blake2b(f'replay of {name_of(order)}'.encode(), digest_size=6).hexdigest()}"
    recording = replace(recorded(order, run), run=name)
    folder = out / name
    write.record(run.happened, recording, folder)
    truth = structs.replace(truth_of(order, run, recording, order.seed), twin_of=name_of(order))
    write_truth(timed(truth, run), folder)
    return folder


def replayed(order: Order) -> Simulated:
    """Play an order, and each of its steps again without any cause; give what was played again."""
    scene, names = simulate.scene_of(order.seed, order.wanted)
    if scene.prefill:
        raise BadUsage("a replay of prefill apart from decode cannot be recorded")
    found = simulate.causes_of(order, scene)

    def acting(step: int, now: int, effects: Effects) -> None:
        acts.apply(found, scene, step, now, effects)

    struck = Player(scene, names, Library(scene, names), acting)
    ghost = Player(scene, names, Library(scene, names), lambda step, now, effects: None)
    played = _played(struck, ghost, order.wanted.steps)
    return Simulated(simulate.happened_of(ghost, played, (), scene), (), ())


def _played(struck: Player, ghost: Player, steps: int) -> Played:
    """Play each cell under the causes, and what it did again without them."""
    out, limit = Played([], {}, {}), _ENDLESS_NS
    cells = cells_of(ghost.scene)
    for number, cell in enumerate(cells):
        queue = requests_of(struck.scene, cell, len(cells), simulate.horizon_ns(struck.scene))
        most = steps if number == 0 else steps * _OTHER_CELLS
        real = _cell(struck, ghost, cell, queue, most, limit, out)
        if number == 0 and real:
            limit = real[-1] if real[-1] < NEVER_NS / 2 else out.steps[cell][-1][3]
        out.requests.extend(_moved(queue, real, [s[3] for s in out.steps[cell]], limit))
    return out


def _cell(
    struck: Player, ghost: Player, cell: Cell, queue: list[Work], most: int, limit: float,
    out: Played,
) -> list[float]:  # fmt: skip
    """Play a cell; give when its steps ended under the causes."""
    state, real = ghost.fresh(), []
    told, batches = out.steps.setdefault(cell, []), out.batches.setdefault(cell, [])
    for done in struck.run(cell, queue, most, limit):
        again = ghost.again(cell, done, state, Effects(len(ghost.scene.places)), record=True)
        told.append((done.plan.index, again.planned_ns, again.begin_ns, again.end_ns))
        batches.append(replace(again, stages=()))
        real.append(done.end_ns)
    return real


def _moved(queue: list[Work], real: list[float], again: list[float], limit: float) -> list[Work]:
    """Put requests on the replay's clock: what a step's end was stays that step's end."""
    if not real:
        return []
    struck, clock = np.array([0.0, *real]), np.array([0.0, *again])

    def moved(time_ns: int) -> int:
        return time_ns if time_ns < 0 else round(float(np.interp(time_ns, struck, clock)))

    return [
        replace(
            w, arrival_ns=moved(w.arrival_ns), queued_ns=moved(w.queued_ns),
            scheduled_ns=moved(w.scheduled_ns), first_token_ns=moved(w.first_token_ns),
            end_ns=moved(w.end_ns),
        )
        for w in queue if w.arrival_ns <= min(limit, real[-1])
    ]  # fmt: skip
