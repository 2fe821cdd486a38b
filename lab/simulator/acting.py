"""The register of acts: each says what a cause does to the effects of a step.

Nothing here knows of times: those follow. An act gets the cause, the moment and a generator of the
cause's own in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from teller.lab.simulator.causes import Cause
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.scene import Scene

MS: Final = 1e6


@dataclass(frozen=True, slots=True)
class Now:
    """The moment in which a cause acts."""

    scene: Scene
    step: int
    time_ns: int
    random: np.random.Generator


Act = Callable[[Cause, Now, Effects], None]
ACTS: dict[str, Act] = {}


def act(kind: str) -> Callable[[Act], Act]:
    """Say which cause a function is."""

    def keep(function: Act) -> Act:
        ACTS[kind] = function
        return function

    return keep
