"""When a trouble began and ended, and sentences with figures."""

import numpy as np
import pytest

from teller.models.episodes import Episode, find_all
from teller.models.wording import say

RNG = np.random.default_rng(3)
MS = 1_000_000


def find(step: range, excess: list[int]) -> Episode | None:
    """Give the costliest episode."""
    return next(iter(find_all(step, excess)), None)


def test_two_faults_of_one_run_are_two_episodes() -> None:
    series = noise(430)
    series[100:140] += 3 * MS
    series[300:304] += 900 * MS
    found = find_all(range(430), series.tolist())
    assert [(e.first, e.last) for e in found[:2]] == [(300, 303), (100, 139)]


def test_a_trouble_that_comes_and_goes_is_one_episode() -> None:
    series = noise(400)
    series[::20] += 50 * MS
    found = find_all(range(400), series.tolist())
    assert (found[0].first, found[0].last, len(found[0].steps)) == (0, 380, 20)


def noise(size: int) -> np.ndarray:
    return np.rint(RNG.normal(0, 100_000, size)).astype(np.int64)


def test_an_episode_is_found_where_it_is() -> None:
    series = noise(430)
    series[169:285] += 15 * MS
    series[20] += 6 * MS  # one spike long before
    found = find(range(430), series.tolist())
    assert found is not None
    assert (found.first, found.last, len(found.steps)) == (169, 284, 116)
    assert found.level_ns == pytest.approx(15 * MS, rel=0.01)
    assert found.clarity > 0.99


def test_noise_is_no_episode_of_weight() -> None:
    found = find(range(400), noise(400).tolist())
    assert found is None or found.excess_ns < 5 * MS


def test_a_fault_that_fills_the_run_is_one_episode() -> None:
    found = find(range(100), (noise(100) + 5 * MS).tolist())
    assert found is not None
    assert (found.first, found.last) == (0, 99)


def test_gaps_of_a_few_steps_are_bridged() -> None:
    series = np.zeros(50, np.int64)
    series[10:30] = 2 * MS
    series[15:17] = 0
    found = find(range(50), series.tolist())
    assert found is not None
    assert (found.first, found.last, len(found.steps)) == (10, 29, 18)


@pytest.mark.parametrize(
    ("template", "value", "expected"),
    [
        ("{x:time}", 1_740_000_000, "1.74 s"),
        ("{x:time}", 15_000_000, "15 ms"),
        ("{x:time}", 12_345, "12.3 µs"),
        ("{x:ms}", 15_040_000, "15.0 ms"),
        ("{x:pct}", 0.294, "29.4 %"),
        ("{x:times}", 1.5, "1.50×"),
        ("{x}", None, "unknown"),
        ("{x:.0f}", 3.2, "3"),
    ],
)
def test_figures_are_said_with_their_unit(template: str, value: float, expected: str) -> None:
    assert say(template, {"x": value}) == expected
