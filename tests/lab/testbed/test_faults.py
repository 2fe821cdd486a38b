"""The list of faults is whole, and what is drawn from it is what it says."""

import random

import pytest

from teller.errors import UnknownName
from teller.graph.classes import classes
from teller.lab.testbed.campaign import EPISODES, HEALTHY, plans
from teller.lab.testbed.faults import KINDS, kind_named, lacking, planned
from teller.lab.testbed.settings import Service

OURS = {"more_arrivals"}  # a control that the common list does not name


def test_each_disturbance_of_the_class_list_can_be_made_and_no_other() -> None:
    meant = {kind: said.name for said in classes().values() for kind in said.testbed}
    assert {k.name: k.class_ for k in KINDS.values() if k.name not in OURS} == meant
    assert all(KINDS[name].class_ in classes() for name in OURS)


def test_a_culprit_is_one_that_its_class_may_blame() -> None:
    wrong = [k.name for k in KINDS.values() if k.culprit not in classes()[k.class_].culprits]
    assert not wrong


def test_what_is_benign_is_what_no_verdict_blames() -> None:
    harmless = {k.name for k in KINDS.values() if classes()[k.class_].verdict == "no_fault"}
    assert harmless == {k.name for k in KINDS.values() if k.benign}


@pytest.mark.parametrize("name", KINDS)
def test_severities_stay_within_their_law_and_reach_both_ends(name: str) -> None:
    law = KINDS[name].law
    drawn = [law.draw(random.Random(seed)) for seed in range(300)]
    assert all(law.low * 0.94 <= value <= law.high * 1.06 for value in drawn)
    if law.low < law.high:
        middle = (law.low * law.high) ** 0.5
        assert 0.25 < sum(value > middle for value in drawn) / 300 < 0.75
    assert law.low <= law.usual <= law.high


def test_without_namespaces_only_faults_of_the_network_are_left_out() -> None:
    missing = {name for name, kind in KINDS.items() if lacking(kind, ())}
    assert missing == {"net_delay", "net_bw", "net_loss"}
    assert lacking(KINDS["net_delay"], ["namespaces", "iptables"]) == ["delay line"]


def test_a_slow_module_is_one_that_the_rank_has() -> None:
    of = Service(tp=1, pp=2, layers=8)
    for seed in range(40):
        one = planned("slow_op", random.Random(seed), of)
        layer = int(one.parameters["module"].split(".")[1])
        assert layer // 4 == one.rank


def test_what_acts_on_the_front_end_acts_on_rank_0() -> None:
    assert planned("kv_shrink", random.Random(1), Service(), rank=1).rank == 0


def test_an_unknown_kind_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean slow_op"):
        kind_named("slow_opp")


def test_a_campaign_deals_all_kinds_evenly_and_is_the_same_for_a_seed() -> None:
    kinds = list(KINDS.values())
    made = plans(4, 7, kinds, Service())
    assert made == plans(4, 7, kinds, Service()) != plans(4, 8, kinds, Service())
    assert [len(plan) for plan in made] == [EPISODES] * 4
    names = [one.kind for plan in made for one in plan]
    assert names.count("healthy") == 4 * HEALTHY
    counts = {name: names.count(name) for name in KINDS if name != "healthy"}
    assert set(counts.values()) <= {1, 2}


def test_the_last_episode_does_not_need_the_length_of_steps() -> None:
    kinds = list(KINDS.values())
    last = [plan[-1].kind for seed in range(20) for plan in plans(3, seed, kinds, Service())]
    assert {KINDS[name].known for name in last} == {"strikes"}
