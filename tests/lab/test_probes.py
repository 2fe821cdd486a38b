"""Figures of a run alone do not tell of its fault: by roots that a probe has not seen."""

from pathlib import Path

import msgspec
import pytest

from teller.lab import index
from teller.lab.probes import FIGURES, counts_by_nature, probe

INDEX = Path(__file__).parent.parent / "data" / "validation.index.tsv"
MORE = INDEX.with_name("test.index.tsv")  # runs of up to 700,000 spans


def test_classes_that_change_counts_by_nature_are_left_out_and_named() -> None:
    assert counts_by_nature("graph_fallback")
    assert counts_by_nature("log_storm")
    assert not counts_by_nature("gpu_throttle")


@pytest.mark.parametrize("figures", sorted(FIGURES))
def test_no_figure_of_a_run_tells_whether_it_has_a_fault(figures: str) -> None:
    told = probe(index.read(INDEX), figures, "fault")
    assert told.runs > 60
    assert told.reached <= max(told.chance + 0.05, told.highest)


@pytest.mark.parametrize("figures", sorted(FIGURES))
def test_no_figure_of_a_run_tells_which_class_was_drawn(figures: str) -> None:
    told = probe([*index.read(INDEX), *index.read(MORE)], figures, "class")
    assert told.runs > 60
    assert told.reached <= told.chance + 0.05


def test_a_probe_sees_a_shortcut_where_there_is_one() -> None:
    rows = index.read(INDEX)
    longer = [msgspec.structs.replace(r, log_bytes=10**9) if r.classes else r for r in rows]
    told = probe(longer, "log length", "fault")
    assert told.reached > told.highest + 0.1
