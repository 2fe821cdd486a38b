"""Operators of each rank-step, with how far their time and calls are from what they should be."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.medians import Floats, Ints, codes, leave_one_out_median
from teller.models.archived import Archived, filled, ints
from teller.models.around import around
from teller.models.residuals import FLOOR, LIMIT
from teller.models.signals import FAMILIES, RankSteps

MOST: Final = 20  # operators of a rank-step that are kept: those furthest off, then the longest
NAMES: Final = (
    "own", "excess", "excess_habit", "expected", "like", "calls_like", "calls", "wait", "late",
    "last", "device", "peers", "comm", "excess_around", "like_around", "late_around", "foremost",
    *FAMILIES,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operators:
    """One row an operator of a rank-step; `x` has the shape (rows, len(NAMES))."""

    step: Ints  # row of the rank-steps
    name: pa.Array
    excess_ns: Ints
    x: Floats

    def take(self, rows: Ints) -> "Operators":
        """Give some rows."""
        name = self.name.take(pa.array(rows))
        return Operators(self.step[rows], name, self.excess_ns[rows], self.x[rows])


def operators(run: Archived, steps: RankSteps, usual: Floats) -> Operators:
    """Give the operators of all steps, computing and communicating; `usual` is of each step, ns."""
    both = [_own(run, steps), _communicating(run, steps)]
    table = pa.concat_tables(both)
    table = table.take(pa.array(np.argsort(ints(table["row"]), kind="stable")))  # in order of time
    row, name = ints(table["row"]), table["operator"].combine_chunks()
    of = usual[row]
    word = pc.index_in(name, pc.unique(name)).to_numpy().astype(np.int64)
    own, count = _reals(table, "own_ns"), _reals(table, "count")
    excess, wait, late = (_reals(table, n) / of for n in ("excess_ns", "wait_ns", "late_ns"))
    alike = codes(steps.rank[row], steps.phase[row], word)
    habit = excess - np.nan_to_num(leave_one_out_median(alike, excess)[0])
    like = _log_ratio(own, leave_one_out_median(alike, own)[0], of)
    same = codes(steps.rank[row], word)
    near = [around(same, v) for v in (_signed(excess), like, _signed(late))]
    columns = [
        np.log1p(own / of), _signed(excess), _signed(habit),
        _log_ratio(own, own - _reals(table, "excess_ns"), of), like,
        _log_ratio(count, leave_one_out_median(alike, count)[0], np.full(len(of), 50.0)),
        np.log1p(count) / 4, np.log1p(wait), _signed(late), _reals(table, "last"),
        _reals(table, "device"), _reals(table, "peers"), _reals(table, "comm"), *near,
        _foremost(row, excess),
    ]  # fmt: skip
    place = {n: at for at, names in enumerate(FAMILIES.values()) for n in names}
    family = np.array([place.get(f, len(FAMILIES) - 1) for f in table["family"].to_pylist()])
    kinds = np.eye(len(FAMILIES))[family] if len(family) else np.zeros((0, len(FAMILIES)))
    x = np.concatenate([np.stack(columns, axis=1), kinds], axis=1)
    found = Operators(row, name, ints(table["excess_ns"]), x)
    return found.take(_furthest(row, np.abs(excess) + wait / 4 + np.abs(late) + own / of / 20))


def _own(run: Archived, steps: RankSteps) -> pa.Table:
    table = run.expected
    row = steps.rows_of(ints(table["rank"]), filled(table["step_index"], -1))
    kept = table.append_column("row", pa.array(row)).filter(pa.array(row >= 0))
    nothing = pa.array(np.zeros(kept.num_rows, np.int64))
    return _table(
        {n: kept[n] for n in ("row", "operator", "family", "count", "own_ns", "excess_ns")}
        | {"device": kept["device"].cast(pa.int64()), "wait_ns": nothing, "late_ns": nothing}
        | {"peers": pc.equal(kept["by"], "peers").cast(pa.int64()), "comm": nothing}
        | {"last": nothing.cast(pa.float64())}
    )


def _communicating(run: Archived, steps: RankSteps) -> pa.Table:
    """Sum each rank's collectives by operator: pure time is its own, waits are not."""
    table = run.members
    row = steps.rows_of(ints(table["rank"]), ints(table["step_index"]))
    order = ints(table["arrival_order"])
    _, number = np.unique(ints(table["number"]), return_inverse=True)
    size = np.bincount(number) if len(number) else np.zeros(1, np.int64)
    last = (order == size[number] - 1) & (size[number] > 1)
    table = table.append_column("row", pa.array(row)).append_column("last", pa.array(last * 1.0))
    sums = (
        table.filter(pa.array(row >= 0))
        .group_by(["row", "operator"])
        .aggregate([("pure_ns", "sum"), ("wait_ns", "sum"), ("late_ns", "sum"), ("last", "mean"),
                    ("device", "max"), ("number", "count")])
    )  # fmt: skip
    each = pc.divide(pc.fill_null(sums["pure_ns_sum"], 0).cast(pa.float64()), sums["number_count"])
    usual = _usual_pure(steps, sums, each.to_numpy())
    should = np.rint(usual * sums["number_count"].to_numpy()).astype(np.int64)
    pure = filled(sums["pure_ns_sum"], 0)
    return _table({
        "row": sums["row"], "operator": sums["operator"].cast(pa.string()),
        "family": pa.array(["comm"] * sums.num_rows, pa.string()), "count": sums["number_count"],
        "own_ns": pa.array(pure), "excess_ns": pa.array(pure - should),
        "device": sums["device_max"].cast(pa.int64()),
        "wait_ns": pc.fill_null(sums["wait_ns_sum"], 0),
        "late_ns": pc.fill_null(sums["late_ns_sum"], 0), "last": sums["last_mean"],
        "peers": pa.array(np.zeros(sums.num_rows, np.int64)),
        "comm": pa.array(np.ones(sums.num_rows, np.int64)),
    })  # fmt: skip


def _usual_pure(steps: RankSteps, sums: pa.Table, each: Floats) -> Floats:
    """Give the pure time of a call in the rank's other steps of this phase; its own where alone."""
    row = ints(sums["row"])
    name = sums["operator"].combine_chunks().cast(pa.string())
    word = pc.index_in(name, pc.unique(name)).to_numpy().astype(np.int64)
    others, _ = leave_one_out_median(codes(steps.rank[row], steps.phase[row], word), each)
    return np.where(np.isnan(others), each, others)


_COLUMNS: Final = pa.schema(
    [("row", pa.int64()), ("operator", pa.string()), ("family", pa.string())]
    + [(n, pa.int64()) for n in ("count", "own_ns", "excess_ns", "wait_ns", "late_ns")]
    + [(n, pa.int64()) for n in ("device", "peers", "comm")]
    + [("last", pa.float64())]
)


def _table(columns: dict[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    return pa.table([columns[f.name].cast(f.type) for f in _COLUMNS], schema=_COLUMNS)


def _reals(table: pa.Table, name: str) -> Floats:
    real: Floats = table[name].to_numpy().astype(float)
    return real


def _signed(share: Floats) -> Floats:
    signed: Floats = np.sign(share) * np.log1p(10 * np.abs(share))
    return signed


def _log_ratio(value: Floats, should: Floats, of: Floats) -> Floats:
    floor = FLOOR * of / 5
    ratio = np.log((np.maximum(value, 0) + floor) / (np.maximum(should, 0) + floor))
    return np.where(np.isnan(should), 0.0, np.clip(ratio, -LIMIT, LIMIT))


def _foremost(row: Ints, excess: Floats) -> Floats:
    """Give each operator's excess as a share of the largest of its step: 1 is the foremost."""
    most = np.zeros(row.max(initial=-1) + 1)
    np.maximum.at(most, row, excess)
    foremost: Floats = np.clip(excess / np.maximum(most[row], 1e-3), -1, 1)
    return foremost


def _furthest(row: Ints, weight: Floats) -> Ints:
    """Give the rows to keep: the MOST weightiest of each step, in order of step and weight."""
    order = np.lexsort((-weight, row))
    first = np.r_[True, row[order][1:] != row[order][:-1]] if len(row) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    place = np.arange(len(row)) - np.repeat(starts, np.diff(np.r_[starts, len(row)]))
    kept: Ints = order[place < MOST]
    return kept
