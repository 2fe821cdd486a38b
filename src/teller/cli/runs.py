"""`teller runs`: what the workspace holds."""

import sys
from typing import Annotated, Literal

import typer

from teller.cli import options, out
from teller.errors import BadUsage


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, epilog="Example: teller runs list"
    )
    group.command("list", epilog="Example: teller runs list --format json")(list_runs)
    group.command("show", epilog="Example: teller runs show NAME")(show_run)
    group.command("rm", epilog="Example: teller runs rm NAME --yes")(remove_run)
    app.add_typer(group, name="runs", help="List the stored runs, show one, or remove one.")


Named = Annotated[str, typer.Argument(metavar="ID|NAME", help="As teller runs list has it.")]
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="How to say it.")]


def list_runs(
    format: Format = "text",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
) -> int:
    """List the stored runs, the latest first."""
    from teller.ui import phrase, text

    place = options.workspace_at(workspace, store)
    entries = place.entries()[::-1]
    if format == "json":
        said = [
            {"id": str(e.run_id), "name": e.name, "deployment": e.deployment,
             "created": phrase.clock(e.created_epoch_ns)}
            for e in entries
        ]  # fmt: skip
        out.write(out.as_json(said), None)
        return 0
    table = text.plain_table("Run", "deployment", "read in", "id")
    for entry in entries:
        table.add_row(
            text.word(entry.name), text.word(entry.deployment),
            phrase.clock(entry.created_epoch_ns), str(entry.run_id),
        )  # fmt: skip
    text.show(text.console(sys.stdout, wide=True), [table])
    return 0


def show_run(
    run: Named,
    format: Format = "text",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
) -> int:
    """Show a stored run: its ranks and hosts, its inputs, and what was found in it."""
    from teller.graph import recall
    from teller.ui import listing, text

    place = options.workspace_at(workspace, store)
    entry = options.run_named(place, run)
    with place.reader() as graph:
        found = recall.diagnosis(graph, entry.run_id)
    if format == "json":
        out.write(out.as_json(found.to_json()), None)
        return 0
    screen = text.console(sys.stdout, wide=True)
    read = listing.what_was_read(found.runs, found.inputs, found.data_quality, each=True)
    titles = [
        text.word(f"{finding.severity}: {finding.title}", text.SEVERITY_STYLES[finding.severity])
        for finding in found.findings
    ]
    text.show(screen, [*read, "", text.headline(found), *titles])
    return 0


def remove_run(
    run: Named,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    quiet: options.Quiet = False,
) -> int:
    """Remove a run and its findings from the workspace; the recorded files stay."""
    entry = options.run_named(options.workspace_at(workspace, store), run)
    if not yes:
        if not sys.stdin.isatty():
            raise BadUsage(f"to remove {entry.name} without being asked, add --yes")
        typer.confirm(f"Remove {entry.name} and its findings?", abort=True, err=True)
    with options.workspace_at(workspace, store, write=True) as place:
        place.remove(entry.run_id)
    out.note(f"removed {entry.name}", quiet=quiet)
    return 0
