"""What was read: each run with its files, what was refused and why, clocks, and what is missing."""

from typing import Any

import streamlit as st

from teller.errors import NothingUsable
from teller.graph import recall
from teller.graph.archive import RunEntry
from teller.graph.finding import Diagnosis
from teller.graph.tables import table_of
from teller.ui import columns, costs, phrase, sending, shell, verbatim
from teller.ui.desk import Place

LAYERS = ("engine", "framework", "runtime", "device", "comm", "os")
USUAL = LAYERS[:4]  # one of these that is on no rank is said to be missing
TONES = {"fault": "high", "no_fault": "calm", "data_quality": "medium", "not_visible": "medium"}


def page() -> None:
    """Show the runs of a store, and one of them."""
    try:
        here, run = shell.needed("Runs and what was read")
    except NothingUsable:
        sending.show(shell.place())
        raise
    sending.show(here)
    _all(here, run)
    found = here.diagnosis(run.run_id)
    _head(found)
    _remarks(found)
    _files(found)
    left, right = st.columns(2, gap="large")
    with left:
        _clocks(here, run)
    with right:
        _coverage(here, run)


def _all(here: Place, run: RunEntry) -> None:
    entries = here.runs()[::-1]
    if len(entries) < 2:
        return
    st.subheader(f"All {len(entries):,} runs", anchor=False)
    said = verbatim.table(
        [
            {
                "run": entry.name, "deployment": entry.deployment,
                "read": costs.day(entry.created_epoch_ns),
                "kind": "baseline" if entry.baseline else "",
                "chosen": "shown below" if entry == run else "",
            }
            for entry in entries
        ],
        {
            "run": "Run", "deployment": "Deployment", "read": "Read in", "kind": "Kind",
            "chosen": " ",
        },
        height="auto" if len(entries) < 8 else 260, key="runs", on_select="rerun",
        selection_mode="single-row", alt="Runs",
    )  # fmt: skip
    for at in said.selection.rows:
        if entries[at] != run:
            shell.take("run", str(entries[at].run_id))


def _head(found: Diagnosis) -> None:
    run = found.runs[0]
    left = run.clock_residual_ns
    aligned = "times of different ranks are not sure" if left is None else "after alignment"
    events = sum(one.events for one in found.inputs)
    facts = [
        ("Verdict", phrase.VERDICTS[found.verdict], ""),
        ("Recorded", costs.day(run.t0_epoch_ns) if run.t0_epoch_ns > 0 else "no clock",
         phrase.extent(run)),
        ("Files", f"{len(found.inputs):,}", f"{events:,} events"),
        ("Clocks agree within", "not aligned" if left is None else phrase.duration(left), aligned),
        ("Remarks", f"{len(found.data_quality):,}", "below" if found.data_quality else ""),
    ]  # fmt: skip
    verbatim.html(
        f'<section class="t-card t-{TONES[found.verdict]}"><h2 class="t-title">{{name}}</h2>'
        "{facts}</section>",
        name=run.name, facts=verbatim.facts(facts),
    )  # fmt: skip
    verbatim.listing(found.notes)


def _remarks(found: Diagnosis) -> None:
    st.subheader("What was wrong, and what to do", anchor=False)
    if not found.data_quality:
        verbatim.say("Nothing: every file was read as it is.")
        return
    verbatim.table(
        [
            {"file": one.file, "where": one.where, "what": one.what, "do": one.do}
            for one in found.data_quality
        ],
        {
            "file": "File", "where": "Where", "what": columns.wide("What"),
            "do": columns.wide("What to do"),
        },
        alt="Remarks on files",
    )  # fmt: skip


def _files(found: Diagnosis) -> None:
    st.subheader("What was read", anchor=False)
    verbatim.table(
        [
            {
                "file": one.file, "kind": one.kind, "rank": one.rank, "events": one.events,
                "note": one.note,
            }
            for one in found.inputs
        ],
        {
            "file": columns.wide("File"), "kind": "Kind", "rank": "Rank", "events": "Events",
            "note": columns.wide("Note"),
        },
        alt="Files of the run",
    )  # fmt: skip


def _clocks(here: Place, run: RunEntry) -> None:
    st.subheader("Clocks", anchor=False)
    ranks = here.kept(
        ("ranks", run.run_id), lambda graph: recall.table(graph, table_of("Rank"), run.run_id)
    ).to_pylist()
    if not ranks:
        verbatim.say("No rank is known.")
        return
    ranks.sort(key=lambda row: (row["rank"] is None, row["rank"]))
    verbatim.table(
        [
            {
                "rank": row["rank"], "host": row["host"], "offset": _us(row["clock_offset_ns"]),
                "drift": row["clock_drift_ppm"], "residual": _us(row["clock_residual_ns"]),
                "by": row["rank_source"],
            }
            for row in ranks
        ],
        {
            "rank": "Rank", "host": "Host", "offset": columns.number("Moved, µs", 1),
            "drift": columns.number("Drift, ppm", 3), "residual": columns.number("Left, µs", 1),
            "by": "Rank known by",
        },
        alt="Clocks of the ranks",
    )  # fmt: skip


def _us(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e3


def _coverage(here: Place, run: RunEntry) -> None:
    st.subheader("What is covered", anchor=False)
    rows = here.ask("layer_coverage", run=run.run_id).to_pylist()
    if not rows:
        verbatim.say("No spans: only records were read. teller doctor says what to record.")
        return
    by_rank: dict[Any, dict[str, Any]] = {}
    for row in rows:
        by_rank.setdefault(row["rank"], {})[row["layer"]] = row["span_count"]
    there = [layer for layer in LAYERS if any(layer in found for found in by_rank.values())]
    verbatim.table(
        [{"rank": rank} | {name: found.get(name) for name in there}
         for rank, found in by_rank.items()],
        {"rank": "Rank"}, alt="Spans of each rank by layer",
    )  # fmt: skip
    missing = ", ".join(layer for layer in USUAL if layer not in there)
    if missing:
        verbatim.say(f"Not recorded on any rank: {missing}. teller doctor says how to record it.")


shell.show(page)
