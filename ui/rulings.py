"""What one rule gives in a run, on a terminal: thresholds, rows, findings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from teller.graph import judgement
from teller.graph.finding import Finding
from teller.ui import phrase
from teller.ui.tables import as_text
from teller.ui.text import SEVERITY_STYLES, plain_table, word

_ROWS: Final = 20


def given(
    thresholds: Mapping[str, float], rows: Sequence[Mapping[str, Any]], findings: Sequence[Finding]
) -> Iterator[RenderableType]:
    """Give the thresholds, the rows of the rule's query, and the findings that they lead to."""
    if thresholds:
        yield word("Thresholds", "bold")
        for name, value in thresholds.items():
            yield word(f"  {name} = {value}")
        yield ""
    if not rows:
        yield word("Its query gives no row: nothing in this run reaches the thresholds.", "bold")
        return
    yield word(f"Its query gives {phrase.counted(len(rows), 'row')}", "bold")
    for row in rows[:_ROWS]:
        yield Padding(_row(row), (0, 0, 1, 2), expand=False)
    if len(rows) > _ROWS:
        yield word(f"and {len(rows) - _ROWS:,} more (--format json has all)", "dim")
    if not findings:
        yield word("No finding: none of these rows has steps that stand out as the rule asks.")
    for finding in findings:
        sure = f"{phrase.share(finding.confidence)} sure"
        small = finding.severity == "info" and judgement.claims(finding) == "fault"
        kept = "; too small for a diagnosis to report" if small else ""
        said = f"{finding.severity}: {finding.title}, {sure}{kept}"
        yield word(said, SEVERITY_STYLES[finding.severity])
        yield Padding(word(finding.text), (0, 0, 0, 2))


def _row(row: Mapping[str, Any]) -> Table:
    table = plain_table("column", "value")
    for name, value in row.items():
        said = f"{as_text(value)} ({phrase.measure(name, value)})" if _measured(name, value) else ""
        table.add_row(word(name), word(said or as_text(value)))
    return table


def _measured(name: str, value: Any) -> bool:
    """Tell whether a value is a number in a unit that reads better otherwise."""
    return isinstance(value, (int, float)) and name.rpartition("_")[2] in ("ns", "bytes")
