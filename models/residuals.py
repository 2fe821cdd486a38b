"""How far each step is from what it should be: by its load, by its peers, by its rank's habit.

All are logarithms of ratios or shares of the step, so that they say the same of a fast and of a
slow machine. Load (phase, batch, tokens) explains what load explains: like is compared with like.
"""

from typing import Final

import numpy as np

from teller.graph.medians import Floats, codes, leave_one_out_median
from teller.models.around import around
from teller.models.expectation import expected, usual_of
from teller.models.signals import NAMES, TIMED, RankSteps

FLOOR: Final = 0.01  # of a step's usual time: less is nothing
LIMIT: Final = 6.0  # of a logarithm: beyond, more is no news
VIEWS: Final = ("load", "load_habit", "peers", "peers_habit", "step", "load_around", "peers_around")
HEAD: Final = ("excess", "waits", "lateness", "batch", "tokens", "decode", "prefill", "mixed")
FEATURES: Final = (*(f"{n}/{v}" for v in VIEWS for n in NAMES), *HEAD)


def residuals(steps: RankSteps) -> Floats:
    """Give the features of each rank-step, of shape (rank-steps, len(FEATURES)).

    `x/load` compares with what the load makes usual in this stage, `x/peers` with the other ranks
    of the stage in the same step; `…_habit` with what is usual of that comparison for the rank, so
    that what is always so falls out. `x/step` is a share of the usual step, or a count's logarithm.
    `…_around` is the mean over the rank's steps just before and after as well.
    """
    if not len(steps):
        return np.zeros((0, len(FEATURES)))
    usual = usual_ns(steps)
    floor = np.where(TIMED, FLOOR * usual[:, None], 0.5)
    load = _ratio(steps.quantity, expected(steps), floor)
    peers = _ratio(steps.quantity, _peers(steps), floor)
    habits = [v - usual_of(steps.rank, v) for v in (load, peers)]
    share = np.where(TIMED, np.log1p(steps.quantity / usual[:, None]), np.log1p(steps.quantity) / 4)
    smooth = [around(steps.rank, v) for v in (load, peers)]
    views = [load, habits[0], peers, habits[1], share, *smooth]
    return np.concatenate([*views, _head(steps, usual)], axis=1)


def usual_ns(steps: RankSteps) -> Floats:
    """Give the usual time of steps of this phase in this replica, ns."""
    group = codes(steps.replica, steps.phase)
    count = group.max(initial=-1) + 1
    middle = np.array([np.median(steps.of("dur")[group == g]) for g in range(count)])
    found: Floats = np.maximum(middle[group], 1.0)
    return found


def _peers(steps: RankSteps) -> Floats:
    """Give what the other ranks of the stage took in the same step."""
    group = codes(steps.replica, steps.stage, steps.step_index)
    return np.stack([leave_one_out_median(group, v)[0] for v in steps.quantity.T], axis=1)


def _ratio(values: Floats, should: Floats, floor: Floats) -> Floats:
    ratio = np.log((values + floor) / (np.nan_to_num(should, nan=0.0) + floor))
    return np.where(np.isnan(should), 0.0, np.clip(ratio, -LIMIT, LIMIT))


def _head(steps: RankSteps, usual: Floats) -> Floats:
    """Give excess and waits as shares of the usual step, and what the step had to do."""
    shares = [steps.excess_ns / usual, steps.of("wait") / usual, steps.of("late") / usual]
    signed = [np.sign(s) * np.log1p(np.abs(s) * 10) for s in shares]
    load = np.log1p(np.nan_to_num(steps.load)) / 4
    phases = [(steps.phase == n).astype(float) for n in (1, 3, 2)]
    return np.stack([*signed, load[:, 0], load[:, 1], *phases], axis=1)
