"""What files hold, on a terminal: each file, what was wrong, what is foreign, what is missing."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from teller.graph.finding import Quality
from teller.graph.survey import FileSeen, Layer, Survey
from teller.ui import listing, phrase
from teller.ui.text import plain_table, word

_FILES: Final = 100
_REMARKS: Final = 40
_NAMES: Final = 6


def blocks(found: Survey) -> Iterator[RenderableType]:
    """Give what is printed, top to bottom."""
    yield listing.runs(found.runs)
    yield ""
    yield _files(found.files[:_FILES])
    if (rest := len(found.files) - _FILES) > 0:
        yield word(f"and {phrase.counted(rest, 'file')} more (--format json lists all)", "dim")
    if found.data_quality:
        yield ""
        yield from _remarks(found.data_quality)
    if found.foreign:
        count = sum(len(kind.files) for kind in found.foreign)
        yield ""
        yield word(phrase.counted(count, "file is", "files are") + " no input", "bold")
        for kind in found.foreign:
            said = f"{phrase.counted(len(kind.files), 'looks', 'look')} like {kind.kind}"
            yield Padding(word(f"{said}: {phrase.some(kind.files, _NAMES)}", "dim"), (0, 0, 0, 2))
    if found.missing:
        yield ""
        yield from _missing(found.missing, [run.name for run in found.runs])


def _files(files: Sequence[FileSeen]) -> Table:
    table = plain_table("Files", "read as", "run", "rank", "host", "used", "time", "")
    for one in files:
        table.add_row(
            word(one.file), word(one.format), word(one.run or "–"),
            "–" if one.rank is None else f"{one.rank}", word(one.host or "–"), f"{one.used:,}",
            _window(one), word("; ".join(_odd(one))),
        )  # fmt: skip
    return table


def _window(file: FileSeen) -> str:
    if file.first_epoch_ns is None or file.last_epoch_ns is None:
        return "–"
    lasts = phrase.duration(file.last_epoch_ns - file.first_epoch_ns)
    return f"{phrase.clock(file.first_epoch_ns)}, {lasts}"


def _odd(file: FileSeen) -> Iterator[str]:
    if file.note:
        yield file.note
    if file.unread:
        records = phrase.counted(file.unread, "record", "records")
        yield f"{records} could not be read, such as: {file.unread_example}"
    if file.redacted:
        yield f"secrets left out in {phrase.counted(file.redacted, 'line')}"


def _remarks(found: Sequence[Quality]) -> Iterator[RenderableType]:
    """Give one block for what is said alike of several files or places."""
    alike: dict[tuple[str, str], list[Quality]] = defaultdict(list)
    for remark in found:
        alike[remark.what, remark.do].append(remark)
    yield word(f"Data quality: {phrase.counted(len(found), 'remark')}", "bold")
    for (what, remedy), remarks in list(alike.items())[:_REMARKS]:
        places = [f"{r.file} at {r.where}" if r.where else r.file for r in remarks]
        said = f"{phrase.some(places, _NAMES)}: {what}{f'; {remedy}' if remedy else ''}"
        yield Padding(word(said), (0, 0, 0, 2))
    if (rest := len(alike) - _REMARKS) > 0:
        yield word(f"  and {rest:,} more (--format json lists all)", "dim")


def _missing(found: Sequence[Layer], runs: Sequence[str]) -> Iterator[RenderableType]:
    """Give a line a layer that is missing, with the runs that lack it and how to record it."""
    lacking: dict[tuple[str, str], list[str]] = defaultdict(list)
    for layer in found:
        lacking[layer.name, layer.record].append(layer.run)
    yield word("Not there, and how to record it", "bold")
    for (name, record), names in lacking.items():
        where = "" if len(names) == len(runs) else f", in {phrase.some(names, _NAMES)}"
        yield Padding(word(f"{name}{where}: {record}"), (0, 0, 0, 2))
