"""`teller export`: a run as a Perfetto trace, or a table of the graph as a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from teller.cli import options, out, query
from teller.errors import BadUsage

if TYPE_CHECKING:
    from teller.graph.archive import RunEntry
    from teller.graph.workspace import Workspace


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Write a Perfetto trace or a table.",
        epilog="Example: teller export --perfetto run.json.gz --steps 40:45 --rank 3; open it in "
        "Perfetto or chrome://tracing",
    )(export)


def export(
    perfetto: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, show_default=False,
            help="Write a Chrome trace with the findings on top; .gz compresses.",
        ),
    ] = None,
    table: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False,
            help="Write a table of the graph: Span, Step, CHILD, ABOUT.Sample.Rank, …",
        ),
    ] = "",
    steps: Annotated[
        str, typer.Option(metavar="A:B", show_default=False, help="Only steps A to B.")
    ] = "",
    rank: Annotated[
        list[int] | None, typer.Option(metavar="R", help="Only this rank; may be repeated.")
    ] = None,
    flows: Annotated[bool, typer.Option(help="Arrows from launches to device work.")] = True,
    format: Annotated[Literal["csv", "parquet", "json"], typer.Option()] = "csv",
    output: options.Out = None,
    run: options.RunName = "",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    quiet: options.Quiet = False,
) -> int:  # fmt: skip
    """Write a run as a trace that Perfetto opens, or a table of the graph as a file."""
    if bool(perfetto) == bool(table):
        raise BadUsage("give one of --perfetto FILE and --table NAME")
    if table and format == "parquet" and output is None:
        raise BadUsage("--format parquet needs -o FILE: a terminal cannot show it")
    first, last = step_range(steps)
    place = options.workspace_at(workspace, store)
    entry = options.run_named(place, run)
    if table:
        _table(place, entry, table, format, output, quiet=quiet)
    elif perfetto:
        _trace(place, entry, perfetto, (first, last), tuple(rank or ()), flows=flows)
        out.note(f"trace: {perfetto}; next: open it at https://ui.perfetto.dev", quiet=quiet)
    return 0


def step_range(given: str) -> tuple[int | None, int | None]:
    """Give the two ends of A:B, both included; an end that is left out is open."""
    if not given:
        return None, None
    first, colon, last = given.partition(":")
    try:
        low, high = (int(end) if end else None for end in (first, last if colon else first))
    except ValueError:
        raise BadUsage(f"--steps {given}: give A:B, two step numbers, or A for one") from None
    return low, high


def _trace(
    place: "Workspace", entry: "RunEntry", file: Path, steps: tuple[int | None, int | None],
    ranks: tuple[int, ...], *, flows: bool,
) -> None:  # fmt: skip
    from tempfile import TemporaryDirectory

    from teller.graph import recall
    from teller.graph.project import project
    from teller.ui import perfetto

    wanted = perfetto.Cut(steps[0], steps[1], ranks, flows)
    with place.reader() as graph:
        found = recall.diagnosis(graph, entry.run_id)
    with TemporaryDirectory(prefix="teller-") as folder, out.replacing(file) as scratch:
        tables = project(place.archive.folder_of(entry.run_id), Path(folder))
        perfetto.write(tables, found, wanted, scratch, packed=file.suffix == ".gz")


def _table(
    place: "Workspace", entry: "RunEntry", name: str, format: str, output: Path | None, *,
    quiet: bool,
) -> None:  # fmt: skip
    from teller.graph import recall
    from teller.graph.tables import TABLES, table_of

    same = [full for full in TABLES if full.partition(".")[0] == name]
    wanted = table_of(same[0] if len(same) == 1 else name)
    with place.reader() as graph:
        rows = recall.table(graph, wanted, entry.run_id)
    query.write_table(rows, format, output, quiet=quiet)
