"""What is said of a step below its timeline: what is odd, its tree, a healthy step, its lines."""

from typing import Any, Final

import pyarrow as pa
import streamlit as st

from teller.ui import (
    beside,
    canvas,
    columns,
    desk,
    detail,
    icicle,
    lanes,
    phrase,
    slice_text,
    verbatim,
)
from teller.ui.desk import Place
from teller.ui.scene import Scene
from teller.ui.slice_text import Sliced

Row = dict[str, Any]

LINES: Final = 200
ODD: Final = 300
CALLERS: Final = 8
EVER: Final = 1 << 61  # ns: no run is as long


def slice_of(seen: Scene) -> Sliced:
    """Give the slice of the step, cut once."""
    slicer = desk.current().slice_of
    step = seen.step["id"]
    cut: Sliced = seen.place.kept(("slice", step), lambda graph: slicer(graph, seen.run, [step]))
    return cut


def span(here: Place, number: int) -> None:
    """Show one span: its time, who called it, and what it launched."""
    found = here.ask("slice_spans", spans=[number]).to_pylist()
    if not found:
        return
    row = found[0]
    callers = here.ask("span_ancestors", span=number).to_pylist()[:CALLERS]
    launched = here.ask("launches_of", span=number).to_pylist()
    chain = " ← ".join([row["name"], *(caller["name"] for caller in callers)])
    work = phrase.duration(sum(one["dur_ns"] or 0 for one in launched))
    pieces = phrase.counted(len(launched), "piece")
    verbatim.html(
        '<section class="t-card t-info" aria-label="chosen span"><div class="t-sev">Chosen span'
        '</div><div class="t-title">{name}</div>{facts}<p class="t-say t-muted">{chain}</p>'
        '<p class="t-say t-muted">{more}</p></section>',
        name=row["name"], facts=verbatim.facts(_facts(row)), chain=chain,
        more=f"launched {pieces} of device work, {work}" if launched else "",
    )  # fmt: skip


def _facts(row: Row) -> list[tuple[str, str, str]]:
    over = row["excess_ns"] or 0
    own = phrase.duration(row["own_ns"] or 0)
    facts = [
        ("Took", phrase.duration(row["dur_ns"] or 0), f"of its own {own}"),
        ("Too long by", phrase.duration(over) if over > 0 else "nothing", ""),
        ("Where", f"rank {row['rank']}", row["lane"] or ""),
        ("Kind", row["layer"] or "unknown", row["family"] or ""),
    ]
    if row["late_ns"]:
        facts.append(("Late by", phrase.duration(row["late_ns"]), "against the median arrival"))
    return facts


def odd(seen: Scene) -> None:
    """Show the spans of the slice that say what is odd."""
    cut = slice_of(seen)
    waits = {row["span_id"]: row for row in cut.collectives.to_pylist()}
    rows = [
        {
            "rank": row["rank"], "name": row["name"], "why": ", ".join(reasons),
            "dur_ms": (row["dur_ns"] or 0) / 1e6,
            "excess_ms": max(row["excess_ns"] or 0, 0) / 1e6, "layer": row["layer"],
        }
        for row in cut.spans.to_pylist()
        if (reasons := slice_text.reasons(row, waits.get(row["id"])))
    ]  # fmt: skip
    if not rows:
        verbatim.say("Nothing in this step is odd: no span took too long, none came late.")
        return
    rows.sort(key=lambda row: -float(row["excess_ms"]))
    verbatim.table(
        rows[:ODD],
        {
            "rank": "Rank", "name": columns.wide("Span"), "why": columns.wide("What is odd"),
            "dur_ms": columns.ms("Took, ms"), "excess_ms": columns.ms("Too long, ms"),
            "layer": "Layer",
        },
        alt="Odd spans of this step and of the ranks it waited for",
    )  # fmt: skip


def tree(seen: Scene) -> None:
    """Show the call tree as an icicle."""
    step = seen.step["id"]
    found = seen.place.ask("step_tree", step=step)
    if not found.num_rows:
        verbatim.say("No spans were recorded inside this step.")
        return
    st.caption(
        "Same calls are joined; a box is as wide as its time with all that it called or launched. "
        "Framed: too long."
    )
    key = f"icicle-{step}"
    picture = seen.place.kept((key,), lambda _: icicle.draw(found, key))
    canvas.timeline(picture, key, asks=False)


def compared(seen: Scene) -> None:
    """Show a healthy step of like load beside this one, and what differs."""
    other = beside.healthy(seen.steps, seen.step["step_index"])
    if other is None:
        verbatim.say("No other step of this rank and phase is healthy: nothing to hold it against.")
        return
    pair = (seen.step, other)
    spans = [
        seen.place.ask("window_spans", steps=[one["id"]], from_ns=-EVER, to_ns=EVER, least_ns=0)
        for one in pair
    ]
    longest = max(one["dur_ns"] or 1 for one in pair)
    for column, one, table, said in zip(
        st.columns(2), pair, spans, ("This step", "Healthy step"), strict=True
    ):
        with column:
            _half(seen.rank, one, table, said, longest)
    _differences(*spans)


def _half(rank: int, step: Row, spans: pa.Table, said: str, longest_ns: int) -> None:
    verbatim.html(
        '<p class="t-say"><b>{said} {number}</b> <span class="t-muted">{took}</span></p>',
        said=said, number=f"{step['step_index']:,}", took=phrase.duration(step["dur_ns"] or 0),
    )  # fmt: skip
    key = f"{said.split()[0]}-{step['id']}"
    start = step["start_ns"]
    frame = lanes.Frame(
        key, start, start + longest_ns, {rank: f"rank {rank}"}, 8, asks=False, gutter_px=110
    )
    canvas.timeline(lanes.draw(detail.longest(spans), frame, lanes.Marks()), key, asks=False)


def _differences(mine: pa.Table, other: pa.Table) -> None:
    verbatim.table(
        [
            {
                "operator": row["operator"], "layer": row["layer"], "here": row["here_ns"] / 1e6,
                "there": row["there_ns"] / 1e6, "more": (row["here_ns"] - row["there_ns"]) / 1e6,
                "calls": f"{row['here_calls']:,} / {row['there_calls']:,}",
            }
            for row in beside.operators(mine, other)
        ],
        {
            "operator": columns.wide("Operator"), "layer": "Layer", "here": columns.ms("Here, ms"),
            "there": columns.ms("Healthy, ms"), "more": columns.ms("More, ms", "+"),
            "calls": "Calls here / there",
        },
        alt="Operators of this step and of the healthy one",
    )  # fmt: skip


def lines(seen: Scene) -> None:
    """Show the log lines of the iteration."""
    found = seen.lines()
    rows = found.to_pylist() if found is not None else []
    if not rows:
        verbatim.say("No log line was written during this step.")
        return
    verbatim.lines(rows[:LINES], seen.start_ns)
    if len(rows) > LINES:
        st.caption(f"and {len(rows) - LINES:,} more")
