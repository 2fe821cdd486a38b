"""`teller testbed`: real, labelled runs of a small LLM service on this machine."""

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from teller.cli import options, out
from teller.errors import BadUsage

if TYPE_CHECKING:
    from teller.lab.testbed.life import Setup
    from teller.lab.truth import Truth

Net = Literal["auto", "namespaces", "loopback"]

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run a small LLM service here, disturb it for real, and keep labelled runs.",
    epilog="Example: teller testbed setup && teller testbed campaign --lives 4 --out runs/",
)

Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", file_okay=False, help="Where run folders go.")
]
NetChoice = Annotated[
    Net, typer.Option("--net", help="A network namespace a host, or loopback; auto: the best.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet-machine",
        help="Real-time priorities (root): a busy machine then looks like a quiet one.",
    ),
]
Tp = Annotated[int, typer.Option(min=1, max=4, help="Ranks that share each layer.")]
Pp = Annotated[int, typer.Option(min=1, max=4, help="Pipeline stages.")]
Rate = Annotated[float, typer.Option(min=0.1, max=50, help="Requests a second.")]
Kineto = Annotated[
    int,
    typer.Option(
        "--kineto", metavar="STEPS", min=0, max=200,
        help="Steps of the last fault that torch's profiler records too, as a run of their own.",
    ),
]  # fmt: skip
Seed = Annotated[int, typer.Option(help="Draws all that is not said.")]


def add_to(app: typer.Typer) -> None:
    """Add the group of commands."""
    app.add_typer(group, name="testbed")


@group.command(epilog="Example: teller testbed setup, as root")
def setup() -> int:
    """Install what the testbed needs from Debian's packages, and build its C files.

    Exit code: 0 all is there, 2 something is missing and said.
    """
    from teller.lab.testbed import machine

    left = machine.set_up()
    for line in left:
        out.note(f"missing: {line}", quiet=False)
    if not left:
        out.note("all is there", quiet=False)
    return 2 if left else 0


@group.command(epilog="Example: teller testbed faults --net loopback")
def faults(net: NetChoice = "auto") -> int:
    """List the kinds of faults: what each does, what it needs, and whether it can be done here."""
    from teller.lab.testbed import machine
    from teller.lab.testbed.faults import KINDS, lacking
    from teller.ui import text

    have = machine.there() if _net(net) == "namespaces" else ()
    table = text.plain_table("Kind", "class", "severity", "usual", "does", "here")
    for kind in KINDS.values():
        missing = lacking(kind, have)
        law = f"{kind.law.low:g} to {kind.law.high:g} {kind.law.unit}" if kind.law.unit else ""
        table.add_row(
            kind.name, kind.class_, law, f"{kind.law.usual:g}" if kind.law.unit else "",
            kind.says, f"needs {', '.join(missing)}" if missing else "yes",
        )  # fmt: skip
    text.show(text.console(sys.stdout, wide=True), [table])
    return 0


@group.command(epilog="Example: teller testbed run --fault slow_op --severity 8 --rank 1")
def run(
    fault: Annotated[str, typer.Option(help="A kind that `teller testbed faults` lists.")],
    severity: Annotated[
        float | None, typer.Option(help="In the unit of the kind; else its usual strength.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option("--rank", "--node", help="Which rank or host.")
    ] = None,
    hold: Annotated[float, typer.Option(min=0.2, max=600, help="Seconds that it lasts.")] = 4.0,
    around: Annotated[
        float, typer.Option(min=2, max=600, help="Healthy seconds before and after.")
    ] = 4.0,
    place: Out = Path("runs"),
    net: NetChoice = "auto",
    quiet_machine: Quiet = False,
    tp: Tp = 2,
    pp: Pp = 1,
    rate: Rate = 3.0,
    seed: Seed = 0,
    kineto: Kineto = 0,
) -> int:
    """Make one run with one fault: healthy, the fault, healthy again."""
    from teller.lab.testbed.campaign import written
    from teller.lab.testbed.faults import kind_named, planned
    from teller.lab.testbed.life import lived

    mine = _setup(net, quiet_machine, tp, pp, rate, seed, around, kineto)
    law = kind_named(fault).law
    usual = law.usual if severity is None else severity
    if usual <= 0 or (law.unit.startswith("%") and usual >= 100):
        raise BadUsage(f"--severity {severity}: {fault} goes from {law.low:g} to {law.high:g} "
                       f"{law.unit} in campaigns, and cannot go there")  # fmt: skip
    where = tp * pp - 1 if rank is None else rank
    one = planned(fault, random.Random(seed), mine.service, severity=usual, rank=where, hold_s=hold)
    place.mkdir(parents=True, exist_ok=True)
    with lived(mine, [one], place) as life:
        made = written(life, place, seed)
    for folder, truth in made:
        _tell(folder, truth)
    return 0


@group.command(epilog="Example: teller testbed campaign --lives 4 --seed 7 --out runs/")
def campaign(
    lives: Annotated[int, typer.Option(min=1, max=1000, help="Lives, of ten episodes each.")] = 4,
    each: Annotated[
        bool, typer.Option("--each", help="Instead: every kind once, at its usual strength.")
    ] = False,
    place: Out = Path("runs"),
    net: NetChoice = "auto",
    quiet_machine: Quiet = False,
    tp: Tp = 2,
    pp: Pp = 1,
    rate: Rate = 3.0,
    seed: Seed = 0,
    kineto: Kineto = 12,
    quiet: options.Quiet = False,
) -> int:
    """Make many labelled episodes: kinds, strengths, ranks and times are drawn from the seed."""
    from teller.lab.testbed import campaign as lead
    from teller.lab.testbed import sets

    mine = _setup(net, quiet_machine, tp, pp, rate, seed, 3.0, kineto)
    kinds = lead.possible(mine.net)
    if each:
        drawn = lead.each(seed, kinds, mine.service)
        mine = msgspec.structs.replace(mine, kineto_steps=0)  # which kind is last is chance here
    else:
        drawn = lead.plans(lives, seed, kinds, mine.service)
    made = lead.campaign(mine, drawn, place, lambda line: out.note(line, quiet=quiet))
    for folder, truth in made:
        _tell(folder, truth)
    sets.write_set(place)
    out.note(f"hashes and distributions: {place / sets.NAME}", quiet=quiet)
    return 0


@group.command(epilog="Example: teller testbed compare runs/ runs-again/")
def compare(
    one: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A set of runs.")],
    other: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Its other making.")],
) -> int:
    """Compare two makings of one campaign by the distributions of what they measured.

    Exit code: 0 all kinds are as far apart as chance puts them, 1 some are farther.
    """
    from teller.lab.testbed import sets
    from teller.ui import text

    rows = sets.compared(one, other)
    table = text.plain_table(
        "Fault", "episodes", "with effect", "direct share, quartiles", "and", "distance", "bound"
    )
    apart = [r["fault"] for r in rows if r["distance"] is not None and r["distance"] > r["bound"]]
    for row in rows:
        both = (f"{a} and {b}" for a, b in (row["episodes"], row["with_effect"]))
        shares = ("-" if q is None else " ".join(map(_percent, q)) for q in row["direct_share"])
        far = ("-" if row[key] is None else f"{row[key]:.2f}" for key in ("distance", "bound"))
        table.add_row(row["fault"], *both, *shares, *far)
    text.show(text.console(sys.stdout, wide=True), [table])
    if apart:
        out.note(f"farther apart than chance puts them: {', '.join(apart)}", quiet=False)
    return 1 if apart else 0


def _net(net: Net) -> Literal["namespaces", "loopback"]:
    from teller.lab.testbed.life import best_net

    return best_net() if net == "auto" else net


def _setup(
    net: Net,
    real_time: bool,
    tp: int,
    pp: int,
    rate: float,
    seed: int,
    around: float,
    kineto: int,
) -> "Setup":
    from teller.lab.testbed.life import Setup
    from teller.lab.testbed.settings import Service

    service = Service(tp=tp, pp=pp)
    if service.heads % tp or service.layers % pp:
        raise BadUsage(f"--tp {tp} --pp {pp}: {service.heads} heads and {service.layers} layers "
                       "must be divisible by them")  # fmt: skip
    return Setup(
        service=service, rate=rate, seed=seed, before_s=around, after_s=around, net=_net(net),
        real_time=real_time, kineto_steps=kineto,
    )  # fmt: skip


def _tell(folder: Path, truth: "Truth") -> None:
    from teller.ui import text

    quiet = "quiet" if truth.extra["certificate"]["quiet"] else "not quiet"
    table = text.plain_table("Fault", "severity", "rank", "class", "steps", "share", "AUC")
    for one in truth.episodes:
        told = one.measured
        table.add_row(
            one.fault, f"{one.severity.value:g} {one.severity.unit}", str(one.extra["rank"]),
            one.class_, f"{told['affected_steps']}/{told['steps']}",
            _percent(told.get("excess_share_at_equal_load")), str(told.get("auc")),
        )  # fmt: skip
    title = f"{folder}: {truth.extra['steps']} steps, machine {quiet}"
    text.show(text.console(sys.stdout, wide=True), [title, table])


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:+.0f} %"
