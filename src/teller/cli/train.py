"""`teller train`: fits the root-cause model to labelled runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from teller.cli import options, out


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Fit the root-cause model to labelled runs.",
        epilog="Example: teller train .teller-data/train --validation .teller-data/validation "
        "-o my-model/",
    )(train)


def train(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", exists=True, file_okay=False, show_default=False,
            help="Folders with labelled runs: each with NAME.truth.json beside it.",
        ),
    ],
    validation: Annotated[
        list[Path],
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, show_default=False,
            help="Other labelled runs, to calibrate on; give it again for several.",
        ),
    ],
    folder: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", file_okay=False, show_default=False,
                     help="Where the model goes."),
    ],
    epochs: Annotated[int, typer.Option(min=1, help="How often all runs are gone over.")] = 30,
    minutes: Annotated[float, typer.Option(min=0.1, help="Train no longer than this.")] = 55.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 1,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, show_default=False,
                     help="Where what is read of runs is kept; else beside the model."),
    ] = None,
    encoder: Annotated[
        str,
        typer.Option(metavar="DIR|NAME", show_default=False,
                     help="Text encoder: a folder, or a name on the hub; else the pinned one."),
    ] = "",
    quiet: options.Quiet = False,
) -> int:  # fmt: skip
    """Fit the root-cause model to labelled runs and calibrate it on others.

    Needs the extra `learn`. A training that was cut off goes on where it was. The model is used by
    `teller diagnose --model DIR`.
    """
    from teller.learning import making
    from teller.models.learn.config import Config
    from teller.ui import progress

    with progress.shown_on(sys.stderr, quiet=quiet) as bars:
        card = making.make(
            runs, validation, folder, Config(seed=seed, epochs=epochs, minutes=minutes), bars,
            cache=cache or folder.with_name(f"{folder.name}.cache"), encoder=encoder,
            say=lambda line: out.note(line, quiet=quiet),
        )  # fmt: skip
    for name, value in card.measured["validation"].items():
        out.write(f"{name:16} {value:.3f}\n", None)
    out.note(
        f"false alarms: at the least {card.curve.least_per_1000:.1f} per 1,000 steps can be "
        f"promised by {card.curve.runs} calibration runs",
        quiet=quiet,
    )
    return 0
