"""`teller collect`: record a service into a run folder, and check the recording."""

import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from teller.cli import options, out
from teller.errors import BadUsage

if TYPE_CHECKING:
    from teller.lab.collect.command import Plan, Wanted

_RAW = {"ignore_unknown_options": True, "allow_interspersed_args": False}


class _Commands(TyperGroup):
    """Commands by name; what has none is a command to record."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["run", *args])


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        cls=_Commands, rich_markup_mode=None, invoke_without_command=True, no_args_is_help=True,
        callback=collect, subcommand_metavar="-- COMMAND…",
        epilog="Example: teller collect --out night-run --nccl-log -- vllm serve MODEL -tp 4",
    )  # fmt: skip
    group.command("run", hidden=True, context_settings=_RAW)(run)
    group.command("finish", epilog="Example: teller collect finish night-run")(finish)
    group.command("check", epilog="Example: teller collect check night-run")(check)
    app.add_typer(group, name="collect", short_help="Record a service, and check the recording.")


def collect(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", file_okay=False, help="The run folder.")
    ] = Path("teller-run"),
    tool: Annotated[
        Literal["auto", "nsys", "kineto", "nvtx"],
        typer.Option(help="What records: Nsight Systems, windows of Kineto, or NVTX ranges alone."),
    ] = "auto",
    nccl_log: Annotated[bool, typer.Option("--nccl-log", help="Keep NCCL's log.")] = False,
    flight_recorder: Annotated[
        bool, typer.Option("--flight-recorder", help="Let PyTorch dump collectives on a timeout.")
    ] = False,
    annotate: Annotated[
        bool, typer.Option(help="Ask vLLM and SGLang to annotate their steps.")
    ] = True,
    graph_nodes: Annotated[
        bool, typer.Option("--graph-nodes", help="nsys: kernels inside CUDA graphs too (costs).")
    ] = False,
    ranks: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", show_default=False, help="Ranks that there are."),
    ] = None,
    delay: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Begin so long after the start.")
    ] = 0,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.01, metavar="SECONDS", show_default=False, help="Record so long."),
    ] = None,
    attach: Annotated[
        str, typer.Option(metavar="URL", help="Use the profiler endpoints of a running server.")
    ] = "",
    written: Annotated[
        Path | None,
        typer.Option("--written-to", metavar="DIR", help="Where that server writes its traces."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be run, and run nothing.")
    ] = False,
    format: Annotated[
        Literal["shell", "kubernetes", "json"], typer.Option(help="How --dry-run prints it.")
    ] = "shell",
) -> int:
    """Record a service, unchanged, into a run folder with a manifest, and check the recording.

    The command runs with what records it; its exit code is the one given back, and a signal ends
    it first. On several nodes run this on each, with one shared folder or with folders that you
    put together. teller collect check DIR looks at any folder, finish DIR at what a script left.
    """
    from teller.lab.collect.command import Wanted

    asked = Wanted(
        out.absolute(), (), tool, nccl_log, flight_recorder, annotate, graph_nodes, delay,
        seconds, ranks,
    )  # fmt: skip
    context.obj = (asked, format if dry_run else "")
    if context.invoked_subcommand is not None:
        if attach and context.invoked_subcommand == "run":
            raise BadUsage("--attach records a server that runs already: leave the command out")
        return 0
    if not attach:
        raise BadUsage("what is to be recorded? teller collect --out DIR -- COMMAND…")
    return _attached(asked, attach, written)


def run(
    context: typer.Context, command: Annotated[list[str], typer.Argument(metavar="COMMAND…")]
) -> int:
    """Record this command."""
    from dataclasses import replace

    from teller.lab.collect import command as composing

    asked, dry = context.obj
    wanted: Wanted = replace(asked, command=tuple(command))
    plan = composing.compose(wanted)
    if dry:
        _print(plan, wanted.out, dry)
        return 0
    for line in plan.notes:
        out.note(line)
    return _recorded(plan, wanted)


def _print(plan: "Plan", folder: Path, form: str) -> None:
    from dataclasses import asdict

    from teller.lab.collect import command as composing

    if form == "json":
        out.write(out.as_json(asdict(plan)), None)
    elif form == "kubernetes":
        out.write(composing.as_kubernetes(plan), None)
    else:
        out.write(composing.as_shell(plan, folder), None)


def _recorded(plan: "Plan", wanted: "Wanted") -> int:
    from teller.lab.collect import launch
    from teller.lab.collect.folder import Known

    wanted.out.mkdir(parents=True, exist_ok=True)
    host = platform.node()
    if plan.tool == "kineto":
        from teller.lab.collect import beside

        ran = beside.run(plan, wanted.out, host)
    else:
        ran = launch.run(plan, wanted.out, host)
    for wrong in launch.finish(plan.after):
        out.note(wrong)
    known = Known(plan.engine, plan.ranks, ran.begun_ns, ran.ended_ns)
    _finished(wanted.out, known)
    return ran.code


def _attached(wanted: "Wanted", url: str, written: Path | None) -> int:
    from teller.lab.collect import endpoints
    from teller.lab.collect.folder import Known, taken

    if wanted.seconds is None:
        raise BadUsage("how long? --seconds 10 is enough for some hundred steps")
    server = endpoints.find(url)
    wanted.out.mkdir(parents=True, exist_ok=True)
    window = endpoints.record(server, wanted.seconds, str(wanted.out))
    out.note(f"{server.engine} {server.version} recorded for {wanted.seconds:g} s")
    if written is not None:
        moved = taken(written, wanted.out, since_ns=window.begun_ns)
        out.note(f"{len(moved)} files came from {written}")
    known = Known(server.engine, wanted.ranks, window.begun_ns, window.ended_ns)
    _finished(wanted.out, known)
    return 0


def finish(
    folder: Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False)],
    ranks: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", show_default=False, help="Ranks that there are."),
    ] = None,
) -> int:
    """Make what a script recorded readable, write the manifest, and check it."""
    from teller.lab.collect.folder import Known

    _finished(folder.absolute(), Known(ranks=ranks))
    return 0


def _finished(folder: Path, known: Any) -> None:
    from teller.lab.collect import folder as folders

    made = folders.finish(folder, known)
    for line in made.notes:
        out.note(line)
    out.note(f"{folder}: {len(made.files)} files and a manifest; next: teller diagnose {folder}")
    if made.files:
        _gate([folder], quiet=True)


def check(
    paths: options.Paths,
    format: Annotated[Literal["text", "json"], typer.Option(help="How to say it.")] = "text",
    quiet: options.Quiet = False,
) -> int:
    """Check a recording before any verdict: ranks, windows, annotations, lost records, clocks.

    Exit code: 0 it holds together, 1 a check says that it would mislead, 2 nothing is readable.
    """
    return _gate(paths, quiet=quiet, json=format == "json")


def _gate(paths: list[Path], *, quiet: bool, json: bool = False) -> int:
    from teller import gate, pipeline
    from teller.ui import progress, sanity, text

    with progress.shown_on(sys.stderr, quiet=quiet) as bars:
        found = gate.checked(paths, pipeline.Options(), bars)
    if json:
        out.write(out.as_json(found.to_json()), None)
    else:
        text.show(text.console(sys.stdout, wide=True), sanity.blocks(found))
    if any(check.name == "readable" for _, check in found.checks):
        return 2
    return 1 if found.state == "bad" else 0
