"""Gathers the columns of a run, step by step, for each rank."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from teller.lab.simulator.happened import NEVER, OPS, DeviceSpans, HostKind, HostSpans, Joins, Steps
from teller.lab.simulator.motion import NEVER_NS, Moved
from teller.lab.simulator.program import Amounts, Floats, Ints, Program
from teller.lab.simulator.scene import Scene

_STUCK = NEVER_NS / 2
_ELEMENT = 2  # bytes


def whole(times: Floats) -> Ints:
    """Give times as whole ns; what never happens as NEVER."""
    return np.where(times > _STUCK, NEVER, np.rint(np.minimum(times, 1e17))).astype(np.int64)


@dataclass(slots=True)
class _Rank:
    host: list[dict[str, Ints]] = field(default_factory=list)
    device: list[dict[str, Ints]] = field(default_factory=list)
    joins: list[dict[str, Ints]] = field(default_factory=list)
    steps: list[dict[str, float]] = field(default_factory=list)
    calls: int = 0
    joined: int = 0
    seq: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What is known of a step beside its program."""

    index: int
    name: int  # of its annotation
    contexts: int
    generations: int
    context_tokens: int
    generation_tokens: int
    cached: int


class Columns:
    """All columns of a run in the making."""

    def __init__(self, scene: Scene) -> None:
        """Begin empty."""
        self._scene = scene
        self._ranks = tuple(_Rank() for _ in scene.places)

    def add(
        self, program: Program, ranks: tuple[int, ...], moved: Moved, amounts: Amounts,
        facts: list[StepFacts], tags: dict[str, frozenset[int]],
    ) -> None:  # fmt: skip
        """Add a step of these ranks."""
        tick, start, end = whole(moved.tick), whole(moved.start), whole(moved.end)
        arrival, left = whole(moved.arrival), whole(moved.left)
        columns = amounts.columns
        for row, rank in enumerate(ranks):
            self._rank(
                program, rank, facts[row], columns[row],
                (tick[row], start[row], end[row], arrival[row], left[row]),
                [i for i, t in enumerate(program.tags) if i == 0 or rank in tags.get(t, ())],
            )  # fmt: skip

    def _rank(
        self, program: Program, rank: int, facts: StepFacts, columns: Floats,
        times: tuple[Ints, ...], tags: list[int],
    ) -> None:  # fmt: skip
        tick, start, end, arrival, left = times
        kept = self._ranks[rank]
        self._host(kept, program, facts, columns, tick, tags)
        self._device(kept, program, facts, columns, (start, end), tags)
        self._join(kept, program, rank, facts, columns, (tick, arrival, left))
        kept.calls += int(program.host.correlation.max(initial=0))
        kept.joined += len(program.collectives.op)
        kept.steps.append({
            "index": facts.index, "contexts": facts.contexts, "generations": facts.generations,
            "context_tokens": facts.context_tokens, "generation_tokens": facts.generation_tokens,
            "attended": facts.cached, "start_ns": int(tick[0]), "end_ns": int(tick[-1]),
            "graph": program.graph,
        })  # fmt: skip

    def _host(
        self, kept: _Rank, program: Program, facts: StepFacts, columns: Floats, tick: Ints,
        tags: list[int],
    ) -> None:  # fmt: skip
        part = program.host
        at = np.flatnonzero(np.isin(part.tag, tags)) if len(program.tags) > 1 else slice(None)
        collective = part.collective[at]
        correlation = part.correlation[at]
        rows = {
            "name": part.name[at], "kind": part.kind[at], "thread": part.thread[at],
            "start_ns": tick[part.opened[at]], "end_ns": tick[part.closed[at]],
            "correlation": np.where(correlation > 0, correlation + kept.calls, 0),
            "collective": np.where(collective >= 0, collective + kept.joined, NEVER),
            "size_bytes": (part.size[at] @ columns).astype(np.int64),
        }  # fmt: skip
        step = {
            "name": np.array([facts.name]), "kind": np.array([HostKind.STEP]),
            "thread": np.zeros(1, np.int64), "start_ns": tick[:1], "end_ns": tick[-1:],
            "correlation": np.zeros(1, np.int64), "collective": np.array([NEVER]),
            "size_bytes": np.zeros(1, np.int64),
        }  # fmt: skip
        joined = {k: np.concatenate([step[k], v]) for k, v in rows.items()}
        begun = joined["start_ns"] != NEVER
        joined = {k: v[begun] for k, v in joined.items()}
        joined["step"] = np.full(int(begun.sum()), facts.index)
        kept.host.append(joined)

    def _device(
        self, kept: _Rank, program: Program, facts: StepFacts, columns: Floats,
        times: tuple[Ints, Ints], tags: list[int],
    ) -> None:  # fmt: skip
        part, (start, end) = program.device, times
        there = start != NEVER
        if len(program.tags) > 1:
            there &= np.isin(part.tag, tags)
        collective = part.collective[there]
        kept.device.append({
            "name": part.name[there], "kind": part.kind[there], "stream": part.stream[there],
            "start_ns": start[there], "end_ns": end[there],
            "correlation": part.correlation[there] + kept.calls,
            "step": np.full(int(there.sum()), facts.index), "graph": part.graph[there],
            "node": part.node[there],
            "collective": np.where(collective >= 0, collective + kept.joined, NEVER),
            "size_bytes": (part.size[there] @ columns).astype(np.int64),
            "copy": part.copy[there], "pageable": part.pageable[there],
        })  # fmt: skip

    def _join(
        self, kept: _Rank, program: Program, rank: int, facts: StepFacts, columns: Floats,
        times: tuple[Ints, Ints, Ints],
    ) -> None:  # fmt: skip
        part, (tick, arrival, left) = program.collectives, times
        if not part.op:
            return
        of = {
            g.desc: i for i, g in enumerate(self._scene.groups) if rank in g.ranks
        }  # a rank is in one group of each kind
        group = np.array([of.get(g, 0) for g in part.group])
        seq = np.empty(len(group), np.int64)
        for g in np.unique(group):
            at = group == g
            first = kept.seq.get(int(g), 0)
            seq[at] = first + np.arange(int(at.sum()))
            kept.seq[int(g)] = first + int(at.sum())
        size = (part.size @ columns).astype(np.int64)
        launched = program.device.launched[part.device]
        kept.joins.append({
            "group": group, "seq": seq, "op": np.array([OPS.index(o) for o in part.op]),
            "size_bytes": size, "elements": size // _ELEMENT,
            "peer": np.full(len(group), NEVER), "host_ns": tick[np.maximum(launched - 1, 0)],
            "arrival_ns": arrival, "end_ns": left, "step": np.full(len(group), facts.index),
        })  # fmt: skip

    def extra(self, rank: int, rows: dict[str, Ints]) -> None:
        """Add host spans of a rank that no program holds."""
        self._ranks[rank].host.append(rows)

    def done(
        self,
    ) -> tuple[
        tuple[HostSpans, ...], tuple[DeviceSpans, ...], tuple[Joins, ...], tuple[Steps, ...]
    ]:
        """Give all tables, one entry a rank."""
        host = tuple(HostSpans(**_table(r.host, HostSpans)) for r in self._ranks)
        device = tuple(DeviceSpans(**_table(r.device, DeviceSpans)) for r in self._ranks)
        joins = tuple(Joins(**_table(r.joins, Joins, order=False)) for r in self._ranks)
        steps = tuple(
            Steps(**{
                k: np.array([s[k] for s in r.steps], _TYPES.get(k, np.int32))
                for k in Steps.__dataclass_fields__
            })
            for r in self._ranks
        )  # fmt: skip
        return host, device, joins, steps


_TYPES: dict[str, type] = {
    "kind": np.uint8, "process": np.uint8, "thread": np.uint8, "copy": np.uint8,
    "start_ns": np.int64, "end_ns": np.int64, "correlation": np.int64, "size_bytes": np.int64,
    "node": np.int64, "pageable": np.bool_, "seq": np.int64,
    "elements": np.int64, "host_ns": np.int64, "arrival_ns": np.int64, "attended": np.int64,
}  # fmt: skip


def _table(parts: list[dict[str, Ints]], kind: type, *, order: bool = True) -> dict[str, Any]:
    names = list(kind.__dataclass_fields__)  # type: ignore[attr-defined] # a dataclass
    out: dict[str, Any] = {
        n: np.concatenate([p.get(n, np.zeros(len(p["step"]))) for p in parts]).astype(
            _TYPES.get(n, np.int32)
        )
        if parts
        else np.zeros(0, _TYPES.get(n, np.int32))
        for n in names
    }
    if order and len(out["start_ns"]):
        at = np.argsort(out["start_ns"], kind="stable")
        out = {n: v[at] for n, v in out.items()}
    return out
