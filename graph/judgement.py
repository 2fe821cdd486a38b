"""What findings amount to: their order, the verdict, and whether a build should fail."""

from collections.abc import Iterable

from teller.graph.classes import classes
from teller.graph.finding import SEVERITIES, Diagnosis, Finding, Severity, Verdict


def claims(finding: Finding) -> Verdict:
    """Give the verdict that a finding stands for; a class of a user's own rule is a fault."""
    known = classes().get(finding.klass)
    return known.verdict if known else "fault"


def reaches(finding: Finding, severity: Severity) -> bool:
    """Tell whether a finding is at least that severe."""
    return SEVERITIES.index(finding.severity) >= SEVERITIES.index(severity)


def verdict(findings: Iterable[Finding], *, answered: bool) -> Verdict:
    """Give the verdict over all runs; `answered` is false where no step could be judged."""
    grave = {claims(finding) for finding in findings if reaches(finding, "medium")}
    if "fault" in grave:
        return "fault"
    if "data_quality" in grave:
        return "data_quality"
    return "no_fault" if answered else "not_visible"


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put findings in order: weighty faults, the uneven first, the costliest and surest first."""
    return tuple(sorted(findings, key=_place))


def _place(finding: Finding) -> tuple[float, ...]:
    weighty = reaches(finding, "medium")
    # What blames several ranks is the same on all of them: less is learnt from it, unless they are
    # what the hosts to blame run.
    everywhere = len(finding.culprit.ranks) > 1 and not finding.culprit.hosts
    return (
        -float(weighty),
        -float(claims(finding) == "fault"),
        float(weighty and everywhere),
        -SEVERITIES.index(finding.severity),
        -finding.confidence,
        -finding.cost.excess_ns,
        finding.id,
    )


def exit_code(diagnosis: Diagnosis, fail_on: Severity) -> int:
    """Give 2 where no run could be used, 1 where a fault of that severity stands, else 0."""
    if not diagnosis.runs:
        return 2
    return int(any(claims(f) == "fault" and reaches(f, fail_on) for f in diagnosis.findings))
