"""What a quantity should be for its load: quantile regression over all like ranks of the run.

A low quantile and not the middle: a trouble may fill most of a run, and still what is usual
without it is to be found (Koenker and Bassett, 1978; fitted by weighted least squares).
"""

from typing import Final

import numpy as np

from teller.graph.medians import Floats, Ints, codes
from teller.models.signals import RankSteps

QUANTILE: Final = 0.35
ROUNDS: Final = 12
ENOUGH: Final = 8  # steps of a phase from which on load is fitted, and not only the level


def expected(steps: RankSteps) -> Floats:
    """Give what each quantity should be, of the shape of `steps.quantity`.

    Ranks of one stage of a replica are fitted together, each phase by itself.
    """
    should = np.zeros_like(steps.quantity)
    group = codes(steps.replica, steps.stage, steps.phase)
    for one in range(group.max(initial=-1) + 1):
        mine = np.flatnonzero(group == one)
        should[mine] = _fitted(_design(steps.load[mine]), steps.quantity[mine])
    return should


def _design(load: Floats) -> Floats:
    """Give the columns that load is fitted by: 1, batch, tokens, as far as they vary."""
    columns = [np.ones(len(load))]
    if len(load) >= ENOUGH:
        for values in np.nan_to_num(load).T:
            spread = values.max() - values.min()
            if spread > 0:
                columns.append((values - values.min()) / spread)
    return np.stack(columns, axis=1)


def _fitted(design: Floats, wanted: Floats) -> Floats:
    """Fit each column of `wanted` by a line at the quantile; never below zero."""
    if design.shape[1] == 1:
        level = np.quantile(wanted, QUANTILE, axis=0)
        return np.broadcast_to(level, wanted.shape).copy()
    scale = np.maximum(wanted.std(axis=0), 1e-9)
    target = wanted / scale
    weight = np.ones_like(target)
    ridge = 1e-6 * np.eye(design.shape[1])
    for _ in range(ROUNDS):
        normal = np.einsum("ni,nq,nj->qij", design, weight, design) + ridge
        right = np.einsum("ni,nq,nq->qi", design, weight, target)
        line = np.einsum("ni,qi->nq", design, np.linalg.solve(normal, right[..., None])[..., 0])
        off = target - line
        side = np.where(off > 0, QUANTILE, 1 - QUANTILE)
        weight = side / np.maximum(np.abs(off), 1e-3)
    found: Floats = np.maximum(line * scale, 0.0)
    return found


def usual_of(rank: Ints, values: Floats) -> Floats:
    """Give each row the middle of its rank's values, column by column."""
    middle = np.zeros_like(values)
    for one in np.unique(rank).tolist():
        mine = rank == one
        middle[mine] = np.median(values[mine], axis=0)
    return middle
