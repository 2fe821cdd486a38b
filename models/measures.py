"""How good scores are: step, class, culprit rank and operator, on labelled iterations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teller.graph.medians import Floats, Ints
from teller.models.samples.labels import NEGATIVE, POSITIVE


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

    def take(self, rows: Ints) -> "Judged":
        """Give some iterations."""
        return Judged(
            self.run, self.state[rows], self.chance[rows], self.klass[rows],
            self.said_class[rows], self.rank_right[rows], self.op_first[rows], self.op_third[rows],
        )  # fmt: skip


def figures(judged: Sequence[Judged], threshold: float | None = None) -> dict[str, float]:
    """Give all figures over these runs; without a threshold, the best one for F1 is taken."""
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
    return {
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


def average_precision(positive: Ints, chance: Floats) -> float:
    """Give the area under the curve of precision over recall, as a sum over thresholds."""
    order = np.argsort(-chance, kind="stable")
    hits = np.cumsum(positive[order])
    if not len(hits) or not hits[-1]:
        return 0.0
    precision = hits / np.arange(1, len(hits) + 1)
    return float((precision * positive[order]).sum() / hits[-1])


def best_threshold(state: Ints, chance: Floats) -> float:
    """Give the threshold with the best F1 on these iterations."""
    order = np.argsort(-chance, kind="stable")
    positive = (state[order] == POSITIVE).astype(float)
    hits = np.cumsum(positive)
    if not len(hits) or not hits[-1]:
        return 1.0
    score = 2 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
    return float(chance[order][int(np.argmax(score))])


def macro_f1(truth: Ints, said: Ints) -> float:
    """Give the mean F1 over the classes that occur."""
    found = [
        _f1(
            int(((said == k) & (truth == k)).sum()), int(((said == k) & (truth != k)).sum()),
            int(((said != k) & (truth == k)).sum()),
        )
        for k in np.unique(truth)
    ]  # fmt: skip
    return float(np.mean(found)) if found else 0.0


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


def _f1(hit: int, false: int, missed: int) -> float:
    return float(2 * hit / max(2 * hit + false + missed, 1))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
