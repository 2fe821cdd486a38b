"""Collectives matched over ranks, clocks aligned from their ends, waits told from work."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from teller.ingest import clocks, collectives, match
from teller.ingest.collectives import RankCalls

RNG = np.random.default_rng(7)
STEPS = 120


def calls(ends: list[int], starts: list[int], *, seq: bool, drop: slice | None = None) -> pa.Table:
    """One all-reduce each, as shaping leaves them."""
    size = len(ends)
    table = pa.table(
        {
            "place": range(size),
            "op": ["all_reduce"] * size,
            "group_name": ["tp"] * size,
            "comm": pa.nulls(size, pa.string()),
            "seq": pa.array(range(size), pa.int64()) if seq else pa.nulls(size, pa.int64()),
            "size_bytes": [8192 * (1 + i % 3) for i in range(size)],
            "dtype": ["bf16"] * size,
            "peer": pa.nulls(size, pa.int64()),
            "start_ns": starts,
            "end_ns": ends,
            "device": [True] * size,
            "step_index": [i // 10 for i in range(size)],
            "operator": ["nccl"] * size,
            "host_start_ns": starts,
            "launched_by": pa.nulls(size, pa.int64()),
            "parent": pa.nulls(size, pa.int64()),
            "open": [False] * size,
            "covered_ns": [0] * size,
        }
    )
    keep = np.ones(size, bool)
    if drop is not None:
        keep[drop] = False
    return table.filter(pa.array(keep))


def run(offsets: list[int], *, seq: bool, lose: slice | None = None) -> list[RankCalls]:
    """Give ranks whose clocks are off; the last rank arrives 2 ms late and never waits."""
    late = np.cumsum(RNG.integers(3_000_000, 9_000_000, STEPS))
    ranks = []
    for rank, offset in enumerate(offsets):
        straggler = rank == len(offsets) - 1
        begin = late - (0 if straggler else 2_000_000) + RNG.integers(0, 3_000, STEPS)
        end = late + 40_000 + RNG.integers(0, 4_000, STEPS)
        table = calls(
            (end - offset).tolist(),
            (begin - offset).tolist(),
            seq=seq,
            drop=lose if rank == 1 else None,
        )
        ranks.append(RankCalls(rank, rank, table))
    return ranks


@pytest.mark.parametrize("seq", [True, False])
@pytest.mark.parametrize("lose", [None, slice(0, 3), slice(50, 54)])
def test_planted_offsets_come_back_and_the_straggler_stays(seq: bool, lose: slice | None) -> None:
    offsets = [0, 4_700_000, -5_000_000, 1_234_567]
    found = collectives.members(run(offsets, seq=seq, lose=lose))
    assert len(set(found["number"].to_pylist())) == STEPS
    aligned = clocks.align(found, 4)
    for clock, planted in zip(aligned, offsets, strict=True):
        assert abs(clock.offset_ns - planted) < 20_000
        assert (clock.residual_ns or 0) < 10_000
    source = found["source"].to_numpy()
    for name in ("start_ns", "end_ns"):
        time = found[name].to_numpy().copy()
        for i, clock in enumerate(aligned):
            time[source == i] = clock.common(time[source == i])
        found = found.set_column(found.column_names.index(name), name, pa.array(time))
    timed = collectives.timed(found)
    assert set(timed.collectives["last_rank"].to_pylist()) == {3}
    wait = timed.members["wait_ns"].to_numpy()
    rank = timed.members["rank"].to_numpy()
    assert abs(np.median(wait[rank == 0]) - 2_000_000) < 30_000
    assert wait[rank == 3].max() < 30_000
    assert abs(np.median(timed.collectives["pure_ns"].to_numpy()) - 40_000) < 10_000


def test_drift_is_found_over_a_long_capture() -> None:
    ranks = run([0, 0], seq=True)
    moved = ranks[1].calls
    for name in ("start_ns", "end_ns"):
        time = moved[name].to_numpy()
        moved = moved.set_column(
            moved.column_names.index(name),
            name,
            pa.array(time + np.rint(time * 50e-6).astype(np.int64)),
        )
    found = collectives.members([ranks[0], RankCalls(1, 1, moved)])
    clock = clocks.align(found, 2)[1]
    assert clock.drift_ppm == pytest.approx(-50, abs=3)
    assert (clock.residual_ns or 0) < 10_000


def test_a_rank_that_shares_nothing_has_no_residual() -> None:
    ranks = run([0, 0], seq=True)
    other = ranks[1].calls
    other = other.set_column(
        other.column_names.index("group_name"), "group_name", pa.array(["dp"] * other.num_rows)
    )
    found = collectives.members([ranks[0], RankCalls(1, 1, other)])
    assert [c.residual_ns for c in clocks.align(found, 2)] == [None, None]
    assert set(found["matched_by"].to_pylist()) == {"single"}


def test_five_seconds_of_skew_do_not_hide_the_match() -> None:
    found = collectives.members(run([0, 5_000_000_000], seq=False, lose=slice(0, 3)))
    assert abs(clocks.align(found, 2)[1].offset_ns - 5_000_000_000) < 20_000


def test_calls_of_layers_alike_are_not_matched_a_call_off() -> None:
    """Clocks 3 ms apart, calls .2 ms apart in layers, and a pause between steps."""
    layers, steps = 40, 30
    begin = np.arange(steps) * 20_000_000 + RNG.integers(0, 400_000, steps)
    ends = np.sort((begin[:, None] + np.arange(layers) * 200_000).ravel())
    ends = ends + RNG.integers(0, 3_000, len(ends))
    token = np.zeros(len(ends), np.int64)
    for cut in (0, 3, layers + 7):  # the other capture begins later
        other = ends[cut:] - 3_000_000 + RNG.integers(0, 3_000, len(ends) - cut)
        at = match.align(ends, token, other, token[cut:])
        assert (at == np.arange(cut, len(ends))).mean() > 0.99


def test_ranks_of_two_stages_are_not_matched_where_no_call_names_its_group() -> None:
    ranks = [
        replace(one, calls=nameless(one.calls), places={"tp": i % 2, "pp": i // 2, "dp": 0})
        for i, one in enumerate(run([0, 0, 0, 0], seq=False))
    ]
    found = collectives.members(ranks)
    groups = {(r["group"], r["rank"]) for r in found.select(["group", "rank"]).to_pylist()}
    first, second = "tp of dp0 pp0", "tp of dp0 pp1"
    assert groups == {(first, 0), (first, 1), (second, 2), (second, 3)}
    together = [replace(one, places={"tp": one.rank, "pp": 0, "dp": 0}) for one in ranks]
    assert set(collectives.members(together)["group"].to_pylist()) == {""}


def nameless(calls: pa.Table) -> pa.Table:
    at = calls.column_names.index("group_name")
    return calls.set_column(at, "group_name", pa.nulls(calls.num_rows, pa.string()))


def test_tokens_that_differ_are_never_matched() -> None:
    end = np.arange(10) * 1_000_000
    at = match.align(end, np.zeros(10, np.int64), end, np.ones(10, np.int64))
    assert (at == -1).all()
