"""`teller simulate`: makes runs of a simulated cluster, in the formats of real tools."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from teller.cli import options, out
from teller.errors import BadUsage, UnknownName

if TYPE_CHECKING:
    from teller.lab.simulator.draw import Layout, Wanted

_LISTED = "list"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Make labelled runs of a simulated cluster.",
        epilog="Example: teller simulate --fault slow_rank --steps 80 --seed 7 -o runs/",
    )(simulate)


def simulate(
    folder: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            file_okay=False,
            show_default=False,
            help="Where run folders go; the truth of each lies beside it.",
        ),
    ] = Path("runs"),
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            show_default=False,
            help=f"A cause; give it again for several at once; '{_LISTED}' says which there are.",
        ),
    ] = None,
    severity: Annotated[
        float | None,
        typer.Option(show_default=False, help="How strong, in the unit of the cause; else drawn."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bytes.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="How many runs, from seed on.")] = 1,
    steps: Annotated[int, typer.Option(min=4, help="About how many steps a run has.")] = 80,
    engine: Annotated[
        Literal["", "vllm", "sglang", "trtllm"], typer.Option(show_default=False)
    ] = "",
    model: Annotated[str, typer.Option(metavar="NAME", show_default=False)] = "",
    gpu: Annotated[str, typer.Option(metavar="NAME", show_default=False)] = "",
    mode: Annotated[
        Literal["", "eager", "graph", "piecewise"], typer.Option(show_default=False)
    ] = "",
    layout: Annotated[
        str,
        typer.Option(
            metavar="tp=N,pp=N,dp=N,hosts=N,prefill=N",
            show_default=False,
            help="Ranks of each kind; of the dp replicas, how many only prefill.",
        ),
    ] = "",
    set_name: Annotated[
        str,
        typer.Option(
            "--set",
            metavar="NAME",
            show_default=False,
            help="Make one of the sets that models are trained and judged on, in DIR/NAME.",
        ),
    ] = "",
    twin: Annotated[
        bool, typer.Option("--twin", help="Also the same service without the causes.")
    ] = False,
    quiet: options.Quiet = False,
) -> int:
    """Make labelled runs of a simulated cluster: causes act, and all else follows from them.

    What is not given is drawn from the seed. Files are those of real tools; the truth of a run is
    NAME.truth.json beside its folder, and nothing in the folder tells of it.
    """
    from teller.lab.simulator.draw import Wanted

    if set_name:
        return _set(set_name, folder, quiet=quiet)
    kinds = tuple(fault or ())
    if _LISTED in kinds:
        _list()
        return 0
    wanted = Wanted(engine, model, gpu, mode, _layout(layout) if layout else None, steps)
    _check(kinds, wanted)
    for number in range(seed, seed + count):
        fitting = _apart(kinds, wanted, number)
        _make(number, kinds, fitting, severity, folder, twin=twin, quiet=quiet)
    out.note(f"next: teller diagnose {folder}", quiet=quiet)
    return 0


def _set(name: str, folder: Path, *, quiet: bool) -> int:
    """Make a whole set; exit code 1 says that a run is not what its hash says."""
    import sys

    from teller.lab import making, sets
    from teller.ui import progress

    total = sum(1 for _ in sets.members(name))
    with progress.shown_on(sys.stderr, quiet=quiet) as bars:
        bars.start(f"simulating {name}", total)
        other = making.make(name, folder, bars.step)
        bars.done()
    if other:
        out.note(f"{len(other)} of {total} runs differ from their hash: {', '.join(other[:5])} …",
                 quiet=False)  # fmt: skip
    return 1 if other else 0


def _make(
    seed: int, kinds: tuple[str, ...], wanted: "Wanted", severity: float | None, folder: Path,
    *, twin: bool, quiet: bool,
) -> None:  # fmt: skip
    from teller.lab.simulator import causes
    from teller.lab.simulator.produce import produce
    from teller.lab.simulator.simulate import Order, scene_of

    scene, _ = scene_of(seed, wanted)
    for kind in kinds:
        if not causes.fits(causes.spec(kind), scene):
            needs = ", ".join(causes.spec(kind).needs) or "prefill where it decodes"
            raise BadUsage(
                f"--fault {kind} needs {needs}, which the scene of seed {seed} has not "
                f"({len(scene.places)} ranks on {len(scene.hosts)} hosts, {scene.mode}); "
                "say more with --layout, --mode or --model, or take another --seed"
            )
    for order in (
        Order(seed, kinds, wanted, severity, twin=t) for t in ((False, True)[: 1 + twin])
    ):
        made = produce(order, folder)
        what = ", ".join(e.class_ for e in made.truth.episodes) or "healthy"
        out.note(f"{made.folder}: {made.spans:,} spans, {what}", quiet=quiet)


def _apart(kinds: tuple[str, ...], wanted: "Wanted", seed: int) -> "Wanted":
    """Let prefill be apart from decode where a cause needs it, and no layout is given."""
    from teller.lab.simulator import causes, draw

    if wanted.layout or not any("disaggregated" in causes.spec(k).needs for k in kinds):
        return wanted
    layout = draw.disaggregated(draw.apart(seed), wanted.largest, hosts=2)
    return replace(wanted, layout=layout)


def _check(kinds: tuple[str, ...], wanted: "Wanted") -> None:
    """Refuse names that do not exist before anything is made."""
    from teller.lab.simulator import causes
    from teller.lab.simulator.catalog import models, numbers

    for kind in kinds:
        causes.spec(kind)
    if wanted.model and wanted.model not in models():
        raise UnknownName("model", wanted.model, models())
    if wanted.gpu and wanted.gpu not in numbers()["gpu"]:
        raise UnknownName("gpu", wanted.gpu, numbers()["gpu"])


def _layout(text: str) -> "Layout":
    from teller.lab.simulator.draw import Layout

    try:
        given = {k.strip(): int(v) for k, _, v in (p.partition("=") for p in text.split(","))}
        made = Layout(given.pop("tp", 1), given.pop("pp", 1), given.pop("dp", 1),
                      given.pop("hosts", 1), given.pop("prefill", 0), **given)  # fmt: skip
    except (TypeError, ValueError) as err:
        raise BadUsage(f"--layout {text}: not of the form tp=4,pp=2,dp=1,hosts=2") from err
    if made.prefill and (made.prefill >= made.dp or made.pp > 1 or made.dp % made.hosts):
        raise BadUsage(
            f"--layout {text}: fewer replicas prefill than dp, and each has pp=1 and one host; "
            "for example tp=2,dp=2,hosts=2,prefill=1"
        )
    return made


def _list() -> None:
    from teller.lab.simulator import causes

    for spec in causes.specs().values():
        low, high = spec.severity
        strong = spec.unit if low == high else f"{low:g} to {high:g} {spec.unit}"
        needs = f"; needs {', '.join(spec.needs)}" if spec.needs else ""
        typer.echo(f"{spec.kind:24} {spec.class_:24} {strong}{needs}")
