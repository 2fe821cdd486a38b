"""`teller ingest`: reads runs into the workspace."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from teller.cli import options, out

if TYPE_CHECKING:
    from teller.pipeline import Ingested


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Read runs into the workspace.",
        epilog="Example: teller ingest night-run/ --deployment chat-eu",
    )(ingest)


def ingest(
    paths: options.Paths,
    format: Annotated[Literal["text", "json"], typer.Option(help="How to say it.")] = "text",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    rank_regex: options.RankRegex = "",
    host_regex: options.HostRegex = "",
    deployment: options.Deployment = "",
    slo: options.Slo = "",
    scheduler: options.Scheduler = "threads",
    quiet: options.Quiet = False,
) -> int:
    """Read runs into the workspace; what is there already stays as it is."""
    from teller import pipeline
    from teller.graph import targets
    from teller.ui import progress

    wanted = pipeline.Options(
        rank_regex=rank_regex, host_regex=host_regex, deployment=deployment,
        slo=targets.parsed(slo), scheduler=scheduler,
    )  # fmt: skip
    place = options.workspace_at(workspace, store)
    with progress.shown_on(sys.stderr, quiet=quiet) as bars:
        got = pipeline.ingest(paths, place, wanted, bars)
    if format == "json":
        out.write(out.as_json(envelope(got)), None)
    else:
        from teller.ui import listing, text

        found = listing.what_was_read(got.runs, got.inputs, got.data_quality, got.others)
        text.show(text.console(sys.stdout, wide=True), found)
        out.note("next: teller diagnose with the same paths", quiet=quiet)
    return 0 if got.runs else 2


def envelope(got: "Ingested") -> dict[str, Any]:
    """Give what was read as the diagnosis' envelope says it."""
    return {
        "runs": [run.to_json() for run in got.runs],
        "inputs": [asdict(item) for item in got.inputs],
        "data_quality": [asdict(remark) for remark in got.data_quality],
        "others": list(got.others),
    }
