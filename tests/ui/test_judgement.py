"""A verdict and an exit code follow from class and severity alone."""

from dataclasses import replace

from teller.graph import judgement
from teller.graph.finding import Diagnosis


def test_a_medium_fault_decides_and_a_low_one_only_fails_the_build(diagnosis: Diagnosis) -> None:
    pause = diagnosis.findings[1]
    low = replace(pause, severity="low")
    assert judgement.verdict([pause], answered=True) == "fault"
    assert judgement.verdict([low], answered=True) == "no_fault"
    only_low = replace(diagnosis, findings=(low,))
    assert judgement.exit_code(only_low, "low") == 1
    assert judgement.exit_code(only_low, "medium") == 0


def test_a_misleading_recording_is_no_fault_of_the_service(diagnosis: Diagnosis) -> None:
    skew = replace(diagnosis.findings[1], klass="clock_skew", case_class="trace_timestamps")
    assert judgement.verdict([skew], answered=True) == "data_quality"
    assert judgement.exit_code(replace(diagnosis, findings=(skew,)), "info") == 0
    assert judgement.verdict([], answered=False) == "not_visible"
