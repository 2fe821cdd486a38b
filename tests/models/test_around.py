"""The mean over neighbours in time: within a rank, and never over its ends."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from teller.models.around import around


def test_a_peak_is_spread_over_its_neighbours_of_the_same_rank() -> None:
    rank = np.array([0, 0, 0, 0, 1, 1])
    assert around(rank, np.array([0.0, 6, 0, 0, 0, 8]), reach=1).tolist() == [3, 2, 2, 0, 4, 4]


@given(
    rank=arrays(np.int64, st.integers(0, 30), elements=st.integers(0, 3)),
    reach=st.integers(0, 5),
)
def test_it_is_the_mean_that_a_loop_finds(rank: np.ndarray, reach: int) -> None:
    values = np.stack([np.arange(len(rank)), np.arange(len(rank)) ** 2], axis=1).astype(float)
    found = around(rank, values, reach)
    for one in range(4):
        mine = np.flatnonzero(rank == one)
        for at, row in enumerate(mine):
            near = mine[max(at - reach, 0) : at + reach + 1]
            np.testing.assert_allclose(found[row], values[near].mean(axis=0))
