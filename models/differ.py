"""What changed from a usual run to another: time, work, waiting, throughput, settings, faults."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from teller.graph import judgement, recall
from teller.graph.difference import Change, Difference, answer
from teller.graph.finding import Finding
from teller.graph.store import Store
from teller.models import differ_samples, differ_steps
from teller.models.diagnose import judge
from teller.models.differ_operators import operators
from teller.models.differ_steps import Pair, load_of
from teller.models.measured import PHASES, Measured

REPORTED_FROM: Final = "low"  # severity from which on a new fault counts


def difference(
    store: Store, usual: int, now: int, threshold: float, extra: Path | None = None
) -> Difference:
    """Compare two runs of one store; `threshold` is the share from which on slower counts."""
    runs = recall.summary(store, usual), recall.summary(store, now)
    sliced = not all(run.steps for run in runs)
    pair = Pair.of(
        Measured(store, usual, sliced=sliced),
        Measured(store, now, sliced=sliced),
        threshold,
        sliced=sliced,
    )
    changes = tuple(_changes(pair))
    before = judge(store, usual, extra).findings
    after = judge(store, now, extra, usual).findings
    new = tuple(_new(before, after))
    notes = tuple(_notes(pair, changes, runs[0].ranks, runs[1].ranks))
    settings = differ_samples.settings(store, usual, now)
    said = answer(changes, new)
    return Difference(*runs, threshold, said, changes, settings, after, new, notes)


def _changes(pair: Pair) -> Iterator[Change]:
    yield from differ_steps.step_times(pair)
    yield from differ_samples.reported(pair)
    yield from operators(pair)
    yield from differ_steps.collectives(pair)
    yield from differ_steps.paces(pair)
    yield from differ_samples.requests(pair)


def _new(before: Sequence[Finding], after: Sequence[Finding]) -> Iterator[int]:
    """Give the faults of the second run whose class the usual run does not show."""
    known = {f.klass for f in before if judgement.claims(f) == "fault"}
    for finding in after:
        fault = judgement.claims(finding) == "fault"
        if fault and judgement.reaches(finding, REPORTED_FROM) and finding.klass not in known:
            yield finding.id


def _notes(
    pair: Pair, changes: Sequence[Change], before: Sequence[int], after: Sequence[int]
) -> Iterator[str]:
    """Say what could not be compared, and why."""
    if len(before) != len(after):
        yield f"{len(before)} ranks against {len(after)}: figures are those of one rank in the mean"
    if not pair.sliced:
        yield from _loads_apart(pair)
    elif any(c.section == "operator" for c in changes):
        yield (
            "steps are not in both runs: operators are compared call by call, whatever the load; "
            "record with the engine's annotations to compare steps"
        )
    told = {c.told for c in changes if c.decides}
    if "few" in told:
        yield "some figures are too few to tell a change from noise: record more steps"
    if "unsure" in told:
        yield "some figures vary so much that a change may be noise: record more steps"
    if not told:
        yield (
            "neither steps nor throughput are in both runs: whether one is slower cannot be told; "
            "record steps, or the engine's statistics"
        )


def _loads_apart(pair: Pair) -> Iterator[str]:
    """Say which phases one run alone has, and where the loads do not overlap."""
    for code, phase in enumerate(PHASES):
        here = [m.loads.phase == code for m in pair.runs]
        if here[0].any() != here[1].any():
            which = "usual" if here[0].any() else "other"
            yield f"only the {which} run has {phase} steps: they are not compared"
    for phase, both in pair.phases():
        usual, now = (set(s[h].tolist()) for s, h in zip(pair.strata, both, strict=True))
        loads = [load_of([m], [h]) for m, h in zip(pair.runs, both, strict=True)]
        if not usual & now:
            yield f"loads of {phase} steps do not overlap: {loads[0]} against {loads[1]}"
        elif usual != now and loads[0] != loads[1]:
            yield (
                f"loads of {phase} steps differ ({loads[0]} against {loads[1]}): only like ones "
                "are compared"
            )
