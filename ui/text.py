"""A diagnosis on a terminal: the verdict first, then each finding as one block.

Words from traces enter as `Text`, never as markup, and pass `visible` on the way.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import IO, Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from teller.graph.finding import Diagnosis, Evidence, Finding, InputSummary, Quality, Verdict
from teller.ui import phrase

SEVERITY_STYLES: Final = {
    "critical": "bold white on red",
    "high": "bold red",
    "medium": "bold yellow",
    "low": "bold blue",
    "info": "dim",
}
_VERDICT_STYLES: Final[dict[Verdict, str]] = {
    "fault": "bold red",
    "no_fault": "bold green",
    "data_quality": "bold yellow",
    "not_visible": "bold yellow",
}
_UNBOUNDED: Final = 1 << 20  # columns of what is not a terminal: a pipe wraps nothing
_READABLE: Final = 100
_EVIDENCE_LINES: Final = 3
_REMARK_LINES: Final = 10


def console(file: IO[str], *, wide: bool = False) -> Console:
    """Give a console that never reads markup, links or emoji codes; NO_COLOR is honoured.

    What is no terminal gets the width of a page, or with `wide` no limit at all.
    """
    width = None if file.isatty() else _UNBOUNDED if wide else _READABLE
    return Console(file=file, markup=False, emoji=False, highlight=False, width=width)


def write(diagnosis: Diagnosis, out: Console) -> None:
    """Print the whole diagnosis."""
    show(out, blocks(diagnosis))


def show(out: Console, found: Iterable[RenderableType]) -> None:
    """Print blocks; what is no terminal gets no blanks at the ends of lines."""
    if out.is_terminal:
        for block in found:
            out.print(block)
        return
    with out.capture() as printed:
        for block in found:
            out.print(block)
    out.file.writelines(f"{line.rstrip()}\n" for line in printed.get().split("\n")[:-1])


def blocks(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """Give what is printed, top to bottom."""
    yield headline(diagnosis)
    for run in diagnosis.runs:
        yield word(f"{run.name}: {phrase.extent(run)}", "dim")
    for number, finding in enumerate(diagnosis.findings, 1):
        yield Text()
        yield from finding_block(number, finding, diagnosis)
    for note in diagnosis.notes:
        yield Text()
        yield Text.assemble(word("note ", "bold"), word(note))
    if diagnosis.data_quality:
        yield Text()
        yield from remarks(diagnosis.data_quality)
    if diagnosis.inputs:
        yield Text()
        yield inputs(diagnosis.inputs)


def word(text: str, style: str = "") -> Text:
    """Give text from outside in a form that a terminal cannot act on."""
    return Text(phrase.visible(text), style=style)


def headline(diagnosis: Diagnosis) -> Text:
    """Give the verdict in one line."""
    verdict = phrase.VERDICTS[diagnosis.verdict]
    line = word(verdict, _VERDICT_STYLES[diagnosis.verdict])
    if diagnosis.findings and diagnosis.verdict in ("fault", "data_quality"):
        line.append_text(word(f": {diagnosis.findings[0].title}", "bold"))
    return line


def finding_block(number: int, finding: Finding, diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """Give one finding: its title, and then a line for each thing a reader asks."""
    yield Text.assemble(
        word(f"{number} ", "bold"),
        word(f" {finding.severity.upper()} ", SEVERITY_STYLES[finding.severity]),
        word(f" {finding.title}", "bold"),
    )
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _answers(finding, diagnosis):
        grid.add_row(label, text)
    yield Padding(grid, (0, 0, 0, 2), expand=False)


def _answers(finding: Finding, diagnosis: Diagnosis) -> Iterator[tuple[str, Text]]:
    run = phrase.run_of(diagnosis, finding)
    if phrase.parts(finding.culprit):  # else it is about the recording, and nobody is to blame
        yield "who", word(phrase.who(finding.culprit))
    since = phrase.when(run, finding.start_ns)
    if when := ", from ".join(x for x in (phrase.steps(finding), since) if x):
        yield "when", word(when)
    if phrase.parts(finding.culprit) or finding.cost.excess_ns:
        yield "cost", word(phrase.cost(finding))
    said = f" ({phrase.voices(finding)})" if finding.voices else ""
    yield "sure", word(f"{phrase.share(finding.confidence)}{said}")
    yield "why", word(finding.text)
    if way := phrase.way(finding):
        yield "how", word(" ".join(text for text, _ in way))
    shown = finding.evidence[:_EVIDENCE_LINES]
    for place, item in enumerate(shown):
        yield ("evidence" if place == 0 else ""), _evidence(item)
    if rest := len(finding.evidence) - len(shown):
        yield "", word(f"and {phrase.counted(rest, 'piece')} more (--format markdown)", "dim")
    for place, text in enumerate(finding.against):
        yield ("against" if place == 0 else ""), word(text)
    for place, text in enumerate(finding.not_checked):
        yield ("unchecked" if place == 0 else ""), word(text)
    if finding.next_step:
        yield "next", word(finding.next_step, "bold")


def _evidence(item: Evidence) -> Text:
    return Text.assemble(word(f"{item.role}: "), word(item.text), word(f"  [{item.source}]", "dim"))


def remarks(found: tuple[Quality, ...]) -> Iterator[RenderableType]:
    """Give what was wrong with files, one block a file and place."""
    yield word(f"Data quality: {phrase.counted(len(found), 'remark')}", "bold")
    for remark in found[:_REMARK_LINES]:
        line = Text.assemble(
            word(f"{remark.file}", "yellow"), word(f" at {remark.where}" if remark.where else ""),
            word(f": {remark.what}"), word(f"; {remark.do}" if remark.do else "", "bold"),
        )  # fmt: skip
        yield Padding(line, (0, 0, 0, 2))
    if (rest := len(found) - _REMARK_LINES) > 0:
        yield word(f"  and {rest:,} more (--format json lists all)", "dim")


def inputs(found: Iterable[InputSummary]) -> Table:
    """Give one line a kind of input: files, ranks, events."""
    kinds: dict[str, list[InputSummary]] = defaultdict(list)
    for item in found:
        kinds[item.kind].append(item)
    table = plain_table("Inputs", "files", "ranks", "events")
    for kind, items in sorted(kinds.items()):
        ranks = phrase.ranges(i.rank for i in items if i.rank is not None)
        events = sum(i.events for i in items)
        table.add_row(word(kind), f"{len(items):,}", ranks or "–", f"{events:,}")
    return table


def plain_table(*heads: str) -> Table:
    """Give an empty table without frames, whose cells fold and are never cut."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for head in heads:
        table.add_column(word(head), overflow="fold")
    return table
