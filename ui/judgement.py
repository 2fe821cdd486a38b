"""What findings amount to: the verdict, and whether a build should fail."""

from collections.abc import Sequence

from teller.graph.classes import classes
from teller.graph.finding import SEVERITIES, Diagnosis, Finding, Severity, Verdict


def claims(finding: Finding) -> Verdict:
    """Give the verdict that a finding stands for; a class of a user's own rule is a fault."""
    known = classes().get(finding.klass)
    return known.verdict if known else "fault"


def reaches(finding: Finding, severity: Severity) -> bool:
    """Tell whether a finding is at least that severe."""
    return SEVERITIES.index(finding.severity) >= SEVERITIES.index(severity)


def verdict(findings: Sequence[Finding], *, answered: bool) -> Verdict:
    """Give the verdict over all runs; `answered` is false where no step could be judged."""
    grave = {claims(finding) for finding in findings if reaches(finding, "medium")}
    if "fault" in grave:
        return "fault"
    if "data_quality" in grave:
        return "data_quality"
    return "no_fault" if answered else "not_visible"


def exit_code(diagnosis: Diagnosis, fail_on: Severity) -> int:
    """Give 1 where a fault of at least that severity stands, else 0."""
    return int(any(claims(f) == "fault" and reaches(f, fail_on) for f in diagnosis.findings))
