"""One incident: what is said of it, what shows it, and where the time went."""

import time
from dataclasses import replace
from typing import Any, get_args

import streamlit as st

from teller.errors import NothingUsable, UnknownName
from teller.graph import journal
from teller.graph.finding import Evidence, Finding
from teller.graph.incidents import Incident
from teller.ui import (
    claims,
    costs,
    desk,
    incident_pictures,
    phrase,
    report,
    shell,
    sights,
    verbatim,
)
from teller.ui.desk import Place

VOICES = {"rules": "Rules", "numeric": "Numbers", "model": "Model"}
EVIDENCE = 24
ACTS = {
    "note": "Write a note",
    "acknowledge": "Acknowledge",
    "resolve": "Resolve",
    "reopen": "Open again",
}


def page() -> None:
    """Show the incident that the address names."""
    here = shell.place()
    here.runs()
    one = _incident(here)
    finding = _finding(one)
    said = f"{one.severity} · {one.state}" + (f" · {one.deployment}" if one.deployment else "")
    verbatim.html(
        f'<section class="t-card t-{one.severity}"><div class="t-sev">{{said}}</div>'
        '<h1 class="t-head">{title}</h1>{facts}</section>',
        said=said,
        title=finding.title,
        facts=verbatim.facts(costs.facts(here, one)),
    )
    _bar(here, one, finding)
    _stretches(one, finding)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _why(finding)
        _evidence(here, finding)
    with right:
        _next(finding)
        _voices(finding)
        _against(finding)
    incident_pictures.show(here, finding)
    _runs(one)
    _notes(here, one)


def _incident(here: Place) -> Incident:
    wanted = shell.number("incident")
    every = here.incidents()
    if not every:
        raise NothingUsable("there is no incident in this store")
    if wanted is None:  # what it becomes may change the order: the address keeps to this one
        st.query_params["incident"] = str(every[0].id)
        return every[0]
    for one in every:
        if one.id == wanted:
            return one
    raise UnknownName("incident", str(wanted), [str(one.id) for one in every[:5]])


def _finding(one: Incident) -> Finding:
    """Give the finding that the address names, else of the run it names, else the latest."""
    number, run = shell.number("finding"), shell.number("run")
    every = [finding for seen in one.seen for finding in seen.findings]
    named = [f for f in every if f.id == number] or [f for f in every if f.run == run]
    return named[0] if named else one.finding


def _stretches(one: Incident, finding: Finding) -> None:
    """Show the ways to the other stretches of the same run that show it."""
    same = [f for seen in one.seen for f in seen.findings if f.run == finding.run]
    if len(same) < 2:
        return
    st.caption(f"This run shows it {len(same)} times; what follows is about one of them.")
    with st.container(horizontal=True):
        for other in same:
            if other.id != finding.id and other.first_step is not None:
                label = f"Steps {other.first_step:,} to {other.last_step or other.first_step:,}"
                shell.link("incident", label, incident=one.id, finding=other.id)


def _bar(here: Place, one: Incident, finding: Finding) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if finding.first_step is not None and finding.culprit.ranks:
            rank = finding.culprit.ranks[0]
            shell.link(
                "step",
                f"Open step {finding.first_step:,} of rank {rank}",
                run=finding.run,
                rank=rank,
                step=finding.first_step,
                finding=finding.id,
            )
        shell.link("network", "Communication of this run", run=finding.run)
        st.download_button(
            "One page to print",
            data=lambda: _page(here, finding),
            mime="text/html",
            file_name=f"incident-{one.id}.html",
            on_click="ignore",
        )
        if desk.current().may_note:
            _act(here, one)


def _page(here: Place, finding: Finding) -> str:
    """Give the report of this finding alone, as the command line writes it."""
    whole = here.diagnosis(finding.run)
    said = replace(whole, verdict="fault", findings=(finding,))
    with here.graph() as graph:
        return report.render(said, sights.gather(graph, said))


def _act(here: Place, one: Incident) -> None:
    with st.popover("Acknowledge or note"), st.form("note", border=False, clear_on_submit=True):
        act = st.radio("What", list(get_args(journal.Act)), format_func=ACTS.__getitem__)
        text = st.text_area("Note", max_chars=journal.MOST_TEXT)
        if st.form_submit_button("Save", type="primary"):
            journal.write(
                here.workspace.notes,
                journal.Note(
                    time_epoch_ns=time.time_ns(),
                    incident=one.id,
                    act=act,
                    text=text,
                    who=shell.who(),
                ),
            )
            st.rerun()


def _why(finding: Finding) -> None:
    st.subheader("Why", anchor=False)
    for claim in claims.claims(finding):
        marks = verbatim.joined(
            verbatim.made(
                ' <a href="#evidence-{n}" class="t-muted" aria-label="evidence {n}">[{n}]</a>', n=n
            )
            for n in claim.shown_by[:4]
        )
        verbatim.html('<p class="t-say">{text}{marks}</p>', text=claim.text, marks=marks)
    if finding.numbers:
        said = " · ".join(phrase.measure(name, value) for name, value in finding.numbers.items())
        verbatim.html('<p class="t-say t-muted">{said}</p>', said=said)


def _evidence(here: Place, finding: Finding) -> None:
    st.subheader("Evidence", anchor=False)
    if not finding.evidence:
        verbatim.say("No single place shows it: it rests on the figures above.")
        return
    rows = {row["id"]: row for row in here.ask("evidence", finding=finding.id).to_pylist()}
    for number, one in enumerate(finding.evidence[:EVIDENCE], 1):
        _one(finding, number, one, rows.get(one.id, {}))
    left = len(finding.evidence) - EVIDENCE
    if left > 0:
        st.caption(f"and {left} pieces more; teller report has all")


def _one(finding: Finding, number: int, one: Evidence, place: dict[str, Any]) -> None:
    """Show one piece of evidence, and the way to where it is."""
    left, right = st.columns([5, 2], vertical_alignment="center")
    with left:
        verbatim.html(
            '<p class="t-say" id="evidence-{n}"><b>[{n}]</b> <span class="t-muted">{role}</span> '
            '{text}<br><small class="t-muted">{source}</small></p>',
            n=number,
            role=one.role,
            text=one.text,
            source=one.source,
        )
    if place.get("rank") is not None and place.get("step_index") is not None:
        with right:
            shell.link(
                "step",
                f"Step {place['step_index']:,} of rank {place['rank']}",
                run=finding.run,
                rank=place["rank"],
                step=place["step_index"],
                finding=finding.id,
                span=one.id if one.kind == "Span" else None,
            )


def _next(finding: Finding) -> None:
    if finding.next_step:
        st.subheader("Next", anchor=False)
        verbatim.html('<p class="t-next">{said}</p>', said=finding.next_step)


def _voices(finding: Finding) -> None:
    st.subheader("How sure", anchor=False)
    bars = [("All together", finding.confidence)]
    bars += [
        (said, finding.voices[name]) for name, said in VOICES.items() if name in finding.voices
    ]
    rows = verbatim.joined(
        verbatim.made(
            '<div class="t-voice"><b>{name}</b><div><i style="width:{part}%"></i></div>'
            "<span>{value}</span></div>",
            name=name,
            part=f"{100 * min(max(value, 0.0), 1.0):.0f}",
            value=f"{value:.2f}",
        )
        for name, value in bars
    )
    verbatim.html("<div>{rows}</div>", rows=rows)
    silent = [said.lower() for name, said in VOICES.items() if name not in finding.voices]
    if silent:
        st.caption(f"Not heard: {', '.join(silent)}.")


def _against(finding: Finding) -> None:
    st.subheader("Against it", anchor=False)
    verbatim.listing(finding.against or ["nothing that was looked at speaks against it"])
    st.subheader("Not checked", anchor=False)
    verbatim.listing(finding.not_checked or ["nothing is known to be left out"])


def _runs(one: Incident) -> None:
    if len(one.seen) < 2:
        return
    st.subheader("Run by run", anchor=False)
    verbatim.table(
        [
            {
                "run": s.run.name,
                "recorded": costs.day(s.run.time_epoch_ns),
                "seen": "seen" if s.finding else "clean" if s.run.judged else "not diagnosed",
                "severity": s.finding.severity if s.finding else "",
                "share": phrase.share(s.share) if s.finding else "",
                "gpu": costs.gpu(s.gpu_seconds) if s.finding else "",
            }
            for s in reversed(one.seen)
        ],
        {"gpu": "GPU time lost", "share": "Share of the time"},
        alt="The runs of this deployment",
    )


def _notes(here: Place, one: Incident) -> None:
    if not one.notes:
        return
    st.subheader("Notes", anchor=False)
    for note in reversed(one.notes):
        verbatim.html(
            '<p class="t-say"><span class="t-muted">{when} {who} · {act}</span><br>{text}</p>',
            when=costs.day(note.time_epoch_ns),
            who=note.who,
            act=note.act,
            text=note.text,
        )


shell.show(page)
