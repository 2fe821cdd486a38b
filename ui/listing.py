"""Lists on a terminal: runs, inputs, and any table of the graph."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from rich.console import RenderableType
from rich.table import Table

from teller.graph.finding import InputSummary, Quality, RunSummary
from teller.ui import phrase
from teller.ui.tables import as_text
from teller.ui.text import inputs, plain_table, remarks, word


def what_was_read(
    found: Sequence[RunSummary], files: Sequence[InputSummary], quality: tuple[Quality, ...],
    others: Sequence[str] = (), *, each: bool = False,
) -> Iterator[RenderableType]:  # fmt: skip
    """Give runs, then inputs by kind (with `each`: one by one), then what was wrong."""
    yield runs(found)
    yield ""
    yield each_input(files) if each else inputs(files)
    if others:
        count = phrase.counted(len(others), "other file is", "other files are")
        yield word(f"{count} no input: {phrase.some(sorted(others), 8)}", "dim")
    if quality:
        yield ""
        yield from remarks(quality)


def runs(found: Iterable[RunSummary]) -> Table:
    """Give one line a run."""
    table = plain_table("Runs", "id", "ranks", "hosts", "steps", "starts", "clocks agree within")
    for run in found:
        residual = run.clock_residual_ns
        table.add_row(
            word(run.name), str(run.id), phrase.ranges(run.ranks) or "–",
            word(phrase.some(run.hosts)), f"{run.steps:,}",
            phrase.clock(run.t0_epoch_ns) if run.t0_epoch_ns > 0 else "no UTC clock",
            "not aligned" if residual is None else phrase.duration(residual),
        )  # fmt: skip
    return table


def each_input(found: Iterable[InputSummary]) -> Table:
    """Give one line an input: its rank and where that was found."""
    table = plain_table("Inputs", "format", "rank", "events", "note")
    for item in found:
        rank = "–" if item.rank is None else f"{item.rank}"
        table.add_row(word(item.file), word(item.kind), rank, f"{item.events:,}", word(item.note))
    return table


def rows(found: pa.Table) -> Table:
    """Give a table of the graph, each value to the last digit."""
    table = plain_table(*found.column_names)
    for row in zip(*(column.to_pylist() for column in found.columns), strict=True):
        table.add_row(*(word(as_text(value)) for value in row))
    return table
