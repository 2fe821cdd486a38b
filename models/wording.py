"""Sentences with figures in them: templates whose format words are units.

`{x:ms}` prints nanoseconds as milliseconds, `{x:time}` in the unit that fits, `{x:pct}` a ratio as
a percentage, `{x:times}` a factor, `{x:rate}` bytes a second. Other format words are Python's.
A list is its parts in order, with commas between.
"""

from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Any, Final

SCALES: Final = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
NAMES: Final = {"ns": "ns", "us": "µs", "ms": "ms", "s": "s"}


class _Words(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "unknown"
        if isinstance(value, list):
            parts = [self.format_field(one, format_spec) for one in sorted(value)]
            return ", ".join(parts) or "unknown"
        if format_spec in SCALES:
            return f"{_short(value / SCALES[format_spec])} {NAMES[format_spec]}"
        if format_spec == "time":
            return duration(value)
        if format_spec == "pct":
            return f"{_short(100 * value)} %"
        if format_spec == "times":
            return f"{value:.2f}×"
        if format_spec == "rate":
            return f"{_short(value / 1e9)} GB/s"
        return str(super().format_field(value, format_spec))


def say(template: str, values: Mapping[str, Any]) -> str:
    """Fill a template; white space of the file it stands in is folded."""
    return _Words().vformat(" ".join(template.split()), (), values)


def printed(value: Any, form: str) -> str:
    """Print one value as a template would."""
    return str(_Words().format_field(value, form))


def parts(template: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str | None, str]]:
    """Give a filled template bit by bit: the text, its column (None for mere words), its form."""
    for words, column, form, _ in _Words().parse(" ".join(template.split())):
        if words:
            yield words, None, ""
        if column is not None:
            yield printed(values[column], form or ""), column, form or ""


def duration(ns: float) -> str:
    """Print a duration in the unit that fits: 850 ns, 12.3 µs, 15.0 ms, 1.74 s."""
    unit = next(u for u in ("s", "ms", "us", "ns") if abs(ns) >= SCALES[u] or u == "ns")
    return f"{_short(ns / SCALES[unit])} {NAMES[unit]}"


def _short(value: float) -> str:
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"
