"""What the truth of a run says of its iterations, ranks and operators.

The unit is the iteration: positive where a fault cost a rank at least 3 % of it, left out where a
cause acted that cost less, negative else, whatever the load was.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from teller.graph.medians import Floats, Ints
from teller.ingest.operators import operator_of
from teller.lab.truth import Episode, Truth
from teller.models.samples.labels import LEFT_OUT, POSITIVE, Labels, class_names
from teller.models.samples.sample import Samples

EFFECT: Final = 0.03  # share of the step from which an iteration is positive
GOLD: Final = 0.1  # of the largest excess of a cause's operators: smaller ones are no gold


def labels_of(samples: Samples, truth: Truth, hosts: Sequence[str], t0_epoch_ns: int) -> Labels:
    """Give the labels of a run's iterations; `hosts` is of each rank-step's rank.

    `t0_epoch_ns` is the run's zero as ingested: truth and run are put on one time by it, and steps
    are met by their ends, since a recording may number them from its own first one.
    """
    later = t0_epoch_ns - int(truth.extra["t0_epoch_ns"])
    number = _true_numbers(samples, truth, later)
    names = class_names()
    size = len(samples.step_index)
    state, klass, episode = np.zeros(size, np.int64), np.full(size, -1), np.full(size, -1)
    share, felt = np.zeros(size), np.zeros(size, bool)
    rank, op = np.full(len(samples.rank), -1), np.full(len(samples.op_rank), -1)
    faults = [e for e in truth.episodes if e.class_ in names or e.class_ == "no_effect"]
    for at, cause in enumerate(faults):
        own = _shares(samples, number, cause)
        felt |= own > 0
        worst = (own >= EFFECT) & (own > share) & (cause.class_ in names)
        share = np.where(worst, own, share)
        episode[worst] = at
        klass[worst] = names.index(cause.class_) if cause.class_ in names else -1
    positive = episode >= 0
    state[felt & ~positive] = LEFT_OUT
    state[positive] = POSITIVE
    for at, cause in enumerate(faults):
        mine = episode[samples.rank_of] == at
        asked = _struck(samples, cause, hosts)
        if asked.any():
            rank[mine] = asked[mine]
        gold = _gold(samples, cause)
        if gold.any():
            inside = mine[samples.op_rank]
            op[inside] = gold[inside]
    return Labels(state, klass, share, episode, rank, op)


def _true_numbers(samples: Samples, truth: Truth, later_ns: int) -> Ints:
    """Give the truth's step_index of each rank-step, by the nearest end of a step of that rank."""
    found = np.full(len(samples.rank), -1)
    times = truth.extra.get("steps_ns") or []
    for rank in np.unique(samples.rank).tolist():
        mine = np.flatnonzero(samples.rank == rank)
        if rank >= len(times) or not times[rank]:
            continue
        index, _, end = np.array(times[rank], np.int64).T
        index, end = index[end >= 0], end[end >= 0]
        if not len(end):
            continue
        order = np.argsort(end)
        own = samples.rank_end_ns[mine] + later_ns
        right = np.clip(np.searchsorted(end[order], own), 0, len(end) - 1)
        left = np.maximum(right - 1, 0)
        closer = np.abs(end[order[left]] - own) <= np.abs(end[order[right]] - own)
        nearest = index[order[np.where(closer, left, right)]]
        # Clocks and capture move all by one number: the one that most agree on holds for all.
        apart, votes = np.unique(nearest - samples.rank_step[mine], return_counts=True)
        found[mine] = samples.rank_step[mine] + apart[np.argmax(votes)]
    return found


def _shares(samples: Samples, number: Ints, cause: Episode) -> Floats:
    """Give the largest share that a cause cost any rank in each iteration."""
    told = {(s.rank, s.step_index): s.share for s in cause.steps}
    pairs = zip(samples.rank.tolist(), number.tolist(), strict=True)
    own = np.array([told.get(p, 0.0) for p in pairs])
    found = np.zeros(len(samples.step_index))
    np.maximum.at(found, samples.rank_of, own)
    return found


def _struck(samples: Samples, cause: Episode, hosts: Sequence[str]) -> Ints:
    """Tell which rank-steps are the culprit's: its ranks, else all on its hosts or links."""
    who = cause.culprit
    if who.kind in ("none", "component", "group", "request"):
        return np.zeros(len(samples.rank), np.int64)
    if who.kind == "operator":
        ranks = {o.rank for o in cause.operators if o.excess_ns > 0}
        everywhere = ranks >= set(samples.rank.tolist())
        hit = np.isin(samples.rank, list(ranks)) & (not everywhere)
        return hit.astype(np.int64)
    if who.ranks:
        return np.isin(samples.rank, who.ranks).astype(np.int64)
    named = {*who.hosts, *(h for link in who.links for h in link)}
    return np.array([h in named for h in hosts], np.int64)


def _gold(samples: Samples, cause: Episode) -> Ints:
    most = max((o.excess_ns for o in cause.operators), default=0)
    gold = {
        (o.rank, operator_of(o.operator)) for o in cause.operators if o.excess_ns >= GOLD * most > 0
    }
    words = [operator_of(str(t)) for t in samples.texts]
    pairs = zip(samples.rank[samples.op_rank].tolist(), samples.op_word.tolist(), strict=True)
    return np.array([(r, words[w]) in gold for r, w in pairs], np.int64)
