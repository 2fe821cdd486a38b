"""Noise is not a change, a change is not noise, and load is neither."""

import numpy as np
import numpy.typing as npt
import pytest

from teller.graph.difference import Change, Told, answer
from teller.models.contrast import Contrast, Figures, buckets, contrast, medians, strata

Floats = npt.NDArray[np.float64]


def figures(value: Floats, load: Floats) -> Figures:
    return Figures(value, buckets(load, 2))


def run(
    seed: int, size: int, *, factor: float = 1.0, loads: tuple[float, ...] = (1, 2, 4),
    noisy: float = 0.02, lasting: float = 0.8,
) -> Figures:  # fmt: skip
    """A run whose steps take longer with load, with noise that lasts from step to step."""
    random = np.random.default_rng(seed)
    noise = np.zeros(size)
    for step in range(1, size):
        noise[step] = lasting * noise[step - 1] + random.normal(0, noisy)
    load = random.choice(np.array(loads), size)
    return figures(factor * (10e6 + 5e6 * load) * (1 + noise), load)


def told(usual: Figures, now: Figures) -> Contrast:
    return contrast(usual, now, 0.05)


def test_a_tenth_more_is_told_and_noise_is_not() -> None:
    slower = [told(run(s, 300), run(s + 500, 300, factor=1.1)).told for s in range(20)]
    alike = [told(run(s, 300), run(s + 500, 300)).told for s in range(40)]
    assert slower.count("more") >= 19
    assert alike.count("more") + alike.count("less") == 0


@pytest.mark.parametrize(("noisy", "lasting"), [(0.05, 0.8), (0.05, 0.95), (0.1, 0.5)])
def test_what_wanders_within_a_run_is_no_change_between_runs(noisy: float, lasting: float) -> None:
    runs = [
        [run(s, 200, noisy=noisy, lasting=lasting) for s in (seed, seed + 500)]
        for seed in range(50)
    ]
    assert [told(*pair).told for pair in runs].count("more") <= 2


def test_more_load_is_no_change() -> None:
    found = told(run(1, 300, loads=(1, 1, 1, 4)), run(2, 300, loads=(1, 4, 4, 4)))
    assert found.told == "same"
    assert found.usual is not None
    assert found.now is not None
    assert abs(found.now / found.usual - 1) < 0.05


def test_loads_that_do_not_overlap_are_not_compared() -> None:
    found = told(run(1, 300, loads=(1, 2)), run(2, 300, loads=(8, 16)))
    assert found.told == "apart"
    assert found.usual is None
    assert (found.usual_count, found.now_count) == (0, 0)


@pytest.mark.parametrize("size", [1, 4, 7])
def test_a_handful_tells_nothing(size: int) -> None:
    assert told(run(1, 300, loads=(1,)), run(2, size, factor=2, loads=(1,))).told == "few"


def test_equal_figures_are_the_same_and_nothing_is_nothing() -> None:
    zeros = figures(np.zeros(20), np.ones(20))
    assert told(zeros, zeros).told == "same"
    none = figures(np.zeros(0), np.zeros(0))
    assert told(none, none).told == "few"
    assert medians(none, zeros) is None


def test_medians_are_weighed_alike_in_both_runs() -> None:
    usual = figures(np.array([1.0] * 9 + [3.0] * 3), np.array([1.0] * 9 + [2.0] * 3))
    now = figures(np.array([1.0] * 3 + [3.0] * 9), np.array([1.0] * 3 + [2.0] * 9))
    assert medians(usual, now) == (2.0, 2.0)


def test_buckets_part_small_loads_one_by_one_and_large_ones_by_halves_of_an_octave() -> None:
    loads = np.array([np.nan, 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12])
    assert buckets(loads, 2).tolist() == [-1, -2, 0, 2, 3, 4, 4, 5, 5, 6, 6, 7]


def test_equal_rows_are_one_stratum_in_both_runs() -> None:
    usual, now = strata(np.array([[1, 2], [3, 4]]), np.array([[3, 4], [1, 3], [1, 2]]))
    assert usual[0] == now[2]
    assert usual[1] == now[0]
    assert len({*usual.tolist(), *now.tolist()}) == 3


def change(told: Told, *, decides: bool = True) -> Change:
    return Change("step", "x", "", "ns", 1, 2, 0, 1, 9, 9, told, "more", decides)


def test_only_what_decides_makes_a_run_slower_and_a_new_fault_is_no_less() -> None:
    assert answer([change("more"), change("same")], []) == "slower"
    assert answer([change("more", decides=False), change("same")], []) == "not_slower"
    assert answer([change("less"), change("unsure")], []) == "not_slower"
    assert answer([change("same")], [7]) == "new_fault"
    assert answer([change("few"), change("apart")], []) == "not_comparable"
