"""Tables as text and as one page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from teller.learning.evaluating.bootstrap import Interval
from teller.learning.evaluating.state import Cell, Part, Table

NONE: Final = "–"
HEAD: Final = """# How good the model is

`teller evaluate` makes this page; nothing in it is written by hand. Each table is kept in
[{folder}/]({folder}/) with hashes of the model and of the runs it was made of, and is made
again only where one of them changed.

The unit is the iteration: all ranks of one step. It is positive where a fault cost a rank at
least 3 % of it, against a replay of the same plan without the fault; left out where a fault acted
and cost less; negative else, whatever the load was. Sets share no root seed. Figures stand with
their 95 % interval, by a bootstrap over root seeds ({draws} draws). “Runs count alike” weighs
iterations so that a long fault of one run does not stand for many.
"""


def text_of(table: Table) -> str:
    """Give a table for a terminal."""
    lines = [f"{table.title} ({table.name})", ""]
    for part in table.parts:
        rows = [["", *part.columns], *([name, *map(shown, cells)] for name, cells in part.rows)]
        widths = [max(len(r[n]) for r in rows) for n in range(len(rows[0]))]
        lines.append(part.title)
        lines += [
            "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
        ]
        lines.append("")
    return "\n".join(lines)


def page(
    tables: Sequence[Table], stale: Mapping[str, str], pictures: Mapping[str, str], folder: str
) -> str:
    """Give the page; `stale` says by name what changed since, `pictures` are files by name.

    `folder` is the name of the one beside the page where tables are kept.
    """
    draws = ", ".join(sorted({str(t.made.draws) for t in tables}))
    out = [HEAD.format(draws=draws, folder=folder)]
    for table in tables:
        out += [f"## {table.title}\n", f"{table.text}\n"]
        if table.name in stale:
            out.append(f"**Not up to date: {stale[table.name]}.**\n")
        for part in table.parts:
            out += [f"{part.title}:\n", *_markdown(part), ""]
        if table.name in pictures:
            out.append(f"![{table.title}]({pictures[table.name]})\n")
        made = table.made
        times = "once" if made.times == 1 else f"{made.times} times"
        out.append(f"Made on {made.day}, {times} so far, by `{made.command}`.\n")
    return "\n".join(out)


def _markdown(part: Part) -> list[str]:
    return [
        f"| | {' | '.join(part.columns)} |",
        f"|---|{'--:|' * len(part.columns)}",
        *(f"| {name} | {' | '.join(map(shown, cells))} |" for name, cells in part.rows),
    ]


def shown(cell: Cell) -> str:
    """Give a cell as it is read: a figure with its interval, a rate with its bound."""
    if isinstance(cell, Interval):
        if cell.value is None:
            return NONE
        if cell.bound is not None:
            return f"{cell.value:.2%} (≤ {cell.bound:.2%})"
        if cell.low is None or cell.high is None:
            return _part(cell.value)
        return f"{_part(cell.value)} ({_part(cell.low)}–{_part(cell.high)})"
    if cell is None:
        return NONE
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


def _part(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1) if value < 1 else f"{value:.3f}"


def write(text: str, path: Path) -> None:
    """Write the page where it is another one."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
