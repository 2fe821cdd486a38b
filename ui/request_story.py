"""One request on the page: its figures, its iterations, and what took long on each rank."""

from collections.abc import Iterator
from typing import Any, Final

import streamlit as st

from teller.graph.archive import RunEntry
from teller.ui import columns, phrase, shell, verbatim
from teller.ui.branches import Branch
from teller.ui.story import Story

Row = dict[str, Any]

FIGURES: Final = {
    "ttft": ("Time to first token", "ttft_ns"),
    "itl": ("Time between tokens", "itl_p50_ns"),
}
_QUEUE: Final = ("In the queue", "queue_ns")


def show(run: RunEntry, told: Story) -> None:
    """Show the story of a request."""
    st.subheader("One request", anchor=False)
    facts = [
        ("Request", told.request["name"], told.request["status"] or ""),
        ("Served in", phrase.counted(told.iteration_count, "iteration"), ""),
    ]
    for said, column in (*FIGURES.values(), _QUEUE):
        if told.request[column] is not None:
            facts.append((said, phrase.duration(told.request[column]), ""))
    if told.missed:
        facts.append(("Over target", ", ".join(told.missed), ""))
    tone = "high" if told.missed else "info"
    verbatim.html(
        f'<section class="t-card t-{tone}">{{facts}}</section>', facts=verbatim.facts(facts)
    )
    left, right = st.columns(2, gap="large")
    with left:
        _iterations(run, told)
    with right:
        st.subheader("Log lines that speak of it", anchor=False)
        verbatim.lines(list(told.lines))
        if not told.lines:
            verbatim.say("None.")
    _chains(told)


def _iterations(run: RunEntry, told: Story) -> None:
    st.subheader("Its slowest iterations", anchor=False)
    rows = [one.iteration for one in told.iterations]
    if not rows:
        verbatim.say("No iteration could be tied to it.")
        return
    said = verbatim.table(
        [
            {
                "step": row["step_index"], "ms": row["dur_ns"] / 1e6,
                "skew": (row["skew_ns"] or 0) / 1e6, "last": row["last_rank"],
                "tied": row["tied_by"],
            }
            for row in rows
        ],
        {
            "step": "Step", "ms": columns.ms("Took, ms"), "skew": columns.ms("Ranks apart, ms"),
            "last": "Last rank", "tied": "Tied by",
        },
        key=f"iterations-{told.request['id']}", on_select="rerun", selection_mode="single-row",
        alt="Iterations, slowest first",
    )  # fmt: skip
    st.caption("Choose one to open its step.")
    for at in said.selection.rows:
        shell.go("step", run=run.run_id, rank=rows[at]["last_rank"], step=rows[at]["step_index"])


def _chains(told: Story) -> None:
    """Show the chain of calls on each rank of the slowest iteration, the latest rank first."""
    if not told.slowest:
        return
    st.subheader("What took long in the slowest of them, rank by rank", anchor=False)
    for number, one in enumerate(told.slowest):
        rows = [row for branch in one.branches for row in _walk(branch)]
        if not rows:
            continue
        took = phrase.duration(one.step["dur_ns"] or 0)
        over = phrase.duration(max(one.step["excess_ns"] or 0, 0))
        with st.expander(f"Rank {one.step['rank']}: {took}, {over} too long", expanded=not number):
            verbatim.table(
                rows,
                {
                    "call": columns.wide("Call"), "ms": columns.ms("Took, ms"),
                    "over": columns.ms("Too long, ms"), "layer": "Layer",
                },
                alt=f"Calls of rank {one.step['rank']}",
            )  # fmt: skip


def _walk(branch: Branch, depth: int = 0) -> Iterator[Row]:
    row = branch.span
    yield {
        "call": "\u2003" * depth + row["name"], "ms": (row["dur_ns"] or 0) / 1e6,
        "over": max(row["excess_ns"] or 0, 0) / 1e6, "layer": row["layer"],
    }  # fmt: skip
    for below in branch.below:
        yield from _walk(below, depth + 1)
