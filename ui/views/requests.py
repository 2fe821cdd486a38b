"""Requests: how long they took against the target, and the way of one through the ranks."""

from typing import Any

import streamlit as st

from teller.errors import TellerError
from teller.graph import targets
from teller.graph.archive import RunEntry
from teller.ui import charts, columns, phrase, request_story, shell, story, verbatim
from teller.ui.desk import Place
from teller.ui.request_story import FIGURES

Row = dict[str, Any]

LISTED = 5_000
ITERATIONS = 20


def page() -> None:
    """Show the requests of a run."""
    here, run = shell.needed("Requests")
    rows = here.ask("requests", run=run.run_id).to_pylist()
    if not rows:
        shell.empty(
            "No request is known in this run",
            "Requests are read from client tables, OpenTelemetry spans, service logs, and ranges "
            "that name them.", "teller doctor YOUR_RUN_FOLDER",
        )  # fmt: skip
        return
    aims: dict[str, int] = here.kept(
        ("targets", run.run_id), lambda graph: targets.of_run(graph, run.run_id)
    )
    _figures(rows, aims)
    for column, name in zip(st.columns(2, gap="large"), FIGURES, strict=True):
        with column:
            _spread(name, rows, aims)
    if name := _search(rows, aims):
        _story(here, run, name)


def _figures(rows: list[Row], aims: dict[str, int]) -> None:
    missed = sum(bool(story.missed(row, aims)) for row in rows)
    said = ", ".join(f"{name} {phrase.duration(aim)}" for name, aim in aims.items())
    facts = [
        ("Requests", f"{len(rows):,}", ""),
        ("Over target", f"{missed:,}" if aims else "no target set", said or "--slo sets one"),
    ]
    for what, column in FIGURES.values():
        times = sorted(row[column] for row in rows if row[column] is not None)
        if times:
            middle, last = times[len(times) // 2], times[(len(times) - 1) * 99 // 100]
            facts.append((what, phrase.duration(middle), f"99th {phrase.duration(last)}"))
    tone = "high" if missed else "calm" if aims else "info"
    verbatim.html(
        f'<section class="t-card t-{tone}">{{facts}}</section>', facts=verbatim.facts(facts)
    )


def _spread(name: str, rows: list[Row], aims: dict[str, int]) -> None:
    said, column = FIGURES[name]
    st.subheader(said, anchor=False)
    times = [row[column] / 1e6 for row in rows if row[column] is not None]
    if not times:
        verbatim.say("Not told by any source of this run.")
        return
    target = aims[name] / 1e6 if name in aims else None
    st.altair_chart(
        charts.histogram(times, "ms", "requests", shell.theme(), target),
        alt=f"Histogram: {said}; a line is the target",
    )


def _search(rows: list[Row], aims: dict[str, int]) -> str:
    """Let requests be found, and give the one that is chosen."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input(
            "Find by id, or a part of it", key="request", bind="query-params", placeholder="cmpl-…"
        )
        only = st.toggle("Only those over target", disabled=not aims, key="over")
    shown = [
        row for row in rows
        if words.lower() in row["name"].lower() and (not only or story.missed(row, aims))
    ]  # fmt: skip
    if not shown:
        shell.empty("Nothing matches", "Take another part of the id, or clear the search.")
        return ""
    shown = sorted(shown, key=lambda row: -(row["ttft_ns"] or 0))[:LISTED]
    said = verbatim.table(
        [_listed(row, aims) for row in shown],
        {
            "name": st.column_config.TextColumn("Request", width="medium"),
            "start": columns.number("Starts, s", 2), "ttft": columns.ms("First token, ms"),
            "itl": columns.ms("Between, ms"), "queue": columns.ms("Queue, ms"),
            "prompt": "Prompt", "output": "Output", "preempted": "Preempted", "status": "Status",
            "missed": "Over target",
        },
        height="auto" if len(shown) < 8 else 290, key="request-list", on_select="rerun",
        selection_mode="single-row", alt="Requests, latest first token first",
    )  # fmt: skip
    for at in said.selection.rows:
        return str(shown[at]["name"])
    return str(shown[0]["name"]) if len(shown) == 1 else ""


def _listed(row: Row, aims: dict[str, int]) -> Row:
    return {
        "name": row["name"], "start": (row["start_ns"] or 0) / 1e9, "ttft": _ms(row["ttft_ns"]),
        "itl": _ms(row["itl_p50_ns"]), "queue": _ms(row["queue_ns"]),
        "prompt": row["prompt_tokens"], "output": row["output_tokens"],
        "preempted": row["preemptions"], "status": row["status"],
        "missed": ", ".join(story.missed(row, aims)),
    }  # fmt: skip


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e6


def _story(here: Place, run: RunEntry, name: str) -> None:
    try:
        told: story.Story = here.kept(
            ("story", run.run_id, name),
            lambda graph: story.gather(graph, run.run_id, name, ITERATIONS),
        )
    except TellerError as err:
        verbatim.say(str(err))
        return
    request_story.show(run, told)


shell.show(page)
