"""What a model has to beat: single figures, boosted trees and a network without edges.

All see the same samples. Boosted trees are those of LightGBM (Ke et al., 2017); the latency
baseline follows LatencyPrism in predicting a step's time from its load and scoring what is left;
the mixture of Gaussians follows TELLER's first stage: how unlike healthy iterations one is.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import lightgbm
import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from teller.graph.medians import Floats, Ints
from teller.models.measures import Guess
from teller.models.residuals import FEATURES, HEAD
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import NEGATIVE, POSITIVE, class_names
from teller.models.samples.sample import Samples

VERSION: Final = 1  # of what floors say: one more when that changes
Judge = Callable[[Labelled], Guess]
Fit = Callable[[Sequence[Labelled]], Judge]
TREES: Final = {
    "n_estimators": 200, "num_leaves": 31, "learning_rate": 0.06, "min_child_samples": 10,
    "n_jobs": 1, "verbosity": -1, "deterministic": True, "seed": 1,
}  # fmt: skip
LONGEST: Final = 0  # the figure of an operator that is its share of the step
FURTHEST: Final = 1  # and that is its excess
LOAD: Final = ("batch", "tokens", "decode", "prefill", "mixed")
MOST_ROWS: Final = 400_000  # operators that trees are fitted to at most
HELD_OUT: Final = 10  # iterations of the rarest class from which some are held out of fitting


def chance(runs: Sequence[Labelled]) -> Judge:
    """Guess blindly, classes as often as they are in these runs."""
    klass = np.concatenate([r.labels.klass[r.labels.state == POSITIVE] for r in runs])
    often = np.bincount(klass[klass >= 0], minlength=len(class_names())) + 1e-9

    def judge(one: Labelled) -> Guess:
        held = one.samples
        random = np.random.default_rng([one.about.root_seed % 2**32, 11])
        drawn = random.choice(len(often), size=len(held.step_index), p=often / often.sum())
        return Guess(
            random.random(len(drawn)), np.eye(len(often))[drawn],
            random.random(len(held.rank)), random.random(len(held.op_rank)),
        )  # fmt: skip

    return judge


def by_figure(name: str) -> Fit:
    """Score an iteration by the largest value of one feature over its ranks; blame that rank.

    The operator that it names is the longest one, the class is never known.
    """
    at = FEATURES.index(name)

    def judge(one: Labelled) -> Guess:
        figure = one.samples.rank_x[:, at].astype(float)
        return _plain(one.samples, _most_of(one, figure), figure, LONGEST)

    return lambda runs: judge


def largest_z(runs: Sequence[Labelled]) -> Judge:
    """Score by the largest robust z of any feature against these runs' healthy rank-steps."""
    healthy = np.concatenate([
        r.samples.rank_x[r.labels.state[r.samples.rank_of] == NEGATIVE] for r in runs
    ])  # fmt: skip
    middle = np.median(healthy, axis=0)
    spread = 1.4826 * np.median(np.abs(healthy - middle), axis=0)
    spread = np.maximum(spread, 0.05)

    def judge(one: Labelled) -> Guess:
        z = np.abs((one.samples.rank_x - middle) / spread)[:, : len(FEATURES)].max(axis=1)
        return _plain(one.samples, _most_of(one, z), z, FURTHEST)

    return judge


def mixture(runs: Sequence[Labelled]) -> Judge:
    """Fit a mixture of Gaussians to healthy iterations; what is unlikely there is abnormal."""
    x, state, _ = _iterations(runs)
    scale = make_pipeline(StandardScaler(), PCA(16, random_state=1)).fit(x[state == NEGATIVE])
    net = GaussianMixture(8, covariance_type="diag", reg_covar=1e-3, random_state=1)
    net.fit(scale.transform(x[state == NEGATIVE]))

    def judge(one: Labelled) -> Guess:
        odd = np.arcsinh(-net.score_samples(scale.transform(aggregated(one))))  # order is all
        return _plain(one.samples, odd, _excess(one.samples), FURTHEST)

    return judge


def latency(runs: Sequence[Labelled]) -> Judge:
    """Predict by boosted trees what a step takes for its load; what is left over is abnormal."""
    load, took = (np.concatenate(v) for v in zip(*map(_load_and_time, runs), strict=True))
    clean = np.concatenate([r.labels.state[r.samples.rank_of] == NEGATIVE for r in runs])
    model = lightgbm.LGBMRegressor(**TREES).fit(load[clean], took[clean])

    def judge(one: Labelled) -> Guess:
        own, real = _load_and_time(one)
        left = real - model.predict(own)
        return _plain(one.samples, _most_of(one, left), left, FURTHEST)

    return judge


def boosted(runs: Sequence[Labelled]) -> Judge:
    """Fit boosted trees on all features: iterations, classes, ranks and operators, each alone."""
    x, state, klass = _iterations(runs)
    asked, faulty = state >= 0, state == POSITIVE
    steps = _fitted(lightgbm.LGBMClassifier(**TREES), x[asked], state[asked])
    few = lightgbm.LGBMClassifier(**(TREES | {"n_estimators": 60}))
    kinds = _fitted(few, x[faulty], klass[faulty])
    ranks = _rows(runs, "rank")
    ops = _rows(runs, "op")

    def judge(one: Labelled) -> Guess:
        own = aggregated(one)
        return Guess(
            _logit(steps, own), _spread(kinds, own),
            _logit(ranks, one.samples.rank_x.astype(float)), _logit(ops, _of_ops(one)),
        )  # fmt: skip

    return judge


def without_edges(runs: Sequence[Labelled]) -> Judge:
    """Fit networks on all features of an iteration, ranks and operators gathered, no edges."""
    x, state, klass = _iterations(runs)
    asked, faulty = state >= 0, state == POSITIVE

    def fitted(rows: Floats, wanted: Ints) -> Any:
        held_out = np.unique(wanted, return_counts=True)[1].min(initial=0) >= HELD_OUT
        net = MLPClassifier((64, 64), max_iter=60, early_stopping=held_out, random_state=1)
        return _fitted(make_pipeline(StandardScaler(), net), rows, wanted)

    steps, kinds = fitted(x[asked], state[asked]), fitted(x[faulty], klass[faulty])

    def judge(one: Labelled) -> Guess:
        own, held = aggregated(one), one.samples
        odd = held.op_x[:, FURTHEST].astype(float)
        return Guess(_logit(steps, own), _spread(kinds, own), _excess(held), odd)

    return judge


def logs(runs: Sequence[Labelled]) -> Judge:
    """Fit logistic regressions to the words of what was logged, weighed by how rare they are."""
    words = TfidfVectorizer(max_features=4000, sublinear_tf=True)
    words.fit([str(t) for r in runs for t in r.samples.texts[np.unique(r.samples.line_word)]])

    def rows(one: Labelled) -> Any:
        held, size = one.samples, len(one.samples.step_index)
        own, whole = held.line_of >= 0, held.line_of < 0
        of = np.r_[held.line_of[own], np.repeat(np.arange(size), whole.sum())]
        word = np.r_[held.line_word[own], np.tile(held.line_word[whole], size)]
        there = csr_matrix((np.ones(len(of)), (of, word)), (size, len(held.texts)))
        return there @ words.transform([str(t) for t in held.texts])

    x = vstack([rows(r) for r in runs]).tocsr()
    state, klass = _labels(runs)
    asked, faulty = np.flatnonzero(state >= 0), np.flatnonzero(state == POSITIVE)
    steps = _fitted(LogisticRegression(max_iter=200), x[asked], state[asked])
    kinds = _fitted(LogisticRegression(max_iter=200), x[faulty], klass[faulty])

    def judge(one: Labelled) -> Guess:
        own, held = rows(one), one.samples
        odd = held.op_x[:, FURTHEST].astype(float)
        return Guess(_logit(steps, own), _spread(kinds, own), _excess(held), odd)

    return judge


# Every floor by the name that it has in tables.
FLOORS: Final[dict[str, Fit]] = {
    "chance": chance,
    "longest operator": by_figure("dur/step"),
    "load residual": by_figure("dur/load"),
    "largest z": largest_z,
    "mixture of Gaussians": mixture,
    "latency trees": latency,
    "logs, TF-IDF": logs,
    "network without edges": without_edges,
    "boosted trees": boosted,
}


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


def _most_of(one: Labelled, figure: Floats) -> Floats:
    return _most(one.samples.rank_of, figure, len(one.samples.step_index))


def _plain(held: Samples, score: Floats, rank: Floats, of_op: int) -> Guess:
    """Say nothing of classes, and name the operators with the largest figure."""
    none = np.zeros((len(score), len(class_names())))
    return Guess(score, none, rank, held.op_x[:, of_op].astype(float))


def _excess(held: Samples) -> Floats:
    return held.rank_x[:, FEATURES.index("excess")].astype(float)


def _load_and_time(one: Labelled) -> tuple[Floats, Floats]:
    held = one.samples.rank_x.astype(float)
    return held[:, [FEATURES.index(n) for n in LOAD]], held[:, FEATURES.index("dur/step")]


def _labels(runs: Sequence[Labelled]) -> tuple[Ints, Ints]:
    return (
        np.concatenate([r.labels.state for r in runs]),
        np.concatenate([r.labels.klass for r in runs]),
    )


def _iterations(runs: Sequence[Labelled]) -> tuple[Floats, Ints, Ints]:
    state, klass = _labels(runs)
    return np.concatenate([aggregated(r) for r in runs]), state, klass


def _rows(runs: Sequence[Labelled], what: str) -> Any:
    x = [r.samples.rank_x if what == "rank" else _of_ops(r) for r in runs]
    label = [getattr(r.labels, what) for r in runs]
    asked = [y >= 0 for y in label]
    rows = np.concatenate([a[m] for a, m in zip(x, asked, strict=True)])
    wanted = np.concatenate([y[m] for y, m in zip(label, asked, strict=True)])
    kept = np.sort(np.random.default_rng(1).permutation(len(rows))[:MOST_ROWS])
    return _fitted(lightgbm.LGBMClassifier(**TREES), rows[kept], wanted[kept])


def _fitted(model: Any, rows: Any, wanted: Ints) -> Any:
    """Fit a model; what has one answer alone in these runs always gets that one."""
    if len(np.unique(wanted)) < 2:
        model = DummyClassifier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a floor as it is after its steps
        return model.fit(rows, wanted)


def _of_ops(one: Labelled) -> Floats:
    held = one.samples
    head = held.rank_x[:, FEATURES.index(HEAD[0]) : len(FEATURES)]
    return np.concatenate([held.op_x, head[held.op_rank]], axis=1).astype(float)


def _logit(model: Any, rows: Any) -> Floats:
    if not rows.shape[0]:
        return np.zeros(0)
    chance: Floats = np.clip(model.predict_proba(rows)[:, -1], 1e-9, 1 - 1e-9)
    logit: Floats = np.log(chance / (1 - chance))
    return logit


def _spread(model: Any, rows: Any) -> Floats:
    """Give chances of all classes: those that were never met have none."""
    spread = np.zeros((rows.shape[0], len(class_names())))
    spread[:, model.classes_.astype(np.int64)] = model.predict_proba(rows)
    return spread
