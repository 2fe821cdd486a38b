"""Pictures of tables, as SVG that is the same for the same figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.figure import Figure

from teller.learning.evaluating.bootstrap import Interval
from teller.learning.evaluating.state import Part, Table
from teller.learning.evaluating.work import HEADS

ASKED: Final = tuple(HEADS[n] for n in ("recall", "class_accuracy", "op_top1", "joint"))


def pictures(tables: list[Table], folder: Path) -> dict[str, str]:
    """Draw what can be drawn into a folder; gives the file's name by table."""
    drawn = {}
    for table in tables:
        draw = _DRAWN.get(table.name)
        if draw is not None and table.parts and table.parts[0].rows:
            figure = Figure(figsize=(7, 3.6), layout="constrained")
            draw(table, figure)
            folder.mkdir(parents=True, exist_ok=True)
            with matplotlib.rc_context({"svg.hashsalt": "teller", "svg.fonttype": "none"}):
                figure.savefig(folder / f"{table.name}.svg", metadata={"Date": None})
            drawn[table.name] = f"{folder.name}/{table.name}.svg"
    return drawn


def _severity(table: Table, figure: Figure) -> None:
    """Draw figures by band, the model beside the last floor."""
    for axes, part in zip(
        figure.subplots(1, len(table.parts), sharey=True), table.parts, strict=True
    ):
        names = [name for name, _ in part.rows]
        for head in ASKED:
            _line(axes, names, _column(part, head), head)
        axes.set_title(part.title, fontsize=9)
        axes.set_ylim(0, 1.02)
        axes.tick_params(axis="x", rotation=30, labelsize=7)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(ASKED), fontsize=7)


def _priors(table: Table, figure: Figure) -> None:
    """Draw AUPRC over the prior, a line a judge."""
    part = table.parts[-1]
    heads = [HEADS[n] for n in ("auprc", "auprc at 5 %", "auprc at 1 %", "auprc at 0.1 %")]
    axes = figure.subplots()
    for name, cells in part.rows:
        values = [cells[part.columns.index(h)] for h in heads]
        _line(axes, heads, values, name, band=name == part.rows[0][0])
    axes.set_title(part.title, fontsize=9)
    axes.set_ylim(0, 1.02)
    figure.legend(loc="outside right center", fontsize=7)


def _joint(table: Table, figure: Figure) -> None:
    """Draw the last column with its interval, a bar a judge."""
    part = table.parts[-1]
    names = [name for name, _ in part.rows][::-1]
    cells = _column(part, HEADS["joint"])[::-1]
    axes = figure.subplots()
    value = [_value(c) for c in cells]
    low = [v - _value(c, "low") for v, c in zip(value, cells, strict=True)]
    high = [_value(c, "high") - v for v, c in zip(value, cells, strict=True)]
    axes.barh(names, value, xerr=[low, high], color="#4477aa", ecolor="#222222")
    axes.set_xlim(0, 1)
    axes.set_title(f"{HEADS['joint']}, {part.title.lower()}", fontsize=9)
    axes.tick_params(labelsize=7)


_DRAWN: Final[dict[str, Callable[[Table, Figure], None]]] = {
    "causes": _joint, "priors": _priors, "severity": _severity, "inputs": _joint,
    "retrained": _joint,
}  # fmt: skip


def _column(part: Part, head: str) -> list[Any]:
    at = part.columns.index(head)
    return [cells[at] for _, cells in part.rows]


def _line(axes: Any, names: list[str], cells: list[Any], label: str, *, band: bool = True) -> None:
    value = [_value(c) for c in cells]
    axes.plot(names, value, marker="o", markersize=3, label=label)
    if band:
        low, high = [_value(c, "low") for c in cells], [_value(c, "high") for c in cells]
        axes.fill_between(names, low, high, alpha=0.12)


def _value(cell: Any, what: str = "value") -> float:
    found = getattr(cell, what, None) if isinstance(cell, Interval) else cell
    return float("nan") if found is None else float(found)
