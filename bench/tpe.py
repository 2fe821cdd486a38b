"""Measure the tokenizer: how much shorter steps get on runs it has not seen, and what that costs.

`python bench/tpe.py WORKSPACE…` takes all runs of workspaces. For each it leaves out that run
alone, all runs of its model, or all of its engine, trains on the rest, and prints one minus tokens
over spans of whole steps; then millions of spans a CPU second of training and encoding. A column is
a vocabulary: the number of merges. Needs the package installed.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.parquet as pq

from teller.graph.archive import Archive
from teller.models.tpe.encode import encode
from teller.models.tpe.training import LARGEST, train
from teller.models.tpe.trees import Forest, joined, of_run

MERGES: Final = (128, 256, 512, 1024, 2048)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: whose it is, and its trees."""

    name: str
    engine: str
    model: str
    forest: Forest


def runs_of(folder: Path, ranks: int) -> list[Run]:
    """Give the runs of a workspace that have steps, with the steps of their first ranks."""
    archive, found = Archive(folder / "archive"), []
    for entry in archive.runs():
        generation = archive.folder_of(entry.run_id)
        said = pq.read_table(generation / "tables" / "Run.parquet").to_pylist()[0]
        forest = of_run(generation, ranks)
        engine = (said["engine"] or entry.name).split(" ")[0]  # without its version
        if len(forest):
            found.append(Run(entry.name, engine, said["model"] or entry.name, forest))
    return found


def reductions(train_on: Sequence[Run], test: Run, largest: int) -> list[float]:
    """Give one minus tokens over spans for each vocabulary."""
    vocabulary = train(joined(r.forest for r in train_on), max(MERGES), largest)
    spans = len(test.forest)
    return [1 - encode(test.forest, vocabulary.first(n)).tokens.num_rows / spans for n in MERGES]


def held_out(
    runs: Sequence[Run], what: str, same: Callable[[Run, Run], bool], largest: int
) -> None:
    """Print the mean over runs, each tested on a vocabulary of the runs that are not like it."""
    rows = []
    for test in runs:
        others = [r for r in runs if r is not test]
        rest = [r for r in others if not same(r, test)]
        # a run is held out alone only if another one of its kind is there to learn from
        if rest and (what != "run" or any(r.engine == test.engine for r in rest)):
            rows.append(reductions(rest, test, largest))
    line(f"held-out {what}, mean of {len(rows)}", np.mean(rows, axis=0))
    line("  lowest", np.min(rows, axis=0))


def line(what: str, numbers: Sequence[float]) -> None:
    """Print one row."""
    cells = "".join(f"{n:>9.6g}" for n in np.round(numbers, 3))
    sys.stdout.write(f"{what:<36}{cells}\n")


def speeds(runs: Sequence[Run], largest: int) -> None:
    """Print millions of spans a CPU second, of the steps as they are and of steps all unlike."""
    forest = joined(r.forest for r in runs)
    for what, one in (("as recorded", forest), ("all unlike", unlike(forest))):
        trained, encoded = [], []
        for merges in MERGES:
            start = time.process_time()
            vocabulary = train(one, merges, largest)
            middle = time.process_time()
            encode(one, vocabulary)
            trained.append(len(one) / (middle - start) / 1e6)
            encoded.append(len(one) / (time.process_time() - middle) / 1e6)
        line(f"{what}: train, Mspans/s", trained)
        line(f"{what}: encode, Mspans/s", encoded)


def unlike(forest: Forest) -> Forest:
    """Give the forest with one operator in 300 drawn anew, so that no step repeats."""
    draw = np.random.default_rng(0)
    other = draw.random(len(forest)) < 1 / 300
    word = np.where(other, draw.integers(0, len(forest.words), len(forest)), forest.word)
    return Forest(forest.steps, forest.words, forest.step, forest.parent, forest.depth, word,
                  forest.values)  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspaces", nargs="+", type=Path)
    parser.add_argument("--largest", type=int, default=LARGEST, help="spans in a token, at most")
    parser.add_argument("--ranks", type=int, default=2, help="sources of a run, at most")
    given = parser.parse_args()
    runs = [run for folder in given.workspaces for run in runs_of(folder, given.ranks)]
    spans = sum(len(r.forest) for r in runs)
    sys.stdout.write(f"{len(runs)} runs, {spans} spans in steps\n")
    line("merges", MERGES)
    held_out(runs, "run", lambda a, b: False, given.largest)
    held_out(runs, "model", lambda a, b: a.model == b.model, given.largest)
    held_out(runs, "engine", lambda a, b: a.engine == b.engine, given.largest)
    speeds(runs, given.largest)


if __name__ == "__main__":
    main()
