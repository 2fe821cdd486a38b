"""`teller push`: copies runs of the workspace to a graph server."""

from pathlib import Path
from typing import Annotated

import typer

from teller.cli import options, out


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Copy runs to a graph server.",
        epilog="Example: teller push night-run --store neo4j://graph.example",
    )(push)


def push(
    runs: Annotated[
        list[str], typer.Argument(metavar="ID|NAME", help="As teller runs list has them.")
    ],
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    offline: Annotated[
        Path | None,
        typer.Option(
            metavar="HOME",
            exists=True,
            file_okay=False,
            show_default=False,
            help="Instead of --store: make the database in the home of a stopped, new server.",
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> int:
    """Copy runs from the workspace to a server, and see that all rows arrived.

    What is there already stays, but for what was found in it since. Cut off, do it again.
    """
    # what was said wrongly comes first, whatever the workspace holds
    place = options.shared_at(workspace, store) if offline is None else None
    kept = options.workspace_at(workspace, "embedded")
    wanted = [options.run_named(kept, name) for name in runs]
    if offline is not None:
        from teller.graph.project import project
        from teller.graph.shared import import_into

        count = import_into(offline.resolve(), kept, project, [e.run_id for e in wanted])
        out.note(f"{count:,} rows in {offline}; start the server and migrate it", quiet=quiet)
        return 0
    assert place is not None
    with place.writer() as writer:
        for entry in wanted:
            [counts] = writer.push([entry.run_id]).values()
            nodes = sum(n for name, n in counts.items() if "." not in name)
            edges = sum(counts.values()) - nodes
            said = f"{entry.name}: {nodes:,} nodes and {edges:,} relations"
            out.note(f"{said} on {place.address.uri}", quiet=quiet)
    return 0
