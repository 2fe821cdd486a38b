"""The charts of the pages, as values of Altair and ECharts; colours come from the theme's name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import altair as alt

from teller.graph.finding import SEVERITIES, Severity
from teller.ui import look

Row = Mapping[str, Any]
Chart = Any  # of Altair, whose types depend on what was called on it

CELL: Final = "cell"  # names of what is chosen in a chart
BAR: Final = "bar"


def step_bars(rows: Sequence[Row], theme: str) -> Chart:
    """Give a bar for each step, of `step, ms, over, is`; one may be chosen."""
    tones, paper = look.SEVERITY[theme], look.PAPER[theme]
    colors = {"this": paper["accent"], "too long": tones["high"], "as usual": paper["line"]}
    return (
        alt.Chart(_data(rows))
        .mark_bar(size=max(1.5, min(14, 900 / len(rows))))
        .encode(
            x=_steps(rows),
            y=alt.Y("ms:Q", title="ms"),
            color=alt.Color(
                "is:N", title=None, legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=list(colors), range=list(colors.values())),
            ),
            tooltip=[_told("step"), _told("ms"), _told("over", "ms too long")],
        )
        .add_params(alt.selection_point(name=BAR, fields=["step"], on="click", empty=False))
        .properties(height=170)
    )  # fmt: skip


def excess_bars(
    rows: Sequence[Row], zone: tuple[int, int] | None, severity: Severity, theme: str
) -> Chart:
    """Give how much too long each step was, of `step, over, ms`; the finding's are shaded."""
    tone = look.SEVERITY[theme][severity]
    bars = (
        alt.Chart(_data(rows))
        .mark_bar(color=tone, size=max(2, min(8, 900 // max(len(rows), 1))))
        .encode(
            x=_steps(rows, "step"),
            y=alt.Y("over:Q", title="ms too long"),
            tooltip=[_told("step"), _told("over", "ms too long"), _told("ms", "ms in all")],
        )
    )
    if zone is None:
        return bars.properties(height=150)
    shade = (
        alt.Chart(_data([{"a": zone[0] - 0.5, "b": zone[1] + 0.5}]))
        .mark_rect(opacity=0.12, color=tone)
        .encode(x="a:Q", x2="b:Q")
    )
    return alt.layer(shade, bars).properties(height=150)


def heat(cells: Sequence[Row], theme: str) -> Chart:
    """Give rank by step, of `teller.ui.heatmap.cells`; a cell may be chosen."""
    rows = len({cell["row"] for cell in cells})
    colors = alt.Scale(range=list(look.HEAT[theme]), interpolate="rgb")
    return (
        alt.Chart(_data(cells))
        .mark_rect()
        .encode(
            x=alt.X("column:O", title="step", axis=alt.Axis(labelOverlap=True, labelAngle=0)),
            y=alt.Y("row:O", title="rank"),
            color=alt.Color("excess_ms:Q", title="ms lost", scale=colors),
            tooltip=[
                _told("rank"), _told("step"), _told("excess_ms", "ms too long"),
                _told("dur_ms", "ms in all"),
            ],
        )
        .add_params(
            alt.selection_point(name=CELL, fields=["rank", "step"], on="click", empty=False)
        )
        .properties(height=max(120, min(420, 16 * rows + 60)))
    )  # fmt: skip


def histogram(values_ms: Iterable[float], title: str, what: str, theme: str,
              target_ms: float | None = None) -> Chart:  # fmt: skip
    """Give how often each time was met, with a target as a line."""
    values = [{"ms": value} for value in values_ms]
    bars = (
        alt.Chart(_data(values))
        .mark_bar(color=look.PAPER[theme]["accent"])
        .encode(
            x=alt.X("ms:Q", bin=alt.Bin(maxbins=40), title=title),
            y=alt.Y("count():Q", title=what),
        )
    )
    if target_ms is None:
        return bars.properties(height=220)
    rule = (
        alt.Chart(_data([{"ms": target_ms}]))
        .mark_rule(color=look.SEVERITY[theme]["critical"], strokeWidth=2)
        .encode(x="ms:Q")
    )
    return alt.layer(bars, rule).properties(height=220)


def trend(rows: Sequence[Row], theme: str) -> Chart:
    """Give GPU seconds lost run by run, of `run, when, severity, gpu_s, deployment`."""
    tones, order = look.SEVERITY[theme], list(SEVERITIES[::-1])
    runs = dict.fromkeys(row["run"] for row in sorted(rows, key=lambda row: int(row["when"])))
    return (
        alt.Chart(_data(rows))
        .mark_bar()
        .encode(
            x=alt.X(
                "run:N", sort=list(runs), title=None,
                axis=alt.Axis(labelLimit=120, labelAngle=0, labelOverlap=True),
            ),
            y=alt.Y("sum(gpu_s):Q", title="GPU seconds"),
            color=alt.Color(
                "severity:N", title=None, legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=order, range=[tones[s] for s in order]),
            ),
            tooltip=["run:N", "deployment:N", "severity:N", _told("sum(gpu_s)", "GPU seconds")],
        )
        .properties(height=200)
    )  # fmt: skip


def graph(
    nodes: Sequence[dict[str, Any]], links: Sequence[dict[str, Any]], theme: str, *, labels: bool
) -> dict[str, Any]:
    """Give a graph for ECharts of nodes that have their places; nodes and links may be chosen."""
    ink = look.PAPER[theme]["ink"]
    series = {
        "type": "graph", "layout": "none", "roam": True, "data": list(nodes), "links": list(links),
        "selectedMode": "single", "edgeSymbol": ["none", "arrow"], "edgeSymbolSize": 6,
        "label": {"show": labels, "position": "right", "color": ink, "fontSize": 11},
        "labelLayout": {"hideOverlap": True}, "lineStyle": {"curveness": 0.12},
        "emphasis": {"focus": "adjacency", "lineStyle": {"width": 5}},
    }  # fmt: skip
    return {"animation": False, "tooltip": {"confine": True}, "series": [series]}


def _data(rows: Iterable[Row]) -> Any:
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]  # its types are partial


def _steps(rows: Sequence[Row], title: str | None = None) -> Any:
    numbers = [int(row["step"]) for row in rows]
    ends = alt.Scale(domain=[min(numbers) - 1, max(numbers) + 1], nice=False)
    return alt.X("step:Q", title=title, axis=alt.Axis(format="d"), scale=ends)


def _told(field: str, title: str = "") -> Any:
    return alt.Tooltip(f"{field}:Q", title=title or field, format=".4~g")
