"""Ranks of processes out of what their lines and labels say."""

import pytest

from teller.ingest.logs.ranks import Seen, only_host, ranks, ranks_of_pids


def process(label: str, pid: int, first: int = 0, rank: int | None = None, host: str = "") -> Seen:
    return Seen(label, pid, first, first + 10, rank, frozenset({host} if host else ()))


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        (["Worker_TP0", "Worker_TP1"], [0, 1]),
        (["VllmWorker PP0_TP0", "VllmWorker PP0_TP1", "VllmWorker PP1_TP0"], [0, 1, 2]),
        (["Worker_DP0_TP0_EP0", "Worker_DP0_TP1_EP1", "Worker_DP1_TP0_EP2", "Worker_DP1_TP1_EP3"],
         [0, 1, 2, 3]),
        (["DP0 TP0 EP0", "DP0 TP1 EP1", "DP1 TP2 EP2", "DP1 TP3 EP3"], [0, 1, 2, 3]),
        (["VllmWorker rank=2"], [2]),
        (["Worker_TP0", "APIServer"], [0, None]),
        (["EngineCore_DP0", "EngineCore_DP1"], [None, None]),
        (["Worker_PCP1_TP0"], [None]),
    ],
)  # fmt: skip
def test_labels_say_ranks(labels: list[str], numbers: list[int | None]) -> None:
    every = [process(label, 100 + n) for n, label in enumerate(labels)]
    found = ranks(every, {})
    assert [found.get((s.process, s.pid)) for s in every] == numbers


def test_two_workers_of_one_label_at_once_are_not_told_apart() -> None:
    assert ranks([process("Worker_TP0", 1), process("Worker_TP0", 2)], {}) == {}


def test_a_restarted_worker_keeps_its_rank() -> None:
    found = ranks([process("Worker_TP0", 1), process("Worker_TP0", 2, first=50)], {})
    assert found == {("Worker_TP0", 1): 0, ("Worker_TP0", 2): 0}


def test_what_was_told_wins_over_labels() -> None:
    every = [process("Worker_TP0", 1), process("EngineCore", 2)]
    told: dict[tuple[str, int | None], int] = {("Worker_TP0", 1): 8, ("EngineCore", None): 3}
    assert ranks(every, told) == {("Worker_TP0", 1): 8, ("EngineCore", 2): 3}


def test_a_process_id_of_two_hosts_tells_no_rank() -> None:
    every = [process("Worker_TP0", 7, host="a"), process("[0]", 7, host="b")]
    assert ranks_of_pids(every, {("Worker_TP0", 7): 0}) == {}
    assert only_host(every) == ""


def test_an_address_that_ray_gives_for_other_nodes_is_not_everyones_host() -> None:
    assert only_host([process("RayWorkerWrapper", 7, host="10.0.0.2")]) == ""
    assert only_host([process("[0]", 7, host="node-a"), process("", 8)]) == "node-a"
