"""`teller trace`: one request from its queue to the kernels of its slowest step, or one step."""

import re
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from teller.cli import options, out
from teller.errors import BadUsage

if TYPE_CHECKING:
    from teller.graph.store import Store
    from teller.models.slices import Slice


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Follow one request through the run, or open one step.",
        epilog="Example: teller trace cmpl-0f8fad5b --limit 3",
    )(trace)


def trace(
    request: Annotated[
        str,
        typer.Argument(
            metavar="REQUEST",
            show_default=False,
            help="Its id as any program prints it, or a prefix.",
        ),
    ] = "",
    slice: Annotated[
        str,
        typer.Option(
            "--slice",
            metavar="RANK:STEP",
            show_default=False,
            help="A step of a rank instead: what can explain it, over all ranks.",
        ),
    ] = "",
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
    long, who came last, and the log lines that belong to it. With --slice a step is opened: its
    odd spans with their callers, and what made the ranks late that it waited for.
    """
    from teller.ui import slice_text, story, story_text, text

    if bool(request) == bool(slice):
        raise BadUsage(
            "give one of REQUEST and --slice RANK:STEP, as in: teller trace --slice 0:41"
        )
    place = options.workspace_at(workspace, store)
    entry = options.run_named(place, run)
    with place.reader() as graph:
        if slice:
            cut = _slice(graph, entry.run_id, slice)
            said, blocks = slice_text.to_json(cut), slice_text.blocks(cut)
        else:
            found = story.gather(graph, entry.run_id, request, limit)
            said, blocks = story_text.to_json(found), story_text.blocks(found)
    if format == "json":
        out.write(out.as_json(said), output)
        return 0
    with out.destination(output) as file:
        text.show(text.console(file, wide=True), blocks)
    return 0


def _slice(graph: "Store", run: int, named: str) -> "Slice":
    """Cut the slice of the step that is named by rank and number."""
    from teller.graph import queries
    from teller.models.slices import slice_of

    numbers = re.fullmatch(r"(\d{1,9}):(\d{1,15})", named)
    if not numbers:
        raise BadUsage(f"--slice {named}: give rank and number of a step, as in --slice 0:41")
    rank, index = map(int, numbers.groups())
    found = queries.run(graph, "step_of_rank", run=run, rank=rank, number=index)
    if not found.num_rows:
        raise BadUsage(
            f"--slice {named}: rank {rank} has no step {index}; teller query 'MATCH (t:Step) "
            "RETURN t.rank, min(t.step_index), max(t.step_index)' says which there are"
        )
    return slice_of(graph, run, found["id"].to_pylist()[:1])
