"""What services wrote: in each iteration, and once in the run, as templates and not as lines."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.medians import Floats, Ints
from teller.models.archived import Archived, filled, ints
from teller.models.signals import RankSteps

LEVELS: Final = ("debug", "info", "warning", "error", "fatal")
NAMES: Final = ("count", "rare", "of_run", "of_rank", *LEVELS)
MOST: Final = 6  # templates of an iteration: the rarest of the run
MOST_OF_RUN: Final = 24  # templates that are tied to no step, seen by every iteration of the run


@dataclass(frozen=True, slots=True)
class Lines:
    """One row a template in an iteration (or, with -1, in the run)."""

    iteration: Ints
    text: pa.Array
    x: Floats  # (rows, len(NAMES))


def lines(run: Archived, steps: RankSteps, iteration: Ints) -> Lines:
    """Give the templates of each iteration and those of the run; `iteration` is of rank-steps."""
    table, matches = run.table("LogLine"), run.table("MATCHES.LogLine.LogTemplate")
    if not table.num_rows or not matches.num_rows:
        return Lines(np.zeros(0, np.int64), pa.array([], pa.string()), np.zeros((0, len(NAMES))))
    template = _looked_up(ints(table["id"]), ints(matches["src"]), ints(matches["dst"]))
    during = run.table("DURING.LogLine.Step")
    step = _looked_up(ints(table["id"]), ints(during["src"]), ints(during["dst"]))
    row = _looked_up(step, steps.id, np.arange(len(steps)))
    where = np.where(row >= 0, iteration[np.maximum(row, 0)] if len(steps) else -1, -1)
    known = template >= 0
    where, template = where[known], template[known]
    key, at, count = np.unique(
        np.stack([where, template]), axis=1, return_index=True, return_counts=True
    )
    first = np.flatnonzero(known)[at]
    _, of, all_of = np.unique(template, return_inverse=True, return_counts=True)
    rare = 1 / np.log(all_of[of[at]] + np.e)
    level = pc.fill_null(pc.index_in(table["level"], pa.array(LEVELS)), 1).to_numpy()[first]
    kept = _rarest(key[0], rare + (level >= 2))
    x = np.concatenate([
        np.stack([np.log1p(count) / 4, rare, key[0] < 0,
                  filled(table["rank"], -1)[first] >= 0], axis=1).astype(float),
        np.eye(len(LEVELS))[level.astype(np.int64)],
    ], axis=1)  # fmt: skip
    return Lines(key[0][kept], _texts(run, key[1][kept]), x[kept])


def _looked_up(wanted: Ints, keys: Ints, values: Ints) -> Ints:
    """Give the value of each key, -1 where there is none."""
    if not len(keys):
        return np.full(len(wanted), -1)
    order = np.argsort(keys, kind="stable")
    at = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    return np.where(keys[at] == wanted, values[at], -1)


def _rarest(where: Ints, weight: Floats) -> Ints:
    order = np.lexsort((-weight, where))
    starts = np.flatnonzero(np.r_[True, where[order][1:] != where[order][:-1]])
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    kept: Ints = order[place < np.where(where[order] < 0, MOST_OF_RUN, MOST)]
    return kept


def _texts(run: Archived, template: Ints) -> pa.Array:
    table = run.table("LogTemplate")
    at = _looked_up(template, ints(table["id"]), np.arange(table.num_rows))
    return table["text"].combine_chunks().take(pa.array(np.maximum(at, 0)))
