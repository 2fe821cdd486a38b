"""The operators whose own time a fault changed."""

from collections import Counter, defaultdict
from typing import Any, Final

import numpy as np

from teller.lab.testbed.expected import Mask
from teller.lab.testbed.faults import Kind
from teller.lab.testbed.inject import Done
from teller.lab.testbed.meetings import waited
from teller.lab.testbed.recorded import Ranges, steps
from teller.lab.testbed.scene import Scene, mean
from teller.lab.truth import OperatorTruth

_STEP_OPERATOR: Final = "execute_context_generation"  # as a step's own name is read
_LANE: Final = "outside of steps"


def operators(kind: Kind, done: Done, of: Scene, begin: int, end: int) -> tuple[OperatorTruth, ...]:
    """Give the operators whose own time it changed."""
    found: Counter[tuple[str, int]] = Counter()
    rank = done.planned.rank
    if kind.known == "pure":
        during = (of.met.arrived_ns >= begin) & (of.met.arrived_ns < end)
        for op in np.unique(of.met.op[during]):
            these = during & (of.met.op == op)
            beyond = (of.met.pure_ns - of.met_expected_ns)[these].sum()
            for one in range(len(of.ranks)):
                if (of.met.late_ns[these, one] >= 0).any():
                    found[of.met.ops[op], one] += round(beyond)
    elif kind.known == "strikes":
        at, sums = waited(of.met, rank)
        for start, stop, what in done.strikes:
            idle = np.interp([start, stop], at, sums) if len(at) else np.zeros(2)
            more = stop - start - round(idle[1] - idle[0])
            found[_where(what, start, of.own[rank][0]), rank] += more
    elif kind.known in ("steps", "held") and not kind.benign:
        found.update(_longer(of, rank, begin, end))
    rows = [(name, who, ns) for (name, who), ns in found.most_common() if ns > 0]
    return tuple(OperatorTruth(operator=n, rank=who, excess_ns=ns) for n, who, ns in rows[:12])


def _where(what: str, at: int, own: Ranges) -> str:
    """Give the operator that a strike met: the module it names, else the innermost range."""
    if what in own.names:
        return what
    around = np.flatnonzero((own.start_ns <= at) & (own.end_ns > at))
    if not len(around):
        return _LANE
    return _operator(own.names[own.name[around[-1]]])


def _operator(name: str) -> str:
    return _STEP_OPERATOR if name.startswith("step=") else name


def _longer(of: Scene, rank: int, begin: int, end: int) -> dict[tuple[str, int], int]:
    """Give the operators that took longer a step than in healthy steps, but for waiting."""
    own, self_ns = of.own[rank]
    number, start, _ = steps(own)
    at = np.searchsorted(start, own.start_ns, "right") - 1
    healthy = np.isin(number, of.steps.number[of.healthy])
    during = (start >= begin) & (start < end)
    if not healthy.any() or not during.any():
        return {}
    found: dict[tuple[str, int], int] = defaultdict(int)
    waits = set(of.met.ops) | {"send", "recv"}
    for name in np.unique(own.name):
        if own.names[name] in waits:
            continue
        rows = (own.name == name) & (at >= 0)
        a_step = np.bincount(at[rows], self_ns[rows], minlength=len(number))
        more = a_step[during].mean() - a_step[healthy].mean()
        found[_operator(own.names[name]), rank] += round(more * during.sum())
    return found


def calls_struck(done: Done, of: Scene, during: Mask) -> dict[str, Any]:
    """Give how often operators were struck, how long, and their own time before and during."""
    calls = Counter(what for *_, what in done.strikes)
    own, self_ns = of.own[done.planned.rank]
    number, start, _ = steps(own)
    at = np.searchsorted(start, own.start_ns, "right") - 1
    told = {}
    for name in calls:
        if name not in own.names:
            continue
        rows = (own.name == own.names.index(name)) & (at >= 0)
        a_step = np.bincount(at[rows], self_ns[rows], minlength=len(number)) / 1e6
        told[name] = {
            "healthy": mean(a_step[np.isin(number, of.steps.number[of.healthy])]),
            "during": mean(a_step[np.isin(number, of.steps.number[during])]),
        }
    added = sum(stop - start for start, stop, _ in done.strikes) / 1e6
    return {
        "calls_hit": sum(calls.values()), "operator_self_ms": told,
        "added_ms_per_call": round(added / max(1, sum(calls.values())), 3),
    }  # fmt: skip
