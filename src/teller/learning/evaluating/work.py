"""What tables are made with: sets, judges, thresholds, and how a table is put together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from teller.learning.evaluating.figures import Asked, figures
from teller.learning.evaluating.judges import RULES, Judges, Row
from teller.learning.evaluating.sets import Sets
from teller.learning.evaluating.state import Cell, Part
from teller.models.measures import Bools, best_threshold

LOUD_AT: Final = 0.0  # rules have no threshold: what they say is called


@dataclass(frozen=True, slots=True)
class Spec:
    """One table: what it is called and says, which sets it needs, how it is made."""

    name: str
    title: str
    text: str
    needs: tuple[str, ...]
    make: Callable[["Work"], list[Part]]
    trains: bool = False  # networks are trained for it: left out by --quick


@dataclass(frozen=True)
class Work:
    """An evaluation under way."""

    sets: Sets
    judges: Judges
    draws: int
    clock: Callable[[], float]  # CPU seconds of this process

    def threshold(self, row: Row, kept: Bools | None = None) -> float:
        """Give the threshold with the best F1 on validation, or on some iterations of it."""
        truth, says = self.sets["validation"].truth, self.judges.says(row, "validation")
        asked = (truth.state >= 0) & (True if kept is None else kept)
        return best_threshold(truth.state[asked], says.chance[asked])

    def asked(self, row: Row, role: str = "test", kept: Bools | None = None) -> Asked:
        """Give what a judge said of a set, called at its threshold; `kept` is of validation."""
        threshold = self.threshold(row, kept)
        return Asked(self.sets[role].truth, self.judges.says(row, role), threshold)

    def everyone(self, role: str = "test") -> list[tuple[str, Asked]]:
        """Give the model, rules alone where they can be asked, and all floors."""
        rows = [self.judges.model(), *self.judges.floors()]
        found = [(row.name, self.asked(row, role)) for row in rows]
        ruled = self.judges.rules(role)
        if ruled is not None:
            found.insert(1, (RULES, Asked(self.sets[role].truth, ruled, LOUD_AT)))
        return found

    def row(self, asked: Asked, names: Sequence[str]) -> list[Cell]:
        """Give the cells of some figures."""
        found = figures(asked, names, self.draws)
        return [found[n] for n in names]


def both(work: Work, judged: Sequence[tuple[str, Asked]], names: Sequence[str]) -> list[Part]:
    """Give figures over iterations, and again with runs that count alike."""
    return [
        Part(
            title=title, columns=[HEADS.get(n, n) for n in names],
            rows=[(name, work.row(_evenly(one, even), names)) for name, one in judged],
        )
        for title, even in (("Over iterations", False), ("Runs count alike", True))
    ]  # fmt: skip


def _evenly(one: Asked, even: bool) -> Asked:
    return Asked(one.truth, one.says, one.threshold, even)


# What figures are called in tables.
HEADS: Final[Mapping[str, str]] = {
    "auprc": "AUPRC", "auroc": "AUROC", "f1": "F1", "f1_horizontal": "F1 horizontal",
    "f1_vertical": "F1 vertical", "recall": "recall", "false_alarms": "false alarms",
    "clean_run_alarms": "in runs without fault", "auprc at 5 %": "AUPRC at 5 %",
    "auprc at 1 %": "AUPRC at 1 %", "auprc at 0.1 %": "AUPRC at 0.1 %",
    "precision at 1 %": "precision at recall .8, 1 %", "class_accuracy": "class",
    "class_macro_f1": "class, macro F1", "op_top1": "operator, first",
    "op_top3": "of first three", "op_macro_f1": "operator, macro+ F1", "rank_top1": "rank, first",
    "object": "culprit object", "joint": "culprit + class + operator",
}  # fmt: skip
