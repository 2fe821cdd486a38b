"""Keeps the programs of a run: made once for each kind of step."""

from teller.lab.simulator.dialect import Dialect
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.layers import Kind
from teller.lab.simulator.program import Program
from teller.lab.simulator.scene import Scene
from teller.lab.simulator.steps import build
from teller.lab.simulator.tape import Names

GRAPH_LIMIT = 256  # requests; larger batches have no graph


class Library:
    """Gives the program of a step."""

    def __init__(self, scene: Scene, dialect: Dialect) -> None:
        """Begin with none."""
        self._scene, self._dialect = scene, dialect
        self.names = Names()
        self._made: dict[Kind, Program] = {}

    def program(self, kind: Kind) -> Program:
        """Give the program of a kind."""
        if kind not in self._made:
            self._made[kind] = build(self._scene, self._dialect, kind, self.names)
        return self._made[kind]

    def kind(self, stage: int, *, prefill: bool, requests: int, effects: Effects | None) -> Kind:
        """Give the kind of a step of one stage; without effects the healthy one."""
        scene = self._scene
        layers = scene.model.layers // scene.pp
        first, last = stage * layers, (stage + 1) * layers
        graph = scene.mode == "graph" and (not prefill) and requests <= GRAPH_LIMIT
        graph = graph or scene.mode == "piecewise"
        if effects is None:
            return Kind(
                prefill, graph, first=stage == 0, last=stage == scene.pp - 1, layers=(first, last)
            )
        return Kind(
            prefill, graph and not effects.eager, effects.fallback, effects.own_all_reduce,
            effects.extras, stage == 0, stage == scene.pp - 1, (first, last),
        )  # fmt: skip
