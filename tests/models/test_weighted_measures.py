"""Weights stand for draws, for other priors and for runs that count alike."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller.graph.medians import Floats, Ints
from teller.models.measures import (
    Bools,
    Judged,
    Sweep,
    average_precision,
    even,
    f1,
    figures,
    macro_f1_of,
    mean,
)

ONE = np.ones((1, 8))
POSITIVE = np.array([1, 0, 1, 0, 0, 1, 0, 0], bool)
CHANCE = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2])


@st.composite
def scored(draw: st.DrawFn) -> tuple[Bools, Floats, Ints]:
    """Draw iterations of some runs, both kinds among them; chances are often equal."""
    size = draw(st.integers(4, 40))
    positive = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    positive[:2] = [True, False]
    steps = st.lists(st.integers(0, 9), min_size=size, max_size=size)
    return positive, np.array(draw(steps)) / 9, np.array(draw(steps))


def test_figures_of_eight_iterations_are_those_worked_out_by_hand() -> None:
    sweep = Sweep.of(POSITIVE, CHANCE, ONE)
    assert sweep.average_precision()[0] == pytest.approx((1 + 2 / 3 + 3 / 6) / 3)
    assert sweep.auroc()[0] == pytest.approx((5 + 4 + 2) / 15)
    assert sweep.precision_at(0.6)[0] == pytest.approx(2 / 3)
    assert sweep.precision_at(0.8)[0] == pytest.approx(3 / 6)


def test_negatives_count_more_where_faults_are_rarer() -> None:
    rare = Sweep.of(POSITIVE, CHANCE, ONE).at_prior(0.01)
    # All three are found with three of five negatives: .6 of the 99 % are called with the 1 %.
    assert rare.precision_at(1.0)[0] == pytest.approx(0.01 / (0.01 + 0.6 * 0.99))


@given(scored())
def test_the_prior_of_the_set_gives_the_figures_of_the_set(
    drawn: tuple[Bools, Floats, Ints],
) -> None:
    positive, chance, _ = drawn
    sweep = Sweep.of(positive, chance, np.ones((1, len(chance))))
    same = sweep.at_prior(positive.mean())
    assert same.average_precision() == pytest.approx(sweep.average_precision())
    assert same.precision_at(0.8) == pytest.approx(sweep.precision_at(0.8))
    assert sweep.at_prior(0.001).auroc() == pytest.approx(sweep.auroc())


@given(scored(), st.permutations(range(40)))
def test_the_order_of_iterations_means_nothing(
    drawn: tuple[Bools, Floats, Ints], order: list[int]
) -> None:
    positive, chance, _ = drawn
    mixed = np.array([i for i in order if i < len(chance)])
    asked = positive.astype(np.int64)
    assert average_precision(asked[mixed], chance[mixed]) == pytest.approx(
        average_precision(asked, chance)
    )


@given(scored(), st.integers(2, 4))
def test_an_iteration_that_weighs_twice_is_one_that_is_there_twice(
    drawn: tuple[Bools, Floats, Ints], times: int
) -> None:
    positive, chance, run = drawn
    often = np.where(np.arange(len(chance)) % 3 == 0, times, 1)
    rows = np.repeat(np.arange(len(chance)), often)
    weighed, one = often[None].astype(float), np.ones((1, len(rows)))
    measures: list[Callable[[Ints, Floats], Floats]] = [
        lambda r, w: Sweep.of(positive[r], chance[r], w).average_precision(),
        lambda r, w: f1(chance[r] > 0.5, positive[r], w),
        lambda r, w: macro_f1_of(run[r], np.roll(run, 1)[r], w),
        lambda r, w: mean(chance[r], w),
    ]
    for figure in measures:
        assert figure(np.arange(len(chance)), weighed) == pytest.approx(figure(rows, one))


@given(scored(), st.integers(1, 5))
def test_where_runs_are_the_same_they_count_alike_already(
    drawn: tuple[Bools, Floats, Ints], runs: int
) -> None:
    positive, chance, _ = drawn
    right, of = np.tile(chance, runs), np.repeat(np.arange(runs), len(chance))
    asked = np.tile(positive, runs)
    weight = even(of, asked)[None]
    assert weight.sum() == pytest.approx(asked.sum())
    assert mean(right, weight) == pytest.approx(chance[positive].mean())


def test_a_long_fault_of_one_run_does_not_stand_for_many() -> None:
    run = np.array([0] * 98 + [1, 2])
    right = np.array([1.0] * 98 + [0.0, 0.0])
    assert mean(right, np.ones((1, 100)))[0] == pytest.approx(0.98)
    assert mean(right, even(run, np.ones(100, bool))[None])[0] == pytest.approx(1 / 3)


def test_what_is_not_asked_counts_nowhere() -> None:
    assert mean(np.array([1.0, np.nan, 0.0]), np.ones((2, 3))).tolist() == [0.5, 0.5]
    assert np.isnan(mean(np.array([np.nan]), np.ones((1, 1)))[0])


def test_a_card_of_runs_without_a_fault_has_no_figure_that_is_no_number() -> None:
    nothing = np.full(3, np.nan)
    one = Judged("run", np.zeros(3, np.int64), np.zeros(3), np.full(3, -1), np.zeros(3, np.int64),
                 nothing, nothing, nothing)  # fmt: skip
    found = figures([one])
    assert not {"rank_top1", "op_top1", "op_top3"} & set(found)
    assert found["false_alarms"] == 0
