"""The tables that need no training: steps, causes, rare faults, severities, classes, transfer."""

from typing import Final

import numpy as np

from teller.learning.evaluating.figures import CAUSES, PRIORS, STEPS, Asked
from teller.learning.evaluating.state import Cell, Part
from teller.learning.evaluating.views import VIEWS
from teller.learning.evaluating.work import HEADS, Work, both
from teller.models.measures import Bools
from teller.models.samples.labels import class_names

BANDS: Final = ((0.03, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.5), (0.5, float("inf")))
BAND_FIGURES: Final = (
    "recall", "auroc", "class_accuracy", "op_top1", "op_top3", "rank_top1", "object", "joint",
)  # fmt: skip
CLASS_FIGURES: Final = ("recall", "class_accuracy", "op_top1", "rank_top1", "object", "joint")
SHORT: Final = (
    "auprc", "f1", "class_macro_f1", "op_top1", "op_top3", "rank_top1", "object", "joint",
)  # fmt: skip
MOVED: Final = (
    "auprc", "f1", "false_alarms", "class_macro_f1", "op_top1", "op_top3", "rank_top1", "object",
    "joint",
)  # fmt: skip


def steps(work: Work) -> list[Part]:
    """Give how well abnormal iterations are told."""
    return [_what(work, "test"), *both(work, work.everyone(), STEPS)]


def causes(work: Work) -> list[Part]:
    """Give how well class, operator and culprit are told, where an iteration is abnormal."""
    return both(work, work.everyone(), CAUSES)


def priors(work: Work) -> list[Part]:
    """Give what is left where faults are rare."""
    return both(work, work.everyone(), PRIORS)


def severity(work: Work) -> list[Part]:
    """Give figures by how much of the step the cause cost."""
    parts = []
    for row in (work.judges.model(), work.judges.floors()[-1]):
        asked = work.asked(row)
        lines: list[tuple[str, list[Cell]]] = []
        for low, high in BANDS:
            truth = asked.truth
            band = truth.faulty & (truth.share >= low) & (truth.share < high)
            lines.append((_band(low, high), _some(work, asked, band, BAND_FIGURES)))
        parts.append(Part(
            title=f"By share of the step: {row.name}",
            columns=["iterations", *(HEADS[n] for n in BAND_FIGURES)], rows=lines,
        ))  # fmt: skip
    return parts


def by_class(work: Work) -> list[Part]:
    """Give figures of each class, and what was said instead most often."""
    asked = work.asked(work.judges.model())
    truth, names = asked.truth, class_names()
    lines: list[tuple[str, list[Cell]]] = []
    for klass in np.unique(truth.klass[truth.faulty]).tolist():
        own = truth.faulty & (truth.klass == klass)
        said = asked.says.said[own & (asked.says.said != klass)]
        other = names[int(np.bincount(said).argmax())] if len(said) and said.min() >= 0 else "–"
        runs = len(np.unique(truth.run[own]))
        lines.append((names[klass], [runs, *_some(work, asked, own, CLASS_FIGURES), other]))
    columns = ["runs", "iterations", *(HEADS[n] for n in CLASS_FIGURES), "said instead most"]
    return [Part(title="The model, by class", columns=columns, rows=lines)]


def inputs(work: Work) -> list[Part]:
    """Give what the model loses where something is taken away from what it sees."""
    rows = [work.judges.model(), *(work.judges.model(v) for v in VIEWS)]
    judged = [(row.name, work.asked(row)) for row in rows]
    return both(work, judged, SHORT)


def transfer(work: Work) -> list[Part]:
    """Give how a model of simulated runs does on real ones."""
    return [_what(work, "testbed"), *both(work, work.everyone("testbed"), MOVED)]


def _what(work: Work, role: str) -> Part:
    """Say what the set holds."""
    truth = work.sets[role].truth
    cells: list[Cell] = [
        len(np.unique(truth.run)), len(np.unique(truth.root)), int(truth.faulty.sum()),
        int(truth.clean.sum()), int((truth.state < 0).sum()),
        len(np.unique(truth.klass[truth.faulty])),
    ]  # fmt: skip
    columns = ["runs", "roots", "positive", "negative", "left out", "classes"]
    return Part(title="What is asked", columns=columns, rows=[(role, cells)])


def _some(work: Work, asked: Asked, own: Bools, names: tuple[str, ...]) -> list[Cell]:
    """Give figures of some positives against all clean iterations, and their number."""
    return [int(own.sum()), *work.row(asked.take(own | asked.truth.clean), names)]


def _band(low: float, high: float) -> str:
    return f"from {low:.0%}" if high == float("inf") else f"{low:.0%} to {high:.0%}"
