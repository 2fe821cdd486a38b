"""Very long requests, and very many: what is kept of the iterations that served them."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from teller.ingest.asked import ASKED
from teller.ingest.served import MOST_ITERATIONS, Served, serve

COUNT = 5_003


def served(requests: int, dur: np.ndarray) -> Served:
    start = np.arange(COUNT) * 100
    iterations = pa.table(
        {"step_index": np.arange(COUNT) + 7, "start_ns": start, "end_ns": start + dur}
    )
    size = {"start_ns": 0, "first_token_ns": 5, "end_ns": COUNT * 100, "queue_ns": 0}
    columns = {name: [value] * requests for name, value in size.items()}
    names = pa.array([f"r{n}" for n in range(requests)])
    table = pa.table({"name": names, "coarse_ns": [1] * requests} | columns)
    return serve(table, ASKED.empty_table(), iterations)


def test_a_long_request_keeps_the_slowest_of_each_stretch() -> None:
    dur = np.random.default_rng(3).integers(1, 99, COUNT)
    slow = np.array([0, 1, 2_500, COUNT - 1])
    dur[slow] = 99
    who, step, by, _ = served(2, dur).pairs()
    mine = step[who == 0] - 7
    assert len(mine) == len(np.unique(mine)) == MOST_ITERATIONS
    assert set(by.to_pylist()) == {"time"}
    bounds = np.arange(MOST_ITERATIONS + 1) * COUNT // MOST_ITERATIONS
    most = [dur[a:b].max() for a, b in pairwise(bounds.tolist())]
    assert dur[mine].tolist() == most
    assert {0, 2_500, COUNT - 1} <= set(mine.tolist())


def test_of_many_long_requests_fewer_iterations_are_kept_and_the_slowest_always() -> None:
    dur = np.full(COUNT, 50)
    dur[1_234] = 99
    who, step, _, _ = served(50_000, dur).pairs()
    assert len(who) == 50_000 * 40
    assert (np.bincount(who, weights=step == 1_241) == 1).all()
