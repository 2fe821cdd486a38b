"""Expected times: peers first, own history where there are none."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from teller.ingest.scores import Load, expected, score_steps


def sums(rows: list[tuple[int, str, int, int]]) -> pa.Table:
    """Rows are (step, operator, count, own ns)."""
    return pa.table(
        {
            "step_index": [r[0] for r in rows],
            "operator": [r[1] for r in rows],
            "family": ["gemm"] * len(rows),
            "layer": ["device"] * len(rows),
            "device": [True] * len(rows),
            "count": [r[2] for r in rows],
            "own_ns": [r[3] for r in rows],
        }
    )


SAME = (0, "c", 100, 1000)  # most of a step is the same on all ranks


def load(steps: int) -> Load:
    return Load(np.arange(steps), np.zeros(steps, np.int64))


def test_longer_calls_and_more_calls_stand_out_against_the_peers() -> None:
    table = expected(
        [
            (0, 0, sums([(0, "a", 2, 200), (0, "b", 4, 400), SAME]), load(1)),
            (1, 1, sums([(0, "a", 2, 500), (0, "b", 1, 100), SAME]), load(1)),
            (2, 2, sums([(0, "a", 2, 220), (0, "b", 1, 100), SAME]), load(1)),
        ]
    )
    rows = {(r["rank"], r["operator"]): r for r in table.to_pylist()}
    assert rows[1, "a"]["excess_ns"] == 290  # the peers take 210
    assert rows[1, "a"]["each_ns"] == 105
    assert rows[0, "b"]["excess_ns"] == 300
    assert rows[2, "b"]["excess_ns"] == -150  # half of what the two others take apart
    assert set(table["by"].to_pylist()) == {"peers"}


def test_a_single_rank_is_compared_with_its_own_like_steps() -> None:
    table = expected([(0, 0, sums([(n, "a", 1, 100 + 900 * (n == 3)) for n in range(5)]), load(5))])
    assert table.sort_by("step_index")["excess_ns"].to_pylist() == [0, 0, 0, 900, 0]
    assert set(table["by"].to_pylist()) == {"load"}


def test_waiting_is_not_own_time_and_a_late_begin_is_excess() -> None:
    source = np.array([0, 1, 2])
    found = score_steps(
        source,
        np.zeros(3, np.int64),
        np.zeros(3, np.int64),
        np.array([100, 100, 30]),
        np.array([100, 100, 100]),
        np.array([70, 70, 0]),
        np.zeros(3, np.int64),
        np.zeros(3, np.int64),
    )
    assert found.own_ns.tolist() == [30, 30, 30]
    assert found.excess_ns.tolist() == [-35, -35, 70]


def test_replicas_that_share_nothing_are_no_peers() -> None:
    same = [(n, "a", 1, 100) for n in range(3)]
    more = [(n, "a", 1, 900) for n in range(3)]  # another batch in the step of that number
    table = expected([(0, 0, sums(same), load(3)), (1, 1, sums(more), replace(load(3), replica=1))])
    assert set(table["by"].to_pylist()) == {"load"}
    assert set(table["excess_ns"].to_pylist()) == {0}


def test_a_peer_that_lost_events_does_not_make_the_whole_rank_slow() -> None:
    whole = [(n, "a", 10, 1000) for n in range(4)] + [(n, "b", 10, 1000) for n in range(4)]
    cut = [(n, "a", 7, 700) for n in range(4)] + [(n, "b", 8, 800) for n in range(4)]
    table = expected([(0, 0, sums(whole), load(4)), (1, 1, sums(cut), load(4))])
    assert set(table["excess_ns"].to_pylist()) == {0}
