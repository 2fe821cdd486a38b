"""Probes for shortcuts: what figures of a run alone, without a look into it, tell of its fault.

A set is good where they tell nothing: by balanced accuracy, over roots that the probe has not seen.
Chance is what shuffled labels reach. Which classes a service can have at all is physics (a network
between hosts needs two of them), so classes are shuffled among runs that can have the same.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from teller.graph.classes import classes
from teller.lab.index import Row
from teller.lab.simulator.catalog import model, models

FIGURES: Final = {
    "metadata": ("engine", "model", "mode", "ranks", "tp", "pp", "dp", "hosts"),
    "log length": ("log_bytes", "log_lines"),
    "node count": ("spans",),
    "file size": ("files", "total_bytes", "trace_bytes"),
}
FOLDS: Final = 5
SHUFFLES: Final = 20


@dataclass(frozen=True, slots=True)
class Told:
    """What a probe reached, what shuffled labels reach, and their 95th percentile."""

    figures: str
    question: str
    reached: float
    chance: float
    highest: float
    runs: int


def counts_by_nature(name: str) -> bool:
    """Tell whether a class changes counts, names or text by its physics: no shortcut then."""
    return bool(classes()[name].also_changes)


def probe(rows: Sequence[Row], figures: str, question: str) -> Told:
    """Ask one question of some figures: "fault" or not, which class was "drawn", which "felt"."""
    names = {r.run: _names(r, question) for r in rows}
    kept = [r for r in rows if not any(map(counts_by_nature, names[r.run]))]
    able = np.zeros(len(kept), np.int64)
    if question != "fault":
        kept = [r for r in kept if len(names[r.run]) == 1]
        count = Counter(names[r.run][0] for r in kept)
        kept = [r for r in kept if count[names[r.run][0]] >= FOLDS]
        able = np.unique([str(_ability(r)) for r in kept], return_inverse=True)[1]
    answers = np.array([
        ("fault" if names[r.run] else "none") if question == "fault" else names[r.run][0]
        for r in kept
    ])  # fmt: skip
    table, groups = _table(kept, figures), np.array([r.root_seed for r in kept])
    random = np.random.default_rng(0)
    shuffled = [_reached(table, _shuffled(answers, able, random), groups) for _ in range(SHUFFLES)]
    return Told(
        figures, question, _reached(table, answers, groups), float(np.mean(shuffled)),
        float(np.quantile(shuffled, 0.95)), len(kept),
    )  # fmt: skip


def _names(row: Row, question: str) -> list[str]:
    """Give the fault classes of a run; what has no effect is none."""
    told = row.meant if question == "drawn" else row.classes
    return [n for n in told.split(",") if n and classes()[n].verdict == "fault"]


def _ability(row: Row) -> tuple[bool | str, ...]:
    """Give what decides which causes a service can have: see `needs` in `faults.toml`."""
    experts = any(m.experts for m in map(model, models()) if m.name == row.model)
    return (row.hosts > 1, row.tp > 1, row.pp > 1, row.ranks > 1, row.mode, experts)


def _shuffled(
    answers: npt.NDArray[np.str_], able: npt.NDArray[np.int64], random: np.random.Generator
) -> npt.NDArray[np.str_]:
    mixed = answers.copy()
    for one in np.unique(able):
        mine = np.flatnonzero(able == one)
        mixed[mine] = random.permutation(answers[mine])
    return mixed


def _table(rows: Sequence[Row], figures: str) -> npt.NDArray[np.float64]:
    columns = []
    for name in FIGURES[figures]:
        values = [getattr(r, name) for r in rows]
        if isinstance(values[0], str):
            known = sorted(set(values))
            values = [known.index(v) for v in values]
        columns.append(np.array(values, float))
    return np.column_stack(columns)


def _reached(
    table: npt.NDArray[np.float64], answers: npt.NDArray[np.str_], groups: npt.NDArray[np.int64]
) -> float:
    tree = DecisionTreeClassifier(max_depth=4, min_samples_leaf=4, random_state=0)
    folds = GroupKFold(FOLDS)
    given = cross_val_predict(tree, table, answers, groups=groups, cv=folds)
    return float(balanced_accuracy_score(answers, given))
