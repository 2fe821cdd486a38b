"""Which spans of a step are odd, what stands around them, and what is kept of too many."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.schema import LAUNCHED, NEXT, WAITED_FOR
from teller.models.slice_picks import (
    SEEDS,
    Ints,
    Picks,
    Role,
    across,
    first_of_each,
    places,
)
from teller.models.slice_reading import WORTH, Scene, ints

# All thresholds are shares of the step's duration; WORTH, of excess, lateness and waiting, is
# beside the queries. Many calls that are each a little too long count by their operator's sum.
OPERATOR_WORTH: Final = 0.01
GAP_WORTH: Final = 0.02
EACH: Final = 4  # spans that stand for an operator or the gaps of a step
MOST_OPERATORS: Final = 3  # shown of a step that is too long as a whole
MOST_SPANS: Final = 256  # of a slice, before their ancestors


def seeds(scene: Scene, counts: pa.Table) -> Picks:
    """Give the odd spans of the steps asked for; `counts` is what `counts_apart` gives."""
    row = np.flatnonzero(np.isin(scene.slot, scene.asked))
    dur = scene.dur_ns[scene.slot[row]]
    parts = [
        _picked(scene, row[scene.excess_ns[row] > WORTH * dur], Role.EXCESS),
        _picked(scene, row[scene.late_ns[row] > WORTH * dur], Role.LATE),
        _picked(scene, _gaps(scene, row), Role.GAP),
        _picked(scene, _long_operators(scene, row), Role.EXCESS),
        _picked(scene, _counted(scene, counts), Role.COUNT),
        _picked(scene, _waiting(scene), Role.WAITED),
    ]
    return Picks.joined(parts)


def _picked(scene: Scene, row: Ints, why: Role) -> Picks:
    return Picks.of(scene.slot[row], row, why)


def _gaps(scene: Scene, row: Ints) -> Ints:
    """Give the spans behind the largest gaps within a step: the idle time before it is no gap."""
    slot = scene.slot[row]
    gap = _gap_inside(scene)[row]
    odd = gap > GAP_WORTH * scene.dur_ns[slot]
    row, slot, gap = row[odd], slot[odd], gap[odd]
    return row[first_of_each([slot], EACH, gap)]


def _gap_inside(scene: Scene) -> Ints:
    gap: Ints = np.minimum(scene.gap_ns, scene.begin_ns - scene.start_ns[scene.slot])
    return gap


def _long_operators(scene: Scene, row: Ints) -> Ints:
    """Give the longest calls of operators that took too long in sum."""
    code, kinds = _operators(scene)
    cell = scene.slot[row] * kinds + code[row]
    size = len(scene.step_id) * kinds
    sums = np.bincount(cell, weights=scene.excess_ns[row], minlength=size).astype(np.int64)
    slot = np.arange(size) // max(kinds, 1)
    least = OPERATOR_WORTH * scene.dur_ns[slot]
    long = sums > least
    excess = ints(scene.steps, "excess_ns")[slot]
    some = np.flatnonzero((sums > 0) & (excess > least))
    long[some[first_of_each([slot[some]], MOST_OPERATORS, sums[some])]] = True
    row = row[long[cell] & (scene.excess_ns[row] > 0)]
    return row[first_of_each([scene.slot[row], code[row]], EACH, scene.excess_ns[row])]


def _operators(scene: Scene) -> tuple[Ints, int]:
    code: Ints = scene.operator.indices.to_numpy().astype(np.int64)
    return code, len(scene.operator.dictionary)


def _counted(scene: Scene, counts: pa.Table) -> Ints:
    """Give the longest calls of operators whose number is not that of the peers."""
    if not counts.num_rows:
        return np.zeros(0, np.int64)
    code, kinds = _operators(scene)
    named = pc.index_in(counts["operator"].combine_chunks(), scene.operator.dictionary)
    there = named.is_valid().to_numpy(zero_copy_only=False)
    cells = places(scene.step_id, ints(counts, "step_id")) * kinds
    cells = (cells + pc.fill_null(named, 0).to_numpy())[there]
    row = np.flatnonzero(np.isin(scene.slot * kinds + code, cells))
    return row[first_of_each([scene.slot[row], code[row]], EACH, scene.own_ns[row])]


def _waiting(scene: Scene) -> Ints:
    met = scene.arrivals
    own = ints(met, "own_step_id", -1)
    slot = places(scene.step_id, own)
    waited = ints(met, "wait_ns") > WORTH * scene.dur_ns[slot]
    mine = (own == ints(met, "step_id")) & waited & np.isin(slot, scene.asked)
    row = places(scene.id, ints(met, "span_id")[mine])
    return np.unique(row[row >= 0])


def around(scene: Scene, found: Picks) -> Picks:
    """Give what launched the seeds, what they waited for, and what ran just before and behind."""
    found = found.where((found.why & int(SEEDS)) > 0)
    launched, waited, nexts = (scene.links[r.type] for r in (LAUNCHED, WAITED_FOR, NEXT))
    order = np.argsort(waited.src, kind="stable")
    onward = np.argsort(nexts.src, kind="stable")
    joined = (
        (across(launched.dst, launched.src, found.row), Role.LAUNCHER),
        (across(waited.src[order], waited.dst[order], found.row), Role.WAITED_FOR),
        (across(nexts.dst, nexts.src, found.row), Role.NEIGHBOUR),
        (across(nexts.src[onward], nexts.dst[onward], found.row), Role.NEIGHBOUR),
        (_siblings(scene, found.row), Role.NEIGHBOUR),
    )
    return Picks.joined([Picks.of(found.slot[which], row, why) for (row, which), why in joined])


def _siblings(scene: Scene, row: Ints) -> tuple[Ints, Ints]:
    """Give the calls just before and behind under the same caller, and which row asked."""
    callers = np.unique(scene.parent[row])
    is_caller = np.zeros(len(scene.id) + 1, bool)  # the last place is for those without one
    is_caller[callers[callers >= 0]] = True
    below = np.flatnonzero(is_caller[scene.parent] & ~scene.device)
    below = below[np.lexsort((scene.id[below], scene.begin_ns[below], scene.parent[below]))]
    at = np.full(len(scene.id), -1)
    at[below] = np.arange(len(below))
    parts = []
    for step in (-1, 1):
        there = at[row] + step
        which = np.flatnonzero((at[row] >= 0) & (there >= 0) & (there < len(below)))
        other = below[there[which]]
        same = scene.parent[other] == scene.parent[row[which]]
        parts.append((other[same], which[same]))
    return np.r_[parts[0][0], parts[1][0]], np.r_[parts[0][1], parts[1][1]]


def cut_to_size(scene: Scene, found: Picks) -> tuple[Picks, Ints]:
    """Keep the picks with the largest residuals of slices that are too large.

    Gives also how many were left out of the slice of each step asked for.
    """
    wait = np.zeros(len(scene.id), np.int64)
    met = places(scene.id, ints(scene.meetings, "span_id"))
    wait[met] = ints(scene.meetings, "wait_ns")
    size = np.maximum.reduce([scene.excess_ns, scene.late_ns, _gap_inside(scene), wait])[found.row]
    seed = ((found.why & int(SEEDS)) > 0).astype(np.int64)
    kept = np.zeros(len(found.row), bool)
    kept[first_of_each([found.slot], MOST_SPANS, size, seed, -found.hop, -found.row)] = True
    number = len(scene.step_id)
    before = np.bincount(found.slot, minlength=number)
    left = before - np.bincount(found.slot[kept], minlength=number)
    return found.where(kept), left[scene.asked]


def with_ancestors(scene: Scene, found: Picks) -> Picks:
    """Add all that called or launched the picks, and the root of each step asked for."""
    tops = np.flatnonzero((scene.parent < 0) & np.isin(scene.slot, scene.asked))
    calls = np.isin(tops, scene.parent).astype(np.int64)
    tops = tops[first_of_each([scene.slot[tops]], 1, calls, -scene.begin_ns[tops])]
    whole = Picks.joined([found, _picked(scene, tops, Role.ROOT)])
    above, before = whole, -1
    while len(whole.row) > before:  # nothing new: all above that is in as well
        before = len(whole.row)
        row = scene.parent[above.row]
        up = Picks(above.slot, row, np.full(len(row), int(Role.ANCESTOR)), above.hop)
        above = Picks.joined([up.where(row >= 0)])
        whole = Picks.joined([whole, above])
    return whole
