"""Sets the rate of requests so that a scene's batch is as large as it was drawn, and does not grow.

By Little's law: with batch B, mean output o, time d of a decode step and time p of a prefill, the
rate of a replica is B / (o d + B p). Where prefill is apart, B / (o d), and no more than the
replicas that prefill can take.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from teller.lab.simulator.batching import Batch
from teller.lab.simulator.cells import cells_of
from teller.lab.simulator.dialect import Dialect
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.library import Library
from teller.lab.simulator.play import Plan, Player
from teller.lab.simulator.scene import Scene

_BUSIEST: Final = 0.65  # share of its time that a replica prefills


def calibrated(scene: Scene, names: Dialect, batch: float) -> Scene:
    """Give the scene with the rate that keeps `batch` requests a replica in flight."""
    load = scene.load
    output = float(np.exp(load.output_mu + load.output_sigma**2 / 2))
    prompt = int(np.exp(load.prompt_mu + load.prompt_sigma**2 / 2))
    count = max(1, round(batch))
    decode = Batch(
        generations=count, generation_tokens=count, cached=int(count * (prompt + output / 2))
    )
    new = min(prompt, load.token_limit)
    prefill = Batch(contexts=1, context_tokens=new, cached=0, pairs=new * new / 2)
    a, b = (_step_ns(scene, names, one) for one in (decode, prefill))
    rate = count / (output * a + count * b) * 1e9
    if scene.prefill:
        decoded = (scene.dp - scene.prefill) * count / (output * a) * 1e9
        rate = min(decoded, _BUSIEST * scene.prefill / b * 1e9) / scene.dp
    return replace(scene, load=replace(load, rate=rate), seconds=scene.seconds * a / 1e9)


def _step_ns(scene: Scene, names: Dialect, batch: Batch) -> float:
    player = Player(scene, names, Library(scene, names), lambda *_: None)
    cell = cells_of(scene)[0]
    plan = Plan(0, 0, dict.fromkeys(cell.replicas, batch), 0.0)
    effects, state = Effects(len(scene.places)), player.fresh()
    return player.step(cell, plan, 0.0, 0.0, state, effects, record=False).end_ns
