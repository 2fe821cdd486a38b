"""How good scores are: step, class, culprit rank and operator, on labelled iterations.

Measures that take `weight` take one row of weights a draw, of shape (draws, iterations), and give
one value a draw: a bootstrap is a matrix of weights, another prior or runs that count alike are
other weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teller.graph.medians import Floats, Ints
from teller.models.samples.labels import NEGATIVE, POSITIVE

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judged:
    """Scored iterations of one run, with what is right; NaN or -1 where nothing is asked."""

    run: str
    state: Ints
    chance: Floats  # that an iteration is abnormal
    klass: Ints
    said_class: Ints
    rank_right: Floats
    op_first: Floats  # the first named operator is gold
    op_third: Floats  # one of the first three is


@dataclass(frozen=True, slots=True)
class Guess:
    """What a judge says of all iterations of one run."""

    chance: Floats  # (iterations,) the higher, the more abnormal; chances as logits
    classes: Floats  # (iterations, classes); a row of zeros names none
    rank: Floats  # (rank-steps,) the higher, the more the culprit
    op: Floats  # (operators,) the higher, the guiltier

    @property
    def said(self) -> Ints:
        """Give the class of each iteration, -1 for none."""
        return np.where(self.classes.any(axis=1), self.classes.argmax(axis=1), -1)


def figures(judged: Sequence[Judged], threshold: float | None = None) -> dict[str, float]:
    """Give all figures over these runs; without a threshold, the best one for F1 is taken.

    A figure of which nothing is asked is left out.
    """
    state, chance, klass, said = (
        np.concatenate([getattr(j, n) for j in judged])
        for n in ("state", "chance", "klass", "said_class")
    )
    rank, first, third = (
        np.concatenate([getattr(j, n) for j in judged])
        for n in ("rank_right", "op_first", "op_third")
    )
    asked = state >= 0
    best = threshold if threshold is not None else best_threshold(state[asked], chance[asked])
    called = chance >= best
    faulty, clean = state == POSITIVE, state == NEGATIVE
    hit = (called & faulty).sum()
    joint = (said == klass) & (np.nan_to_num(rank, nan=1) > 0) & (np.nan_to_num(first, nan=1) > 0)
    found = {
        "iterations": float(asked.sum()), "positive": float(faulty.sum()), "threshold": best,
        "f1": _f1(hit, (called & clean).sum(), (faulty & ~called).sum()),
        "auprc": average_precision(faulty[asked], chance[asked]),
        "false_alarms": float((called & clean).sum() / max(clean.sum(), 1)),
        "recall": float(hit / max(faulty.sum(), 1)),
        "class_accuracy": float(np.mean(said[faulty] == klass[faulty])) if faulty.any() else 0.0,
        "class_macro_f1": macro_f1(klass[faulty], said[faulty]),
        "rank_top1": _mean(rank[faulty]), "op_top1": _mean(first[faulty]),
        "op_top3": _mean(third[faulty]),
        "joint": float(joint[faulty].mean()) if faulty.any() else 0.0,
    }  # fmt: skip
    return {name: value for name, value in found.items() if not np.isnan(value)}


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is hit and what is called falsely from each threshold up: (draws, thresholds)."""

    hits: Floats
    false: Floats

    @classmethod
    def of(cls, positive: Bools, chance: Floats, weight: Floats) -> "Sweep":
        """Go through all thresholds from the highest; equal chances are called together."""
        order = np.argsort(-chance, kind="stable")
        ends = np.flatnonzero(np.r_[chance[order][1:] != chance[order][:-1], len(order) > 0])
        sorted_weight, right = weight[:, order], positive[order].astype(float)
        return cls(
            np.cumsum(sorted_weight * right, axis=1)[:, ends],
            np.cumsum(sorted_weight * (1 - right), axis=1)[:, ends],
        )

    def at_prior(self, share: float) -> "Sweep":
        """Give the same scores where `share` of all iterations are positive."""
        wanted = self.hits[:, -1:] * (1 - share) / share
        return Sweep(self.hits, self.false * wanted / np.maximum(self.false[:, -1:], 1e-300))

    def average_precision(self) -> Floats:
        """Give the area under precision over recall, as a sum over thresholds."""
        gained = np.diff(self.hits, axis=1, prepend=0.0)
        return _over((gained * self._precision()).sum(axis=1), self.hits[:, -1])

    def precision_at(self, recall: float) -> Floats:
        """Give the precision at the highest threshold that reaches a recall."""
        reached = self.hits >= recall * self.hits[:, -1:] * (1 - 1e-12)
        at = reached.argmax(axis=1)
        found: Floats = self._precision()[np.arange(len(at)), at]
        return found

    def auroc(self) -> Floats:
        """Give the chance that a positive stands above a negative; equal ones count half."""
        before = self.hits - np.diff(self.hits, axis=1, prepend=0.0) / 2
        area = (np.diff(self.false, axis=1, prepend=0.0) * before).sum(axis=1)
        return _over(area, self.hits[:, -1] * self.false[:, -1])

    def _precision(self) -> Floats:
        return _over(self.hits, self.hits + self.false)


def average_precision(positive: Ints, chance: Floats) -> float:
    """Give the area under the curve of precision over recall, as a sum over thresholds."""
    if not np.any(positive):
        return 0.0
    sweep = Sweep.of(np.asarray(positive, bool), chance, np.ones((1, len(chance))))
    return float(sweep.average_precision()[0])


def best_threshold(state: Ints, chance: Floats) -> float:
    """Give the threshold with the best F1 on these iterations."""
    order = np.argsort(-chance, kind="stable")
    positive = (state[order] == POSITIVE).astype(float)
    hits = np.cumsum(positive)
    if not len(hits) or not hits[-1]:
        return 1.0
    score = 2 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
    # Equal chances are called together: a score counts where the last of them is in.
    score = np.where(np.r_[chance[order][1:] != chance[order][:-1], True], score, -1.0)
    return float(chance[order][int(np.argmax(score))])


def f1(called: Bools, positive: Bools, weight: Floats) -> Floats:
    """Give F1 of what is called, a value a draw."""
    hit = weight @ (called & positive).astype(float)
    return _over(2 * hit, weight @ called.astype(float) + weight @ positive.astype(float))


def mean(values: Floats, weight: Floats) -> Floats:
    """Give the mean of what is asked (not NaN), a value a draw."""
    known = ~np.isnan(values)
    return _over(weight[:, known] @ values[known], weight[:, known].sum(axis=1))


def macro_f1_of(truth: Ints, said: Ints, weight: Floats) -> Floats:
    """Give the mean F1 over the classes that occur in a draw, a value a draw."""
    scores, there = [], []
    for klass in np.unique(truth):
        scores.append(f1(said == klass, truth == klass, weight))
        there.append(weight @ (truth == klass).astype(float) > 0)
    if not scores:
        return np.full(len(weight), np.nan)
    kept = np.array(there, float)
    return _over((np.nan_to_num(np.array(scores)) * kept).sum(axis=0), kept.sum(axis=0))


def macro_f1(truth: Ints, said: Ints) -> float:
    """Give the mean F1 over the classes that occur."""
    found = float(macro_f1_of(truth, said, np.ones((1, len(truth))))[0])
    return 0.0 if np.isnan(found) else found


def even(run: Ints, asked: Bools) -> Floats:
    """Give weights by which runs count alike among what is asked; they sum up to its number."""
    count = np.bincount(run[asked], minlength=run.max(initial=-1) + 1)
    each = asked.sum() / max(int((count > 0).sum()), 1)
    return np.where(asked, each / np.maximum(count[run], 1), 0.0)


def first_of(group: Ints, score: Floats, right: Ints, size: int, best: int = 1) -> Floats:
    """Tell for each group whether one of its `best` highest scores is right; NaN: nothing asked.

    `right` is 1, 0, or -1 where nothing is asked; a group without any right row is not asked.
    """
    order = np.lexsort((-score, group))
    starts = np.searchsorted(group[order], np.arange(size))
    place = np.arange(len(order)) - starts[group[order]] if len(order) else order
    found, asked = np.zeros(size), np.zeros(size, bool)
    np.maximum.at(found, group[order], (right[order] == 1) & (place < best))
    np.logical_or.at(asked, group, right == 1)
    return np.where(asked, found, np.nan)


def _over(above: Floats, below: Floats) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    found: Floats = np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)
    return found


def _f1(hit: int, false: int, missed: int) -> float:
    return float(2 * hit / max(2 * hit + false + missed, 1))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
