"""Intervals, views and predictions of an evaluation: each holds what it says of small tables."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller.graph.finding import Culprit
from teller.lab import truth
from teller.learning.objects import same
from teller.models.measures import Guess
from teller.models.samples.labels import POSITIVE

pytest.importorskip("scipy", reason="the extra `learn` is not installed")

from teller.learning import corpus
from teller.learning.evaluating import rules
from teller.learning.evaluating.bootstrap import Interval, bounded, interval
from teller.learning.evaluating.columns import Says, Truths
from teller.learning.evaluating.figures import CAUSES, PRIORS, STEPS, Asked, figures
from teller.learning.evaluating.judging import Known, best_of, known, says, truths
from teller.learning.evaluating.page import shown
from teller.learning.evaluating.state import State
from teller.learning.evaluating.views import VIEWS
from teller.models.measures import mean

RUNS = Path(__file__).parents[1] / "data" / "runs" / "simulated"
HELD = "run-d5aa1bed5f3c"  # another thread holds the interpreter of a rank


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Give the committed run with a held interpreter."""
    place = tmp_path_factory.mktemp("kept")
    assert corpus.keep([RUNS / HELD], place, lambda: None, 1) == []
    return known(next(iter(corpus.kept(place, 1))), place)


def _right(run: Known) -> Guess:
    """Say what is true."""
    labels = run.one.labels
    classes = np.eye(64)[np.maximum(labels.klass, 0)] * (labels.klass >= 0)[:, None]
    chance = np.where(labels.state == POSITIVE, 3.0, -3.0)
    return Guess(chance, classes, labels.rank.astype(float), labels.op.astype(float))


def _asked(run: Known, guess: Guess) -> Asked:
    return Asked(truths([run]), says(run, guess), 0.0)


def test_who_says_the_truth_has_all_figures_at_one(held: Known) -> None:
    found = figures(_asked(held, _right(held)), (*STEPS, *PRIORS, *CAUSES), draws=20)
    alarms = {"false_alarms", "clean_run_alarms", "f1_horizontal"}
    assert {n for n, f in found.items() if f.value != 1} == alarms
    assert found["false_alarms"].value == 0
    assert found["f1_horizontal"].value is None or found["f1_horizontal"].value == 0


def test_who_blames_another_rank_has_neither_rank_nor_object(held: Known) -> None:
    guess = _right(held)
    found = figures(_asked(held, replace(guess, rank=-guess.rank)), CAUSES, draws=20)
    assert [found[n].value for n in ("rank_top1", "object", "joint")] == [0, 0, 0]
    assert found["class_accuracy"].value == 1


def test_who_names_no_class_names_no_object(held: Known) -> None:
    guess = _right(held)
    found = figures(_asked(held, replace(guess, classes=guess.classes * 0)), CAUSES, draws=20)
    assert [found[n].value for n in ("class_accuracy", "object", "joint")] == [0, 0, 0]
    assert found["op_top1"].value == 1


def test_a_finding_of_the_right_time_class_and_rank_is_right_there_alone(held: Known) -> None:
    labels, samples = held.one.labels, held.one.samples
    at = np.flatnonzero(labels.state == POSITIVE)
    cause = held.faults[int(labels.episode[at[0]])]
    heard = rules.Heard(
        klass=cause.class_, confidence=0.8, start_ns=int(samples.start_ns[at[0]]) + 1,
        end_ns=int(samples.end_ns[at[0]]) - 1,
        culprit={"kind": "rank", "ranks": list(cause.culprit.ranks)},
    )  # fmt: skip
    found = rules.says(held, [heard])
    assert found.chance[at[0]] == 0.8
    assert (found.object[at[0]], found.rank[at[0]]) == (1, 1)
    assert (found.chance[at[1:]] < 0).all()
    assert not found.object[at[1:]].any()


@given(st.data())
@settings(max_examples=30)
def test_an_interval_has_its_point_inside(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 30))
    values = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), float)
    root = np.array(data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)))
    found = interval(lambda w: mean(values, w), root, 50)
    assert found.value == pytest.approx(values.mean())
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high


def test_more_roots_make_an_interval_narrower() -> None:
    values = (np.arange(1200) // 100 % 2).astype(np.float64)
    wide, narrow = (
        interval(lambda w: mean(values, w), np.arange(1200) // each, 200) for each in (100, 1)
    )
    assert wide.high is not None
    assert narrow.high is not None
    assert narrow.high < wide.high


def test_no_alarm_in_three_hundred_is_no_proof_of_none() -> None:
    found = bounded(np.zeros(50), 0, 300)
    assert found.value == 0
    assert found.bound == pytest.approx(1 - 0.05 ** (1 / 300))  # the rule of three, exactly
    assert shown(found) == "0.00% (≤ 0.99%)"
    assert shown(Interval(0.5, 0.25, 0.75)) == ".500 (.250–.750)"


def test_what_is_taken_away_leaves_the_questions_as_they_are(held: Known) -> None:
    for name, view in VIEWS.items():
        seen = view(held.one.samples)
        assert len(seen.op_rank) == len(held.one.samples.op_rank), name
        assert np.array_equal(
            seen.rank_of[seen.op_rank], held.one.samples.rank_of[held.one.samples.op_rank]
        ), name
    assert not len(VIEWS["without logs"](held.one.samples).line_word)
    mixed = VIEWS["communication edges shuffled"](held.one.samples)
    assert np.array_equal(np.sort(mixed.edge_rank), np.sort(held.one.samples.edge_rank))
    assert (mixed.edge_rank != held.one.samples.edge_rank).any()


def test_the_highest_of_each_group_is_found_and_nothing_of_an_empty_one() -> None:
    found = best_of(np.array([0, 0, 2]), np.array([1.0, 2.0, -5.0]), 4)
    assert found.tolist() == [1, -1, 2, -1]


def test_predictions_come_back_for_what_they_were_made_of(held: Known, tmp_path: Path) -> None:
    state, told = State(tmp_path), says(held, _right(held))
    state.keep_says("test", "some row", "key", told)
    back = state.says("test", "some row", "key")
    assert back is not None
    for field in fields(Says):
        assert np.allclose(getattr(back, field.name), getattr(told, field.name), equal_nan=True)
    assert state.says("test", "some row", "another key") is None
    assert state.says("test", "another row", "key") is None


def test_a_score_beyond_what_is_kept_stays_the_highest(held: Known, tmp_path: Path) -> None:
    told = says(held, _right(held))
    told.chance[0] = 1e9
    back = told.compact().chance
    assert np.isfinite(back).all()
    assert back.argmax() == 0


def test_relatives_are_drawn_together(held: Known) -> None:
    both = truths([held, held])
    assert set(both.run.tolist()) == {0, 1}
    assert len(set(both.root.tolist())) == 1
    assert isinstance(both, Truths)


@pytest.mark.parametrize(
    ("ours", "theirs", "answer"),
    [
        (Culprit("rank", ranks=(1,), hosts=("a",)), truth.Culprit(kind="rank", ranks=(1,)), True),
        (Culprit("rank", ranks=(1,)), truth.Culprit(kind="rank", ranks=(1, 2)), False),
        (Culprit("host", hosts=("a",)), truth.Culprit(kind="rank", ranks=(1,)), False),
        (Culprit("link", links=(("b", "a"),)), truth.Culprit(kind="link", links=(("a", "b"),)),
         True),
        (Culprit("operator", operators=("x", "y")),
         truth.Culprit(kind="operator", operators=("y",)), True),
        (Culprit("component"), truth.Culprit(kind="component", components=("scheduler",)), False),
    ],
)  # fmt: skip
def test_an_object_is_its_kind_and_the_list_of_that_kind(
    ours: Culprit, theirs: truth.Culprit, answer: bool
) -> None:
    assert same(ours, theirs) is answer
