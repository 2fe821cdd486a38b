"""Measure TELLER beside plain parsing and beside a peer, and write docs/benchmarks.md again.

Each piece of work runs in a fresh process. Rounds go through all pieces in turn, so that a figure
and its unit are taken close together.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import cost
import page
import peers
import stragglers
from page import Row, Table
from places import EXPORT, HERE, PAGE, SHARED, TELLER, TRACE, export, files, traces

ROUNDS: Final = 3
SMALL, LARGE = 1_000_000, 5_000_000
MEMORY: Final = (1024, 1536)  # MiB at most at the large size: the largest process, and all


@dataclass(frozen=True, slots=True)
class Stage:
    """One row to measure: its command, and the exit codes that are success."""

    row: Row
    command: Callable[[Path], list[str]]  # of the round's own folder
    fine: tuple[int, ...] = (0,)


def main() -> None:
    """Measure as the command line says."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--quick", action="store_true", help="one round instead of three")
    said.add_argument("--full", action="store_true", help="5·10⁶ events too, in one round")
    said.add_argument("--scratch", type=Path, help="where to make files; else a temporary folder")
    told = said.parse_args()
    if not TRACE.exists():
        sys.exit(f"the seed traces are not in {SHARED}; TELLER_SHARED names another folder")
    flags = [f"BENCH=--{name}" for name in ("quick", "full") if getattr(told, name)]
    parts = [_about(" ".join(["make bench", *flags]))]
    with tempfile.TemporaryDirectory(prefix="teller-bench-", dir=told.scratch) as made:
        missing = peers.install(Path(made))
        rounds = 1 if told.quick else ROUNDS
        for size in (SMALL, LARGE) if told.full else (SMALL,):
            rounds = rounds if size < LARGE else 1  # as long as five of the others
            parts.append(page.table(_kineto(Path(made), size, rounds, missing)))
            parts.append(page.table(_export(Path(made), size, rounds)))
        parts.append(_demo(Path(made), ROUNDS))
        parts += ["### Who is slow?", page.answers(stragglers.asked(Path(made), missing))]
    page.write(PAGE, "\n\n".join(parts))


def _about(command: str) -> str:
    return (
        f"Measured on {date.today()} by `{command}` on {page.machine()}; processes that ran or "
        f"waited when it began: {os.getloadavg()[0]:.1f}."
    )


def _work(name: str, *arguments: object) -> list[str]:
    return [sys.executable, str(HERE / "work.py"), name, *map(str, arguments)]


def _kineto(made: Path, size: int, rounds: int, missing: str) -> Table:
    """Measure everything on traces of eight ranks."""
    folder = made / "traces"
    with files(folder, traces(folder, "--events", str(size))):
        written = json.loads(folder.with_suffix(".truth.json").read_text())["written"]
        stages = [
            Stage(Row("`json.load`", ours=False), lambda _: _work("parse_json", folder)),
            Stage(Row("start of Python and imports alone"), lambda _: _work("start")),
            Stage(Row("read to typed tables", 0.5), lambda _: _work("read", folder)),
            Stage(Row("read, structure, archive", 1.0),
                  lambda own: _work("archive", folder, own / "a")),
            Stage(Row("graph, from the archive"), lambda own: _work("graph", own / "a")),
            Stage(Row("`teller ingest`, all of it", 2.0),
                  lambda own: [TELLER, "ingest", str(folder), "--workspace", str(own / "b"), "-q"]),
            Stage(Row("`teller diagnose` of it, ingested", 1.0), lambda own: [
                TELLER, "diagnose", str(folder), "--workspace", str(own / "b"), "-q"], (0, 1)),
            Stage(Row("traceinsight: parse", ours=False, problem=missing), lambda _: [
                *peers.COMMAND, "parse", str(folder)]),
        ]  # fmt: skip
        _measure(made, stages, rounds)
    title = f"Kineto, 8 ranks, {written:,} events"
    return Table(
        title, "json.load", tuple(s.row for s in stages), MEMORY if size == LARGE else None
    )


def _export(made: Path, size: int, rounds: int) -> Table:
    """Measure the reader of Nsight Systems exports."""
    path = made / "export.sqlite"
    asked = cost.of(_work("asked", EXPORT), made / "log").said
    with files(path, export(path, size)):
        stages = [
            Stage(Row("`fetchall`", ours=False), lambda _: _work("fetch_all", path, asked)),
            Stage(Row("read to typed tables", 0.7), lambda _: _work("read_export", path)),
        ]
        _measure(made, stages, rounds)
    title = f"Nsight Systems SQLite, about {size:,} rows of events"
    return Table(title, "fetchall", tuple(s.row for s in stages))


def _measure(made: Path, stages: list[Stage], rounds: int) -> None:
    """Fill the rows; the first is the unit. What failed once is not tried again."""
    for number in range(rounds):
        own = made / f"round-{number}"
        own.mkdir()
        unit = 0.0
        for stage in stages:
            if stage.row.problem:
                continue
            found = cost.of(stage.command(own), made / "log")
            unit = unit or found.cpu_s
            if found.code in stage.fine:
                stage.row.costs.append(found)
                stage.row.units.append(unit)
            else:
                stage.row.problem = found.complaint
            _note(f"round {number + 1}: {stage.row.title}: {found.cpu_s:.1f} CPU s")
        shutil.rmtree(own)


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _demo(made: Path, rounds: int) -> str:
    found = [
        cost.of([TELLER, "demo", "--workspace", str(made / f"demo-{n}"), "-q"], made / "log")
        for n in range(rounds)
    ]
    best = min(found, key=lambda c: c.wall_s)
    if best.code != 1:
        return f"`teller demo`: {best.complaint}"
    return (
        f"`teller demo`, the fastest of {rounds}: {best.wall_s:.1f} s, {best.cpu_s:.1f} s of CPU, "
        f"{best.largest_mib:.0f} MiB."
    )


if __name__ == "__main__":
    main()
