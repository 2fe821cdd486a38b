"""Iterations as small graphs: whole, finite, the same in parts, and about what they are about."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from teller.models.archived import Archived
from teller.models.residuals import FEATURES
from teller.models.samples import lines, meetings, moments, operators, standing
from teller.models.samples.batch import batch, joined
from teller.models.samples.sample import Samples, samples_of
from teller.models.samples.words import Words


@pytest.fixture(scope="session")
def samples(archived: Archived) -> Samples:
    """Give the samples of the run."""
    return samples_of(archived)


def test_every_step_of_every_rank_is_in_an_iteration(archived: Archived, samples: Samples) -> None:
    steps = archived.steps
    assert len(samples.rank) == steps.num_rows
    told = set(zip(steps["rank"].to_pylist(), steps["step_index"].to_pylist(), strict=True))
    own = samples.step_index[samples.rank_of]
    assert set(zip(samples.rank.tolist(), own.tolist(), strict=True)) == told
    assert (samples.start_ns < samples.end_ns).all()


def test_figures_are_finite_and_as_many_as_are_named(samples: Samples) -> None:
    width = {
        "rank_x": len(FEATURES) + len(standing.NAMES) + len(moments.NAMES),
        "op_x": len(operators.NAMES), "meet_x": len(meetings.NAMES), "line_x": len(lines.NAMES),
    }  # fmt: skip
    for name, size in width.items():
        held = getattr(samples, name)
        assert held.shape[1] == size
        assert np.isfinite(held).all()
        assert len(held)


def test_samples_are_read_back_as_they_were_written(samples: Samples, tmp_path: Path) -> None:
    samples.save(tmp_path / "s.npz")
    again = Samples.load(tmp_path / "s.npz")
    for field in fields(Samples):
        assert np.array_equal(getattr(again, field.name), getattr(samples, field.name))


def test_two_halves_joined_are_the_whole_but_for_the_cut(samples: Samples) -> None:
    text = np.ones((len(samples.texts), 4), np.float32)
    size = len(samples.step_index)
    whole = batch(samples, text)
    parts = joined([batch(samples, text, np.arange(size // 2)),
                    batch(samples, text, np.arange(size // 2, size))])  # fmt: skip
    assert parts.iterations == whole.iterations == size
    for name, held in whole.inputs().items():
        other = parts.inputs()[name]
        if name.endswith("_next"):  # what follows over the cut is not joined
            assert {*map(tuple, other.T.tolist())} < {*map(tuple, held.T.tolist())}
            continue
        assert other.shape == held.shape
        assert np.array_equal(np.sort(other, axis=None), np.sort(held, axis=None))
    for one in (whole, parts):  # an edge leads from an operator to the rank that ran it
        assert one.op_rank[1].max() < len(one.rank_x)
        assert one.rank_iteration[1].max() == size - 1


def test_iterations_and_ranks_are_joined_in_order_of_time(samples: Samples) -> None:
    whole = batch(samples, np.ones((len(samples.texts), 4), np.float32))
    before, after = whole.own_next
    assert (samples.replica[before] == samples.replica[after]).all()
    assert (samples.step_index[before] < samples.step_index[after]).all()
    before, after = whole.rank_next
    assert (samples.rank[before] == samples.rank[after]).all()
    assert (samples.rank_step[before] < samples.rank_step[after]).all()
    assert len(before) == len(samples.rank) - len(np.unique(samples.rank))


def test_a_string_that_is_not_known_has_no_vector() -> None:
    words = Words(["a", "b"], np.array([[1, 2], [3, 4]], np.float32))
    assert words.of(["b", "?", "a"]).tolist() == [[3, 4], [0, 0], [1, 2]]
    more = words.with_more(["?"], np.array([[5, 6]], np.float32))
    assert more.of(["?"]).tolist() == [[5, 6]]


def test_words_come_back_from_their_file(tmp_path: Path) -> None:
    Words(["ä", "b c"], np.array([[1, 2], [3, 4]], np.float32), "made by").save(tmp_path / "w.npz")
    again = Words.load(tmp_path / "w.npz")
    assert again.encoder == "made by"
    assert again.of(["b c"]).tolist() == [[3, 4]]
