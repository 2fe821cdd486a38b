"""The real service, disturbed for real, read by ingest, and named by its truth."""

import random
from pathlib import Path

import pytest

from teller.errors import BadUsage
from teller.lab.collect import build
from teller.lab.testbed import machine
from teller.lab.testbed.campaign import written
from teller.lab.testbed.faults import planned
from teller.lab.testbed.life import Setup, check, lived
from teller.lab.testbed.settings import Service
from tests.lab.testbed.reading import ingested, step_numbers, who

TINY = Service(layers=2, hidden=128, ffn=256, heads=4)


def need_the_service() -> None:
    if not machine.has_torch():
        pytest.skip("torch is not installed: pip install 'teller-rca[testbed]'")
    if reason := build.why_not():
        pytest.skip(reason)


@pytest.mark.testbed
@pytest.mark.slow
def test_a_slow_module_of_a_real_service_is_recorded_read_and_named(tmp_path: Path) -> None:
    need_the_service()
    setup = Setup(service=TINY, before_s=4.0, after_s=1.0, kineto_steps=4)
    slow = planned("slow_op", random.Random(2), TINY, severity=40.0, rank=1, hold_s=2.5)
    with lived(setup, [slow], tmp_path) as life:
        (whole, truth), (window, part) = written(life, tmp_path / "runs", 1)

    (episode,) = truth.episodes
    assert (episode.class_, episode.culprit.ranks) == ("slow_operator", (1,))
    assert episode.culprit.operators == (slow.parameters["module"],)
    assert episode.operators[0].operator == slow.parameters["module"]
    assert all(one.direct_excess_ns >= 0 for one in episode.steps)

    read = ingested(whole, tmp_path / "one")
    assert [rank for rank, _ in who(read)] == [0, 1]
    # the last step may be cut off where the service is ended within it
    assert step_numbers(read, 0)[: truth.extra["steps"]] == [*range(truth.extra["steps"])]
    assert {one.step_index for one in episode.steps} <= set(step_numbers(read, 1))

    profiled = ingested(window, tmp_path / "other")
    assert [rank for rank, _ in who(profiled)] == [0, 1]
    assert step_numbers(profiled, 0) == step_numbers(profiled, 1)
    assert len(step_numbers(profiled, 0)) == 4
    assert {one.step_index for one in part.episodes[0].steps} <= set(step_numbers(profiled, 0))


def test_what_cannot_be_injected_is_said_before_anything_starts() -> None:
    need_the_service()
    delay = planned("net_delay", random.Random(2), TINY)
    with pytest.raises(BadUsage, match="net_delay cannot be injected here: it needs namespaces"):
        check(Setup(service=TINY), [delay])
    nobody = planned("slow_op", random.Random(2), TINY, rank=1)
    with pytest.raises(BadUsage, match="there is no rank 1: the service has 1"):
        check(Setup(service=Service(tp=1)), [nobody])
