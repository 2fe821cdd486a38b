"""`teller query`: Cypher over the graph, read only."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from teller.cli import options, out
from teller.errors import BadUsage
from teller.graph.answer import ROWS, TIME_S, Limits
from teller.graph.guard import GUARD

if TYPE_CHECKING:
    import pyarrow as pa

_SCREENFUL = 1000  # rows


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Ask the graph in Cypher.",
        epilog="Example: teller query 'MATCH (s:Step) WHERE s.rank = $rank RETURN s.step_index, "
        "s.dur_ns ORDER BY s.dur_ns DESC LIMIT 5' --param rank=3",
    )(query)


def query(
    cypher: Annotated[str, typer.Argument(metavar="CYPHER", help="The query; - reads stdin.")],
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            show_default=False,
            help="For $NAME in the query: JSON ('7', 'true', '[1,2]'), else text.",
        ),
    ] = None,
    format: Annotated[
        Literal["table", "json", "csv", "parquet"],
        typer.Option(help="JSON holds ids as strings, as most readers would round them."),
    ] = "table",
    output: options.Out = None,
    limit: Annotated[
        int, typer.Option(metavar="ROWS", min=0, help="The most rows that are given; 0: all.")
    ] = ROWS,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="When the query is stopped.")
    ] = TIME_S,
    run: options.RunName = "",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    quiet: options.Quiet = False,
) -> int:
    """Ask the graph in Cypher; $run holds the id of the run that --run names.

    The labels and columns are listed in docs/schema.md. Times are ns since the run's start.
    """
    if format == "parquet" and output is None:
        raise BadUsage("--format parquet needs -o FILE: a terminal cannot show it")
    limits = Limits(limit, timeout)
    if store == "embedded":
        GUARD.warm()
    from teller.graph import guarded
    from teller.graph.tokens import parameters

    text = sys.stdin.read() if cypher == "-" else cypher
    params = dict(map(parsed, param or ()))
    place = options.workspace_at(workspace, store)
    if "run" in parameters(text):
        params.setdefault("run", options.run_named(place, run).run_id)
    elif run:
        raise BadUsage("--run is given, but the query does not ask for $run")
    answer = guarded.ask(place, text, params, limits)
    write_table(answer.table, format, output, quiet=quiet)
    for notice in answer.notices:  # also to the quiet: who reads the file would take it for all
        out.note(f"{notice}; --limit 0 gives all")
    return 0


def parsed(given: str) -> tuple[str, Any]:
    """Give name and value of NAME=VALUE; the value is JSON where it is that, else text."""
    import json

    name, is_there, value = given.partition("=")
    if not is_there or not name.isidentifier():
        raise BadUsage(f"--param {given}: not of the form NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def write_table(found: "pa.Table", format: str, output: Path | None, *, quiet: bool) -> None:
    """Write a table in one of the formats, and note how many rows it has."""
    from teller.ui import listing, phrase, tables, text

    said = phrase.counted(found.num_rows, "row")
    if format == "parquet" and output is not None:
        with out.replacing(output) as scratch:
            tables.write_parquet(found, scratch)
    else:
        with out.destination(output) as file:
            if format == "csv":
                tables.write_csv(found, file)
            elif format == "json":
                tables.write_json(found, file)
            else:
                rows = listing.rows(found.slice(0, _SCREENFUL))
                text.show(text.console(file, wide=True), [rows])
                if found.num_rows > _SCREENFUL:
                    said += f"; the first {_SCREENFUL:,} are shown, --format csv has the others"
    if output is not None or format == "table":
        out.note(f"{said} in {output}" if output else said, quiet=quiet)
