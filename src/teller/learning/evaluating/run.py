"""`teller evaluate`: make the tables that are missing or out of date, and write the page."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from teller.errors import BadUsage, NothingUsable, UnknownName
from teller.ingest.run import Progress
from teller.learning.evaluating import page, plots
from teller.learning.evaluating.bootstrap import DRAWS
from teller.learning.evaluating.catalogue import BY_NAME, SPECS
from teller.learning.evaluating.judges import Judges
from teller.learning.evaluating.sets import Sets
from teller.learning.evaluating.state import Made, State, Table, changed
from teller.learning.evaluating.work import Spec, Work

QUICK_DRAWS: Final = 100
MAKING: Final = "1"  # of how tables are made: another one when a figure's meaning changes
Standing = Literal["up to date", "stale", "missing", "not possible"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user asks for."""

    model: Path
    sets: Mapping[str, Sequence[Path]]  # by role
    state: Path  # the folder of tables and predictions; the page lies beside it, NAME.md
    cache: Path
    tables: tuple[str, ...] = ()  # all where none is named
    quick: bool = False
    minutes: float = 10.0  # of training, for each network that is trained again
    command: str = ""
    day: str = ""


@dataclass(frozen=True, slots=True)
class Stood:
    """How one table stands."""

    name: str
    standing: Standing
    why: str = ""


def evaluate(
    asked: Asked, told: Progress, say: Callable[[str], None], show: Callable[[str], None]
) -> None:
    """Make what is missing or stale among the tables that are asked for, and show all of these.

    Raises `BadUsage` for sets that share root seeds or a model of another version, `NothingUsable`
    where a set has no labelled run, `UnknownName` for a table that there is not.
    """
    work, state = _work(asked, told, say), State(asked.state)
    wanted = _wanted(asked)
    stood = [_standing(work, state, spec, asked) for spec in wanted]
    impossible = [s for s in stood if s.standing == "not possible"]
    if asked.tables and impossible:
        raise BadUsage(f"{impossible[0].name}: {impossible[0].why}")
    for one in impossible:
        say(f"{one.name}: left out, {one.why}")
    for spec, one in zip(wanted, stood, strict=True):
        if one.standing in ("stale", "missing"):
            say(f"{spec.name}: {one.standing}{one.why and f', {one.why}'}; it is made now")
            state.keep(_made(work, state, spec, asked))
            _write(work, state)
        elif one.standing == "up to date":
            say(f"{spec.name}: up to date")
        if (table := state.table(spec.name)) is not None:
            show(page.text_of(table))
    if not state.tables():
        raise NothingUsable("no table can be made of these sets: name --test and --validation")
    _write(work, state)


def standings(asked: Asked, told: Progress, say: Callable[[str], None]) -> list[Stood]:
    """Tell of each table whether it is there and up to date; nothing is made."""
    work, state = _work(asked, told, say), State(asked.state)
    return [_standing(work, state, spec, asked) for spec in _wanted(asked, every=True)]


def _work(asked: Asked, told: Progress, say: Callable[[str], None]) -> Work:
    sets, state = Sets(asked.sets, asked.cache, told, say), State(asked.state)
    judges = Judges(asked.model, sets, state, asked.cache, asked.minutes, told, say)
    return Work(sets, judges, QUICK_DRAWS if asked.quick else DRAWS, time.process_time)


def _wanted(asked: Asked, *, every: bool = False) -> list[Spec]:
    unknown = [n for n in asked.tables if n not in BY_NAME]
    if unknown:
        raise UnknownName("table", unknown[0], BY_NAME)
    if asked.tables:
        return [BY_NAME[n] for n in asked.tables]
    return [s for s in SPECS if every or not (asked.quick and s.trains)]


def _standing(work: Work, state: State, spec: Spec, asked: Asked) -> Stood:
    missing = [role for role in spec.needs if role not in work.sets]
    if missing:
        return Stood(spec.name, "not possible", f"it needs --{' and --'.join(missing)}")
    table = state.table(spec.name)
    if table is None:
        return Stood(spec.name, "missing")
    if other := changed(table, _inputs(work, spec, asked)):
        return Stood(spec.name, "stale", _other(other))
    if table.made.draws < work.draws:
        return Stood(spec.name, "stale", f"its intervals rest on {table.made.draws} draws")
    return Stood(spec.name, "up to date")


def _inputs(work: Work, spec: Spec, asked: Asked) -> dict[str, str]:
    """Give the hashes of all that a table rests on."""
    budget = {"budget": f"{asked.minutes:g} min"} if spec.trains else {}
    given = {role: work.sets[role].digest for role in spec.needs}
    return {"model": work.judges.model_key, "making": MAKING} | given | budget


def _made(work: Work, state: State, spec: Spec, asked: Asked) -> Table:
    before = state.table(spec.name)
    return Table(
        name=spec.name, title=spec.title, text=spec.text, parts=spec.make(work),
        inputs=_inputs(work, spec, asked),
        made=Made(
            day=asked.day, command=asked.command, draws=work.draws,
            times=1 + (before.made.times if before is not None else 0),
        ),
    )  # fmt: skip


def _write(work: Work, state: State) -> None:
    """Write the page of all tables that are there, in order, and their pictures."""
    there = {t.name: t for t in state.tables()}
    ordered = [there[s.name] for s in SPECS if s.name in there]
    stale = {t.name: why for t in ordered if (why := _outdated(work, t))}
    drawn = plots.pictures(ordered, state.folder)
    text = page.page(ordered, stale, drawn, state.folder.name)
    page.write(text, state.folder.with_name(f"{state.folder.name}.md"))


def _outdated(work: Work, table: Table) -> str:
    """Say what is another one than a table was made of, among what was given this time."""
    now = {"model": work.judges.model_key, "making": MAKING}
    now |= {role: work.sets[role].digest for role in table.inputs if role in work.sets}
    return _other([n for n in now if table.inputs.get(n) != now[n]])


def _other(changed: Sequence[str]) -> str:
    return f"another {' and '.join(changed)} than before" if changed else ""
