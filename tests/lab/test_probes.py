"""Figures of a run alone do not tell of its fault: by roots that a probe has not seen."""

from pathlib import Path

import msgspec
import pytest

from teller.lab import index
from teller.lab.index import Row
from teller.lab.probes import FIGURES, counts_by_nature, probe
from teller.lab.simulator import causes

DATA = Path(__file__).parent.parent / "data"
INDEX = DATA / "validation.index.tsv"
SETS = ("train", "validation", "test")


def everything() -> list[Row]:
    """Give what is known of all simulated runs."""
    return [row for name in SETS for row in index.read(DATA / f"{name}.index.tsv")]


def test_classes_that_change_counts_by_nature_are_left_out_and_named() -> None:
    assert counts_by_nature("graph_fallback")
    assert counts_by_nature("log_storm")
    assert not counts_by_nature("gpu_throttle")


@pytest.mark.parametrize("figures", sorted(FIGURES))
def test_no_figure_of_a_run_tells_whether_it_has_a_fault(figures: str) -> None:
    told = probe(everything(), figures, "fault")
    assert told.runs > 600
    assert told.reached <= told.chance + 0.05


@pytest.mark.parametrize("question", ["drawn", "felt"])
@pytest.mark.parametrize("figures", sorted(FIGURES))
def test_no_figure_of_a_run_tells_which_class_it_has(figures: str, question: str) -> None:
    told = probe(everything(), figures, question)
    assert told.runs > 200
    assert told.reached <= told.chance + 0.05


def test_what_a_service_can_have_at_all_is_no_shortcut() -> None:
    rows = [r for r in everything() if r.hosts == 1]
    between = {k for k, s in causes.specs().items() if "hosts" in s.needs}
    assert between
    drawn = {name for r in rows for name in r.meant.split(",")}
    assert not drawn & {causes.spec(k).class_ for k in between}


def test_a_probe_sees_a_shortcut_where_there_is_one() -> None:
    rows = index.read(INDEX)
    longer = [msgspec.structs.replace(r, log_bytes=10**9) if r.classes else r for r in rows]
    told = probe(longer, "log length", "fault")
    assert told.reached > told.highest + 0.1
