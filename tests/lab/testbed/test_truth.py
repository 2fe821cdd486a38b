"""The truth is what was meant, held to what it did: on a real life, and on tables made by hand."""

import dataclasses

import msgspec
import numpy as np
import pytest

from teller.errors import NothingUsable
from teller.lab.testbed import expected
from teller.lab.testbed.calls import COLUMNS
from teller.lab.testbed.expected import Steps, healthy_windows
from teller.lab.testbed.held import against_peers, own_times
from teller.lab.testbed.labels import truth_of
from teller.lab.testbed.life import Lived
from teller.lab.testbed.meetings import meetings, waited
from teller.lab.testbed.recorded import Ranges, Recorded, self_times
from teller.lab.testbed.scheduler import STEP_COLUMNS
from teller.lab.truth import Truth

MS = 1_000_000


def test_a_slow_module_is_named_with_its_rank_and_its_own_time(truth: Truth) -> None:
    slow = truth.episodes[0]
    assert (slow.class_, slow.fault, slow.benign) == ("slow_operator", "slow_op", False)
    assert slow.culprit.ranks == (1,)
    assert slow.culprit.hosts == ("node-1",)
    (operator,) = slow.culprit.operators
    assert [(one.operator, one.rank) for one in slow.operators] == [(operator, 1)]
    told = slow.measured
    assert told["operator_self_ms"][operator]["during"] == pytest.approx(6.1, abs=0.2)
    assert slow.operators[0].excess_ns == pytest.approx(told["calls_hit"] * 6 * MS, rel=0.03)


def test_each_step_of_the_fault_has_its_direct_excess_on_all_ranks(truth: Truth) -> None:
    slow = truth.episodes[0]
    numbers = range(slow.measured["first_step"], slow.measured["last_step"] + 1)
    assert [(one.step_index, one.rank) for one in slow.steps] == [
        (number, rank) for number in numbers for rank in (0, 1)
    ]
    assert all(one.own == (one.rank == 1) for one in slow.steps)
    whole = [one.direct_excess_ns for one in slow.steps if one.rank == 1]
    assert np.median(whole) == pytest.approx(6 * MS, rel=0.02)
    assert all(one.share >= 0.03 for one in slow.steps)


def test_a_delay_on_the_way_out_of_one_rank_makes_the_other_late(truth: Truth) -> None:
    delay = truth.episodes[1]
    assert delay.class_ == "slow_path"
    assert delay.culprit.links == (("node-1", "node-0"),)
    late, pure = delay.measured["late_us"], delay.measured["pure_us"]
    assert late["0"]["during"] > 2 * late["0"]["healthy"]
    assert late["0"]["during"] > 2 * late["1"]["during"]
    assert pure["during"] > 5 * pure["healthy"]


def test_a_slow_module_leaves_the_network_as_it_was(truth: Truth) -> None:
    late, pure = truth.episodes[0].measured["late_us"], truth.episodes[0].measured["pure_us"]
    assert pure["during"] == pytest.approx(pure["healthy"], rel=0.15)
    assert late["1"]["during"] > 4 * late["1"]["healthy"]


def test_a_fault_that_did_nothing_blames_nobody(life: Lived, ranks: list[Recorded]) -> None:
    idle = dataclasses.replace(life.done[0], strikes=())
    never = dataclasses.replace(life, done=(idle, life.done[1]))
    one = truth_of(never, ranks, "some-run", 11).episodes[0]
    assert (one.class_, one.culprit.kind, one.benign) == ("no_effect", "none", True)
    assert one.fault == "slow_op"
    assert one.extra["intended"]["class"] == "slow_operator"
    assert not one.operators


def test_a_life_without_quiet_time_has_no_truth(life: Lived, ranks: list[Recorded]) -> None:
    first, last = life.done
    all_of_it = dataclasses.replace(first, ask_ns=life.load_ns, off_ns=last.off_ns + 10**10)
    with pytest.raises(NothingUsable, match="leave more time around faults"):
        truth_of(dataclasses.replace(life, done=(all_of_it,)), ranks, "some-run", 11)


def test_the_certificate_tells_how_noisy_the_machine_was(truth: Truth) -> None:
    told = truth.extra["certificate"]
    assert told["quiet"] is True
    assert told["step_share_p5"] < 0 < told["step_share_p95"] <= 0.35
    assert told["pure_us_p50"] < told["pure_us_p99"]
    assert msgspec.json.decode(msgspec.json.encode(truth), type=Truth) == truth


def test_healthy_time_leaves_out_warm_up_faults_and_what_they_left() -> None:
    second = 10**9
    found = healthy_windows([(6 * second, 8 * second), (9 * second, 10 * second)], 0, 20 * second)
    assert found == [(1_200_000_000, 6 * second), (10 * second + 700_000_000, 20 * second)]


def test_load_explains_longer_steps_and_what_is_left_is_excess() -> None:
    draw = np.random.default_rng(1)
    count = 200
    decodes, prefill = draw.integers(1, 9, count), draw.integers(0, 2, count) * 40
    took = 5 * MS + decodes * MS + prefill * MS // 10
    took[150:160] += 3 * MS
    start = np.arange(count) * 20 * MS
    zero = np.zeros(count, np.int64)
    columns = (np.arange(count), start, start + took, decodes, decodes, prefill, zero, zero, zero)
    steps = Steps(dict(zip(STEP_COLUMNS, columns, strict=True)))
    healthy = (np.arange(count) < 150) | (np.arange(count) >= 160)
    over = steps.length_ns - expected.step_lengths(steps, healthy)
    assert over[150:160] == pytest.approx(3 * MS, rel=1e-6)
    assert over[healthy] == pytest.approx(0, abs=1)


def recorded(rank: int, calls: list[tuple[str, int, int, int, int, int]]) -> Recorded:
    """Make a rank with calls of (op, seq, peer, start, end, bytes) in one group."""
    names = ("all_reduce", "send", "recv", "0")
    rows = [
        (start, end, names.index(op), 3, seq, peer, size)
        for op, seq, peer, start, end, size in calls
    ]
    table = np.array(rows, np.int64)
    columns = {name: table[:, i] for i, name in enumerate(COLUMNS)}
    none = np.zeros(0, np.int64)
    ranges = Ranges(none, none, none, none, ())
    return Recorded({"rank": rank}, None, ranges, columns, names, {"0": [0, 1]})  # type: ignore[arg-type]  # its stream is not asked for


def test_collectives_are_joined_by_number_and_messages_by_pair() -> None:
    met = meetings([
        recorded(0, [("all_reduce", 0, -1, 100, 900, 64), ("send", 0, 1, 1000, 1010, 8),
                     ("all_reduce", 1, -1, 2000, 2500, 64)]),
        recorded(1, [("all_reduce", 0, -1, 700, 880, 64), ("recv", 0, 0, 950, 1300, 8)]),
    ])  # fmt: skip
    assert [met.ops[i] for i in met.op] == ["all_reduce", "message"]
    assert met.pure_ns.tolist() == [200, 300]
    assert met.late_ns.tolist() == [[0, 600], [50, 0]]


def test_a_rank_is_held_up_by_what_the_others_do_not_have() -> None:
    start = np.array([0, 1000])
    ranks = []
    for rank, (begin, end, length) in enumerate([(100, 400, 600), (300, 450, 650)]):
        told = Ranges(start, start + length, np.full(2, 9), np.arange(2), ("step=0 x", "step=1 x"))
        one = recorded(rank, [("all_reduce", 0, -1, begin, end, 8)])
        ranks.append(dataclasses.replace(one, ranges=told))
    own = own_times(ranks, meetings(ranks), 2)
    assert own.tolist() == [[300, 600], [550, 650]]  # rank 1 left 50 late
    assert against_peers(own, 1, 2).tolist() == [250, 50]


def test_time_in_which_a_rank_waits_anyway_is_nobodys_loss() -> None:
    met = meetings([
        recorded(0, [("all_reduce", 0, -1, 100, 900, 64), ("all_reduce", 1, -1, 2000, 2500, 64)]),
        recorded(1, [("all_reduce", 0, -1, 700, 880, 64), ("all_reduce", 1, -1, 1900, 2500, 64)]),
    ])  # fmt: skip
    at, sums = waited(met, 0)
    assert np.interp([0, 100, 400, 700, 1500, 3000], at, sums).tolist() == [
        0,
        0,
        300,
        600,
        600,
        600,
    ]
    at, sums = waited(met, 1)
    assert np.interp([1800, 1950, 2200], at, sums).tolist() == [0, 50, 100]


def test_own_time_is_without_what_lies_inside() -> None:
    start, end = np.array([0, 10, 20, 50]), np.array([100, 40, 30, 60])
    ranges = Ranges(start, end, np.full(4, 9), np.arange(4), ("a", "b", "c", "d"))
    _, own = self_times(ranges, 9)
    assert own.tolist() == [60, 20, 10, 10]
