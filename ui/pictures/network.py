"""Who sends to whom: width is data, colour is time, hosts are boxes; dense traffic is a matrix."""

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from teller.ui import phrase
from teller.ui.pictures import canvas

_RANKS: Final = 64  # more are drawn host by host
_HOSTS: Final = 24  # more are drawn as a matrix
_EDGES: Final = 400
_WIDTH: Final = 9.6  # inches
_END: Final = 0.27  # radius of an end, in units of the layout

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Net:
    """Ends by name, each in a box, and what goes between them."""

    ends: tuple[str, ...]
    boxes: tuple[str, ...]  # of each end
    edges: Mapping[tuple[int, int], tuple[float, float]]  # bytes, median pure time in ns
    late: frozenset[int]


def net(edges: pa.Table, hosts: Mapping[int, str], late: Sequence[int]) -> Net:
    """Give the network of `src_rank, dst_rank, size_bytes, pure_p50_ns`, of hosts if it is big."""
    named = zip(
        *(edges[c].to_pylist() for c in ("src_rank", "dst_rank", "size_bytes", "pure_p50_ns")),
        strict=True,
    )
    flows = [(a, b, float(size or 0), float(time or 0)) for a, b, size, time in named]
    ranks = sorted(set(hosts) | {end for flow in flows for end in flow[:2]})
    if len(ranks) <= _RANKS:
        at = {rank: place for place, rank in enumerate(ranks)}
        boxes = tuple(hosts.get(rank, "") for rank in ranks)
        return Net(
            tuple(map(str, ranks)), boxes, _summed((at[a], at[b], s, t) for a, b, s, t in flows),
            frozenset(at[rank] for rank in late if rank in at),
        )  # fmt: skip
    names = sorted({hosts.get(rank, "") for rank in ranks}, key=_by_number)
    place = {rank: names.index(hosts.get(rank, "")) for rank in ranks}
    between = ((place[a], place[b], s, t) for a, b, s, t in flows if place[a] != place[b])
    ends = tuple(name or "unknown" for name in names)
    blamed = frozenset(place[rank] for rank in late if rank in place)
    return Net(ends, tuple("" for _ in ends), _summed(between), blamed)


def _by_number(name: str) -> list[tuple[int, str]]:
    """Give what sorts node-2 before node-10."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]


def _summed(
    flows: Iterator[tuple[int, int, float, float]],
) -> dict[tuple[int, int], tuple[float, float]]:
    """Give bytes in all and the longest median time for each pair of ends."""
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for a, b, size, time in flows:
        before = found.get((a, b), (0.0, 0.0))
        found[a, b] = before[0] + size, max(before[1], time)
    return found


def draw(edges: pa.Table, hosts: Mapping[int, str], late: Sequence[int], name: str) -> str:
    """Give the picture; `late` are the ranks that a finding blames."""
    found = net(edges, hosts, late)
    dense = len(found.ends) > _RANKS or (not any(found.boxes) and len(found.ends) > _HOSTS)
    dense = dense or len(found.edges) > _EDGES
    return _matrix(found, name) if dense else _graph(found, name)


def _times(found: Net) -> tuple[Normalize, float, str]:
    times = [time for _, time in found.edges.values()] or [1.0]
    size, unit = canvas.time_unit(max(times))
    # times that hardly differ must look equally harmless
    return Normalize(0, max(max(times), 3 * statistics.median(times)) / size), size, unit


def _bar(figure: Figure, axes: Axes, scale: Normalize, unit: str) -> None:
    drawn = ScalarMappable(scale, canvas.FLOW)
    bar = figure.colorbar(drawn, ax=axes, location="bottom", fraction=0.05, aspect=60, pad=0.02)
    bar.set_label(f"median time of the transfer itself, without waiting for others, {unit}")
    bar.outline.set_visible(False)


def _graph(found: Net, name: str) -> str:
    places, frames, (wide, high) = _layout(found)
    scale, size, unit = _times(found)
    tall = min(_WIDTH * high / wide, 3.4 if len(found.ends) <= 16 else 6.4)
    end_pt = _END * 72 * min(_WIDTH / wide, tall / high)
    with canvas.drawing(_WIDTH, tall + 0.8) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(0, wide)
        axes.set_ylim(high, 0)
        for host, (x, y, w, h) in frames.items():
            axes.add_patch(FancyBboxPatch(
                (x, y), w, h, boxstyle="round,pad=0,rounding_size=0.25", fill=False,
                edgecolor=canvas.LINE, linewidth=1.2,
            ))  # fmt: skip
            label = canvas.shortened(host or "host unknown", 24)
            axes.text(x + 0.25, y + 0.15, label, va="top", color=canvas.MUTED, fontsize=9)
        tips = dict(_draw_edges(axes, found, places, (scale, size, end_pt), name))
        _draw_ends(axes, found, places)
        if found.edges:
            _bar(figure, axes, scale, unit)
        says = f"Communication graph: {len(found.ends)} ends, {len(found.edges)} paths"
        return canvas.svg(figure, name, says, tips)


def _layout(
    found: Net,
) -> tuple[list[Point], dict[str, tuple[float, float, float, float]], Point]:
    """Give a place for each end, a frame for each host, and the size of the whole."""
    if not any(found.boxes):
        radius = max(1.6, 0.28 * len(found.ends))
        centre = radius * 1.9 + 1, radius + 0.8
        return (
            list(_circle(len(found.ends), centre, radius, stretch=1.9)), {},
            (2 * centre[0], 2 * centre[1]),
        )  # fmt: skip
    hosts = list(dict.fromkeys(found.boxes))
    most = max(found.boxes.count(host) for host in hosts)
    radius = max(0.9, 0.26 * most) if most > 1 else 0.3
    cell_w, cell_h = max(2 * radius + 2.2, 3.4), 2 * radius + 1.9
    columns = min(len(hosts), max(1, math.ceil(math.sqrt(len(hosts) * 1.6))))
    places: list[Point] = [(0.0, 0.0)] * len(found.ends)
    frames = {}
    for number, host in enumerate(hosts):
        x, y = (number % columns) * (cell_w + 1.8), (number // columns) * (cell_h + 1.0)
        frames[host] = (x + 0.1, y + 0.1, cell_w - 0.2, cell_h - 0.2)
        inside = [end for end, box in enumerate(found.boxes) if box == host]
        centre = x + cell_w / 2, y + cell_h / 2 + 0.2
        for end, place in zip(inside, _circle(len(inside), centre, radius), strict=True):
            places[end] = place
    rows = math.ceil(len(hosts) / columns)
    return places, frames, (columns * (cell_w + 1.8) - 1.8, rows * (cell_h + 1.0) - 1.0)


def _circle(count: int, centre: Point, radius: float, stretch: float = 1.0) -> Iterator[Point]:
    for number in range(count):
        angle = 2 * math.pi * (number + 0.5) / count - math.pi / 2
        reach = radius if count > 1 else 0.0
        yield (
            centre[0] + stretch * reach * math.cos(angle), centre[1] + reach * math.sin(angle)
        )  # fmt: skip


def _draw_edges(
    axes: Axes, found: Net, places: list[Point], look: tuple[Normalize, float, float], name: str
) -> Iterator[tuple[str, str]]:
    scale, size, end_pt = look
    most = max((amount for amount, _ in found.edges.values()), default=0.0) or 1.0
    for number, ((a, b), (amount, time)) in enumerate(found.edges.items()):
        if a == b:
            continue
        gid = f"{name}-{number}"
        axes.add_patch(FancyArrowPatch(
            places[a], places[b], connectionstyle="arc3,rad=0.16", arrowstyle="-|>",
            mutation_scale=5 + end_pt / 3, shrinkA=end_pt, shrinkB=end_pt + 1, gid=gid,
            color=canvas.FLOW(scale(time / size)), capstyle="butt",
            linewidth=0.6 + (end_pt / 4) * math.sqrt(amount / most),
        ))  # fmt: skip
        tip = f"{found.ends[a]} → {found.ends[b]}: {phrase.size(amount)}, {phrase.duration(time)}"
        yield gid, tip


def _draw_ends(axes: Axes, found: Net, places: list[Point]) -> None:
    for end, (x, y) in enumerate(places):
        late = end in found.late
        axes.add_patch(Circle(
            (x, y), _END, facecolor=canvas.ALARM if late else canvas.PAPER, zorder=3,
            edgecolor=canvas.ALARM if late else canvas.MUTED, linewidth=1.3,
        ))  # fmt: skip
        label = canvas.shortened(found.ends[end], 18)
        outside = len(label) > 4
        axes.text(
            x, y + (0.5 if outside else 0), label, ha="center", va="center", zorder=4,
            fontsize=8, fontweight="bold" if late else "normal",
            color=canvas.PAPER if late and not outside else canvas.INK,
            bbox={"facecolor": canvas.PAPER, "alpha": 0.8, "pad": 0.6, "linewidth": 0}
            if outside else None,
        )  # fmt: skip


def _matrix(found: Net, name: str) -> str:
    scale, size, unit = _times(found)
    cells = np.full((len(found.ends), len(found.ends)), np.nan)
    for (a, b), (_, time) in found.edges.items():
        cells[a, b] = time / size
    with canvas.drawing(_WIDTH, 8.2) as figure:
        axes = figure.add_subplot()
        axes.imshow(np.ma.masked_invalid(cells), cmap=canvas.FLOW, norm=scale, interpolation="none")
        places = canvas.every(list(range(len(found.ends))), 20)
        labels = [canvas.shortened(found.ends[p], 14) for p in places]
        axes.set_xticks(places, labels, rotation=90, fontsize=7.5)
        axes.set_yticks(places, labels, fontsize=7.5)
        what = "rank" if any(found.boxes) else "host"
        axes.set_xlabel(f"receiving {what}")
        axes.set_ylabel(f"sending {what}")
        for end in found.late:
            axes.axhline(end, color=canvas.ALARM, linewidth=0.8, alpha=0.7)
        _bar(figure, axes, scale, unit)
        says = f"Communication matrix of {len(found.ends)} ends, {len(found.edges)} paths"
        return canvas.svg(figure, name, says)
