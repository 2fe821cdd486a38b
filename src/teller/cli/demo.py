"""`teller demo`: a diagnosis of a recorded run that comes with the package."""

import sys
from importlib import resources

import typer

from teller.cli import diagnose, options, out
from teller.errors import BadUsage

REPORT = "demo-report.html"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Diagnose a recorded run that comes along.",
        epilog="Example: teller demo --workspace .teller-demo",
    )(demo)


def demo(
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    fail_on: options.FailOn = "low",
    quiet: options.Quiet = False,
) -> int:
    """Diagnose a small real run with one injected fault, and write its report.

    Exit code: 1, since a fault is found; 2 where the demo could not run.
    """
    from teller import pipeline
    from teller.graph import judgement
    from teller.models.listening import Ask
    from teller.ui import progress

    recording = resources.files("teller") / "demo" / "run"
    if not recording.is_dir():
        raise BadUsage("the demo run is not in this installation; install teller again")
    place = options.workspace_at(workspace, store)
    with (
        resources.as_file(recording) as folder,
        progress.shown_on(sys.stderr, quiet=quiet) as bars,
    ):
        wanted = pipeline.Options(fail_on=fail_on, model=Ask())
        found = pipeline.diagnose([folder], place, wanted, bars)
    diagnose.show(found, place, "text", None)
    page = place.folder / REPORT
    diagnose.show(found, place, "html", page)
    sys.stdout.write(f"\nreport: {page}\n")
    out.note("next: open the report in a browser, or teller diagnose YOUR_FOLDER", quiet=quiet)
    return judgement.exit_code(found, fail_on)
