"""The figures of tables, each a function of weights, so that every one has its interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from teller.graph.medians import Floats
from teller.learning.evaluating.bootstrap import DRAWS, Interval, bounded, drawn, spread
from teller.learning.evaluating.columns import Says, Truths
from teller.models.measures import Bools, Sweep, even, f1, macro_f1_of, mean
from teller.models.samples.labels import POSITIVE

RECALL: Final = 0.8
FEWEST: Final = 2  # roots with positives from which on an interval says something
STEPS: Final = (
    "auprc", "auroc", "f1", "f1_horizontal", "f1_vertical", "recall", "false_alarms",
    "clean_run_alarms",
)  # fmt: skip
PRIORS: Final = (
    "auprc", "auprc at 5 %", "auprc at 1 %", "auprc at 0.1 %", "precision at 1 %",
)  # fmt: skip
CAUSES: Final = (
    "class_accuracy", "class_macro_f1", "op_top1", "op_top3", "op_macro_f1", "rank_top1",
    "object", "joint",
)  # fmt: skip
RATES: Final = ("false_alarms", "clean_run_alarms")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a judge said of a set, the truth, and the threshold that was fixed elsewhere."""

    truth: Truths
    says: Says
    threshold: float
    even: bool = False  # runs count alike, however many iterations they have

    @property
    def called(self) -> Bools:
        """Tell which iterations are called abnormal."""
        return self.says.chance >= self.threshold

    def weighed(self, weight: Floats, asked: Bools) -> Floats:
        """Give weights of what is asked; others have none."""
        return weight * (even(self.truth.run, asked) if self.even else asked)

    def by_state(self, weight: Floats, positive: Bools | None = None) -> Floats:
        """Give weights of positives (some of them) and of all negatives."""
        faulty = self.truth.faulty if positive is None else positive
        return self.weighed(weight, faulty) + self.weighed(weight, self.truth.clean)

    def take(self, rows: Bools) -> "Asked":
        """Give some iterations."""
        return Asked(self.truth.take(rows), self.says.take(rows), self.threshold, self.even)


def figures(asked: Asked, names: Sequence[str], draws: int = DRAWS) -> dict[str, Interval]:
    """Give figures by name, with intervals over roots."""
    values: dict[str, list[Floats]] = {n: [] for n in names}
    for weight in drawn(asked.truth.root, draws):
        for name in names:
            values[name].append(figure(asked, name, weight))
    return {n: _interval(asked, n, np.concatenate(v)) for n, v in values.items()}


def _interval(asked: Asked, name: str, values: Floats) -> Interval:
    if name not in RATES:
        one = len(np.unique(asked.truth.root[asked.truth.faulty])) < FEWEST
        return Interval(spread(values).value) if one else spread(values)
    clean = asked.truth.clean
    if name == "clean_run_alarms":
        clean = clean & quiet_runs(asked.truth)
    return bounded(values, int((clean & asked.called).sum()), int(clean.sum()))


def figure(asked: Asked, name: str, weight: Floats) -> Floats:
    """Give one figure, a value a draw."""
    if name in _SWEEPS:
        truth = asked.truth
        kept = truth.faulty | truth.clean
        weighed = asked.by_state(weight)[:, kept]
        return _SWEEPS[name](Sweep.of(truth.faulty[kept], asked.says.chance[kept], weighed))
    return _PLAIN[name](asked, weight)


def quiet_runs(truth: Truths) -> Bools:
    """Tell which iterations are of runs without any positive one."""
    struck = np.zeros(truth.run.max(initial=-1) + 1, bool)
    struck[truth.run[truth.state == POSITIVE]] = True
    return ~struck[truth.run]


def _f1(asked: Asked, weight: Floats) -> Floats:
    return f1(asked.called, asked.truth.faulty, asked.by_state(weight))


def _f1_of(asked: Asked, weight: Floats, positive: Bools) -> Floats:
    return f1(asked.called, positive, asked.by_state(weight, positive))


def _f1_horizontal(asked: Asked, weight: Floats) -> Floats:
    return _f1_of(asked, weight, asked.truth.horizontal())


def _f1_vertical(asked: Asked, weight: Floats) -> Floats:
    return _f1_of(asked, weight, asked.truth.faulty & ~asked.truth.horizontal())


def _share(asked: Asked, weight: Floats, of: Bools, right: Floats) -> Floats:
    known = of & ~np.isnan(right)
    return mean(np.where(known, right, np.nan), asked.weighed(weight, known))


def _recall(asked: Asked, weight: Floats) -> Floats:
    return _share(asked, weight, asked.truth.faulty, asked.called.astype(float))


def _false_alarms(asked: Asked, weight: Floats) -> Floats:
    return _share(asked, weight, asked.truth.clean, asked.called.astype(float))


def _clean_run_alarms(asked: Asked, weight: Floats) -> Floats:
    quiet = asked.truth.clean & quiet_runs(asked.truth)
    return _share(asked, weight, quiet, asked.called.astype(float))


def _class_accuracy(asked: Asked, weight: Floats) -> Floats:
    right = (asked.says.said == asked.truth.klass).astype(float)
    return _share(asked, weight, asked.truth.faulty, right)


def _class_macro_f1(asked: Asked, weight: Floats) -> Floats:
    faulty = asked.truth.faulty
    own = asked.weighed(weight, faulty)[:, faulty]
    return macro_f1_of(asked.truth.klass[faulty], asked.says.said[faulty], own)


def _op_macro_f1(asked: Asked, weight: Floats) -> Floats:
    known = asked.truth.faulty & ~np.isnan(asked.says.first)
    own = asked.weighed(weight, known)[:, known]
    return macro_f1_of(asked.says.op_true[known], asked.says.op_said[known], own)


def _right(name: str) -> Callable[[Asked, Floats], Floats]:
    def share(asked: Asked, weight: Floats) -> Floats:
        return _share(asked, weight, asked.truth.faulty, getattr(asked.says, name))

    return share


def _joint(asked: Asked, weight: Floats) -> Floats:
    return _share(asked, weight, asked.truth.faulty, asked.says.joint(asked.truth))


_SWEEPS: Final[Mapping[str, Callable[[Sweep], Floats]]] = {
    "auprc": Sweep.average_precision,
    "auroc": Sweep.auroc,
    "precision at 1 %": lambda s: s.at_prior(0.01).precision_at(RECALL),
    "auprc at 5 %": lambda s: s.at_prior(0.05).average_precision(),
    "auprc at 1 %": lambda s: s.at_prior(0.01).average_precision(),
    "auprc at 0.1 %": lambda s: s.at_prior(0.001).average_precision(),
}
_PLAIN: Final[Mapping[str, Callable[[Asked, Floats], Floats]]] = {
    "f1": _f1, "f1_horizontal": _f1_horizontal, "f1_vertical": _f1_vertical, "recall": _recall,
    "false_alarms": _false_alarms, "clean_run_alarms": _clean_run_alarms,
    "class_accuracy": _class_accuracy, "class_macro_f1": _class_macro_f1,
    "op_macro_f1": _op_macro_f1, "op_top1": _right("first"), "op_top3": _right("third"),
    "rank_top1": _right("rank"), "object": _right("object"), "joint": _joint,
}  # fmt: skip
