"""Lets causes act on a step."""

import numpy as np

from teller.lab.simulator import acts_engine, acts_network, acts_rank
from teller.lab.simulator.acting import ACTS, Now
from teller.lab.simulator.causes import Cause
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.scene import Scene

__all__ = ["ACTS", "acts_engine", "acts_network", "acts_rank", "apply"]  # they register themselves


def apply(causes: tuple[Cause, ...], scene: Scene, step: int, time_ns: int, out: Effects) -> None:
    """Let all causes act on one step."""
    for cause in causes:
        if cause.acts(step):
            random = np.random.default_rng([scene.seed, 9, cause.number, step])
            ACTS[cause.spec.kind](cause, Now(scene, step, time_ns, random), out)
