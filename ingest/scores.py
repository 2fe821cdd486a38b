"""How long things should have taken, from what needs no baseline: the run itself and its peers.

An operator's time in a step is compared with the same operator's in the same step on the other
ranks: calls that the others do not make count as well. Where no peer has it, its calls are compared
with those in the same rank's steps of the same phase and load. Waiting for others and synchronising
are nobody's own time and have no expectation.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.medians import codes, leave_one_out_median
from teller.ingest.source import COMM

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SAME_CALLS: Final = 0.15  # ranks of one step differ by less in the number of their calls
WAITING: Final = ("sync", "os_wait")

# One row a (source, step, operator) with own time: what was, and what should have been.
EXPECTED: Final = pa.schema(
    [
        ("source", pa.int64()),
        ("rank", pa.int64()),
        ("step_index", pa.int64()),
        ("operator", pa.string()),
        ("family", pa.string()),
        ("device", pa.bool_()),
        ("count", pa.int64()),
        ("own_ns", pa.int64()),
        ("each_ns", pa.float64()),
        ("excess_ns", pa.int64()),
        ("by", pa.string()),  # peers or load
    ]
)


@dataclass(frozen=True, slots=True)
class Load:
    """Steps of one source with what they had to do, for comparing like with like."""

    step_index: Ints
    bucket: Ints  # same bucket: same phase, and batch and tokens within a quarter octave
    replica: int = 0  # of `graph.replicas`: others have steps of their own


def load_of(steps: pa.Table, replica: int) -> Load:
    """Put the steps of one source into load buckets."""
    parts = [pc.index_in(steps["phase"], pc.unique(steps["phase"])).to_numpy().astype(np.int64)]
    for name in ("batch_size", "token_count"):
        size = pc.fill_null(steps[name], 0).to_numpy()
        parts.append(np.rint(4 * np.log2(np.maximum(size, 0) + 1)).astype(np.int64))
    bucket = parts[0]
    for part in parts[1:]:
        bucket = bucket * 4096 + part
    return Load(steps["step_index"].to_numpy(), bucket, replica)


def expected(sums: list[tuple[int, int, pa.Table, Load]]) -> pa.Table:
    """Give EXPECTED for all sources: (source, rank, operator sums, loads)."""
    own_times = [_own(*one[:3]) for one in sums]
    if not sum(t.num_rows for t in own_times):
        return EXPECTED.empty_table()
    table = pa.concat_tables(own_times)
    code = pc.index_in(table["operator"], pc.unique(table["operator"])).to_numpy().astype(np.int64)
    code = code * 2 + table["device"].to_numpy()
    count = table["count"].to_numpy()
    step = codes(table["step_index"].to_numpy(), _replicas(table, sums))
    own = table["own_ns"].to_numpy().astype(float)
    same_step = codes(step, code)
    peers, number = leave_one_out_median(same_step, own)
    peer_calls, _ = leave_one_out_median(same_step, own / np.maximum(count, 1))
    # A capture that lost events makes all others seem to do more: then calls alone compare.
    peers = np.where(_incomplete(table, step, count), peer_calls * count, peers)
    alike = codes(_buckets(table, sums), codes(table["source"].to_numpy(), code))
    history, _ = leave_one_out_median(alike, own / np.maximum(count, 1))
    by_peers = number > 1
    should = np.where(by_peers, peers, history * count)
    should = np.where(np.isnan(should), own, should)
    excess = np.rint(own - should).astype(np.int64)
    each = should / np.maximum(count, 1)
    return pa.table(
        [
            table["source"],
            table["rank"],
            table["step_index"],
            table["operator"],
            table["family"],
            table["device"],
            table["count"],
            table["own_ns"],
            pa.array(each),
            pa.array(excess),
            pa.array(np.where(by_peers, "peers", "load")),
        ],
        schema=EXPECTED,
    )


def _incomplete(table: pa.Table, step: Ints, count: Ints) -> npt.NDArray[np.bool_]:
    """Tell which rows are of a step whose number of calls is not that of its peers."""
    row = codes(table["source"].to_numpy(), step)
    calls = np.bincount(row, weights=count).astype(float)
    _, first = np.unique(row, return_index=True)
    peers, _ = leave_one_out_median(step[first], calls)
    apart = np.abs(calls / np.where(peers > 0, peers, np.nan) - 1) > SAME_CALLS
    flags: npt.NDArray[np.bool_] = apart[row]
    return flags


def _own(source: int, rank: int, sums: pa.Table) -> pa.Table:
    """Keep what is a rank's own time."""
    waits = pc.is_in(sums["family"].cast(pa.string()), pa.array(WAITING))
    comm = pc.equal(sums["layer"].cast(pa.string()), COMM)
    sums = sums.filter(pc.invert(pc.or_(waits, comm)))
    return pa.table(
        {
            "source": pa.array(np.full(sums.num_rows, source)),
            "rank": pa.array(np.full(sums.num_rows, rank)),
            "step_index": sums["step_index"],
            "operator": sums["operator"].cast(pa.string()),
            "family": sums["family"].cast(pa.string()),
            "device": sums["device"],
            "count": sums["count"],
            "own_ns": sums["own_ns"],
        }
    )


def _buckets(table: pa.Table, sums: list[tuple[int, int, pa.Table, Load]]) -> Ints:
    source, step = table["source"].to_numpy(), table["step_index"].to_numpy()
    bucket = np.zeros(len(step), np.int64)
    for number, _, _, load in sums:
        own = source == number
        order = np.argsort(load.step_index, kind="stable")
        at = np.searchsorted(load.step_index[order], step[own])
        bucket[own] = load.bucket[order][np.minimum(at, len(order) - 1)] if len(order) else 0
    return bucket


def _replicas(table: pa.Table, sums: list[tuple[int, int, pa.Table, Load]]) -> Ints:
    """Give each row the replica of its source."""
    replica = np.zeros(max(number for number, *_ in sums) + 1, np.int64)
    for number, _, _, load in sums:
        replica[number] = load.replica
    of_row: Ints = replica[table["source"].to_numpy()]
    return of_row


@dataclass(frozen=True, slots=True)
class StepScores:
    """For each row of the step table of all sources: own time and its excess."""

    own_ns: Ints
    excess_ns: Ints


def score_steps(
    source: Ints, replica: Ints, step_index: Ints, dur_ns: Ints, period_ns: Ints, wait_ns: Ints,
    host_ns: Ints, bucket: Ints,
) -> StepScores:  # fmt: skip
    """Give own time (duration without waiting for ranks) and how far it is above its peers'.

    Peers are of the same replica and compared over whole periods, from the end of the step before,
    so that a rank that begins late is seen; idle time without requests is the same on all of them.
    A rank that is alone is compared with its own steps of the same load.
    """
    # While the device waits, the host may be busy: such waiting holds nothing up.
    own = np.maximum(dur_ns - wait_ns, host_ns)
    busy = np.maximum(period_ns - wait_ns, host_ns).astype(float)
    peers, number = leave_one_out_median(codes(replica, step_index), busy)
    history, _ = leave_one_out_median(codes(source, bucket), own.astype(float))
    excess = np.where(number > 1, busy - peers, own - history)
    return StepScores(own, np.rint(np.nan_to_num(excess)).astype(np.int64))
