"""How far each step is from what it should be: against its own rank's like steps, and its peers.

All are logarithms of ratios or shares of the step, so that they say the same of a fast and of a
slow machine. Load (phase, batch, tokens) explains what load explains: like is compared with like.
"""

from typing import Final

import numpy as np

from teller.graph.medians import Floats, Ints, codes, leave_one_out_median
from teller.models.signals import NAMES, TIMED, RankSteps

FLOOR: Final = 0.01  # of a step's usual time: less is nothing
FEW: Final = 3  # like steps that are too few to compare with
LIMIT: Final = 6.0  # of a logarithm: beyond, more is no news
HEAD: Final = ("excess", "waits", "lateness", "batch", "tokens", "decode", "prefill", "mixed")
FEATURES: Final = (
    *(f"{n}/like" for n in NAMES), *(f"{n}/peers" for n in NAMES), *(f"{n}/step" for n in NAMES),
    *HEAD,
)  # fmt: skip


def residuals(steps: RankSteps) -> Floats:
    """Give the features of each rank-step, of shape (rank-steps, len(FEATURES)).

    `x/like` compares with the same rank's steps of the same load, `x/peers` with the other ranks of
    the replica in the same step, `x/step` with the step's own usual time (a share, a count's log).
    """
    if not len(steps):
        return np.zeros((0, len(FEATURES)))
    usual = usual_ns(steps)
    floor = np.where(TIMED, FLOOR * usual[:, None], 0.5)
    like = _ratio(steps.quantity, _like(steps), floor)
    peers = _ratio(steps.quantity, _peers(steps), floor)
    share = np.where(TIMED, np.log1p(steps.quantity / usual[:, None]), np.log1p(steps.quantity) / 4)
    return np.concatenate([like, peers, share, _head(steps, usual)], axis=1)


def like_codes(steps: RankSteps) -> Ints:
    """Give a number to each rank, phase and load, batch and tokens within a quarter octave."""
    load = np.rint(4 * np.log2(np.nan_to_num(steps.load) + 1)).astype(np.int64)
    return codes(steps.rank, steps.phase, load[:, 0], load[:, 1])


def usual_ns(steps: RankSteps) -> Floats:
    """Give the usual time of steps of this phase in this replica, ns."""
    group = codes(steps.replica, steps.phase)
    middle = np.array(
        [np.median(steps.of("dur")[group == g]) for g in range(group.max(initial=-1) + 1)]
    )
    found: Floats = np.maximum(middle[group], 1.0)
    return found


def _like(steps: RankSteps) -> Floats:
    """Give what like steps of the same rank took; where there are few, all of its phase."""
    near, wide = like_codes(steps), codes(steps.rank, steps.phase)
    columns = []
    for values in steps.quantity.T:
        close, number = leave_one_out_median(near, values)
        far, _ = leave_one_out_median(wide, values)
        columns.append(np.where(number > FEW, close, far))
    return np.stack(columns, axis=1)


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
