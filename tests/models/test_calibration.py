"""A rate of false alarms that is asked for is kept, or it is said that it cannot be promised."""

import numpy as np
import pytest

from teller.models.calibration import curve, on_healthy


def test_a_rate_is_kept_on_the_runs_that_it_was_calibrated_on() -> None:
    random = np.random.default_rng(3)
    runs = [random.beta(1, 8, size=random.integers(20, 90)) for _ in range(400)]
    found = curve(runs)
    for per_1000 in (50.0, 20.0, 5.0):
        threshold, promised = found.threshold(per_1000)
        assert promised
        assert np.mean([(c >= threshold).mean() for c in runs]) <= per_1000 / 1000
    strict, _ = found.threshold(5.0)
    loose, _ = found.threshold(50.0)
    assert strict > loose


def test_few_runs_promise_little_and_say_so() -> None:
    found = curve([np.linspace(0, 0.4, 50)] * 9)
    assert found.least_per_1000 == 100
    threshold, promised = found.threshold(10.0)
    assert not promised
    assert 0.3 < threshold <= np.nextafter(0.4, 1)
    assert found.threshold(150.0)[1]


@pytest.mark.parametrize("runs", [[], [np.zeros(0)]])
def test_without_runs_nothing_is_called_abnormal(runs: list[np.ndarray]) -> None:
    assert curve(runs).threshold(10.0) == (1.0, False)


def test_a_healthy_run_raises_the_threshold_until_its_own_steps_pass() -> None:
    noisy = np.linspace(0.0, 0.8, 201)
    threshold, promised = on_healthy(0.5, noisy, 10.0)
    assert promised
    assert (noisy >= threshold).sum() <= 2
    assert threshold > 0.79


def test_a_quiet_run_lowers_nothing() -> None:
    assert on_healthy(0.5, np.full(300, 0.01), 10.0) == (0.5, True)


@pytest.mark.parametrize("size", [0, 1, 40])
def test_a_short_healthy_run_promises_nothing_but_is_held_to(size: int) -> None:
    chance = np.full(size, 0.7)
    threshold, promised = on_healthy(0.5, chance, 10.0)
    assert not promised
    assert threshold == (0.5 if not size else np.nextafter(0.7, 2.0))
