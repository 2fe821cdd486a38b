"""Whether explanations hold: proved claims, valid paths, and the finding gone without the fault.

A simulated run is diagnosed, and so is its replay: the same plan step by step without the cause
(`teller.lab.simulator.replay`). What is right in the run and gone in its replay was of the cause.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from teller import pipeline
from teller.graph import judgement
from teller.graph.finding import Diagnosis, Finding
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.lab.truth import Episode, Truth, read_truth
from teller.models.explain import why
from teller.pipeline import Options, Silent

NEAR: Final = 0.2  # of the gold excess: a cost this near is right


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What was found of one run's explanations; None is "not to be said of this run".

    `claims` and `proved` count facts and edges of all findings, `paths` and `valid_paths` findings
    of faults. `named`: the fault's class is among the findings. `gone`: no finding of that class is
    in the replay. `cost_ns` is what that finding says, `gold_ns` what the truth says.
    """

    run: str
    klass: str
    claims: int
    proved: int
    paths: int
    valid_paths: int
    named: bool
    gone: bool | None
    cost_ns: int | None
    gold_ns: int

    @property
    def cost_right(self) -> bool | None:
        """Tell whether the cost is within 20 % of the gold excess."""
        if self.cost_ns is None or not self.gold_ns:
            return None
        return abs(self.cost_ns - self.gold_ns) <= NEAR * self.gold_ns


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares over runs, None where nothing counts towards one; `runs` and `named` are counts."""

    runs: int
    named: int
    claims_resolved: float | None
    path_valid: float | None
    gone: float | None
    cost_right: float | None


def counterfactual(
    run: Path, truth: Truth, replay: Path | None, options: Options | None = None
) -> Counterfactual:
    """Diagnose a simulated run and its replay, and say what holds of the explanations.

    `truth` is the run's; of several causes the costliest is asked for. Without `replay` nothing is
    said of `gone`.
    """
    options = options or Options()
    with TemporaryDirectory(prefix="teller-explained-") as scratch:
        place = Workspace(Path(scratch) / "run", project=project, rest=rest)
        said = pipeline.diagnose([run], place, options, Silent())
        counts = _counts(place, said)
        cause = max(truth.episodes, key=gold_ns, default=None)
        own = _of(said, cause.class_) if cause else ()
        gone = None
        if replay is not None and own:
            other = Workspace(Path(scratch) / "replay", project=project, rest=rest)
            without = pipeline.diagnose([replay], other, options, Silent())
            gone = not _of(without, own[0].klass)
    return Counterfactual(
        truth.run, cause.class_ if cause else "", *counts, bool(own), gone,
        own[0].cost.excess_ns if own and own[0].cost.excess_ns else None,
        gold_ns(cause) if cause else 0,
    )  # fmt: skip


def of_folder(run: Path, replay: Path | None, options: Options | None = None) -> Counterfactual:
    """Do the same with the truth that lies beside the run."""
    return counterfactual(run, read_truth(run), replay, options)


def gold_ns(cause: Episode) -> int:
    """Give what a cause cost by its truth: of each step the rank that it cost most, in sum."""
    worst: dict[int, int] = {}
    for step in cause.steps:
        most = worst.get(step.step_index, 0)
        worst[step.step_index] = max(most, step.direct_excess_ns)
    return sum(worst.values())


def _of(said: Diagnosis, klass: str) -> Sequence[Finding]:
    """Give the findings of a class from `low` up, the first first."""
    return [f for f in said.findings if f.klass == klass and judgement.reaches(f, "low")]


def _counts(place: Workspace, said: Diagnosis) -> tuple[int, int, int, int]:
    """Count claims and those proved, and paths and those valid, over the findings."""
    claims = proved = paths = valid = 0
    with place.reader() as store:
        for finding in said.findings:
            told = why(store, replace(finding, explanation=()))
            kept = sum(len(s.facts) + len(s.edges) for s in told.sentences)
            lost = sum(len(s.facts) + len(s.edges) for s, _ in told.refused)
            claims, proved = claims + kept + lost, proved + kept
            if told.path or any(s.part == "path" for s, _ in told.refused):
                paths, valid = paths + 1, valid + told.path_valid
    return claims, proved, paths, valid


def shares(found: Iterable[Counterfactual]) -> Shares:
    """Sum up what was found of several runs."""
    every = list(found)
    gone = [c.gone for c in every if c.gone is not None]
    right = [c.cost_right for c in every if c.cost_right is not None]
    return Shares(
        len(every), sum(c.named for c in every),
        _share(sum(c.proved for c in every), sum(c.claims for c in every)),
        _share(sum(c.valid_paths for c in every), sum(c.paths for c in every)),
        _share(sum(gone), len(gone)), _share(sum(right), len(right)),
    )  # fmt: skip


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
