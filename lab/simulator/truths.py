"""Labels from play and replay: what a cause cost each step of each rank, and which operators.

*Direct excess* is the time of a step above that of the same plan played without the cause. Gold
operators are those whose own cost the cause changed: work, host time, pure time; a longer wait
never counts.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from teller.lab.simulator.causes import QUEUE, Cause, culprit
from teller.lab.simulator.happened import Transfer
from teller.lab.simulator.motion import NEVER_NS
from teller.lab.simulator.play import Done, Stage
from teller.lab.simulator.program import Floats
from teller.lab.simulator.scene import Scene
from teller.lab.truth import Culprit, Episode, OperatorTruth, Severity, StepTruth, Window

EFFECT: Final = 0.03  # share of the step from which a cause counts
_SHOWN: Final = 0.002  # share below which a step is not listed
_OWN_NS: Final = 20_000.0
_OPERATORS: Final = 12
_STUCK: Final = NEVER_NS / 2
# A wait for one's own device costs nothing of its own: the operator that asks for it is to blame.
_BLAMED: Final = {"hidden_sync": "aten::item"}
_LONGEST_NS: Final = 600e9  # what a hang costs until a watchdog ends it


@dataclass(slots=True)
class Labels:
    """The labels of one cause, step by step."""

    cause: Cause
    scene: Scene
    steps: list[StepTruth] = field(default_factory=list)
    operators: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))
    first_ns: float = -1.0
    last_ns: float = 0.0
    requests: dict[str, int] = field(default_factory=dict)  # late out of a transfer, in ns

    def add(self, done: Done, again: Done, names: tuple[str, ...]) -> None:
        """Compare a step with its replay."""
        usual = again.end_ns - again.planned_ns
        acting = self.cause.acts(done.plan.index)
        if acting and self._dates(done):
            # what is sent while there is nothing to decode is struck too
            idle = done.plan.idle_ns if self.cause.peer >= 0 else 0.0
            self.first_ns = done.planned_ns - idle if self.first_ns < 0 else self.first_ns
            self.last_ns = min(done.end_ns, done.planned_ns + _LONGEST_NS)
        own = self._owned(done, again, names) if acting else {}
        for rank, end in done.ends.items():
            excess = min(end - done.planned_ns, _LONGEST_NS) - (again.ends[rank] - again.planned_ns)
            share = excess / usual
            if abs(share) >= _SHOWN:
                self.steps.append(StepTruth(
                    rank=rank, step_index=done.plan.index, direct_excess_ns=round(excess),
                    share=round(share, 5), own=own.get(rank, 0.0) > _OWN_NS,
                ))  # fmt: skip

    def _dates(self, done: Done) -> bool:
        """Tell whether a step says when the cause acted: of decode, and at the struck link."""
        place = self.scene.places[next(iter(done.ends))]
        reached = self.cause.peer < 0 or place.host == self.cause.host
        return reached and place.dp >= self.scene.prefill

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Take over which requests came late, where the cause is of transfers."""
        if self.cause.peer >= 0:
            self.requests = {t.request: t.late_ns for t in transfers if t.late_ns > 0}

    def _owned(self, done: Done, again: Done, names: tuple[str, ...]) -> dict[int, float]:
        """Give each rank's change of own cost, and add it to its operators."""
        change: dict[int, float] = defaultdict(float)
        for ours, theirs in zip(done.stages, again.stages, strict=True):
            more = _by_name(ours, len(names)) - _by_name(theirs, len(names))
            for row, rank in enumerate(ours.ranks):
                at = np.flatnonzero(more[row] > _OWN_NS / 20)
                change[rank] += float(more[row][at].sum())
                for name in at:
                    self.operators[names[name], rank] += float(more[row][name])
        return change

    @property
    def share(self) -> float:
        """Give the largest share of any step."""
        return max((s.share for s in self.steps), default=0.0)

    def episode(self) -> Episode:
        """Give the episode; a cause that nothing felt is `no_effect`."""
        spec = self.cause.spec
        queued = bool(self.requests) if self.cause.peer >= 0 else spec.kind in QUEUE
        felt = self.share >= EFFECT or spec.benign or queued
        blamed = culprit(self.cause, self.scene)
        ranked = sorted(self.operators.items(), key=lambda i: -i[1])[:_OPERATORS]
        if blamed.kind == "operator":
            struck = _BLAMED.get(spec.kind, ranked[0][0][0] if ranked else "")
            blamed = Culprit(kind="operator", operators=(struck,))
        return Episode(
            class_=spec.class_ if felt else "no_effect", fault=spec.kind, culprit=blamed,
            severity=Severity(round(self.cause.severity, 4), spec.unit),
            intended=Window(round(max(self.first_ns, 0)), round(self.last_ns)),
            steps=tuple(self.steps),
            operators=tuple(
                OperatorTruth(operator=n, rank=r, excess_ns=round(min(ns, _LONGEST_NS)))
                for (n, r), ns in ranked
            ),
            benign=spec.benign or not felt, measured={"largest_share": round(self.share, 5)},
            extra={"id": spec.id, "intended_class": spec.class_, "first_step": self.cause.first,
                   "last_step": self.cause.last, "layer": self.cause.layer}
            | ({"requests_ns": self.requests} if self.requests else {}),
        )  # fmt: skip


def _by_name(stage: Stage, count: int) -> Floats:
    """Give the own cost of a step by rank and name: device work, host time and pure time."""
    program, costs = stage.program, stage.owned.costs
    owner = program.host.tick_owner
    host_names = np.where(owner >= 0, program.host.name[owner], 0)
    out = np.zeros((len(stage.ranks), count))
    reaches = program.collectives.device
    for row in range(len(stage.ranks)):
        host = np.where(owner >= 0, costs.host[row], 0.0)
        out[row] += np.bincount(host_names, host, count)
        out[row] += np.bincount(program.device.name, costs.device[row], count)
        pure = np.minimum(costs.pure[row], _LONGEST_NS)
        out[row] += np.bincount(program.device.name[reaches], pure, count)
    return out
