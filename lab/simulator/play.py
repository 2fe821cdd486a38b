"""Plays a run: scheduler, workers, devices and network, step after step, under the causes given."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from teller.lab.simulator import cells, dialect, naming
from teller.lab.simulator.batching import Batch, Scheduler, Work, arrivals
from teller.lab.simulator.cells import Cell
from teller.lab.simulator.collecting import Columns, StepFacts
from teller.lab.simulator.costing import Coster, Owned
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.engine_ranges import Engine
from teller.lab.simulator.handover import Handover, Received
from teller.lab.simulator.intake import Intake
from teller.lab.simulator.library import Library
from teller.lab.simulator.motion import NEVER_NS, Moved, advance
from teller.lab.simulator.program import Amounts, Floats, Program
from teller.lab.simulator.scene import Scene

_STUCK: Final = NEVER_NS / 2
Acting = Callable[[int, int, Effects], None]  # (step, now in ns, effects to change)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a step of a cell does, whatever acts on it: what a replay repeats."""

    index: int
    slot: int
    batches: dict[int, Batch]
    idle_ns: float  # time before it in which there was nothing to do


@dataclass(frozen=True, slots=True)
class Done:
    """One step of one cell, as it was played."""

    plan: Plan
    planned_ns: float  # when the engine began to plan it
    begin_ns: float  # when the workers were told
    end_ns: float  # when the engine had the tokens
    ends: dict[int, float]  # by rank
    stages: tuple["Stage", ...]
    effects: Effects


@dataclass(frozen=True, slots=True)
class Stage:
    """A step on the ranks of one pipeline stage."""

    ranks: tuple[int, ...]
    program: Program
    owned: Owned
    moved: Moved
    amounts: Amounts


@dataclass(slots=True)
class State:
    """Where ranks and engine stand, in ns."""

    host: Floats
    device: Floats
    finished: dict[int, float]  # by slot: when its last step had its tokens
    engine: float = 0.0


@dataclass(slots=True)
class Player:
    """Plays steps of one scene. `acting` fills in the effects of a step."""

    scene: Scene
    names: dialect.Dialect
    library: Library
    acting: Acting
    coster: Coster = field(init=False)
    columns: Columns = field(init=False)
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        """Make what is shared by all steps."""
        self.coster = Coster(self.scene)
        self.columns = Columns(self.scene)
        self.engine = Engine(self.scene, self.names, self.library.names, self.columns)

    def step(
        self, cell: Cell, plan: Plan, begin_ns: float, planned_ns: float, state: State,
        effects: Effects, *, record: bool,
    ) -> Done:  # fmt: skip
        """Play one step on all stages of a cell; `state` goes on to its end."""
        stages, ready = [], np.zeros(len(cell.stages[0]))
        for number in range(len(cell.stages)):
            stage = self._stage(cell, number, plan, begin_ns, ready, effects, state)
            stages.append(stage)
            sends = [i for i, o in enumerate(stage.program.collectives.op) if o == "send"]
            if sends:
                ready = stage.moved.left[:, sends[-1]]
            if record:
                self._record(stage, plan, effects)
        last = stages[-1]
        end = float(last.moved.tick[:, -1].max())
        ends = {r: float(s.moved.tick[i, -1]) for s in stages for i, r in enumerate(s.ranks)}
        return Done(plan, planned_ns, begin_ns, end, ends, tuple(stages), effects)

    def _stage(
        self, cell: Cell, number: int, plan: Plan, begin_ns: float, ready: Floats,
        effects: Effects, state: State,
    ) -> Stage:  # fmt: skip
        ranks, batches, index = cell.stages[number], plan.batches, plan.index
        prefill = any(b.contexts for b in batches.values())
        requests = max(b.contexts + b.generations for b in batches.values())
        kind = self.library.kind(number, prefill=prefill, requests=requests, effects=effects)
        program = self.library.program(kind)
        amounts = cells.amounts(self.scene, ranks, batches)
        random = np.random.Generator(
            np.random.SFC64([self.scene.seed, 7, cell.replicas[0], number, index])
        )
        owned = self.coster.cost(program, ranks, amounts, effects, random, ready)
        rows = np.array(ranks)
        lag = random.random(len(ranks)) * 0.4 + 0.8
        begin = np.maximum(state.host[rows], begin_ns + self.scene.nuisance.dispatch_ns * lag)
        moved = advance(
            program, owned.costs, cells.meetings(self.scene, ranks), begin, state.device[rows]
        )
        state.host[rows], state.device[rows] = moved.tick[:, -1], moved.end[:, -1]
        return Stage(ranks, program, owned, moved, amounts)

    def _record(self, stage: Stage, plan: Plan, effects: Effects) -> None:
        facts, index = [], plan.index
        for rank in stage.ranks:
            batch = plan.batches.get(self.scene.places[rank].dp, Batch())
            name = self.library.names.number(naming.step_name(self.scene, self.names, index, batch))
            facts.append(StepFacts(
                index, name, batch.contexts, batch.generations, batch.context_tokens,
                batch.generation_tokens, batch.cached,
            ))  # fmt: skip
        self.columns.add(
            stage.program, stage.ranks, stage.moved, stage.amounts, facts, effects.tags
        )

    def run(
        self, cell: Cell, queue: list[Work], steps: int, limit_ns: float,
        handover: Handover | None = None,
    ) -> Iterator[Done]:  # fmt: skip
        """Play a cell freely: each step is planned from what is there, or is handed over."""
        slots, state = self.scene.pp, self.fresh()
        intake = self._intake(cell, queue, handover)
        schedulers = intake.schedulers
        for index in range(steps):
            slot = index % slots
            now = max(state.finished[slot], float(state.host[list(cell.stages[0])].min()))
            now = max(now, state.engine)
            if now > limit_ns:
                return
            effects = self._effects(cell, index, now)
            intake.take(now, effects)
            chosen = {r: schedulers[r, slot].plan() for r in cell.replicas}
            idle = 0.0
            if not any(c for _, c in chosen.values()):
                if any(s.running for s in schedulers.values()):
                    continue  # another slot of the pipeline has work
                coming = intake.next_ns()
                if coming is None:
                    return
                idle = max(0.0, coming - now)
                intake.take(now + idle, effects)
                chosen = {r: schedulers[r, slot].plan() for r in cell.replicas}
            plan = Plan(index, slot, {r: batch for r, (batch, _) in chosen.items()}, idle)
            begin = now + idle + self._between(cell, index, effects)
            done = self.step(cell, plan, begin, now + idle, state, effects, record=True)
            self.engine.record(cell, done)
            self._finish(done, state)
            for replica, (_, taken) in chosen.items():
                end = int(min(done.end_ns, 1e17))
                schedulers[replica, slot].finish(taken, index, int(begin), end)
            yield done
            if done.end_ns > _STUCK:
                return

    def _intake(self, cell: Cell, queue: list[Work], handover: Handover | None) -> Intake:
        schedulers = {
            (replica, slot): Scheduler(self.scene, self.scene.load, self.scene.pp)
            for replica in cell.replicas for slot in range(self.scene.pp)
        }  # fmt: skip
        if handover:
            return Received(self.scene, cell, schedulers, [], handover=handover)
        return Intake(self.scene, cell, schedulers, list(reversed(queue)))

    def _effects(self, cell: Cell, index: int, now: float) -> Effects:
        effects = Effects(len(self.scene.places))
        self.acting(index, int(now), effects)
        if cell.replicas[0] < self.scene.prefill:
            effects.blocks = effects.giant = 0.0  # the cache that runs full is of decode
        return effects

    def again(
        self, cell: Cell, done: Done, state: State, effects: Effects, *, record: bool = False
    ) -> Done:
        """Play a step's plan again under other effects: same batches, same idle time."""
        now = max(state.finished[done.plan.slot], float(state.host[list(cell.stages[0])].min()))
        now = max(now, state.engine) + done.plan.idle_ns
        begin = now + self._between(cell, done.plan.index, effects)
        played = self.step(cell, done.plan, begin, now, state, effects, record=record)
        if record:
            self.engine.record(cell, played)
        self._finish(played, state)
        return played

    def _finish(self, done: Done, state: State) -> None:
        state.finished[done.plan.slot] = done.end_ns
        if self.scene.pp == 1:
            state.engine = done.end_ns

    def _between(self, cell: Cell, index: int, effects: Effects) -> float:
        """Give what the engine does between steps, in ns."""
        random = np.random.default_rng([self.scene.seed, 8, cell.replicas[0], index])
        own = self.scene.nuisance.schedule_ns * float(np.exp(random.normal(0, 0.12)))
        return own * self.scene.nuisance.host_speed + effects.schedule_ns

    def fresh(self) -> State:
        """Give the state at the beginning of a run."""
        ranks = len(self.scene.places)
        slots = dict.fromkeys(range(self.scene.pp), 0.0)
        return State(np.zeros(ranks), np.zeros(ranks), slots)


def requests_of(scene: Scene, cell: Cell, cells_count: int, horizon_ns: int) -> list[Work]:
    """Give the requests that reach a cell: a router gives them out in turn."""
    random = np.random.default_rng([scene.seed, 3])
    everyone = arrivals(scene, random, horizon_ns)
    return [w for w in everyone if w.number % cells_count == cell.replicas[0] % cells_count]
