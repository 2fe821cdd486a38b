"""`teller report`: one HTML page about a stored run, to open, send or print."""

from pathlib import Path
from typing import Annotated

import typer

from teller.cli import diagnose, options, out


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Write one HTML page about a stored run.",
        epilog="Example: teller report -o night-run.html",
    )(report)


def report(
    run: options.RunName = "",
    format: Annotated[diagnose.Format, typer.Option(help="How to write it.")] = "html",
    output: options.Out = None,
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    quiet: options.Quiet = False,
) -> int:
    """Write what is stored of a run's diagnosis; HTML goes to teller-report.html unless -o says.

    The page is one file that needs no network.
    """
    from teller import pipeline

    place = options.workspace_at(workspace, store)
    entry = options.run_named(place, run)
    found = pipeline.remember(place, entry.run_id)
    file = output or (Path("teller-report.html") if format == "html" else None)
    diagnose.show(found, place, format, file)
    if file is not None:
        out.note(f"{format}: {file}", quiet=quiet)
    return 0
