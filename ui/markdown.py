"""A diagnosis as Markdown, to paste into an issue or a pull request."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from teller.graph.finding import Diagnosis, Finding
from teller.ui import phrase

# What means something in the middle of a line; an underscore between letters does not, and most
# names have one.
_INSIDE: Final = re.compile(r"[\\`*\[\]<>#|~$&]|(?<![^\W_])_|_(?![^\W_])|:(?=[A-Za-z/+_-])")
_START: Final = re.compile(r"^([-+=]|\d+(?=[.)]))")  # a list, a heading's line, a numbered list
_BLANKS: Final = re.compile(r"^ +| +$")  # would vanish, and four of them make a block of code

_ROWS: Final = 100


def escape(text: str) -> str:
    """Give text that every Markdown renderer shows as it is, on one line."""
    said = _INSIDE.sub(lambda m: f"\\{m[0]}", phrase.visible(text))
    said = _START.sub(lambda m: f"{m[0]}\\" if m[0].isdigit() else f"\\{m[0]}", said)
    # `@name` would call a stranger and `#12` link a foreign issue, whatever stands before
    said = said.replace("@", "@<!-- -->").replace("\\#", "\\#<!-- -->")
    return _BLANKS.sub(lambda m: "&#32;" * len(m[0]), said)


def render(diagnosis: Diagnosis) -> str:
    """Give the whole diagnosis as one Markdown text."""
    return "\n".join(_lines(diagnosis)) + "\n"


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"## {phrase.VERDICTS[diagnosis.verdict]}"
    yield ""
    for run in diagnosis.runs:
        clock = phrase.clock(run.t0_epoch_ns) if run.t0_epoch_ns > 0 else "no UTC clock"
        yield f"- **{escape(run.name)}**: {escape(phrase.extent(run))}, from {escape(clock)}"
    for number, finding in enumerate(diagnosis.findings, 1):
        yield from _finding(number, finding, diagnosis)
    if diagnosis.notes:
        yield from ("", "### Not answered", "")
        yield from (f"- {escape(note)}" for note in diagnosis.notes)
    if diagnosis.data_quality:
        yield from ("", "### Data quality", "")
        rows = [(q.file, q.where, q.what, q.do) for q in diagnosis.data_quality]
        yield from table(("file", "where", "what", "what to do"), rows)
    if diagnosis.inputs:
        yield from ("", "### Inputs", "")
        files = [
            (i.file, i.kind, "–" if i.rank is None else f"{i.rank}", f"{i.events:,}", i.note)
            for i in diagnosis.inputs
        ]
        yield from table(("file", "format", "rank", "events", "note"), files)


def _finding(number: int, finding: Finding, diagnosis: Diagnosis) -> Iterator[str]:
    run = phrase.run_of(diagnosis, finding)
    since = phrase.when(run, finding.start_ns)
    yield from ("", f"### {number}. {escape(finding.title)}", "")
    yield from table(
        ("severity", "who", "when", "cost", "confidence"),
        [(
            finding.severity, phrase.who(finding.culprit),
            ", from ".join(x for x in (phrase.steps(finding), since) if x) or "unknown",
            phrase.cost(finding), phrase.share(finding.confidence),
        )],
    )  # fmt: skip
    yield from ("", escape(finding.text))
    if way := phrase.way(finding):
        yield from ("", "**From cause to effect**", "")
        yield from table(("what happened", "in the graph"), way)
    if finding.evidence:
        yield from ("", "**Evidence**", "")
        rows = [(e.role, e.text, e.source, f"{e.kind} {e.id}") for e in finding.evidence]
        yield from table(("role", "what", "where", "graph id"), rows)
    yield from _list("Against it", finding.against)
    yield from _list("Not checked", finding.not_checked)
    if finding.next_step:
        yield from ("", f"**Next:** {escape(finding.next_step)}")
    if finding.voices:
        yield from ("", f"Said by {escape(phrase.voices(finding))} ({escape(finding.ruleset)})")


def _list(head: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield from ("", f"**{head}**", "")
        yield from (f"- {escape(text)}" for text in texts)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give the lines of a table; of very many rows the first, and how many there are."""
    yield _row(heads)
    yield _row(["---"] * len(heads))
    for row in rows[:_ROWS]:
        yield _row([escape(cell) for cell in row])
    if len(rows) > _ROWS:
        yield from ("", f"… and {len(rows) - _ROWS:,} more rows (`--format json` has all)")


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
