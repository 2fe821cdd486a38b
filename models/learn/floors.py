"""What a model has to beat: single figures, boosted trees and a network without edges.

All see the same samples. Boosted trees are those of LightGBM (Ke et al., 2017); the latency
baseline follows LatencyPrism in predicting a step's time from its load and scoring what is left.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import lightgbm
import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from teller.graph.medians import Floats, Ints
from teller.models.measures import Judged, first_of
from teller.models.residuals import FEATURES, HEAD
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import POSITIVE

Judge = Callable[[Labelled], Judged]
TREES: Final = {
    "n_estimators": 200, "num_leaves": 31, "learning_rate": 0.06, "min_child_samples": 10,
    "n_jobs": 1, "verbosity": -1, "deterministic": True, "seed": 1,
}  # fmt: skip
LONGEST: Final = 0  # the figure of an operator that is its share of the step


def by_figure(name: str) -> Judge:
    """Score an iteration by the largest value of one feature over its ranks; blame that rank.

    The operator that it names is the longest one, the class is never known.
    """
    at = FEATURES.index(name)

    def judge(one: Labelled) -> Judged:
        held = one.samples
        figure = held.rank_x[:, at].astype(float)
        score = _most(held.rank_of, figure, len(held.step_index))
        return _judged(
            one, score, np.full(len(score), -1), figure, held.op_x[:, LONGEST].astype(float)
        )

    return judge


def boosted(runs: Sequence[Labelled]) -> Judge:
    """Fit boosted trees on all features: iterations, classes, ranks and operators, each alone."""
    x, state, klass = _iterations(runs)
    asked, faulty = state >= 0, state == POSITIVE
    steps = lightgbm.LGBMClassifier(**TREES).fit(x[asked], state[asked])
    kinds = lightgbm.LGBMClassifier(**(TREES | {"n_estimators": 60}))
    kinds.fit(x[faulty], klass[faulty])
    ranks = _rows(runs, "rank")
    ops = _rows(runs, "op")

    def judge(one: Labelled) -> Judged:
        held, own = one.samples, aggregated(one)
        return _judged(
            one, _chance(steps, own), kinds.predict(own).astype(np.int64),
            _chance(ranks, held.rank_x.astype(float)), _chance(ops, _of_ops(one)),
        )  # fmt: skip

    return judge


def without_edges(runs: Sequence[Labelled]) -> Judge:
    """Fit networks on all features of an iteration, ranks and operators gathered, no edges."""
    x, state, klass = _iterations(runs)
    asked, faulty = state >= 0, state == POSITIVE

    def fitted(rows: Floats, wanted: Ints) -> Any:
        net = MLPClassifier((64, 64), max_iter=60, early_stopping=True, random_state=1)
        return make_pipeline(StandardScaler(), net).fit(rows, wanted)

    steps, kinds = fitted(x[asked], state[asked]), fitted(x[faulty], klass[faulty])

    def judge(one: Labelled) -> Judged:
        own, held = aggregated(one), one.samples
        excess = held.rank_x[:, FEATURES.index("excess")].astype(float)
        said = kinds.predict(own).astype(np.int64)
        return _judged(one, _chance(steps, own), said, excess, held.op_x[:, 1].astype(float))

    return judge


def aggregated(one: Labelled) -> Floats:
    """Give one row an iteration: largest and mean of its ranks, largest of operators, counts."""
    held, size = one.samples, len(one.samples.step_index)
    mean = np.zeros((size, held.rank_x.shape[1]))
    np.add.at(mean, held.rank_of, held.rank_x)
    mean /= np.maximum(np.bincount(held.rank_of, minlength=size), 1)[:, None]
    most = _most(held.rank_of, held.rank_x.astype(float), size)
    ops = _most(held.rank_of[held.op_rank], held.op_x.astype(float), size)
    meet = _most(held.meet_of, held.meet_x.astype(float), size)
    rows = np.concatenate([most, mean, ops, meet], axis=1)
    return np.where(np.isfinite(rows), rows, 0.0)


def _most(of: Ints, values: Floats, size: int) -> Floats:
    most = np.full((size, *values.shape[1:]), -np.inf)
    np.maximum.at(most, of, values)
    return most


def _iterations(runs: Sequence[Labelled]) -> tuple[Floats, Ints, Ints]:
    x = np.concatenate([aggregated(r) for r in runs])
    state, klass = (
        np.concatenate([getattr(r.labels, n) for r in runs]) for n in ("state", "klass")
    )
    return x, state, klass


def _rows(runs: Sequence[Labelled], what: str) -> Any:
    x = [r.samples.rank_x if what == "rank" else _of_ops(r) for r in runs]
    label = [getattr(r.labels, what) for r in runs]
    asked = [y >= 0 for y in label]
    rows = np.concatenate([a[m] for a, m in zip(x, asked, strict=True)])
    wanted = np.concatenate([y[m] for y, m in zip(label, asked, strict=True)])
    return lightgbm.LGBMClassifier(**TREES).fit(rows, wanted)


def _of_ops(one: Labelled) -> Floats:
    held = one.samples
    head = held.rank_x[:, FEATURES.index(HEAD[0]) : len(FEATURES)]
    return np.concatenate([held.op_x, head[held.op_rank]], axis=1).astype(float)


def _chance(model: Any, rows: Floats) -> Floats:
    if not len(rows):
        return np.zeros(0)
    chance: Floats = model.predict_proba(rows)[:, 1]
    return chance


def _judged(one: Labelled, chance: Floats, said: Ints, rank: Floats, op: Floats) -> Judged:
    held, size = one.samples, len(one.samples.step_index)
    of_op = held.rank_of[held.op_rank]
    return Judged(
        run=one.about.run, state=one.labels.state, chance=chance, klass=one.labels.klass,
        said_class=said, rank_right=first_of(held.rank_of, rank, one.labels.rank, size),
        op_first=first_of(of_op, op.astype(float), one.labels.op, size),
        op_third=first_of(of_op, op.astype(float), one.labels.op, size, best=3),
    )  # fmt: skip
