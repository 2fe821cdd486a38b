"""Notes of measured figures beside the data: the same names twice, in the usual state and now."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from teller.ingest.readers.side_json import opening
from teller.ingest.readers.side_lines import Lines, tame
from teller.ingest.readers.side_tables import Unread, joined, reading, samples
from teller.ingest.records import SAMPLES, Records
from teller.ingest.source import Facts, Reading

FORMAT: Final = "note"

LARGEST: Final = 1 << 16
_USUAL: Final = re.compile(
    r"previous|prev|usual|before|baseline|healthy|normal|normally|expected|reference|earlier|"
    r"last|yesterday|good|ok|old|was"
)
_NOW: Final = re.compile(r"now|current|currently|after|today|faulty|bad|slow|degraded|this|new|is")

# by the name of a figure: more of it is better, or less
_RATE: Final = re.compile(r"per_s|/s|tok_?s|throughput|bandwidth|bw|bps|[gm]b_s|rate|[qrt]ps")
_TIME: Final = re.compile(r"latency|duration|time|ttft|itl|tpot|(?:^|_)[nmu]?s(?:$|_)|seconds?")

Group = dict[str, float]


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a small document holds two groups of the same figures, then and now."""
    return len(head) < LARGEST and opening(head) == b"{" and _groups(head) is not None


def read(path: Path) -> Reading:
    """Read one note: a sample for each figure of each state; its line is where it stands."""
    lines, unread = Lines(path), Unread()
    raw = b"".join(lines.text.pieces())[:LARGEST]
    groups = _groups(raw)
    parts: list[pa.Table] = []
    text = tame(raw)
    for name, (title, figures) in zip(("note.usual", "note.now"), groups or (), strict=False):
        where = [_line(text, title, key) for key in figures]
        parts.append(samples(name, len(figures), value=list(figures.values()),
                             text=list(figures), line=pa.array(where, pa.int64())))  # fmt: skip
    parts.append(_slower(text, groups))
    made = joined(SAMPLES, parts)
    facts = Facts(str(path), FORMAT, event_count=made.num_rows)
    return reading(lines, Records(facts, "none", samples=made), unread, "figure")


def _slower(text: str, groups: tuple[tuple[str, Group], tuple[str, Group]] | None) -> pa.Table:
    """Give how many times slower each figure is now, as far as its name tells what is better."""
    if groups is None:
        return SAMPLES.empty_table()
    (_, usual), (title, now) = groups
    ratio = {
        key: usual[key] / now[key] if _RATE.search(key.lower()) else now[key] / usual[key]
        for key in now
        if now[key] > 0 < usual[key] and (_RATE.search(key.lower()) or _TIME.search(key.lower()))
    }
    where = [_line(text, title, key) for key in ratio]
    return samples("note.slowdown_ratio", len(ratio), value=list(ratio.values()),
                   text=list(ratio), line=pa.array(where, pa.int64()))  # fmt: skip


def _groups(raw: bytes) -> tuple[tuple[str, Group], tuple[str, Group]] | None:
    """Give the usual and the present figures, each with its title."""
    try:
        whole = msgspec.json.decode(tame(raw))
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(whole, dict):
        return None
    found = [(key, figures) for key, value in whole.items() if (figures := _figures(value))]
    usual = [one for one in found if _is(one[0], _USUAL) and not _is(one[0], _NOW)]
    now = [one for one in found if _is(one[0], _NOW) and not _is(one[0], _USUAL)]
    pairs = ((u, n) for u in usual for n in now if u[1].keys() == n[1].keys())
    return next(pairs, None)


def _is(title: str, words: re.Pattern[str]) -> bool:
    return any(words.fullmatch(word) for word in re.split(r"[\W_]+", title.lower()))


def _figures(value: Any) -> Group | None:
    """Give an object's figures; None where it holds anything else."""
    if not isinstance(value, Mapping) or not value:
        return None
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in value.values()):
        return None
    return {key: float(number) for key, number in value.items()}


def _line(text: str, title: str, key: str) -> int:
    """Give the line on which a figure of a group stands."""
    start = max(0, text.find(f'"{title}"'))
    at = text.find(f'"{key}"', start)
    return text.count("\n", 0, max(at, start)) + 1
