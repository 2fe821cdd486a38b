"""How explanations are measured: gold costs, shares over runs, and a run beside its replay."""

from pathlib import Path

import pytest

from teller.lab.simulator.draw import Layout, Wanted
from teller.lab.simulator.produce import produce
from teller.lab.simulator.replay import produce_replay
from teller.lab.simulator.simulate import Order
from teller.lab.truth import Culprit, Episode, Severity, StepTruth, Window
from teller.learning.explained import Counterfactual, Shares, gold_ns, of_folder, shares


def step(rank: int, index: int, excess: int) -> StepTruth:
    return StepTruth(rank=rank, step_index=index, direct_excess_ns=excess, share=0.1, own=True)


def test_a_cause_costs_what_its_worst_rank_loses_step_by_step() -> None:
    cause = Episode(
        class_="slow_rank", fault="slow_rank", culprit=Culprit(kind="rank", ranks=(1,)),
        severity=Severity(2.0, "factor"), intended=Window(0, 9),
        steps=(step(0, 3, 5), step(1, 3, 7), step(0, 4, -2), step(1, 4, -3)),
    )  # fmt: skip
    assert gold_ns(cause) == 7


def one(gone: bool | None, cost: int | None, proved: int = 10) -> Counterfactual:
    return Counterfactual("run", "slow_rank", 10, proved, 1, 1, gone is not None, gone, cost, 100)


def test_shares_count_only_what_can_be_said() -> None:
    assert one(True, 120).cost_right
    assert one(True, 121).cost_right is False
    assert one(None, None).cost_right is None
    assert shares([one(True, 100), one(False, 200, 9), one(None, None)]) == Shares(
        3, 2, 29 / 30, 1.0, 0.5, 0.5
    )
    assert shares([]) == Shares(0, 0, None, None, None, None)


@pytest.mark.slow
def test_a_slow_rank_is_explained_and_gone_from_its_replay(tmp_path: Path) -> None:
    wanted = Wanted("vllm", "qwen3_8b", "", "graph", Layout(2, 1, 1, 1), 20)
    order = Order(11, ("slow_rank",), wanted, 2.0)
    run, replay = produce(order, tmp_path).folder, produce_replay(order, tmp_path)
    found = of_folder(run, replay)
    assert (found.klass, found.named, found.gone) == ("slow_rank", True, True)
    assert found.claims == found.proved > 20
    assert found.paths == found.valid_paths >= 1
    assert found.cost_right
