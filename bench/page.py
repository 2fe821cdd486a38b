"""Figures as Markdown, put into the page between its two markers."""

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final

from cost import Cost

BEGIN: Final = "<!-- figures: written by make bench -->"
END: Final = "<!-- end of figures -->"
LIBRARIES: Final = ("ladybug", "msgspec", "numpy", "pyarrow")


@dataclass(slots=True)
class Row:
    """One piece of work, measured once a round; `units` are the CPU seconds of one unit then."""

    title: str
    goal: float | None = None
    ours: bool = True
    costs: list[Cost] = field(default_factory=list)
    units: list[float] = field(default_factory=list)
    problem: str = ""

    @property
    def times(self) -> list[float]:
        """Give the cost in units, a figure a round."""
        return [c.cpu_s / u for c, u in zip(self.costs, self.units, strict=True)]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one set of files, and what the unit is."""

    title: str
    unit: str
    rows: tuple[Row, ...]
    memory: tuple[int, int] | None = None  # MiB, goals of our rows: largest process, and all


@dataclass(frozen=True, slots=True)
class Answer:
    """What was planted, and what each tool said of it."""

    planted: str
    ours: str
    peers: str


def write(page: Path, text: str) -> None:
    """Put the text between the page's markers."""
    head, rest = page.read_text().split(BEGIN)
    _, tail = rest.split(END)
    page.write_text(f"{head}{BEGIN}\n\n{text.strip()}\n\n{END}{tail}")


def table(one: Table) -> str:
    """Give a table with a line a piece of work."""
    lines = [
        f"### {one.title}", "",
        f"| work | CPU, s | × {one.unit} | {_rounds(one)} | goal | largest process, MiB "
        "| all, MiB |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(_line(row) for row in one.rows),
    ]  # fmt: skip
    ours = [c for row in one.rows if row.ours for c in row.costs]
    if one.memory and ours:
        largest, summed = max(c.largest_mib for c in ours), max(c.summed_mib for c in ours)
        lines += [
            "", f"Largest process of TELLER: {_held(largest, one.memory[0])}; "
            f"all of one command together: {_held(summed, one.memory[1])}.",
        ]  # fmt: skip
    return "\n".join(lines)


def _held(mib: float, goal: int) -> str:
    said = f"{mib:.0f} MiB"
    return f"{f'**{said}**' if mib > goal else said} (goal ≤ {goal})"


def _rounds(one: Table) -> str:
    rounds = max(len(row.costs) for row in one.rows)
    return f"in {rounds} rounds" if rounds > 1 else "in one round"


def _line(row: Row) -> str:
    goal = "–" if row.goal is None else f"≤ {_short(row.goal)}"
    if not row.costs:
        return f"| {row.title} | | {row.problem or 'not measured'} | | {goal} | | |"
    times = row.times
    middle = median(times)
    missed = row.goal is not None and round(middle, 2) > row.goal
    said = f"**{_short(middle)}**" if missed else _short(middle)
    return (
        f"| {row.title} | {median(c.cpu_s for c in row.costs):.1f} | {said} "
        f"| {_short(min(times))}–{_short(max(times))} | {goal} "
        f"| {max(c.largest_mib for c in row.costs):.0f} "
        f"| {max(c.summed_mib for c in row.costs):.0f} |"
    )


def _short(number: float) -> str:
    return f"{number:.2f}"


def answers(found: Sequence[Answer]) -> str:
    """Give a table of what was planted and what each tool says."""
    lines = ["| planted | TELLER says | traceinsight says |", "|---|---|---|"]
    return "\n".join(lines + [f"| {a.planted} | {a.ours} | {a.peers} |" for a in found])


def machine() -> str:
    """Say on what it was measured."""
    told = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*:\s*(.*)", told)
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), "
        f"Python {platform.python_version()}, {libraries}"
    )
