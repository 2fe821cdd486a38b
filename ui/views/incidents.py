"""The first page: what is wrong, who is to blame, since when, and what it costs."""

import streamlit as st

from teller.graph.finding import SEVERITIES
from teller.graph.incidents import STATES, Incident
from teller.ui import charts, columns, costs, phrase, shell, verbatim
from teller.ui.desk import Place

CARDS = 4
STANDING = ("open", "acknowledged")


def page() -> None:
    """Show the incidents of a store."""
    here, _ = shell.top("Incidents", with_run=False)
    here.runs()
    every = here.incidents()
    if not any(one.state in STANDING for one in every):
        _all_clear(here, every)
    else:
        _figures(here, [one for one in every if one.state in STANDING])
    if not every:
        return
    shown = _filtered(every)
    for one in [one for one in shown if one.state in STANDING][:CARDS]:
        _card(here, one)
    left = sum(one.state in STANDING for one in shown) - CARDS
    if left > 0:
        st.caption(f"{left} more that stand are in the list below.")
    _trend(every)
    _list(shown)


def _all_clear(here: Place, every: list[Incident]) -> None:
    runs, known = phrase.counted(len(here.runs()), "run"), phrase.counted(len(every), "incident")
    verbatim.html(
        '<div class="t-card t-calm"><div class="t-sev">No open incident</div>'
        '<div class="t-title">Nothing here needs repair</div>'
        '<p class="t-say t-muted">{said}</p></div>',
        said=f"{runs} looked at; {known} in all, closed or resolved.",
    )  # fmt: skip


def _figures(here: Place, standing: list[Incident]) -> None:
    worst = max(standing, key=lambda one: SEVERITIES.index(one.severity))
    oldest = min(one.since_epoch_ns for one in standing)
    seconds = sum(one.gpu_seconds for one in standing)
    runs = {one.latest.run.run for one in standing}
    over = [here.diagnosis(run).runs[0].requests_over_target for run in runs]
    missed = [count for count in over if count is not None]
    with st.grid(4, min_column_width=170):
        _figure("Open incidents", f"{len(standing)}", f"worst: {worst.severity}")
        _figure("Since", costs.ago(oldest), costs.day(oldest))
        _figure("GPU time lost", costs.gpu(seconds), "by what is open")
        if missed:
            _figure("Requests over target", f"{sum(missed):,}", "in the last run of each")
        else:
            _figure("Requests over target", "no target", "--slo sets one")


def _figure(label: str, value: str, below: str) -> None:
    st.metric(label, value, below, border=True, delta_color="off", delta_arrow="off")


def _filtered(every: list[Incident]) -> list[Incident]:
    deployments = sorted({one.deployment for one in every})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        state = st.pills(
            "State",
            STATES,
            selection_mode="multi",
            default=STANDING,
            key="state",
            bind="query-params",
        )
        severity = st.pills(
            "Severity",
            SEVERITIES[::-1][:4],
            selection_mode="multi",
            key="severity",
            bind="query-params",
        )
        where = "all"
        if len(deployments) > 1:
            where = shell.choice("deployment", "Deployment", ["all", *deployments], "all")
        words = st.text_input(
            "Find", key="find", bind="query-params", placeholder="rank, operator, …"
        )
    return [
        one
        for one in every
        if (not state or one.state in state)
        and (not severity or one.severity in severity)
        and where in ("all", one.deployment)
        and words.lower() in f"{one.title} {one.culprit} {one.klass} {one.deployment}".lower()
    ]


def _card(here: Place, one: Incident) -> None:
    said = f"{one.severity} · {one.state}" + (f" · {one.deployment}" if one.deployment else "")
    with st.container(border=False, gap="xsmall"):
        verbatim.html(
            f'<section class="t-card t-{one.severity}"><div class="t-sev">{{said}}</div>'
            '<h2 class="t-title">{title}</h2>{facts}</section>',
            said=said,
            title=one.title,
            facts=verbatim.facts(costs.facts(here, one)),
        )
        with st.container(horizontal=True):
            shell.link("incident", "Open the incident", incident=one.id)
            step = _worst_step(one)
            if step:
                rank, number = step
                run = one.latest.run.run
                shell.link(
                    "step",
                    f"Go to step {number:,} of rank {rank}",
                    run=run,
                    rank=rank,
                    step=number,
                    finding=one.finding.id,
                )


def _worst_step(one: Incident) -> tuple[int, int] | None:
    finding = one.finding
    if finding.first_step is None or not finding.culprit.ranks:
        return None
    return finding.culprit.ranks[0], finding.first_step


def _trend(every: list[Incident]) -> None:
    rows = [
        {
            "run": seen.run.name, "when": seen.run.time_epoch_ns // 1_000_000,
            "severity": seen.finding.severity, "gpu_s": seen.gpu_seconds,
            "deployment": seen.run.deployment,
        }
        for one in every
        for seen in one.seen
        if seen.finding
    ]  # fmt: skip
    if len({row["run"] for row in rows}) < 2:
        return
    st.subheader("Lost GPU time, run by run", anchor=False)
    st.altair_chart(
        charts.trend(rows, shell.theme()), alt="Bars: GPU seconds lost in each run, by severity"
    )


def _list(shown: list[Incident]) -> None:
    st.subheader("All that match", anchor=False)
    if not shown:
        shell.empty("Nothing matches", "Choose other states or severities, or clear the search.")
        return
    picked = verbatim.table(
        costs.table(shown),
        {
            "severity": columns.severity(), "what": columns.wide("What"),
            "who": st.column_config.TextColumn("Who", width="medium"), "deployment": "Deployment",
            "state": "State", "since": columns.moment("Since"), "last": columns.moment("Last seen"),
            "trend": st.column_config.BarChartColumn("Share by run", y_min=0, width="small"),
            "gpu_seconds": columns.number("GPU s lost", 2), "runs": "Runs",
        },
        key="incident-list", on_select="rerun", selection_mode="single-row",
        alt="List of incidents",
    )  # fmt: skip
    for at in picked.selection.rows:
        shell.go("incident", incident=shown[at].id)


shell.show(page)
