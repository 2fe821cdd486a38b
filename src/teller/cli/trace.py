"""`teller trace`: one request from its queue to the kernels of its slowest step."""

from typing import Annotated, Literal

import typer

from teller.cli import options, out


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Follow one request through the run.",
        epilog="Example: teller trace cmpl-0f8fad5b --limit 3",
    )(trace)


def trace(
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="Its id as any program prints it, or a prefix.")
    ],
    format: Annotated[Literal["text", "json"], typer.Option(help="How to say it.")] = "text",
    limit: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Iterations to show, slowest first.")
    ] = 5,
    output: options.Out = None,
    run: options.RunName = "",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
) -> int:
    """Follow one request: its queue, first token and end, and the iterations that served it.

    The slowest of them is opened: over all ranks the calls, launches and collectives that took
    long, who came last, and the log lines that belong to it.
    """
    from teller.ui import story, story_text, text

    place = options.workspace_at(workspace, store)
    entry = options.run_named(place, run)
    with place.reader() as graph:
        found = story.gather(graph, entry.run_id, request, limit)
    if format == "json":
        out.write(out.as_json(story_text.to_json(found)), output)
        return 0
    with out.destination(output) as file:
        text.show(text.console(file, wide=True), story_text.blocks(found))
    return 0
