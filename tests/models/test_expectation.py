"""What load makes usual is found though a trouble fills half of the run."""

import numpy as np

from teller.models.expectation import expected, usual_of
from teller.models.signals import NAMES, RankSteps

STEPS = 60


def steps(slow: slice, factor: float) -> RankSteps:
    """Two ranks whose steps take 10 ms and 20 µs a token; some steps are slower by a factor."""
    random = np.random.default_rng(5)
    tokens = np.tile(random.integers(10, 500, STEPS).astype(float), 2)
    rank = np.repeat([0, 1], STEPS)
    dur = (10e6 + 20e3 * tokens) * random.uniform(0.99, 1.01, 2 * STEPS)
    dur[slow] *= factor
    quantity = np.zeros((2 * STEPS, len(NAMES)))
    quantity[:, NAMES.index("dur")] = dur
    index = np.tile(np.arange(STEPS), 2)
    none = np.zeros(2 * STEPS, np.int64)
    load = np.stack([np.full(2 * STEPS, np.nan), tokens], axis=1)
    return RankSteps(
        id=np.arange(2 * STEPS), rank=rank, replica=none, stage=none, step_index=index,
        start_ns=index * 10**8, end_ns=index * 10**8 + dur.astype(np.int64), phase=none, load=load,
        excess_ns=none, quantity=quantity,
    )  # fmt: skip


def test_half_of_the_steps_slow_on_one_rank_stand_out_by_just_that() -> None:
    slow = slice(STEPS, STEPS + STEPS // 2)
    one = steps(slow, 1.5)
    ratio = one.of("dur") / expected(one)[:, NAMES.index("dur")]
    assert np.abs(ratio[slow] - 1.5).max() < 0.06
    assert np.abs(np.delete(ratio, np.r_[slow]) - 1).max() < 0.04


def test_what_is_always_so_on_a_rank_is_its_habit() -> None:
    one = steps(slice(STEPS, 2 * STEPS), 1.2)  # rank 1, all the time
    ratio = np.log(one.of("dur") / expected(one)[:, NAMES.index("dur")])[:, None]
    habit = usual_of(one.rank, ratio)
    assert habit[-1] - habit[0] > 0.15
    assert np.abs(ratio - habit).max() < 0.05


def test_no_steps_expect_nothing() -> None:
    whole = steps(slice(0, 0), 1.0)
    nothing = RankSteps(**{n: getattr(whole, n)[:0] for n in RankSteps.__slots__})
    assert expected(nothing).shape == (0, len(NAMES))
