"""What changed between two runs, on a terminal and as Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import RenderableType

from teller.graph import judgement
from teller.graph.difference import Answer, Change, Difference, Section, Told
from teller.ui import markdown, phrase
from teller.ui.text import SEVERITY_STYLES, plain_table, word

ANSWERS: Final[dict[Answer, str]] = {
    "slower": "Slower",
    "new_fault": "A new fault",
    "not_slower": "Nothing is slower",
    "not_comparable": "Not comparable",
}
_STYLES: Final[dict[Answer, str]] = {
    "slower": "bold red",
    "new_fault": "bold red",
    "not_slower": "bold green",
    "not_comparable": "bold yellow",
}
_TOLD: Final[dict[Told, str]] = {
    "more": "more", "less": "less", "same": "same", "unsure": "unsure", "few": "too few to tell",
    "apart": "no like load", "new": "only now", "gone": "only usual",
}  # fmt: skip
_HEADS: Final[tuple[tuple[tuple[Section, ...], str], ...]] = (
    (("step", "throughput"), "Steps and throughput"),
    (("family",), "Own time by family"),
    (("operator",), "Own time by operator"),
    (("collective",), "Collectives"),
    (("pace",), "Gaps and launches"),
    (("request",), "Requests"),
    (("load",), "Load"),
)
_MOST: Final = 12  # rows of families and of operators
_SMALL: Final = 0.002  # of the longest step: what changed less is left to JSON


@dataclass(frozen=True, slots=True)
class Block:
    """A table with its head, and how many rows it leaves out."""

    head: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


def text(found: Difference) -> Iterator[RenderableType]:
    """Give what a terminal shows, top to bottom."""
    yield word(headline(found), _STYLES[found.answer])
    yield word(f"usual  {found.usual.name}: {phrase.extent(found.usual)}", "dim")
    yield word(f"now    {found.now.name}: {phrase.extent(found.now)}", "dim")
    for block in blocks(found):
        yield ""
        table = plain_table(block.head, *block.heads[1:])
        for row in block.rows:
            table.add_row(*map(word, row))
        yield table
        if block.left_out:
            yield word(f"and {block.left_out:,} more that changed little (--format json)", "dim")
    for finding in found.findings:
        if finding.severity == "info":
            continue
        yield ""
        yield word(f"{_age(finding.id, found)}: {finding.title}", SEVERITY_STYLES[finding.severity])
        yield word(finding.text)
    for note in found.notes:
        yield ""
        yield word(f"note {note}")


def as_markdown(found: Difference) -> str:
    """Give one Markdown text."""
    return "\n".join(_markdown(found)) + "\n"


def _markdown(found: Difference) -> Iterator[str]:
    yield f"## {markdown.escape(headline(found))}"
    yield ""
    for label, run in (("usual", found.usual), ("now", found.now)):
        yield f"- {label}: **{markdown.escape(run.name)}**, {markdown.escape(phrase.extent(run))}"
    for block in blocks(found):
        yield from ("", f"### {block.head}", "")
        yield from markdown.table(block.heads, block.rows)
        if block.left_out:
            yield from ("", f"… and {block.left_out:,} more that changed little")
    listed = [f for f in found.findings if f.severity != "info"]
    if listed:
        yield from ("", "### Faults", "")
        rows = [
            (_age(f.id, found), f.severity, f.title, phrase.who(f.culprit), f.next_step)
            for f in listed
        ]
        yield from markdown.table(("", "severity", "what", "who", "next"), rows)
    if found.notes:
        yield from ("", "### Not answered", "")
        yield from (f"- {markdown.escape(note)}" for note in found.notes)


def headline(found: Difference) -> str:
    """Give the answer in one line, with the figure that decides it."""
    said = ANSWERS[found.answer]
    slower = [c for c in found.changes if c.decides and c.slower]
    if slower:
        worst = max(slower, key=lambda c: abs((c.ratio or 1) - 1))
        return f"{said}: {worst.name} {_percent(worst)}, {_moved(worst)}"
    if found.new_faults:
        first = next(f for f in found.findings if f.id in found.new_faults)
        return f"{said}: {first.title}"
    if found.answer == "not_slower":
        return f"{said} by {phrase.share(found.threshold)} or more"
    return said


def blocks(found: Difference) -> Iterator[Block]:
    """Give the tables: what changed, section by section, and then the settings."""
    longest = max((c.usual or 0 for c in found.changes if c.section == "step"), default=0.0)
    for sections, head in _HEADS:
        changes = [c for c in found.changes if c.section in sections]
        parts = sections[0] in ("family", "operator")
        shown = _shown(changes, longest) if parts else [c for c in changes if c.usual is not None]
        heads = ("what", "of", "usual", "now", "change", "")
        last = ("a call", "calls a step") if parts else ("figures",)
        if shown:
            rows = tuple(_row(c, parts=parts) for c in shown)
            left_out = len(changes) - len(shown) if parts else 0
            yield Block(head, (*heads, *last), rows, left_out)
    if found.settings:
        rows = tuple((s.name, _values(s.usual), _values(s.now)) for s in found.settings)
        yield Block("Settings that differ", ("setting", "usual", "now"), rows)


def _shown(changes: Sequence[Change], longest: float) -> list[Change]:
    """Give the parts of a step whose change matters, the largest first."""
    weighty = [c for c in changes if _apart(c) > _SMALL * longest and c.told != "same"]
    return sorted(weighty, key=_apart, reverse=True)[:_MOST]


def _apart(change: Change) -> float:
    if change.usual is None or change.now is None:
        return 0.0
    return abs(change.now - change.usual)


def _row(change: Change, *, parts: bool) -> tuple[str, ...]:
    sized = (_value(change.usual, change.unit), _value(change.now, change.unit))
    row = (change.name, change.where, *sized, _percent(change), _verdict(change))
    if not parts:
        return (*row, f"{change.usual_count:,}, {change.now_count:,}")
    each = " → ".join(map(phrase.duration, change.each)) if change.each else ""
    calls = " → ".join(map(phrase.figures, change.calls)) if change.calls else ""
    return (*row, each, calls)


def _verdict(change: Change) -> str:
    if change.told not in ("more", "less") or not change.worse:
        return _TOLD[change.told]
    if change.section == "load":
        return "worse" if change.slower else "better"
    return "slower" if change.slower else "faster"


def _percent(change: Change) -> str:
    """Give the change and its interval in percent of the usual: "+12 % (+9 to +15)"."""
    if not change.usual or change.now is None:
        return ""
    said = f"{100 * (change.now / change.usual - 1):+.3g} %"
    if change.low is None or change.high is None or change.told in ("new", "gone"):
        return said
    low, high = (100 * limit / change.usual for limit in (change.low, change.high))
    return f"{said} ({low:+.3g} to {high:+.3g})"


def _moved(change: Change) -> str:
    return f"{_value(change.usual, change.unit)} → {_value(change.now, change.unit)}"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "ns":
        return phrase.duration(value)
    if unit == "ratio":
        return phrase.share(value)
    return f"{phrase.figures(value)}{'/s' if unit == 'per_s' else ''}"


def _values(values: Iterable[str]) -> str:
    return ", ".join(values) or "not told"


def _age(finding: int, found: Difference) -> str:
    fault = next(f for f in found.findings if f.id == finding)
    if judgement.claims(fault) != "fault":
        return "recording"
    return "new" if finding in found.new_faults else "as before"
