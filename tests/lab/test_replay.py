"""A replay is the run's own plan without the cause: it differs by what the truth says."""

import pytest

from teller.errors import BadUsage
from teller.lab.simulator.draw import Layout, Wanted
from teller.lab.simulator.replay import replayed
from teller.lab.simulator.simulate import Order, simulate

SMALL = Wanted("vllm", "qwen2_5_0_5b", "", "eager", Layout(2, 1, 1, 1), 8)


def test_a_replay_is_shorter_by_the_direct_excess_of_the_truth() -> None:
    order = Order(11, ("slow_rank",), SMALL, 1.8)
    run, replay = simulate(order), replayed(order)
    assert not replay.labels
    assert not replay.causes
    steps = run.labels[0].episode().steps
    assert sum(s.direct_excess_ns for s in steps) > 0
    struck, clean = (r.happened.steps for r in (run, replay))
    for rank in (0, 1):
        assert struck[rank].index.tolist() == clean[rank].index.tolist()
    last = max(s.step_index for s in steps)
    ends = {r: int(s.end_ns[s.index == last][0]) for r, s in enumerate(struck)}
    again = {r: int(s.end_ns[s.index == last][0]) for r, s in enumerate(clean)}
    whole = sum(s.direct_excess_ns for s in steps if s.rank == 0)
    assert ends[0] - again[0] == pytest.approx(whole, rel=0.1)
    assert ends[1] > again[1]


def test_requests_and_logs_are_on_the_clock_of_the_replay() -> None:
    order = Order(11, ("slow_rank",), SMALL, 1.8)
    run, replay = simulate(order).happened, replayed(order).happened
    assert replay.end_ns < run.end_ns
    served = {r.name: r.steps for r in run.requests if r.steps}
    again = {r.name: r.steps for r in replay.requests if r.steps}
    assert served.items() == again.items() != {}.items()
    assert all(r.end_ns <= replay.end_ns for r in replay.requests)
    assert all(n.time_ns <= replay.end_ns for n in replay.notes)


def test_a_replay_of_a_healthy_run_is_that_run() -> None:
    order = Order(11, (), SMALL)
    run, replay = simulate(order).happened, replayed(order).happened
    for ours, theirs in zip(run.device, replay.device, strict=True):
        assert ours.start_ns.tolist() == theirs.start_ns.tolist()
    assert [r.name for r in run.requests] == [r.name for r in replay.requests]


def test_prefill_apart_from_decode_has_no_replay() -> None:
    apart = Wanted("vllm", "qwen2_5_0_5b", "", "", Layout(1, 1, 2, 2, 1), 8)
    with pytest.raises(BadUsage, match="apart"):
        replayed(Order(11, (), apart))
