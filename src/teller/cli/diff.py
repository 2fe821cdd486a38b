"""`teller diff`: what changed from one run to another, for people and for a build."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from teller.cli import options, out
from teller.errors import BadUsage

if TYPE_CHECKING:
    from teller.graph.difference import Difference


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Compare two runs: what is slower, and why.",
        epilog="Example: teller diff last-week/ today/ --threshold 5%",
    )(diff)


def share(given: str) -> float:
    """Give a share from "5%" or "0.05"."""
    number, percent = given.strip().removesuffix("%"), given.strip().endswith("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise BadUsage(f"--threshold {given}: not a share such as 5% or 0.05")
    return value


def diff(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="USUAL NOW",
            help="Stored runs, files or folders; or one folder with two runs in it.",
        ),
    ],
    threshold: Annotated[
        str, typer.Option(metavar="SHARE", help="From which change on slower counts: 5% or 0.05.")
    ] = "5%",
    format: Annotated[
        Literal["text", "json", "markdown"], typer.Option(help="How to say it.")
    ] = "text",
    output: options.Out = None,
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    rank_regex: options.RankRegex = "",
    host_regex: options.HostRegex = "",
    deployment: options.Deployment = "",
    rules: options.RulesDir = None,
    quiet: options.Quiet = False,
) -> int:
    """Compare two runs at like load: steps, operators, collectives, throughput, settings, faults.

    Exit code: 0 nothing is slower by the threshold and no fault is new, 1 something is, 2 the runs
    cannot be compared.
    """
    from teller import compare, pipeline
    from teller.graph.difference import exit_code
    from teller.ui import progress

    if len(places) > 2:
        raise BadUsage(f"teller diff compares two runs, not {len(places)}")
    wanted = pipeline.Options(
        rank_regex=rank_regex, host_regex=host_regex, deployment=deployment, rules_dir=rules
    )
    limit = share(threshold)
    place = options.workspace_at(workspace, store)
    with progress.shown_on(sys.stderr, quiet=quiet) as bars:
        found = compare.difference(places, place, wanted, bars, limit)
    _write(found, format, output)
    if output is not None:
        out.note(f"{format}: {output}", quiet=quiet)
    return exit_code(found)


def _write(found: "Difference", format: str, output: Path | None) -> None:
    from teller.ui import difference, text

    if format == "json":
        out.write(out.as_json(found.to_json()), output)
    elif format == "markdown":
        out.write(difference.as_markdown(found), output)
    else:
        with out.destination(output) as file:
            text.show(text.console(file, wide=True), difference.text(found))
