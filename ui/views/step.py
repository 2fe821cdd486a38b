"""One step of one rank: what ran when, on it and on the ranks beside it, and what is odd."""

import streamlit as st

from teller.ui import charts, phrase, shell, step_parts, step_picture, verbatim
from teller.ui.scene import Scene, scene

NEAR = 250  # steps to either side whose bars are drawn
ODD = 0.03  # of its time: with more excess a step is called too long


def page() -> None:
    """Show the step that the address names, else the one that lost most."""
    here, run = shell.needed("Step")
    seen = scene(
        here, run.run_id, shell.number("rank"), shell.number("step"), shell.number("finding")
    )
    _head(seen)
    _ways(seen)
    _strip(seen)
    span = step_picture.timeline(seen)
    if span is not None:
        step_parts.span(here, span)
    odd, tree, beside, lines = st.tabs(
        ["What is odd", "Call tree", "Beside a healthy step", "Log lines"]
    )
    with odd:
        step_parts.odd(seen)
    with tree:
        step_parts.tree(seen)
    with beside:
        step_parts.compared(seen)
    with lines:
        step_parts.lines(seen)


def _head(seen: Scene) -> None:
    step = seen.step
    excess, took = step["excess_ns"] or 0, step["dur_ns"] or 0
    figures = (("batch_size", "requests"), ("token_count", "tokens"))
    load = [f"{step[name]:,} {said}" for name, said in figures if step[name]]
    facts = [
        ("Took", phrase.duration(took), f"own {phrase.duration(step['own_ns'] or 0)}"),
        ("Too long by", phrase.duration(excess) if excess > 0 else "nothing", "against its like"),
        ("Phase", step["phase"] or "unknown", ", ".join(load)),
        ("Starts", phrase.duration(step["start_ns"]), "after the start of the run"),
    ]
    last = seen.around.get("last_rank")
    if last is not None and len(seen.others) > 1:
        apart = phrase.duration(seen.around.get("skew_ns") or 0)
        facts.append(("Last to come", f"rank {last}", f"ranks {apart} apart"))
    tone = "high" if excess > ODD * took else "calm"
    verbatim.html(
        f'<section class="t-card t-{tone}"><h2 class="t-title">{{what}}</h2>{{facts}}</section>',
        what=f"Step {step['step_index']:,} of rank {seen.rank}", facts=verbatim.facts(facts),
    )  # fmt: skip


def _ways(seen: Scene) -> None:
    """Show the ways to other steps and ranks, and back."""
    known = seen.steps["step_index"].to_pylist()
    number = seen.step["step_index"]
    at = known.index(number)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if at:
            before = known[at - 1]
            shell.link("step", f"← Step {before:,}", rank=seen.rank, step=before, **seen.address())
        if at + 1 < len(known):
            after = known[at + 1]
            shell.link("step", f"Step {after:,} →", rank=seen.rank, step=after, **seen.address())
        _back(seen)
        ranks = sorted(row["rank"] for row in seen.others)
        place = ranks.index(seen.rank) if seen.rank in ranks else 0
        other = st.selectbox("Rank", ranks, index=place, width=110)
        wanted = st.number_input("Step", min(known), max(known), number, width=150)
    if other != seen.rank:
        shell.go("step", rank=other, step=number, **seen.address())
    if wanted != number:
        near = min(known, key=lambda step: abs(step - wanted))
        shell.go("step", rank=seen.rank, step=near, **seen.address())


def _back(seen: Scene) -> None:
    if seen.finding is None:
        return
    for one in seen.place.incidents():
        if any(f.id == seen.finding.id for run in one.seen for f in run.findings):
            shell.link("incident", "Back to the incident", incident=one.id, finding=seen.finding.id)


def _strip(seen: Scene) -> None:
    """Show how long the steps of the rank take; a click opens one."""
    number = seen.step["step_index"]
    rows = [
        {
            "step": row["step_index"], "ms": (row["dur_ns"] or 0) / 1e6,
            "over": max(row["excess_ns"] or 0, 0) / 1e6,
            "is": "this" if row["step_index"] == number
            else "too long" if (row["excess_ns"] or 0) > ODD * (row["dur_ns"] or 1)
            else "as usual",
        }
        for row in seen.steps.to_pylist()
        if abs(row["step_index"] - number) <= NEAR
    ]  # fmt: skip
    said = st.altair_chart(
        charts.step_bars(rows, shell.theme()), key=f"strip-{seen.step['id']}", on_select="rerun",
        selection_mode=charts.BAR, alt=f"Bars: how long each step of rank {seen.rank} takes",
    )  # fmt: skip
    for bar in said.selection.get(charts.BAR, []):
        if bar["step"] != number:
            shell.go("step", rank=seen.rank, step=bar["step"], **seen.address())


shell.show(page)
