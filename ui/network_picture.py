"""The communication graph as nodes and links: traffic is width, slowness and blame are colour."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from teller.ui import layout, look, phrase
from teller.ui.layout import Edge

Row = dict[str, Any]

LABELS = 130  # nodes; with more, names show only where the pointer is


def nodes(
    hosts: Mapping[int, str], waits: Mapping[str, int], bad: Collection[str], theme: str,
    *, by_host: bool,
) -> list[Row]:  # fmt: skip
    """Give a node for each rank or host: the larger, the longer others waited for it."""
    tones, paper = look.SEVERITY[theme], look.PAPER[theme]
    at = layout.places(hosts, by_host=by_host)
    most = max(waits.values(), default=0) or 1
    return [
        {
            "name": phrase.visible(name), "x": x, "y": y,
            "symbolSize": 15 + 22 * (waits.get(name, 0) / most) ** 0.5,
            "itemStyle": {"color": tones["high"] if name in bad else paper["accent"]},
        }
        for name, (x, y) in at.items()
    ]  # fmt: skip


def links(edges: Sequence[Edge], theme: str) -> list[Row]:
    """Give a link for each edge: the wider, the more data; red where it is slow."""
    tones, paper = look.SEVERITY[theme], look.PAPER[theme]
    widest = max((edge.size_bytes for edge in edges), default=1) or 1
    return [
        {
            "source": phrase.visible(edge.first), "target": phrase.visible(edge.last),
            "value": _said(edge),
            "lineStyle": {
                "width": 1 + 5 * (edge.size_bytes / widest) ** 0.5,
                "color": tones["critical"] if is_slow(edge) else paper["muted"],
                "opacity": 0.95 if is_slow(edge) else 0.3,
            },
        }
        for edge in edges
    ]  # fmt: skip


def is_slow(edge: Edge) -> bool:
    """Tell whether a path takes much longer than its like."""
    return edge.slowness >= layout.SLOW


def waited(hosts: Mapping[int, str], late: Mapping[int, Row], *, by_host: bool) -> dict[str, int]:
    """Give how long others waited for each node, ns."""
    found: dict[str, int] = {}
    for rank, row in late.items():
        name = (hosts.get(rank) or "unknown") if by_host else f"rank {rank}"
        found[name] = found.get(name, 0) + (row["wait_ns"] or 0)
    return found


def bad(hosts: Mapping[int, str], blamed: Collection[int], *, by_host: bool) -> set[str]:
    """Give the nodes that a finding blames."""
    if by_host:
        return {hosts.get(rank) or "unknown" for rank in blamed}
    return {f"rank {rank}" for rank in blamed}


def _said(edge: Edge) -> str:
    data = phrase.size(edge.size_bytes)
    return f"{data}, {phrase.duration(edge.pure_p50_ns)} each" if edge.pure_p50_ns else data
