"""Who talks to whom: traffic and time of its own on each path, and who comes late."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from teller.graph.archive import RunEntry
from teller.ui import (
    charts,
    columns,
    layout,
    look,
    network_picture,
    paths,
    phrase,
    shell,
    verbatim,
)  # fmt: skip
from teller.ui.desk import Place
from teller.ui.layout import Edge

SHOWN = 400  # edges of a picture; of more, the slowest and the widest
LISTED = 1_000


def page() -> None:
    """Show the communication of a run."""
    here, run = shell.needed("Communication")
    rows = here.ask("communication_edges", run=run.run_id)
    if not rows.num_rows:
        shell.empty(
            "No communication was recorded",
            "Collectives need group and sequence number: record NVTX ranges of NCCL, Kineto with "
            "collective metadata, or the flight recorder.",
            "teller doctor YOUR_RUN_FOLDER",
        )
        return
    hosts = _hosts(here, run, rows)
    rows, by_host = _filters(rows, hosts)
    edges = sorted(layout.edges(rows, by_host=by_host), key=lambda e: (-e.slowness, -e.size_bytes))
    late = {r["rank"]: r for r in here.ask("last_arrivals", run=run.run_id).to_pylist()}
    blamed = {
        rank
        for f in here.diagnosis(run.run_id).findings
        for rank in f.culprit.ranks
        if f.severity != "info"
    }
    _said(edges, late, hosts)
    left, right = st.columns([3, 2], gap="large")
    with left:
        picked = _graph(edges[:SHOWN], hosts, late, blamed, by_host)
    with right:
        picked = _table(edges, picked)
    if picked is not None:
        paths.chosen(here, run, picked)
    paths.late(late)


def _hosts(here: Place, run: RunEntry, rows: pa.Table) -> dict[int, str]:
    found: dict[int, str] = {}
    for end in ("src", "dst"):
        found |= dict(
            zip(rows[f"{end}_rank"].to_pylist(), rows[f"{end}_host"].to_pylist(), strict=True)
        )
    return {rank: found[rank] or "" for rank in sorted(found)}


def _filters(rows: pa.Table, hosts: dict[int, str]) -> tuple[pa.Table, bool]:
    groups = sorted(set(rows["group_name"].to_pylist()))
    ops = sorted(set(rows["op"].to_pylist()))
    many = len(hosts) > layout.MOST_RANKS
    with st.container(horizontal=True, vertical_alignment="bottom"):
        group = shell.choice("group", "Group", ["all", *groups], "all")
        op = shell.choice("op", "Operation", ["all", *ops], "all")
        level = st.segmented_control(
            "Drawn",
            ["ranks", "hosts"],
            default="hosts" if many else "ranks",
            required=True,
            disabled=many,
            key="drawn",
        )
    if many:
        st.caption(f"{len(hosts):,} ranks: their hosts are drawn. Choose a path to see its ranks.")
    for name, value in (("group_name", group), ("op", op)):
        if value != "all":
            rows = rows.filter(pc.equal(rows[name], value))
    return rows, many or level == "hosts"


def _said(edges: list[Edge], late: dict[int, Any], hosts: dict[int, str]) -> None:
    carried = phrase.size(sum(edge.size_bytes for edge in edges))
    facts = [
        ("Ranks", f"{len(hosts):,}", phrase.counted(len(set(hosts.values())), "host")),
        ("Paths", f"{len(edges):,}", f"{carried} in all"),
    ]
    if edges and network_picture.is_slow(edges[0]):
        worst = edges[0]
        named = f"{worst.first} → {worst.last}"
        facts.append(("Slowest path", named, f"{worst.slowness:.1f} times its like"))
    else:
        facts.append(("Slow paths", "none", f"from {layout.SLOW} times the usual time on"))
    if late:
        last = max(late.values(), key=lambda row: row["wait_ns"] or 0)
        waited = phrase.duration(last["wait_ns"] or 0)
        facts.append(("Waited for most", f"rank {last['rank']}", f"{waited} in all"))
    verbatim.html('<section class="t-card t-info">{facts}</section>', facts=verbatim.facts(facts))


def _graph(
    edges: list[Edge], hosts: dict[int, str], late: dict[int, Any], blamed: set[int], by_host: bool
) -> Edge | None:
    theme = shell.theme()
    nodes = network_picture.nodes(
        hosts, network_picture.waited(hosts, late, by_host=by_host),
        network_picture.bad(hosts, blamed, by_host=by_host), theme, by_host=by_host,
    )  # fmt: skip
    links = network_picture.links(edges, theme)
    labels = len(nodes) <= network_picture.LABELS
    said: Any = st.echarts_chart(
        charts.graph(nodes, links, theme, labels=labels), height=520, key="network",
        on_select="rerun",
        alt="Graph of ranks or hosts: width is traffic, red is slow, large is waited for",
    )  # fmt: skip
    tones = look.SEVERITY[theme]
    verbatim.key(
        [
            (look.PAPER[theme]["accent"], "the larger, the longer others waited for it"),
            (tones["high"], "blamed by a finding"),
            (tones["critical"], f"path {layout.SLOW} times slower than its like"),
        ]
    )
    return _picked(said, edges, nodes)


def _picked(said: Any, edges: list[Edge], nodes: list[dict[str, Any]]) -> Edge | None:
    """Give the path that was clicked; of a node, its slowest one."""
    for group in said.selection.selected:
        for at in group["data_indices"]:
            if group["data_type"] == "edge":
                return edges[at] if at < len(edges) else None
            name = nodes[at]["name"] if at < len(nodes) else ""
            return next((e for e in edges if name in map(phrase.visible, (e.first, e.last))), None)
    return None


def _table(edges: list[Edge], picked: Edge | None) -> Edge | None:
    said = verbatim.table(
        [
            {
                "from": edge.first, "to": edge.last, "slow": edge.slowness,
                "p50": (edge.pure_p50_ns or 0) / 1e6, "p99": (edge.pure_p99_ns or 0) / 1e6,
                "mib": edge.size_bytes / 2**20, "op": edge.op, "by": edge.transport,
            }
            for edge in edges[:LISTED]
        ],
        {
            "from": "From", "to": "To", "slow": columns.number("Times its like", 2),
            "p50": columns.ms("Median, ms"), "p99": columns.ms("99th, ms"),
            "mib": columns.number("MiB", 1), "op": "Operation", "by": "Carried by",
        },
        height="auto" if len(edges) < 12 else 520, key="paths", on_select="rerun",
        selection_mode="single-row", alt="Paths, slowest first",
    )  # fmt: skip
    st.caption("Choose a path, here or in the picture, to see its collectives.")
    rows: list[int] = said.selection.rows
    return edges[rows[0]] if rows else picked


shell.show(page)
