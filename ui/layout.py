"""Where ranks and hosts stand in the picture of who talks to whom; the same for the same run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any, Final

import numpy as np
import pyarrow as pa

Row = dict[str, Any]

MOST_RANKS: Final = 64  # of more, the hosts are drawn
SLOW: Final = 1.5  # times the median pure time of its like: from there on a path stands out


@dataclass(frozen=True, slots=True)
class Edge:
    """All that went from one node to another: `first` and `last` are nodes, `op` of the slowest."""

    first: str
    last: str
    size_bytes: int
    count: int
    pure_p50_ns: int | None
    pure_p99_ns: int | None
    slowness: float  # median pure time over that of its like; 0 where it is not known
    op: str
    group: str
    transport: str
    ranks: tuple[int, int]  # of the slowest path in it


def edges(rows: pa.Table, *, by_host: bool) -> list[Edge]:
    """Join rows of `communication_edges` to one edge a pair of nodes, the slowest path telling."""
    told = rows.to_pylist()
    usual = _usual(told)
    by_pair: dict[tuple[str, str], list[Row]] = {}
    for row in told:
        pair = _ends(row, by_host=by_host)
        if pair[0] != pair[1]:
            by_pair.setdefault(pair, []).append(row)
    return [_edge(pair, same, usual) for pair, same in by_pair.items()]


def _ends(row: Row, *, by_host: bool) -> tuple[str, str]:
    if by_host:
        return row["src_host"] or "unknown", row["dst_host"] or "unknown"
    return f"rank {row['src_rank']}", f"rank {row['dst_rank']}"


def _usual(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Give the median pure time of each kind of operation, over groups of the same size of data."""
    found: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row["pure_p50_ns"]:
            found.setdefault(_like(row), []).append(row["pure_p50_ns"])
    return {like: float(np.median(times)) for like, times in found.items()}


def _like(row: Row) -> tuple[str, str]:
    per = (row["size_bytes"] or 0) / max(row["count"] or 1, 1)
    return row["op"], str(len(str(int(per))))  # the order of magnitude of a message


def _edge(
    pair: tuple[str, str], rows: Sequence[Row], usual: Mapping[tuple[str, str], float]
) -> Edge:
    def slowness(row: Row) -> float:
        return (row["pure_p50_ns"] or 0) / (usual.get(_like(row)) or 1.0)

    worst = max(rows, key=lambda row: (slowness(row), row["size_bytes"] or 0))
    return Edge(
        *pair, sum(r["size_bytes"] or 0 for r in rows), sum(r["count"] or 0 for r in rows),
        worst["pure_p50_ns"], worst["pure_p99_ns"], round(slowness(worst), 3), worst["op"],
        worst["group_name"], worst["transport"] or "", (worst["src_rank"], worst["dst_rank"]),
    )  # fmt: skip


def places(hosts: Mapping[int, str], *, by_host: bool) -> dict[str, tuple[float, float]]:
    """Give a place for each node: hosts on a circle, the ranks of each on a circle around it."""
    names = sorted({host or "unknown" for host in hosts.values()})
    far = 0.0 if len(names) == 1 else 300.0 + 22.0 * len(names)
    centre = {
        name: (far * cos(_turn(at, len(names))), far * sin(_turn(at, len(names))))
        for at, name in enumerate(names)
    }
    if by_host:
        return centre
    found: dict[str, tuple[float, float]] = {}
    for name, (x, y) in centre.items():
        ranks = sorted(rank for rank, host in hosts.items() if (host or "unknown") == name)
        near = 0.0 if len(ranks) == 1 else 46.0 + 13.0 * len(ranks)
        for at, rank in enumerate(ranks):
            turn = _turn(at, len(ranks))
            found[f"rank {rank}"] = (x + near * cos(turn), y + near * sin(turn))
    return found


def _turn(at: int, of: int) -> float:
    return 2 * pi * at / of - pi / 2
