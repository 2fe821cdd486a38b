"""`teller evaluate`: makes the tables that judge a model."""

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from teller.cli import options, out
from teller.errors import BadUsage

NEEDED = "evaluation needs more packages: pip install 'teller-rca[learn]'"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Judge a model on labelled runs.",
        epilog="Example: teller evaluate my-model/ --train .teller-data/train "
        "--validation .teller-data/validation --test .teller-data/test -o my-evaluation/",
    )(evaluate)


def _runs(text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        metavar="DIR", exists=True, file_okay=False, show_default=False, help=text
    )
    return option


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", exists=True, file_okay=False, show_default=False,
                       help="A folder that `teller train` wrote."),
    ],
    test: Annotated[list[Path] | None, _runs("Labelled runs to judge by.")] = None,
    validation: Annotated[
        list[Path] | None, _runs("Labelled runs that fix thresholds.")
    ] = None,
    train: Annotated[
        list[Path] | None, _runs("Labelled runs that floors and networks of tables learn from.")
    ] = None,
    testbed: Annotated[list[Path] | None, _runs("Labelled real runs, to transfer to.")] = None,
    folder: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", file_okay=False,
                     help="Where tables and predictions are kept; the page is DIR.md."),
    ] = Path("docs/evaluation"),
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, show_default=False,
                     help="Where what is read of runs is kept; else beside the model."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False,
                     help="Only this table; give it again for several."),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Train each network of a table no longer than this.")
    ] = 10.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer draws, and no tables that train networks.")
    ] = False,
    only_list: Annotated[
        bool, typer.Option("--list", help="Say which tables there are and how they stand.")
    ] = False,
    quiet: options.Quiet = False,
) -> int:  # fmt: skip
    """Judge a model on labelled runs: every table with intervals and with what it has to beat.

    A set is a folder of labelled runs, or what was kept of one (`--cache`). Tables are made one by
    one and kept; those whose model or runs changed are made again. Needs the extra `learn`.
    """
    try:
        from teller.learning.evaluating import run
    except ImportError as err:
        raise BadUsage(f"{NEEDED} ({err})") from err
    from teller.ui import progress

    given = {"train": train, "validation": validation, "test": test, "testbed": testbed}
    asked = run.Asked(
        model=model, sets={role: paths for role, paths in given.items() if paths}, state=folder,
        cache=cache or model.with_name(f"{model.name}.cache"), tables=tuple(table or ()),
        quick=quick, minutes=minutes, command=shlex.join(["teller", *sys.argv[1:]]),
        day=datetime.now(UTC).date().isoformat(),
    )  # fmt: skip

    def say(line: str) -> None:
        out.note(line, quiet=quiet)

    with progress.shown_on(sys.stderr, quiet=quiet) as bars:
        if only_list:
            for one in run.standings(asked, bars, say):
                out.write(f"{one.name:12} {one.standing:13} {one.why}".rstrip() + "\n", None)
            return 0
        run.evaluate(asked, bars, say, lambda text: out.write(f"{text}\n", None))
    return 0
