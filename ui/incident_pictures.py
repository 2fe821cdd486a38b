"""When and where an incident cost time: excess step by step, and a heat map of rank by step."""

from typing import Final

import pyarrow as pa
import streamlit as st

from teller.graph.finding import Finding
from teller.ui import charts, heatmap, shell
from teller.ui.desk import Place

BARS: Final = 400  # of more steps, every so many


def show(here: Place, finding: Finding) -> None:
    """Show when and where the time of a finding was lost."""
    cells = heatmap.cells(here.ask("rank_iteration_heat", run=finding.run))
    if not cells:
        return
    known = finding.culprit.ranks or here.diagnosis(finding.run).runs[0].ranks
    if known:
        st.subheader("When: time lost, step by step", anchor=False)
        _excess(here, finding, known[0])
    st.subheader("Where: rank by step", anchor=False)
    st.caption("The redder, the more time was lost there. Choose a cell to open that step.")
    said = st.altair_chart(
        charts.heat(cells, shell.theme()), key="heat", on_select="rerun",
        selection_mode=charts.CELL, alt="Heat map: time lost by rank and step",
    )  # fmt: skip
    for cell in said.selection.get(charts.CELL, []):
        shell.go("step", run=finding.run, rank=cell["rank"], step=cell["step"], finding=finding.id)


def _excess(here: Place, finding: Finding, rank: int) -> None:
    steps = here.ask("rank_steps", run=finding.run, rank=rank)
    every = max(1, -(-steps.num_rows // BARS))
    shown = steps.take(pa.array(range(0, steps.num_rows, every), pa.int64())).to_pylist()
    rows = [
        {
            "step": row["step_index"],
            "over": max(row["excess_ns"] or 0, 0) / 1e6,
            "ms": (row["dur_ns"] or 0) / 1e6,
        }
        for row in shown
    ]
    if not rows:
        return
    first, last = finding.first_step, finding.last_step
    zone = None if first is None or last is None else (first, last)
    st.altair_chart(
        charts.excess_bars(rows, zone, finding.severity, shell.theme()),
        alt=f"Bars: how much too long each step of rank {rank} took",
    )
