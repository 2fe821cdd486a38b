"""`teller diagnose`: what is wrong, who is to blame, what it costs and what to do next."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from teller.cli import options, out

if TYPE_CHECKING:
    from teller.graph.finding import Diagnosis
    from teller.graph.workspace import Workspace

Format = Literal["text", "json", "markdown", "html"]
WORDS: Final = "words.npz"  # vectors of a workspace's own strings

_FORMATS: dict[str, Format] = {
    ".json": "json", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html",
}  # fmt: skip


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Find what is wrong, who is to blame, and why.",
        epilog="Example: teller diagnose night-run/ --slo ttft=500ms,itl=50ms -o report.html",
    )(diagnose)


def diagnose(
    paths: options.Paths,
    format: Annotated[
        Format | None,
        typer.Option(show_default=False, help="Else what FILE's name says, else text."),
    ] = None,
    output: options.Out = None,
    steps: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.parquet",
            dir_okay=False,
            show_default=False,
            help="Also write one row a rank and step: excess, probability, class, culprit.",
        ),
    ] = None,
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
    encode_text: options.EncodeText = False,
    rephrase: options.Rephrase = "",
    rephrase_model: options.RephraseModel = "",
    quiet: options.Quiet = False,
) -> int:
    """Find what is wrong in runs, reading in first what is not stored yet.

    Exit code: 0 no fault from the severity of --fail-on up, 1 faults found, 2 nothing usable.
    """
    from teller import pipeline
    from teller.graph import judgement, targets
    from teller.ui import progress

    chosen = format or (_FORMATS.get(output.suffix.lower()) if output else None) or "text"
    place = options.workspace_at(workspace, store)
    wanted = pipeline.Options(
        rank_regex=rank_regex, host_regex=host_regex, deployment=deployment, baseline=baseline,
        rules_dir=rules, fail_on=fail_on, slo=targets.parsed(slo), scheduler=scheduler,
        model=options.asked(
            model, no_model, false_alarms, place.folder / WORDS if encode_text else None
        ),
        rephrase=options.endpoint(rephrase, rephrase_model),
    )  # fmt: skip
    with progress.shown_on(sys.stderr, quiet=quiet) as bars:
        found = pipeline.diagnose(paths, place, wanted, bars)
    if steps is not None:
        _write_steps(place, found, steps)
        out.note(f"steps: {steps}", quiet=quiet)
    show(found, place, chosen, output)
    if output is not None:
        out.note(f"{chosen}: {output}", quiet=quiet)
    return judgement.exit_code(found, fail_on)


def show(found: "Diagnosis", place: "Workspace", format: Format, output: Path | None) -> None:
    """Write a diagnosis in one of the formats."""
    if format == "text":
        from teller.ui import text

        with out.destination(output) as file:
            text.write(found, text.console(file))
    else:
        out.write(_rendered(found, place, format), output)


def _rendered(found: "Diagnosis", place: "Workspace", format: Format) -> str:
    if format == "json":
        return out.as_json(found.to_json())
    if format == "markdown":
        from teller.ui import markdown

        return markdown.render(found)
    from teller.ui import report, sights

    if not found.runs:
        return report.render(found, {})
    with place.reader() as graph:
        return report.render(found, sights.gather(graph, found))


def _write_steps(place: "Workspace", found: "Diagnosis", file: Path) -> None:
    import pyarrow.parquet as pq

    from teller import pipeline

    with out.replacing(file) as scratch:
        pq.write_table(pipeline.step_rows(place, found), scratch)
