"""`teller watch`: diagnoses what appears in a folder, as it comes."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Timer
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from teller.cli import options

if TYPE_CHECKING:
    from teller.watching.loop import Watch

LET_GO_S = 0.7  # for what goes on; cut off there, it is healed by the next writer


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Diagnose what appears in a folder, as it comes.",
        epilog="Example: teller watch traces/ --format json --deployment chat-eu",
    )(watch)


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="The folder.")
    ],
    once: Annotated[
        bool, typer.Option("--once", help="End when all that is there is read and told.")
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.05, max=3600, help="Time between two looks.")
    ] = 0.5,
    settle: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, max=3600,
            help="A file is read when nothing was written to it for so long.",
        ),
    ] = 1.0,
    patience: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, max=86400,
            help="A file that is cut off is read as it is when nothing was written for so long.",
        ),
    ] = 30.0,
    format: Annotated[
        Literal["text", "json"],
        typer.Option(help="How to tell: lines for people, or a JSON object a line."),
    ] = "text",
    baseline: options.Baseline = "",
    fail_on: options.FailOn = "low",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    rank_regex: options.RankRegex = "",
    host_regex: options.HostRegex = "",
    deployment: options.Deployment = "",
    rules: options.RulesDir = None,
    slo: options.Slo = "",
    scheduler: options.Scheduler = "threads",
    model: options.Model = None,
    no_model: options.NoModel = False,
    false_alarms: options.FalseAlarms = 10.0,
    quiet: options.Quiet = False,
) -> int:  # fmt: skip
    """Ingest and diagnose what appears or grows in a folder, and tell each finding once.

    It can be ended at any time, and goes on where it was. Exit code: 0 when told to end; with
    --once that of diagnose, over all runs of the folder.
    """
    from teller import pipeline
    from teller.graph import targets
    from teller.watching.loop import Watch

    wanted = pipeline.Options(
        rank_regex=rank_regex, host_regex=host_regex, deployment=deployment, baseline=baseline,
        rules_dir=rules, fail_on=fail_on, slo=targets.parsed(slo), scheduler=scheduler,
        model=options.asked(model, no_model, false_alarms),
    )  # fmt: skip
    place = options.workspace_at(workspace, store)
    watching = Watch(
        folder, place, wanted, _json, pipeline.Silent(), every, settle, patience,
        options.name_of(place),
    )  # fmt: skip
    with _stopping() as stop:
        if format == "json":
            return watching.run(stop, once=once)
        return _for_people(watching, stop, once=once, quiet=quiet)


def _for_people(watching: "Watch", stop: Event, *, once: bool, quiet: bool) -> int:
    from teller.ui import text
    from teller.ui import watching as showing

    if not quiet and sys.stdout.isatty():
        with showing.Shown(text.console(sys.stdout), str(watching.folder)) as shown:
            watching.tell, watching.progress = shown.tell, shown
            return watching.run(stop, once=once)
    watching.tell = lambda event: showing.plain(sys.stdout, event)
    return watching.run(stop, once=once)


def _json(event: Mapping[str, Any]) -> None:
    from teller.cli import out

    sys.stdout.write(out.as_json_line(event))
    sys.stdout.flush()


@contextmanager
def _stopping() -> Iterator[Event]:
    """Give what is set by a signal to end; what takes too long then is cut off, as it may be."""
    stop = Event()

    def end(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            _leave()
        late = Timer(LET_GO_S, _leave)
        late.daemon = True
        late.start()
        stop.set()  # last: it hangs where the signal came while its own lock was taken

    before = {n: signal.signal(n, end) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave() -> None:
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(0)
