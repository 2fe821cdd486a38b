"""`teller migrate`: brings a server to the schema of this release."""

from typing import Annotated

import typer

from teller.cli import options, out


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Bring a graph server to the schema of this release.",
        epilog="Example: teller migrate --store neo4j://graph.example --dry-run",
    )(migrate)


def migrate(
    store: options.StoreUri = "embedded",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    quiet: options.Quiet = False,
) -> int:
    """Apply the numbered files of migrations/ that the server lacks, in order.

    What was applied is kept on the server as neo4j-migrations keeps it. Cut off, do it again.
    """
    from teller.graph import migrate as migrating
    from teller.graph.neo4j import connect
    from teller.graph.neo4j_words import our_errors

    place = options.shared_at(None, store).address
    with connect(place) as driver, our_errors(place, 0):
        act = migrating.pending if dry_run else migrating.migrate
        done = act(driver, place)
    lines = []
    for one in done:
        lines.append(one.source)
        lines += [f"  {statement}" for statement in one.statements if dry_run]
    if lines:
        out.write("\n".join(lines) + "\n", None)
    if not done:
        out.note(f"{place.uri} is up to date", quiet=quiet)
    return 0
