"""Rules, numbers and model come to one list: each voice shown, nothing said twice."""

from dataclasses import replace

import pytest

from teller.graph.finding import Culprit, Evidence, Finding
from teller.models.fusion import LEAST, fused
from teller.models.voice import Said

SAID = Said(
    klass="slow_rank", chance=0.9, class_chance=0.8, culprit=Culprit("rank", ranks=(2,)),
    operators=(("gemm", 0.9),), steps=(10, 11, 12), start_ns=0, end_ns=9, excess_ns=4_000_000,
    share=0.2, worst=(2, 11),
)  # fmt: skip
SHOWN = (Evidence("effect", "Step", 7, "rank2.json", "step 11"),)
RULED = Finding(
    id=1, run=5, klass="slow_rank", case_class="gpu_slow_state", title="", severity="high",
    confidence=0.6, culprit=Culprit("rank", ranks=(2,)), text="", next_step="", ruleset="rules",
    first_step=11, last_step=20, voices={"rules": 0.6},
)  # fmt: skip


def test_a_rule_and_the_model_that_agree_are_surer_than_either() -> None:
    [one] = fused([RULED], [SAID], 5, [SHOWN], 4)
    assert one.confidence == pytest.approx(1 - 0.4 * (1 - 0.5 * 0.72))
    assert one.voices == {"rules": 0.6, "model": 0.72}


def test_a_sibling_class_counts_for_less_and_another_for_nothing() -> None:
    [sibling] = fused([replace(RULED, klass="gpu_throttle")], [SAID], 5, [SHOWN], 4)
    assert sibling.confidence == pytest.approx(1 - 0.4 * (1 - 0.25 * 0.72))
    other, alone = fused([replace(RULED, klass="packet_loss")], [SAID], 5, [SHOWN], 4)
    assert (other.confidence, other.voices["model"]) == (0.6, 0)
    assert alone.ruleset == "model"


def test_what_the_model_alone_says_is_a_finding_with_its_evidence() -> None:
    [one] = fused([], [SAID], 5, [SHOWN], 4, calibrated=True)
    assert (one.klass, one.severity, one.culprit.ranks) == ("slow_rank", "high", (2,))
    assert one.confidence == pytest.approx(0.72)
    assert (one.first_step, one.last_step, one.step_count) == (10, 12, 3)
    assert one.evidence == SHOWN
    assert one.cost.gpu_seconds == pytest.approx(0.016)


def test_a_word_that_is_not_sure_is_low_and_one_that_is_hardly_a_word_is_left_out() -> None:
    [low] = fused([], [replace(SAID, class_chance=0.5)], 5, [SHOWN], 4, calibrated=True)
    assert low.severity == "low"
    assert fused([], [replace(SAID, class_chance=LEAST / 2)], 5, [SHOWN], 4) == []
    assert fused([], [replace(SAID, klass="unknown")], 5, [SHOWN], 4) == []


def test_a_rule_about_other_steps_is_not_touched() -> None:
    far = replace(RULED, first_step=30, last_step=40)
    ruled, alone = fused([far], [SAID], 5, [SHOWN], 4)
    assert ruled == far
    assert alone.first_step == 10


def test_a_rule_about_the_whole_run_explains_the_model() -> None:
    whole = replace(RULED, first_step=None, last_step=None)
    assert fused([whole], [SAID], 5, [SHOWN], 4) == [whole]


def test_a_model_that_no_healthy_run_calibrated_raises_no_alarm_by_itself() -> None:
    [one] = fused([], [SAID], 5, [SHOWN], 4)
    assert one.severity == "low"
    assert one.confidence == pytest.approx(0.72)


def test_where_a_rule_is_sure_the_model_adds_its_voice_and_no_other_culprit() -> None:
    other = replace(RULED, klass="packet_loss", confidence=0.9)
    [one] = fused([other], [SAID], 5, [SHOWN], 4)
    assert (one.klass, one.confidence, one.voices["model"]) == ("packet_loss", 0.9, 0)
