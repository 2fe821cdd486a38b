"""Cells: ranks that step together, as one replica, or all where experts are spread over them."""

from dataclasses import dataclass

import numpy as np

from teller.lab.simulator.batching import Batch
from teller.lab.simulator.motion import Meeting
from teller.lab.simulator.program import Amounts
from teller.lab.simulator.scene import Scene


@dataclass(frozen=True, slots=True)
class Cell:
    """Its replicas, and the ranks of each pipeline stage in order."""

    replicas: tuple[int, ...]
    stages: tuple[tuple[int, ...], ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        """Give all ranks, by stage."""
        return tuple(r for stage in self.stages for r in stage)


def cells_of(scene: Scene) -> tuple[Cell, ...]:
    """Give the cells of a scene."""
    spread = any(p.ep for p in scene.places)
    replicas = range(scene.dp)
    together = [tuple(replicas)] if spread else [(r,) for r in replicas]
    return tuple(
        Cell(
            group,
            tuple(
                tuple(p.rank for p in scene.places if p.pp == stage and p.dp in group)
                for stage in range(scene.pp)
            ),
        )
        for group in together
    )


def meetings(scene: Scene, ranks: tuple[int, ...]) -> dict[str, Meeting]:
    """Give for each kind of group which of these ranks meet."""
    out = {}
    for kind in ("tp", "ep", "dp"):
        number = {
            rank: place
            for place, group in enumerate(scene.groups)
            if group.desc == kind
            for rank in group.ranks
        }
        if all(r in number for r in ranks):
            out[kind] = Meeting(np.array([number[r] for r in ranks]))
    return out


def amounts(scene: Scene, ranks: tuple[int, ...], batches: dict[int, Batch]) -> Amounts:
    """Give how much each rank has to do; a replica without requests runs a dummy token."""
    own = [batches.get(scene.places[r].dp, Batch()) for r in ranks]
    tokens = np.array([max(1, b.tokens) for b in own], float)
    everyone = float(sum(max(1, b.tokens) for b in batches.values())) or 1.0
    model = scene.model
    active = np.zeros(len(ranks))
    if model.experts:
        spread = 1 + max(p.ep for p in scene.places)
        here = model.experts / spread if spread > 1 else model.experts
        met = everyone if spread > 1 else tokens
        active = here * (1 - (1 - model.experts_used / model.experts) ** met) * np.ones(len(ranks))
    return Amounts(
        tokens, np.array([max(1, b.contexts + b.generations) for b in own], float),
        np.array([max(1, b.cached) for b in own], float), np.array([b.pairs for b in own], float),
        active,
    )  # fmt: skip
