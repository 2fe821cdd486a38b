"""The collectives of each iteration, gathered by group and operation, and who took part how."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.medians import Floats, Ints, codes, leave_one_out_median
from teller.models.archived import Archived, filled, ints
from teller.models.residuals import LIMIT
from teller.models.signals import RankSteps

OPS: Final = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
NAMES: Final = (
    "calls",
    "pure",
    "pure_each",
    "hosts",
    "pure_like",
    "skew",
    "worst_skew",
    "bytes",
    "ranks",
    *OPS,
    "other",
)


@dataclass(frozen=True, slots=True)
class Meetings:
    """One row a group and operation of an iteration; edges join rank-steps to them."""

    iteration: Ints
    x: Floats  # (rows, len(NAMES))
    step: Ints  # of an edge: row of the rank-steps
    meeting: Ints  # of an edge: row here
    part: Floats  # (edges, 3): share of waits, of lateness, of being the last


def meetings(run: Archived, steps: RankSteps, iteration: Ints, usual: Floats) -> Meetings:
    """Gather the collectives; `iteration` and `usual` (ns) are of each rank-step."""
    members = run.members
    row = steps.rows_of(ints(members["rank"]), ints(members["step_index"]))
    members, row = members.filter(pa.array(row >= 0)), row[row >= 0]
    if not len(row):
        none = np.zeros(0, np.int64)
        return Meetings(none, np.zeros((0, len(NAMES))), none, none, np.zeros((0, 3)))
    group, op = (_coded(members[n]) for n in ("group", "op"))
    key = codes(iteration[row], group, op)
    _, first = np.unique(key, return_index=True)
    own, one = iteration[row][first], _each(members)
    of = np.maximum(_sums(key, usual[row]) / np.bincount(key), 1.0)
    calls = _sums(key, one["first"])
    pure = _sums(key, one["pure"]) / np.maximum(calls, 1)
    skew = _sums(key, one["skew"]) / of
    worst = np.zeros(len(first))
    np.maximum.at(worst, key, one["skew"] * one["first"])
    alike = codes(group[first], op[first], steps.phase[row][first])
    should, _ = leave_one_out_median(alike, pure)
    ratio = np.log((pure + 1000) / (np.nan_to_num(should, nan=0.0) + 1000))
    size = filled(members["size_bytes"], 0).astype(float)
    columns = [
        np.log1p(calls) / 4, np.log1p(calls * pure / of),
        # An all-reduce of so many bytes over so many ranks takes what physics lets it: no ratio.
        np.log1p(pure / 1000), _hosts(run, members, key),
        np.where(np.isnan(should), 0.0, np.clip(ratio, -LIMIT, LIMIT)),
        np.log1p(10 * skew), np.log1p(10 * worst / of),
        np.log1p(_sums(key, size) / np.bincount(key)) / 10,
        np.log1p(_sums(key, one["ranks"] * one["first"]) / np.maximum(calls, 1)) / 2,
    ]  # fmt: skip
    kinds = _kinds(pc.take(members["op"].combine_chunks(), pa.array(first)))
    edge = codes(row, key)
    _, at = np.unique(edge, return_index=True)
    part = [_sums(edge, one[n]) for n in ("wait", "late", "last")]
    weight = np.maximum(_sums(edge, np.ones(len(edge))), 1)
    shares = [np.log1p(10 * p / usual[row][at]) for p in part[:2]] + [part[2] / weight]
    return Meetings(own, np.concatenate([np.stack(columns, axis=1), kinds], axis=1),
                    row[at], key[at], np.stack(shares, axis=1))  # fmt: skip


def _hosts(run: Archived, members: pa.Table, key: Ints) -> Floats:
    """Give on how many hosts the ranks of each gathered row are, as a logarithm."""
    ranks = run.ranks
    host = pc.index_in(ranks["host"], pc.unique(ranks["host"])).to_numpy().astype(np.int64)
    order = np.argsort(ints(ranks["rank"]))
    at = np.searchsorted(ints(ranks["rank"])[order], ints(members["rank"]))
    pairs = np.unique(np.stack([key, host[order][np.minimum(at, len(order) - 1)]]), axis=1)
    found: Floats = np.log(np.bincount(pairs[0]).astype(float))
    return found


def _each(members: pa.Table) -> dict[str, Floats]:
    """Give each member's share in the figures of its collective."""
    _, number, size = np.unique(
        ints(members["number"]), return_inverse=True, return_counts=True
    )  # fmt: skip
    order, arrival = ints(members["arrival_order"]), ints(members["arrival_ns"])
    most = np.full(len(size), np.iinfo(np.int64).min)
    least = np.full(len(size), np.iinfo(np.int64).max)
    np.maximum.at(most, number, arrival)
    np.minimum.at(least, number, arrival)
    first = (order == 0).astype(float)
    return {
        "first": first, "ranks": size[number].astype(float),
        "skew": (most - least)[number] * first,
        "pure": filled(members["pure_ns"], 0) * first,
        "wait": filled(members["wait_ns"], 0).astype(float),
        "late": np.maximum(filled(members["late_ns"], 0), 0).astype(float),
        "last": ((order == size[number] - 1) & (size[number] > 1)).astype(float),
    }  # fmt: skip


def _sums(key: Ints, values: Floats) -> Floats:
    return np.bincount(key, weights=values).astype(float)


def _coded(column: pa.ChunkedArray) -> Ints:
    one = column.combine_chunks()
    numbers: Ints = pc.index_in(one, pc.unique(one)).to_numpy().astype(np.int64)
    return numbers


def _kinds(op: pa.Array) -> Floats:
    known = pc.fill_null(pc.index_in(op, pa.array(OPS)), len(OPS)).to_numpy().astype(np.int64)
    kinds: Floats = np.eye(len(OPS) + 1)[known]
    return kinds
