"""What is said of one path of the communication graph, and of who comes last."""

from typing import Any, Final

import streamlit as st

from teller.graph.archive import RunEntry
from teller.ui import charts, columns, shell, verbatim
from teller.ui.desk import Place
from teller.ui.layout import Edge

COLLECTIVES: Final = 400
RANKS: Final = 64

Row = dict[str, Any]


def chosen(here: Place, run: RunEntry, edge: Edge) -> None:
    """Show the collectives of a path, and how far apart its two ranks arrive."""
    first, last = edge.ranks
    st.subheader("The path that was chosen", anchor=False)
    verbatim.html(
        '<p class="t-say">{a} → {b}: {op} of group {group} between rank {r} and rank {s}</p>',
        a=edge.first, b=edge.last, op=edge.op, group=edge.group, r=first, s=last,
    )  # fmt: skip
    rows = here.ask(
        "pair_collectives", run=run.run_id, first=first, second=last, op=edge.op, limit=COLLECTIVES
    ).to_pylist()
    if not rows:
        verbatim.say("No spans of its collectives were recorded: there are only figures.")
        return
    left, right = st.columns(2, gap="large")
    with left:
        _apart(rows, first, last)
    with right:
        _collectives(run, rows, first, last)


def _apart(rows: list[Row], first: int, last: int) -> None:
    ends = [(row["first_arrival_ns"], row["second_arrival_ns"]) for row in rows]
    apart = [(b - a) / 1e6 for a, b in ends if a is not None and b is not None]
    title = f"ms that rank {last} comes after rank {first}"
    st.altair_chart(
        charts.histogram(apart, title, "collectives", shell.theme()),
        alt="Histogram: how far apart the two ranks arrive",
    )


def _collectives(run: RunEntry, rows: list[Row], first: int, last: int) -> None:
    said = verbatim.table(
        [
            {
                "seq": row["seq"], "step": row["step_index"], "skew": (row["skew_ns"] or 0) / 1e6,
                "pure": (row["pure_ns"] or 0) / 1e6, "last": row["last_rank"],
                "kib": (row["size_bytes"] or 0) / 1024,
            }
            for row in rows
        ],
        {
            "seq": "Number", "step": "Step", "skew": columns.ms("Apart, ms"),
            "pure": columns.ms("Of its own, ms"), "last": "Last rank",
            "kib": columns.number("KiB", 1),
        },
        height=260, key=f"collectives-{first}-{last}", on_select="rerun",
        selection_mode="single-row", alt="Collectives of the path, most uneven first",
    )  # fmt: skip
    st.caption("Choose one to open its step.")
    for at in said.selection.rows:
        row = rows[at]
        if row["step_index"] is not None:
            rank = first if row["last_rank"] is None else row["last_rank"]
            shell.go("step", run=run.run_id, rank=rank, step=row["step_index"])


def late(by_rank: dict[int, Row]) -> None:
    """Show how often each rank came last, and how long others waited for it."""
    if not by_rank:
        return
    st.subheader("Who comes last", anchor=False)
    rows = sorted(by_rank.values(), key=lambda row: -(row["wait_ns"] or 0))[:RANKS]
    verbatim.table(
        [
            {
                "rank": row["rank"], "times": row["collective_count"],
                "wait": (row["wait_ns"] or 0) / 1e6, "worst": (row["max_skew_ns"] or 0) / 1e6,
            }
            for row in rows
        ],
        {
            "rank": "Rank", "times": "Times the last", "wait": columns.ms("Others waited, ms"),
            "worst": columns.ms("Most at once, ms"),
        },
        alt="How often each rank came last",
    )  # fmt: skip
