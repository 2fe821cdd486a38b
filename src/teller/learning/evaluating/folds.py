"""The tables for which networks are trained again: with less to see, and with less to know."""

from collections.abc import Callable
from typing import Final

import numpy as np

from teller.graph.classes import classes
from teller.graph.medians import Floats
from teller.learning.evaluating.bootstrap import Interval, interval
from teller.learning.evaluating.columns import Says, Truths
from teller.learning.evaluating.figures import Asked
from teller.learning.evaluating.judges import HASHED, Row, has_group
from teller.learning.evaluating.state import Cell, Part
from teller.learning.evaluating.tables import SHORT
from teller.learning.evaluating.views import VIEWS
from teller.learning.evaluating.work import HEADS, Work, both
from teller.models.measures import Bools, Sweep
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import class_names

ENGINE: Final = ("auprc", "f1", "false_alarms", "class_macro_f1", "op_top1", "rank_top1", "joint")


def retrained(work: Work) -> list[Part]:
    """Give what networks reach that never saw a part of the input."""
    judges = work.judges
    rows = [judges.again(), *(judges.again(n, view=v) for n, v in VIEWS.items())]
    rows.append(judges.again(HASHED))
    judged = [(judges.model().name, work.asked(judges.model()))]
    return both(work, [*judged, *((row.name, work.asked(row)) for row in rows)], SHORT)


def siblings(work: Work) -> list[Part]:
    """Leave a group of sibling classes out of training, and ask for it."""
    truth = work.sets["test"].truth
    every = work.judges.again()
    lines: list[tuple[str, list[Cell]]] = []
    for group in dict.fromkeys(classes()[n].siblings for n in class_names()):
        own = truth.of_group(group)
        if own.any():
            row = work.judges.again(f"without {group}", without=has_group(group))
            lines.append((group, [
                int(own.sum()), *_unseen(work, row, own), *_unseen(work, every, own)[:2],
            ]))  # fmt: skip
    if lines:
        means: list[Cell] = [_mean([cells[n] for _, cells in lines]) for n in range(6)]
        lines.append(("mean over groups", ["", *means[1:]]))
    return [Part(
        title="Each group unseen in turn",
        columns=["iterations", "AUROC", "operator, of first three", "AUROC of unknown",
                 "AUROC when seen", "operator when seen"],
        rows=lines,
    )]  # fmt: skip


def engines(work: Work) -> list[Part]:
    """Leave an engine out of training, and ask for its runs."""
    lines: list[tuple[str, list[Cell]]] = []
    for engine in sorted({r.about.engine for r in work.sets["test"].runs}):
        row = work.judges.again(f"without {engine}", without=_is_of(engine))
        elsewhere = ~_of_engine(work, "validation", engine)
        kept = elsewhere if elsewhere.any() else None
        own = _of_engine(work, "test", engine)
        for name, judge, of in (
            (f"{engine}, unseen", row, kept), (f"{engine}, seen", work.judges.again(), None),
        ):  # fmt: skip
            asked = work.asked(judge, "test", of).take(own)
            lines.append((name, [int(asked.truth.faulty.sum()), *work.row(asked, ENGINE)]))
    columns = ["positive", *(HEADS[n] for n in ENGINE)]
    return [Part(title="Each engine unseen in turn", columns=columns, rows=lines)]


def _unseen(work: Work, row: Row, own: Bools) -> list[Cell]:
    truth, says = work.sets["test"].truth, work.judges.says(row, "test")
    kept = own | truth.clean
    asked = Asked(truth.take(kept), says.take(kept), 0.0)
    auroc, third = work.row(asked, ("auroc", "op_top3"))
    return [auroc, third, _unknown(work, truth, says, own)]


def _unknown(work: Work, truth: Truths, says: Says, own: Bools) -> Interval:
    """Tell how well doubt about the class tells the unseen group from known ones."""
    faulty = truth.faulty
    doubt = 1 - says.sure[faulty]

    def figure(weight: Floats) -> Floats:
        return Sweep.of(own[faulty], doubt, weight).auroc()

    return interval(figure, truth.root[faulty], work.draws)


def _is_of(engine: str) -> Callable[[Labelled], bool]:
    return lambda one: one.about.engine == engine


def _of_engine(work: Work, role: str, engine: str) -> Bools:
    """Tell which iterations of a set are of runs of an engine."""
    given = work.sets[role]
    own = np.array([r.about.engine == engine for r in given.runs], bool)
    found: Bools = own[given.truth.run]
    return found


def _mean(cells: list[Cell]) -> float | None:
    known = [c.value for c in cells if isinstance(c, Interval) and c.value is not None]
    return float(np.mean(known)) if known else None
