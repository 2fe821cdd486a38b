"""Rules tried out: one rule on a stored run, and users' own rules on the examples beside them."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from teller import pipeline
from teller.errors import BadUsage, TellerError
from teller.graph.embedded import EmbeddedStore
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.models import check as checking
from teller.models import diagnose as judging
from teller.models.apply import Applied
from teller.models.case import Case
from teller.models.check import Checked, Flaw
from teller.models.rule import Example, Rule, rules
from teller.pipeline import Options, Progress, Silent

__all__ = ["Applied", "Trial", "Tried", "check", "try_rule"]

EXAMPLES: Final = ".examples"  # the folder NAME.examples beside NAME.toml


@dataclass(frozen=True, slots=True)
class Trial:
    """One example: what the rule found in it, and what is wrong with that, "" where nothing is."""

    example: Example
    titles: tuple[str, ...]
    wrong: str


@dataclass(frozen=True, slots=True)
class Tried:
    """One file of a rule, checked, and tried on its examples where it has no flaw."""

    checked: Checked
    trials: tuple[Trial, ...] = ()

    @property
    def good(self) -> bool:
        """Tell whether nothing is wrong with it."""
        return not self.checked.flaws and not any(trial.wrong for trial in self.trials)


def try_rule(
    workspace: Workspace, rule: Rule, run: int, options: Options, progress: Progress
) -> Applied:
    """Ask one rule of a stored run, and keep nothing."""
    healthy = pipeline.baseline_of(workspace, options, progress)
    with workspace.reader() as store:
        return judging.applied(rule, Case(store, run, healthy))


def check(path: Path, options: Options) -> list[Tried]:
    """Check the rules of a file or folder, and try each on its examples."""
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not files:
        raise BadUsage(f"{path} holds no file NAME.toml")
    found = _told_twice([checking.read(file) for file in files])
    known = {*rules(options.rules_dir), *(one.rule.id for one in found if one.rule)}
    with tempfile.TemporaryDirectory(prefix="teller-rules-") as scratch:
        with EmbeddedStore(Path(scratch) / "empty.lbdb") as empty:
            checked = [checking.check(one, empty, known) for one in found]
        return [Tried(one, tuple(_trials(one, Path(scratch)))) for one in checked]


def _told_twice(found: Sequence[Checked]) -> list[Checked]:
    """Say of each rule whose id an earlier file has that only one of them counts."""
    met: dict[str, Path] = {}
    said = []
    for one in found:
        first = met.setdefault(one.rule.id, one.path) if one.rule else one.path
        if first != one.path:
            what = f"{first.name} has a rule of this id too: only one of them counts"
            one = replace(one, flaws=(*one.flaws, Flaw(one.path.stem, None, what)))
        said.append(one)
    return said


def _trials(checked: Checked, scratch: Path) -> Iterator[Trial]:
    rule = checked.rule
    if rule is None or checked.flaws:
        return
    for number, example in enumerate(rule.example):
        place = checked.path.with_name(checked.path.stem + EXAMPLES) / example.path
        if not place.exists():
            yield Trial(example, (), f"{place} is not there")
            continue
        workspace = Workspace(scratch / f"{rule.id}-{number}", project=project, rest=rest)
        try:
            found = _found(rule, place, workspace)
        except TellerError as err:
            yield Trial(example, (), str(err))
            continue
        wrong = "" if bool(found) == (example.expect == "finds") else _wrong(found)
        yield Trial(example, found, wrong)


def _found(rule: Rule, place: Path, workspace: Workspace) -> tuple[str, ...]:
    """Give the titles of what one rule finds in the files of an example."""
    got = pipeline.ingest([place], workspace, Options(), Silent())
    if not got.runs:
        raise BadUsage(f"{place}: nothing in it could be used")
    suspects, healthy = pipeline.suspects_of(workspace, got.runs, Options(), Silent())
    with workspace.reader() as store:
        cases = [Case(store, run, healthy) for run in suspects]
        return tuple(f.title for case in cases for f in judging.applied(rule, case).findings)


def _wrong(found: Sequence[str]) -> str:
    return f"it is to be silent, and finds: {'; '.join(found)}" if found else "it finds nothing"
