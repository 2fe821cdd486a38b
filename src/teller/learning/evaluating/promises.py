"""What calibration promises against what is observed, and what scoring costs."""

from typing import Final

import numpy as np

from teller.graph.medians import Floats
from teller.learning.evaluating.columns import Says, Truths
from teller.learning.evaluating.state import Cell, Part
from teller.learning.evaluating.work import Work
from teller.models.calibration import curve
from teller.models.measures import even

RUNS: Final = (10, 20, 50, 100, 200)
WANTED: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # false alarms per 1,000 steps
TIMES: Final = 50  # that calibration runs are drawn
TIMED: Final = 30  # runs that are scored for the clock


def calibration(work: Work) -> list[Part]:
    """Give how often what is promised is kept, by how many runs it rests on."""
    row = work.judges.model()
    held, test = (
        (work.sets[role].truth, work.judges.says(row, role)) for role in ("validation", "test")
    )
    clean = _clean(*held)
    lines: list[tuple[str, list[Cell]]] = []
    for count in [n for n in RUNS if n < len(clean)] + [len(clean)]:
        for wanted in WANTED:
            lines.append((f"{count} runs, {wanted:g}", _kept(clean, count, wanted, *test)))
    columns = ["promised", "observed per 1,000", "95 % of draws under", "recall"]
    title = "False alarms per 1,000 steps: calibration runs and rate that is asked for"
    return [Part(title=title, columns=columns, rows=lines)]


def _kept(clean: list[Floats], count: int, wanted: float, truth: Truths, says: Says) -> list[Cell]:
    random = np.random.default_rng(int(count * 1000 + wanted))
    weight = even(truth.run, truth.clean) / max(int(truth.clean.sum()), 1)
    chance = _sigmoid(says.chance)
    promised, seen, recall = [], [], []
    for _ in range(TIMES if count < len(clean) else 1):
        chosen = random.permutation(len(clean))[:count]
        threshold, sure = curve([clean[i] for i in chosen]).threshold(wanted)
        called = chance >= threshold
        promised.append(sure)
        seen.append(1000 * float(weight @ called))
        recall.append(float(called[truth.faulty].mean()) if truth.faulty.any() else np.nan)
    return [
        f"{np.mean(promised):.0%}", float(np.mean(seen)), float(np.quantile(seen, 0.95)),
        float(np.mean(recall)),
    ]  # fmt: skip


def _clean(truth: Truths, says: Says) -> list[Floats]:
    """Give the chances of the clean iterations of each run, as calibration takes them."""
    chance = _sigmoid(says.chance)
    runs = [chance[truth.clean & (truth.run == r)] for r in np.unique(truth.run)]
    return [r for r in runs if len(r)]


def timing(work: Work) -> list[Part]:
    """Give the CPU time of scoring, without reading the run."""
    runs = work.sets["test"].runs[:TIMED]
    work.judges.scorer.score(runs[0].samples)  # what the first call alone costs is not counted
    before = work.clock()
    for one in runs:
        work.judges.scorer.score(one.samples)
    took = work.clock() - before
    iterations = sum(len(r.samples.step_index) for r in runs)
    steps = sum(len(r.samples.rank) for r in runs)
    cells: list[Cell] = [
        len(runs), iterations, steps, 1000 * took / iterations, 1000 * took / steps
    ]  # fmt: skip
    columns = ["runs", "iterations", "rank-steps", "CPU s per 1,000 iterations",
               "CPU s per 1,000 rank-steps"]  # fmt: skip
    return [
        Part(title="Scoring by ONNX Runtime, one thread", columns=columns, rows=[("model", cells)])
    ]


def _sigmoid(logit: Floats) -> Floats:
    return 1 / (1 + np.exp(-logit))
