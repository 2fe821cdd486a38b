"""Figures of small tables that can be worked out by hand."""

import numpy as np
import pytest

from teller.models.measures import average_precision, best_threshold, first_of, macro_f1


def test_precision_is_averaged_over_the_hits() -> None:
    positive, chance = np.array([1, 0, 1, 0]), np.array([0.9, 0.8, 0.7, 0.1])
    assert average_precision(positive, chance) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(np.zeros(3, np.int64), np.ones(3)) == 0


def test_the_threshold_is_where_f1_is_best() -> None:
    state, chance = np.array([1, 1, 0, 0, 1]), np.array([0.9, 0.8, 0.5, 0.4, 0.1])
    assert best_threshold(state, chance) == 0.8  # F1 4/5; with all of them 6/8


def test_each_class_that_occurs_counts_alike() -> None:
    truth, said = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 2])
    assert macro_f1(truth, said) == 0.5


def test_the_first_and_one_of_the_first_are_told_apart_and_what_is_not_asked_is_left_out() -> None:
    group = np.array([0, 0, 0, 1, 1, 2])
    score = np.array([3.0, 2.0, 1.0, 1.0, 2.0, 5.0])
    right = np.array([0, 1, 0, 0, 1, -1])
    assert first_of(group, score, right, 3)[:2].tolist() == [0, 1]
    assert first_of(group, score, right, 3, best=2)[:2].tolist() == [1, 1]
    assert np.isnan(first_of(group, score, right, 3)[2])
