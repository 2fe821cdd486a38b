"""`teller doctor`: what would be read, what is missing, and whether this machine is ready."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from teller import __version__
from teller.cli import options, out

if TYPE_CHECKING:
    from teller.graph.survey import Survey
    from teller.graph.workspace import Workspace

_LIBRARIES = ("pyarrow", "numpy", "ladybug", "dask", "msgspec")
_LITTLE_SPACE = 2 << 30


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="See what would be read, and what is missing.",
        epilog="Example: teller doctor night-run/",
    )(doctor)


def doctor(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", exists=True, help="Files and folders to look into."),
    ] = None,
    format: Annotated[Literal["text", "json"], typer.Option(help="How to say it.")] = "text",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    rank_regex: options.RankRegex = "",
    host_regex: options.HostRegex = "",
    quiet: options.Quiet = False,
) -> int:
    """Say what would be read, as what and as which rank, what is missing, and what to do next.

    Nothing is stored. Without a path, only this machine and the workspace are looked at. Exit code:
    0 something can be diagnosed, 2 nothing can.
    """
    place = options.workspace_at(workspace, store)
    machine = dict(_machine(place))
    got = None
    if paths:
        from teller import looking, pipeline
        from teller.ui import progress

        wanted = pipeline.Options(rank_regex=rank_regex, host_regex=host_regex)
        with progress.shown_on(sys.stderr, quiet=quiet) as bars:
            got = looking.survey(paths, wanted, bars)
    advice = list(_advice(got, place))
    if format == "json":
        said = (got.to_json() if got else {}) | {"environment": machine, "next": advice}
        out.write(out.as_json(said), None)
    else:
        _show(got, machine, advice)
    return 2 if got is not None and not got.runs else 0


def _show(got: "Survey | None", machine: dict[str, str], advice: list[str]) -> None:
    from teller.ui import survey, text

    screen = text.console(sys.stdout, wide=True)
    if got is not None:
        text.show(screen, [*survey.blocks(got), ""])
    table = text.plain_table("Environment", "")
    for name, value in machine.items():
        table.add_row(text.word(name), text.word(value))
    text.show(screen, [table, "", *(text.word(f"next: {line}", "bold") for line in advice)])


def _machine(place: "Workspace") -> Iterator[tuple[str, str]]:
    from teller.ui import phrase

    yield "teller", __version__
    yield "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in _LIBRARIES:
        yield name, metadata.version(name)
    yield "processors", str(os.cpu_count() or "unknown")
    yield "workspace", str(place.folder)
    yield "free space there", phrase.size(_free(place))
    yield "runs stored", f"{len(place.archive.runs()):,}"


def _advice(got: "Survey | None", place: "Workspace") -> Iterator[str]:
    if _free(place) < _LITTLE_SPACE:
        yield f"make room: the workspace {place.folder} has little space left"
    if got is None:
        yield "teller doctor PATH looks into recordings; teller demo shows a diagnosis"
        return
    if not got.runs:
        yield "nothing can be read: give the folder that holds the trace files of one run"
        return
    for run in got.runs:
        missing = sorted(set(range(max(run.ranks, default=-1) + 1)) - set(run.ranks))
        if missing:
            from teller.ui import phrase

            ranks = phrase.ranges(missing)
            yield f"{run.name}: add the files of rank {ranks}, or name ranks with --rank-regex"
        captured = not any(m.run == run.name and m.name.startswith("captures") for m in got.missing)
        if captured and not run.steps:
            yield f"{run.name}: no steps seen yet; annotate steps (NVTX or ProfilerStep) for more"
    yield "teller diagnose with the same paths"


def _free(place: "Workspace") -> int:
    """Give the free bytes where the workspace is, or will be."""
    there = next(folder for folder in (place.folder, *place.folder.parents) if folder.exists())
    return shutil.disk_usage(there).free
