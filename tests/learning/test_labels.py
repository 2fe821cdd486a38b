"""Labels of a committed run say what its truth says, step by step."""

from pathlib import Path

import numpy as np
import pytest

from teller.lab.truth import read_truth
from teller.learning import corpus
from teller.models.residuals import FEATURES
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import LEFT_OUT, NEGATIVE, POSITIVE, class_names

RUNS = Path(__file__).parents[1] / "data" / "runs" / "simulated"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Labelled]:
    """Give the committed simulated runs, by name."""
    runs = sorted(p for p in RUNS.iterdir() if p.is_dir())
    place = tmp_path_factory.mktemp("kept")
    assert corpus.keep(runs, place, lambda: None, 1) == []
    return {one.about.run: one for one in corpus.kept(place, 1)}


def test_a_healthy_run_has_no_positive_iteration(labelled: dict[str, Labelled]) -> None:
    state = labelled["run-1504c2be4835"].labels.state
    assert len(state)
    assert set(state.tolist()) == {NEGATIVE}


@pytest.mark.parametrize("name", ["run-1a63881eb917", "run-d5aa1bed5f3c", "run-3413ccff0ef7"])
def test_iterations_are_positive_where_a_cause_cost_three_percent(
    labelled: dict[str, Labelled], name: str
) -> None:
    one, truth = labelled[name], read_truth(RUNS / name)
    names = class_names()
    fault = next(e for e in truth.episodes if e.class_ in names)
    positive = one.labels.state == POSITIVE
    assert positive.any()
    assert {names[k] for k in one.labels.klass[positive].tolist()} == {fault.class_}
    costly = {s.step_index for s in fault.steps if s.share >= 0.03}
    assert positive.sum() <= len(costly)
    assert positive.sum() >= 0.5 * len(costly)  # the capture may end before the run
    assert (one.labels.share[positive] >= 0.03).all()


def test_positive_iterations_take_longer_than_their_load_explains(
    labelled: dict[str, Labelled],
) -> None:
    one = labelled["run-d5aa1bed5f3c"]  # another thread holds the interpreter
    at = FEATURES.index("period/load")
    most = np.full(len(one.labels.state), -9.0)
    np.maximum.at(most, one.samples.rank_of, one.samples.rank_x[:, at])
    positive = one.labels.state == POSITIVE
    assert np.median(most[positive]) > np.median(most[one.labels.state == NEGATIVE]) + 0.1


def test_victims_and_what_did_not_change_are_no_gold(labelled: dict[str, Labelled]) -> None:
    one, truth = labelled["run-1a63881eb917"], read_truth(RUNS / "run-1a63881eb917")
    fault = next(e for e in truth.episodes if e.class_ == "host_contention")
    gold = one.labels.op == 1
    ranks = one.samples.rank[one.samples.op_rank]
    assert set(ranks[gold].tolist()) <= {o.rank for o in fault.operators}
    assert gold.sum() < 0.5 * (one.labels.op >= 0).sum()


def test_what_had_no_effect_is_left_out(labelled: dict[str, Labelled]) -> None:
    state = labelled["run-1b200ddadc20"].labels.state
    assert set(state.tolist()) <= {NEGATIVE, LEFT_OUT}


def test_what_is_kept_is_not_made_again(labelled: dict[str, Labelled], tmp_path: Path) -> None:
    run = RUNS / "run-90e33d331f95"
    corpus.keep([run], tmp_path, lambda: None, 1)
    before = (tmp_path / run.name / "about.json").stat().st_mtime_ns
    corpus.keep([run], tmp_path, lambda: None, 1)
    assert (tmp_path / run.name / "about.json").stat().st_mtime_ns == before
    again = next(iter(corpus.kept(tmp_path, 1)))
    assert np.array_equal(again.samples.rank_x, labelled[run.name].samples.rank_x)
