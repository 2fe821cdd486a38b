"""Kinds of lines that give one sample each, as data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import number, samples
from teller.ingest.logs.meaning import filled, having, integers, said, told, whole, with_column
from teller.ingest.logs.shapes import among, near

LINE: Final = "<line>"  # as a phrase's text: the first line of the message
_WHOLE_NUMBERS: Final = ("pid", "rank", "line")


@dataclass(frozen=True, slots=True)
class Phrase:
    """One kind of line: `mark` stands in it, `pattern` (RE2) reads it.

    Named groups: `value` (times `scale`), `text`, `pid`, `rank`, `host`, `device`; each may lack.
    Without a group `text` the sample's text is the phrase's.
    """

    name: str
    mark: str
    pattern: str
    text: str = ""
    scale: float = 1.0
    value: float | None = None  # where no group gives it


def marks(phrases: Iterable[Phrase]) -> tuple[str, ...]:
    """Give the marks, each once."""
    return tuple(dict.fromkeys(phrase.mark for phrase in phrases))


def read(lines: pa.Table, phrases: Iterable[Phrase]) -> tuple[list[pa.Table], list[pa.Table]]:
    """Give the samples of all lines that fit a phrase, and which lines are so understood."""
    made, known = [], []
    phrases = tuple(phrases)
    lines = near(lines, *marks(phrases))
    spoken = among(lines)
    for phrase in phrases if lines.num_rows else ():
        if not spoken(phrase.mark):
            continue
        mine = having(lines, phrase.mark)
        if mine.num_rows:
            rows, sample = _read(mine, phrase)
            made.append(sample)
            known.append(told(rows))
    return made, known


def _read(lines: pa.Table, phrase: Phrase) -> tuple[pa.Table, pa.Table]:
    found = pc.extract_regex(whole(lines["text"]), phrase.pattern)
    fits = found.is_valid()
    rows, found = lines.filter(fits), found.filter(fits)
    got = {f.name: pc.struct_field(found, f.name) for f in found.type}
    for name in _WHOLE_NUMBERS:
        if name in got:
            rows = with_column(rows, name, integers(got[name]))
    if "host" in got:
        rows = with_column(rows, "host", filled(got["host"]))
    value: object = phrase.value
    if "value" in got:
        value = pc.multiply(number(got["value"]), phrase.scale)
    text: object = phrase.text
    if "text" in got:
        text = said(got["text"])
    elif phrase.text == LINE:
        text = said(rows["text"])
    device = integers(got["device"]) if "device" in got else None
    return rows, samples(phrase.name, rows, value=value, text=text, device_index=device)
