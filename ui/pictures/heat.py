"""Rank by step: where and when time was lost, with each finding marked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from teller.graph.finding import Finding
from teller.ui.pictures import canvas

_COLUMNS: Final = 320
_ROWS: Final = 128
_WORTH_SEEING: Final = 0.05  # of a usual step: less than that is drawn faint

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of rank by step, longest of each bin, in ns; NaN where nothing was recorded."""

    cells: Matrix
    ranks: npt.NDArray[np.int64]  # first rank of each row
    steps: npt.NDArray[np.int64]  # first step of each column
    last_step: int
    what: str
    per_row: int
    per_column: int
    iteration: Matrix  # longest duration of each column, ns
    lost: Matrix  # sum of the cells' values over all steps, ns, for each row


def grid(rows: pa.Table) -> Grid:
    """Give the cells of `rank, step_index, dur_ns, excess_ns`: excess if there is any."""
    rank, step = _whole(rows, "rank"), _whole(rows, "step_index")
    ranks, row = np.unique(rank, return_inverse=True)
    steps, column = np.unique(step, return_inverse=True)
    duration = _filled(rows, "dur_ns", row, column, (len(ranks), len(steps)))
    excess = _filled(rows, "excess_ns", row, column, (len(ranks), len(steps)))
    has_excess = bool((np.nan_to_num(excess) > 0).any())
    values = np.maximum(excess, 0) if has_excess else duration
    per_row, per_column = -(-len(ranks) // _ROWS), -(-len(steps) // _COLUMNS)
    lost = _binned(np.nansum(values, axis=1, keepdims=True), per_row, 1)
    return Grid(
        _binned(values, per_row, per_column), ranks[::per_row], steps[::per_column],
        int(steps[-1]), "excess over the expected time" if has_excess else "duration of the step",
        per_row, per_column, _binned(duration, len(ranks), per_column)[0], lost[:, 0],
    )  # fmt: skip


def _whole(rows: pa.Table, name: str) -> npt.NDArray[np.int64]:
    return np.asarray(rows[name].combine_chunks().to_numpy(zero_copy_only=False), dtype=np.int64)


def _filled(rows: pa.Table, name: str, row: Any, column: Any, shape: tuple[int, int]) -> Matrix:
    values = pc.cast(rows[name], pa.float64()).to_numpy()
    cells = np.full(shape, np.nan)
    np.fmax.at(cells, (row, column), values)
    return cells


def _binned(cells: Matrix, rows: int, columns: int) -> Matrix:
    """Give the largest value of each block of rows by columns."""
    if rows == columns == 1:
        return cells
    tall, wide = (-cells.shape[0]) % rows, (-cells.shape[1]) % columns
    full = np.pad(cells, ((0, tall), (0, wide)), constant_values=np.nan)
    blocks = full.reshape(full.shape[0] // rows, rows, full.shape[1] // columns, columns)
    lowest = np.where(np.isnan(blocks), -np.inf, blocks).max(axis=(1, 3))
    return np.where(np.isneginf(lowest), np.nan, lowest)


def draw(
    rows: pa.Table, findings: Sequence[tuple[int, Finding]], hosts: Mapping[int, str], name: str
) -> str:
    """Give the picture; findings come with the numbers that the page gives them."""
    cells = grid(rows)
    high = min(max(len(cells.ranks) * 0.2, 1.2), 5.2)
    with canvas.drawing(9.6, high + 1.9) as figure:
        parts = figure.subplot_mosaic(
            [["time", "."], ["heat", "lost"]], width_ratios=[6, 1], height_ratios=[0.75, high]
        )
        _draw_cells(figure, parts["heat"], cells)
        _draw_ranks(parts["heat"], cells, hosts)
        _draw_time(parts["time"], cells, findings)
        _draw_lost(parts["lost"], cells)
        _draw_marks(parts["heat"], cells, findings)
        says = f"Heat map of {cells.what}, rank by step, {len(findings)} findings marked"
        return canvas.svg(figure, name, says)


def _top(cells: Matrix) -> float:
    seen = cells[np.isfinite(cells)]
    return float(np.max(seen)) if seen.size else 1.0


def _draw_cells(figure: Any, axes: Axes, cells: Grid) -> None:
    seen = cells.cells[np.isfinite(cells.cells)]
    # one giant cell must not make all others look healthy, nor a healthy run's noise look ill
    top = float(np.quantile(seen, 0.998)) if seen.size else 1.0
    usual = float(np.nanmedian(cells.iteration))
    excess = cells.what.startswith("excess")
    low = 0.0 if excess else float(np.quantile(seen, 0.02)) if seen.size else 0.0
    top = max(top, low + usual * _WORTH_SEEING, low + 1)
    size, unit = canvas.time_unit(top)
    image = axes.imshow(
        np.ma.masked_invalid(cells.cells / size), aspect="auto", interpolation="none",
        cmap=canvas.HEAT, vmin=low / size, vmax=top / size,
    )  # fmt: skip
    bar = figure.colorbar(image, ax=axes, location="bottom", fraction=0.05, aspect=60, pad=0.02)
    bar.set_label(f"{cells.what}, {unit}" + (", longest of each bin" if _merged(cells) else ""))
    bar.outline.set_visible(False)


def _merged(cells: Grid) -> bool:
    return cells.per_row > 1 or cells.per_column > 1


def _draw_ranks(axes: Axes, cells: Grid, hosts: Mapping[int, str]) -> None:
    ranks = cells.ranks.tolist()
    places = canvas.every(ranks, 24)
    axes.set_yticks(places, [str(ranks[p]) for p in places])
    axes.set_ylabel("rank" if cells.per_row == 1 else f"rank, {cells.per_row} a row")
    steps = cells.steps.tolist()
    ticks = canvas.every(steps, 12)
    axes.set_xticks(ticks, [f"{steps[t]:,}" for t in ticks])
    axes.set_xlabel("step" if cells.per_column == 1 else f"step, {cells.per_column} a column")
    axes.spines[:].set_visible(False)
    blocks = list(_blocks([hosts.get(rank, "") for rank in ranks]))
    if 1 < len(blocks) <= 16:
        for host, first, last in blocks:
            axes.text(
                1.006, 1 - (first + last + 1) / 2 / len(ranks), canvas.shortened(host, 14),
                transform=axes.transAxes, rotation=90, va="center", ha="left", color=canvas.MUTED,
                fontsize=7.5,
            )  # fmt: skip
            if first:
                axes.axhline(first - 0.5, color=canvas.MUTED, linewidth=0.8)


def _blocks(names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Give each stretch of equal names with its first and last place."""
    first = 0
    for place in range(1, len(names) + 1):
        if place == len(names) or names[place] != names[first]:
            yield names[first], first, place - 1
            first = place


def _draw_time(axes: Axes, cells: Grid, findings: Sequence[tuple[int, Finding]]) -> None:
    size, name = canvas.time_unit(_top(cells.iteration))
    axes.step(
        np.arange(len(cells.iteration)), cells.iteration / size, where="mid", color=canvas.INK,
        linewidth=1,
    )  # fmt: skip
    axes.set_xlim(-0.5, len(cells.steps) - 0.5)
    axes.set_ylim(0, 1.12 * _top(cells.iteration) / size)
    axes.set_xticks([])
    axes.set_ylabel(name)
    axes.set_title("time of each step, longest rank")
    for _, finding in findings:
        if (ends := _columns(cells, finding)) is not None:
            axes.axvspan(ends[0] - 0.5, ends[1] + 0.5, color=canvas.ALARM, alpha=0.12, linewidth=0)


def _draw_lost(axes: Axes, cells: Grid) -> None:
    size, name = canvas.time_unit(_top(cells.lost))
    rows = np.arange(len(cells.lost))
    axes.barh(
        rows,
        cells.lost / size,
        height=0.72 if len(rows) <= 32 else 1,
        color=canvas.MUTED,
        antialiased=len(rows) <= 32,
    )
    axes.set_ylim(len(cells.lost) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xlabel(f"sum, {name}")
    axes.locator_params(axis="x", nbins=3)


def _columns(cells: Grid, finding: Finding) -> tuple[int, int] | None:
    first, last = finding.first_step, finding.last_step
    if first is None or last is None or last < cells.steps[0] or first > cells.last_step:
        return None
    ends = np.searchsorted(cells.steps, [first, last], side="right") - 1
    return max(int(ends[0]), 0), max(int(ends[1]), 0)


def _draw_marks(axes: Axes, cells: Grid, findings: Sequence[tuple[int, Finding]]) -> None:
    for number, finding in findings:
        ends = _columns(cells, finding)
        if ends is None:
            continue
        blamed = finding.culprit.ranks or tuple(cells.ranks.tolist())
        rows = np.unique(np.searchsorted(cells.ranks, sorted(blamed), side="right") - 1)
        # what is in a row is one box
        for stretch in np.split(rows, np.nonzero(np.diff(rows) > 1)[0] + 1):
            top, bottom = max(int(stretch[0]), 0), max(int(stretch[-1]), 0)
            axes.add_patch(Rectangle(
                (ends[0] - 0.5, top - 0.5), ends[1] - ends[0] + 1, bottom - top + 1,
                fill=False, edgecolor=canvas.INK, linewidth=1.4,
            ))  # fmt: skip
            axes.annotate(
                str(number), (ends[0] - 0.5, top - 0.5), xytext=(-1, 1),
                textcoords="offset points", ha="right", va="top", fontsize=8.5, fontweight="bold",
                color=canvas.PAPER, annotation_clip=False,
                bbox={"boxstyle": "round,pad=0.18", "facecolor": canvas.INK, "linewidth": 0},
            )  # fmt: skip
