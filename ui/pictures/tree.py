"""The call tree of one step over time: one band a lane, callers above what they call."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from teller.ui import phrase
from teller.ui.pictures import canvas

_BOXES: Final = 700
_BAND_ROWS: Final = 14
_ROWS: Final = 46
_NARROWEST: Final = 1 / 900  # of the width, a pixel or so

COLOURS: Final = {  # dark enough for white letters
    "engine": "#33587f", "framework": "#4a7fae", "runtime": "#8a7238", "device": "#3d7f4e",
    "comm": "#7a4f93", "os": "#666c75",
}  # fmt: skip
_OTHER: Final = "#6d727a"
_SHIFTED: Final = 1 / 6  # of the largest excess: what has less is not coloured as lost time


@dataclass(frozen=True, slots=True)
class Boxes:
    """The spans that can be seen, as boxes; times in ns since the step's start."""

    left: npt.NDArray[np.int64]
    width: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    bands: tuple[tuple[str, int, int], ...]  # lane, first row, rows
    name: list[str]
    layer: list[str]
    excess: npt.NDArray[np.float64]
    total_ns: int
    left_out: int


def boxes(spans: pa.Table) -> Boxes:
    """Give boxes of `name, layer, lane, stream, depth, start_ns, end_ns, excess_ns`."""
    start, end = _numbers(spans, "start_ns"), _numbers(spans, "end_ns")
    begin, total = int(start.min()), max(int(end.max() - start.min()), 1)
    seen = np.nonzero(end - start >= total * _NARROWEST)[0]
    if len(seen) > _BOXES:
        longest = np.argpartition(start[seen] - end[seen], _BOXES)[:_BOXES]
        seen = np.sort(seen[longest])
    kept = spans.take(pa.array(seen))
    lanes = kept["lane"].cast(pa.string()).to_pylist()
    depth = _numbers(kept, "depth")
    order = _order(kept, lanes)
    row, bands = _rows(np.array([order[lane] for lane in lanes], dtype=np.int64), depth, order)
    fits = row >= 0
    kept, row = kept.filter(pa.array(fits)), row[fits]
    left = _numbers(kept, "start_ns")
    return Boxes(
        left - begin, _numbers(kept, "end_ns") - left, row, bands,
        kept["name"].cast(pa.string()).to_pylist(), kept["layer"].cast(pa.string()).to_pylist(),
        np.nan_to_num(pc.cast(kept["excess_ns"], pa.float64()).to_numpy()), total,
        spans.num_rows - len(row),
    )  # fmt: skip


def _numbers(rows: pa.Table, name: str) -> npt.NDArray[np.int64]:
    return np.asarray(pc.fill_null(rows[name], 0).to_numpy(), dtype=np.int64)


def _order(kept: pa.Table, lanes: list[str]) -> dict[str, int]:
    """Give each lane its place: threads before streams, busier ones first."""
    busy: dict[str, int] = {}
    on_device: dict[str, bool] = {}
    streams = pc.is_valid(kept["stream"]).to_pylist()
    lengths = (_numbers(kept, "end_ns") - _numbers(kept, "start_ns")).tolist()
    for lane, stream, length in zip(lanes, streams, lengths, strict=True):
        busy[lane] = busy.get(lane, 0) + length
        on_device[lane] = stream
    ranked = sorted(busy, key=lambda lane: (on_device[lane], -busy[lane]))
    return {lane: place for place, lane in enumerate(ranked)}


def _rows(
    lane: npt.NDArray[np.int64], depth: npt.NDArray[np.int64], order: dict[str, int]
) -> tuple[npt.NDArray[np.int64], tuple[tuple[str, int, int], ...]]:
    """Give each span its row, -1 where there is no room, and the bands of the lanes."""
    row = np.full(len(lane), -1, dtype=np.int64)
    bands: list[tuple[str, int, int]] = []
    first = 0
    for name, place in order.items():
        inside = np.nonzero(lane == place)[0]
        levels, level = np.unique(depth[inside], return_inverse=True)
        high = min(len(levels), _BAND_ROWS)
        if first + high > _ROWS:
            break
        row[inside] = np.where(level < high, first + level, -1)
        bands.append((name, first, high))
        first += high
    return row, tuple(bands)


def draw(spans: pa.Table, name: str) -> str:
    """Give the picture of one step's spans."""
    seen = boxes(spans)
    high = sum(rows for _, _, rows in seen.bands)
    with canvas.drawing(9.6, 0.9 + 0.235 * high + 0.08 * len(seen.bands)) as figure:
        axes = figure.add_subplot()
        size, unit = canvas.time_unit(seen.total_ns)
        tips = dict(_draw_boxes(axes, seen, size, name))
        _draw_bands(axes, seen)
        axes.set_xlim(0, seen.total_ns / size)
        axes.set_xlabel(f"{unit} since the start of the step")
        _draw_key(figure, seen)
        says = f"Call tree over time: {len(seen.name)} spans in {len(seen.bands)} lanes"
        return canvas.svg(figure, name, says, tips)


def _band_gap(seen: Boxes) -> npt.NDArray[np.float64]:
    """Give how far each row is moved down, so that lanes stand apart."""
    shift = np.zeros(sum(rows for _, _, rows in seen.bands))
    for place, (_, first, rows) in enumerate(seen.bands):
        shift[first : first + rows] = 0.4 * place
    return shift


def _draw_boxes(axes: Axes, seen: Boxes, size: float, name: str) -> Iterator[tuple[str, str]]:
    shift = _band_gap(seen)
    most = float(seen.excess.max()) if len(seen.excess) else 0.0
    letters = 118 * seen.width / seen.total_ns
    for place, label in enumerate(seen.name):
        left, width = seen.left[place] / size, seen.width[place] / size
        top = seen.row[place] + shift[seen.row[place]]
        lost = most > 0 and seen.excess[place] >= most * _SHIFTED
        layer = seen.layer[place]
        gid = f"{name}-{place}"
        axes.add_patch(Rectangle(
            (left, top), width, 0.92, gid=gid, linewidth=0.4, edgecolor=canvas.PAPER,
            facecolor=canvas.ALARM if lost else COLOURS.get(layer, _OTHER),
        ))  # fmt: skip
        if text := canvas.shortened(label, int(letters[place])):
            axes.text(
                left + width / 2, top + 0.5, text, ha="center", va="center", fontsize=7,
                color=canvas.PAPER if lost else "white", clip_on=True, gid=f"{gid}t",
            )  # fmt: skip
        more = f", {phrase.duration(seen.excess[place])} more than expected" if lost else ""
        tip = f"{label} ({layer}): {phrase.duration(int(seen.width[place]))}{more}"
        yield gid, tip
        yield f"{gid}t", tip


def _draw_bands(axes: Axes, seen: Boxes) -> None:
    shift = _band_gap(seen)
    ticks = []
    for lane, first, rows in seen.bands:
        top = first + float(shift[first])
        ticks.append((top + rows / 2, canvas.shortened(lane, 22)))
        if first:
            axes.axhline(top - 0.24, color=canvas.LINE, linewidth=0.8)
    axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    last = len(shift) - 1
    axes.set_ylim((last + float(shift[last]) + 1.1) if len(shift) else 1, -0.2)
    axes.spines["left"].set_visible(False)


def _draw_key(figure: object, seen: Boxes) -> None:
    from matplotlib.figure import Figure

    assert isinstance(figure, Figure)
    present = [layer for layer in COLOURS if layer in set(seen.layer)]
    handles = [Patch(color=COLOURS[layer], label=layer) for layer in present]
    if (seen.excess > 0).any():
        handles.append(Patch(color=canvas.ALARM, label="longer than expected"))
    figure.legend(
        handles=handles, loc="outside upper left", ncols=len(handles), frameon=False, fontsize=8,
        handlelength=1, handleheight=1, columnspacing=1.4,
    )  # fmt: skip
