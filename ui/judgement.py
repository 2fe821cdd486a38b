"""What findings amount to: the verdict, and whether a build should fail."""

from collections.abc import Sequence
from typing import Final

from teller.graph.finding import SEVERITIES, Diagnosis, Finding, Severity, Verdict

_DATA: Final = frozenset({"trace_timestamps", "trace_file_corrupt", "trace_granularity"})
_BENIGN: Final = "no_fault"


def is_fault(finding: Finding) -> bool:
    """Tell whether a finding claims a fault of the service, and not of the recording."""
    return finding.case_class != _BENIGN and finding.case_class not in _DATA


def reaches(finding: Finding, severity: Severity) -> bool:
    """Tell whether a finding is at least that severe."""
    return SEVERITIES.index(finding.severity) >= SEVERITIES.index(severity)


def verdict(findings: Sequence[Finding], *, answered: bool) -> Verdict:
    """Give the verdict over all runs; `answered` is false where no step could be judged."""
    grave = [f for f in findings if reaches(f, "medium")]
    if any(is_fault(f) for f in grave):
        return "fault"
    if any(f.case_class in _DATA for f in grave):
        return "data_quality"
    return "no_fault" if answered else "not_visible"


def exit_code(diagnosis: Diagnosis, fail_on: Severity) -> int:
    """Give 1 where a fault of at least that severity stands, else 0."""
    return int(any(is_fault(f) and reaches(f, fail_on) for f in diagnosis.findings))
