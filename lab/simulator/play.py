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
from teller.lab.simulator.library import Library
from teller.lab.simulator.motion import NEVER_NS, Moved, advance
from teller.lab.simulator.program import Amounts, Floats, Program
from teller.lab.simulator.scene import Scene

_STUCK: Final = NEVER_NS / 2
Acting = Callable[[int, int, Effects], None]  # (step, now in ns, effects to change)


@dataclass(frozen=True, slots=True)
class Done:
    """One step of one cell, as it was played."""

    index: int
    slot: int
    batches: dict[int, Batch]
    begin_ns: float  # when the workers could begin
    idle_ns: float  # time before it in which there was nothing to do
    end_ns: float  # when the engine had the tokens
    ends: dict[int, float]  # by rank
    stages: tuple["Stage", ...]
    effects: Effects | None


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
        self, cell: Cell, index: int, slot: int, batches: dict[int, Batch], begin_ns: float,
        idle_ns: float, state: State, effects: Effects | None, *, record: bool,
    ) -> Done:  # fmt: skip
        """Play one step on all stages of a cell; `state` goes on to its end."""
        acting = effects or Effects(len(self.scene.places))
        stages, ready = [], np.zeros(len(cell.stages[0]))
        for number, ranks in enumerate(cell.stages):
            stage = self._stage(cell, number, index, ranks, batches, begin_ns, ready, acting, state)
            stages.append(stage)
            sends = [i for i, o in enumerate(stage.program.collectives.op) if o == "send"]
            if sends:
                ready = stage.moved.left[:, sends[-1]]
            if record:
                self._record(stage, index, batches, acting)
        last = stages[-1]
        end = float(last.moved.tick[:, -1].max())
        ends = {
            r: float(s.moved.tick[i, -1]) for s in stages for i, r in enumerate(s.ranks)
        }
        return Done(index, slot, batches, begin_ns, idle_ns, end, ends, tuple(stages), effects)

    def _stage(
        self, cell: Cell, number: int, index: int, ranks: tuple[int, ...],
        batches: dict[int, Batch], begin_ns: float, ready: Floats, effects: Effects, state: State,
    ) -> Stage:  # fmt: skip
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

    def _record(
        self, stage: Stage, index: int, batches: dict[int, Batch], effects: Effects
    ) -> None:
        facts = []
        for rank in stage.ranks:
            batch = batches.get(self.scene.places[rank].dp, Batch())
            name = self.library.names.number(naming.step_name(self.scene, self.names, index, batch))
            facts.append(StepFacts(
                index, name, batch.contexts, batch.generations, batch.context_tokens,
                batch.generation_tokens, batch.cached,
            ))  # fmt: skip
        self.columns.add(
            stage.program, stage.ranks, stage.moved, stage.amounts, facts, effects.tags
        )

    def run(self, cell: Cell, queue: list[Work], steps: int, limit_ns: float) -> Iterator[Done]:
        """Play a cell freely: the scheduler plans each step from what is there."""
        slots = self.scene.pp
        schedulers = {
            (replica, slot): Scheduler(self.scene, self.scene.load, slots)
            for replica in cell.replicas for slot in range(slots)
        }  # fmt: skip
        state = self._fresh(slots)
        pending = list(reversed(queue))
        now, index = 0.0, 0
        while index < steps and now < limit_ns:
            slot = index % slots
            effects = Effects(len(self.scene.places))
            now = max(now, state.finished[slot], float(state.host[list(cell.stages[0])].min()))
            self.acting(index, int(now), effects)
            _arrive(pending, schedulers, cell, slots, now, effects)
            planned = {r: schedulers[r, slot].plan() for r in cell.replicas}
            idle = 0.0
            if not any(chosen for _, chosen in planned.values()):
                if slots > 1 and any(s.running or s.waiting for s in schedulers.values()):
                    index += 1
                    continue
                if not pending:
                    return
                idle = max(0.0, pending[-1].queued_ns - now)
                now = max(now, float(pending[-1].queued_ns))
                _arrive(pending, schedulers, cell, slots, now, effects)
                planned = {r: schedulers[r, slot].plan() for r in cell.replicas}
            batches = {r: batch for r, (batch, _) in planned.items()}
            begin = now + self._between(cell, index, effects)
            done = self.step(cell, index, slot, batches, begin, idle, state, effects, record=True)
            self.engine.record(cell, done, now)
            state.finished[slot] = done.end_ns
            for replica, (_, chosen) in planned.items():
                schedulers[replica, slot].finish(chosen, index, int(begin), int(min(done.end_ns, 1e17)))
            yield done
            if done.end_ns > _STUCK:
                return
            if slots == 1:
                now = done.end_ns
            index += 1

    def repeat(self, cell: Cell, plan: list[Done]) -> Iterator[Done]:
        """Play the plan of a run again without any cause: same batches, same idle times."""
        state = self._fresh(self.scene.pp)
        now = 0.0
        for done in plan:
            healthy = Effects(len(self.scene.places))
            now = max(now, state.finished[done.slot], float(state.host[list(cell.stages[0])].min()))
            begin = now + done.idle_ns + self._between(cell, done.index, healthy)
            again = self.step(
                cell, done.index, done.slot, done.batches, begin, done.idle_ns, state, None, record=False
            )
            state.finished[done.slot] = again.end_ns
            if self.scene.pp == 1:
                now = again.end_ns
            yield again

    def _between(self, cell: Cell, index: int, effects: Effects) -> float:
        """Give what the engine does between steps, in ns."""
        random = np.random.default_rng([self.scene.seed, 8, cell.replicas[0], index])
        own = self.scene.nuisance.schedule_ns * float(np.exp(random.normal(0, 0.12)))
        return own * self.scene.nuisance.host_speed + effects.schedule_ns

    def _fresh(self, slots: int) -> State:
        ranks = len(self.scene.places)
        return State(np.zeros(ranks), np.zeros(ranks), dict.fromkeys(range(slots), 0.0))


def _arrive(
    pending: list[Work], schedulers: dict[tuple[int, int], Scheduler], cell: Cell, slots: int,
    now: float, effects: Effects,
) -> None:  # fmt: skip
    """Give the scheduler what has arrived; a slow tokenizer keeps requests back."""
    while pending and pending[-1].arrival_ns <= now:
        one = pending[-1]
        if effects.queue_ns and one.queued_ns == one.arrival_ns:
            one.queued_ns = one.arrival_ns + int(effects.queue_ns)
        if one.queued_ns > now:
            return
        pending.pop()
        one.replica = cell.replicas[one.number % len(cell.replicas)]
        schedulers[one.replica, (one.number // len(cell.replicas)) % slots].waiting.append(one)


def requests_of(scene: Scene, cell: Cell, cells_count: int, horizon_ns: int) -> list[Work]:
    """Give the requests that reach a cell: a router gives them out in turn."""
    random = np.random.default_rng([scene.seed, 3])
    everyone = arrivals(scene, random, horizon_ns)
    return [w for w in everyone if w.number % cells_count == cell.replicas[0] % cells_count]
