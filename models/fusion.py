"""How rules, numbers and the model come to one list of findings: in the open, each voice shown.

* A finding of a rule stays. Where the model says the same class of the same steps, the chance that
  both are wrong is the product of the chances that each is (a noisy or), the model's counted half:
  it was trained on other machines. Where it says a sibling class, a quarter of it counts.
* What the model alone says becomes a finding of its own, as sure as the model is of abnormality
  and class together; below `LEAST` it is left out. It is `low` below one half, and where the model
  is not calibrated on a healthy run of the deployment: an alarm needs more than a stranger's word.
* A finding of the model that a rule explains (same class or siblings, same ground) is not repeated,
  and neither is one about steps that a rule is sure of: the rule's voices show what was heard.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from teller.graph import ids
from teller.graph.classes import class_named, classes
from teller.graph.finding import Cost, Evidence, Finding, Severity
from teller.graph.judgement import claims
from teller.models.voice import UNKNOWN, Said

MODELSET: Final = "model"
SAME: Final = 0.5
SIBLING: Final = 0.25
LEAST: Final = 0.25
SURE: Final = 0.7  # of a rule: no other word is needed about the same steps
SHARES: Final[tuple[tuple[float, Severity], ...]] = (
    (0.5, "critical"), (0.15, "high"), (0.03, "medium"), (0.01, "low"),
)  # fmt: skip


def fused(
    found: Iterable[Finding],
    said: Sequence[Said],
    run: int,
    evidence: Sequence[tuple[Evidence, ...]],
    rank_count: int,
    calibrated: bool = False,
) -> list[Finding]:
    """Give all findings: those of rules with the model's voice, and what the model alone says."""
    ruled = list(found)
    heard = [_with_model(f, said) for f in ruled]
    alone = [
        _finding(one, run, shown, rank_count, calibrated)
        for one, shown in zip(said, evidence, strict=True)
        if one.klass != UNKNOWN
        and one.chance * one.class_chance >= LEAST
        and not any(_explains(f, one) for f in ruled)
    ]
    return heard + alone


def agreement(klass: str, one: Said) -> float:
    """Give how much of the model's word counts for a class: SAME, SIBLING or nothing."""
    if one.klass == klass:
        return SAME
    known, other = classes().get(klass), classes().get(one.klass)
    both = known is not None and other is not None and known.siblings == other.siblings
    return SIBLING if both else 0.0


def _with_model(finding: Finding, said: Sequence[Said]) -> Finding:
    here = [s for s in said if _same_steps(finding, s)]
    if not here:
        return finding
    best = max(here, key=lambda s: agreement(finding.klass, s) * s.chance * s.class_chance)
    counted = agreement(finding.klass, best) * best.chance * best.class_chance
    sure = 1 - (1 - finding.confidence) * (1 - counted)
    voice = best.chance * best.class_chance if counted else 0.0
    voices = dict(finding.voices) | {"model": round(voice, 3)}
    return replace(finding, confidence=sure, voices=voices)


def _same_steps(finding: Finding, one: Said) -> bool:
    if finding.first_step is None or finding.last_step is None:
        return False
    return finding.first_step <= one.steps[-1] and one.steps[0] <= finding.last_step


def _explains(finding: Finding, one: Said) -> bool:
    """Tell whether a rule's finding says it already; one without steps speaks of the whole run."""
    if _same_steps(finding, one) and finding.confidence >= SURE and claims(finding) == "fault":
        return True
    everywhere = finding.first_step is None and finding.severity != "info"
    return (everywhere or _same_steps(finding, one)) and agreement(finding.klass, one) > 0


def _finding(
    one: Said, run: int, evidence: tuple[Evidence, ...], rank_count: int, calibrated: bool
) -> Finding:
    known = class_named(one.klass)
    sure = one.chance * one.class_chance
    share = min(max(one.share, 0.0), 1.0)
    by_cost: Severity = next((s for least, s in SHARES if share >= least), "info")
    quiet = (sure < 0.5 or not calibrated) and by_cost != "info"
    severity: Severity = "low" if quiet else by_cost
    return Finding(
        id=ids.node_id(str(run), "Finding", MODELSET, one.klass, one.steps[0]),
        run=run, klass=one.klass, case_class=known.cases, title=known.title, severity=severity,
        confidence=sure, culprit=one.culprit, text=_text(one), ruleset=MODELSET,
        next_step=_NEXT, first_step=one.steps[0], last_step=one.steps[-1],
        step_count=len(one.steps), start_ns=one.start_ns, end_ns=one.end_ns,
        cost=Cost(one.excess_ns, round(share, 4), round(one.excess_ns * rank_count / 1e9, 6)),
        numbers={"model_chance": round(one.chance, 3), "class_chance": round(one.class_chance, 3)},
        evidence=evidence, not_checked=(_ALONE,), voices={"model": round(sure, 3)},
    )  # fmt: skip


_ALONE: Final = "no rule says this: it rests on what simulated and recorded faults looked like"
_NEXT: Final = (
    "Open the steps below and compare them with a healthy run (--baseline): what differs in the "
    "operators named here should tell whether it is this."
)


def _text(one: Said) -> str:
    first, last = one.steps[0], one.steps[-1]
    steps = f"step {first}" if first == last else f"steps {first} to {last}"
    who = ", ".join(f"rank {r}" for r in one.culprit.ranks) or ", ".join(one.culprit.hosts)
    named = ", ".join(name for name, _ in one.operators[:2])
    return (
        f"The model takes {len(one.steps)} of the {steps} for abnormal ({one.chance:.0%}), and "
        f"for this of all classes ({one.class_chance:.0%})"
        + (f"; what looks struck is {who}" if who else "")
        + (f", and in it {named}." if named else ".")
    )
