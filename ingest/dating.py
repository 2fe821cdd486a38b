"""Which moment a log means: the missing year, zone or day, found by what lies beside it.

Civil times without a zone are read as UTC and moved by whole quarters of an hour where only that
brings them to the other sources of their run; what was assumed is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from teller.ingest.records import YEARLESS, ClockKind

SECOND: Final = 1_000_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR
ZONES: Final = sorted((q * HOUR // 4 for q in range(-14 * 4, 12 * 4 + 1)), key=abs)
NEAR: Final = 2 * 60 * SECOND  # clocks of hosts differ, and a line may come late
Window = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Timed:
    """What is known of one source's times; `window` is None where it has none."""

    clock: ClockKind
    window: Window | None
    modified_ns: int = 0  # when the file was last written
    day_unknown: bool = False  # times of day only, on 2000-01-01


@dataclass(frozen=True, slots=True)
class Dated:
    """What to add to reach UTC; None where nothing can: `said` is the assumption, in words."""

    shift_ns: int | None
    said: str = ""


def date(sources: Sequence[Timed], anchors: Sequence[Window]) -> list[Dated]:
    """Date all sources; `anchors` are the UTC windows of traces.

    What tells more helps to date what tells less: first the year, by all that have one, then the
    day. The zone comes last, one for all that lack it: logs of one run are written alike.
    """
    utc = [*anchors, *(s.window for s in sources if s.window and s.clock == "utc")]
    known = [*utc, *(s.window for s in sources if s.window and s.clock == "local")]
    shifts = [_civil(s) for s in sources]
    said = [""] * len(sources)
    for day_unknown in (False, True):
        for i, one in enumerate(sources):
            if one.clock == "yearless" and one.window and one.day_unknown == day_unknown:
                shifts[i], said[i] = (_of_day if day_unknown else _of_year)(one, known)
        known += [
            _moved(one.window, shift)
            for one, shift in zip(sources, shifts, strict=True)
            if shift is not None and one.window and one.clock == "yearless"
        ]
    zone = _zone(
        [
            _moved(one.window, shift)
            for one, shift in zip(sources, shifts, strict=True)
            if shift is not None and one.window and one.clock != "utc"
        ],
        utc,
    )
    return [
        Dated(shift)
        if shift is None or one.clock == "utc"
        else Dated(
            shift + zone, "; ".join(w for w in (words, _zone_said(zone) if utc else "") if w)
        )
        for one, shift, words in zip(sources, shifts, said, strict=True)
    ]


def _civil(one: Timed) -> int | None:
    """Give 0 where the year is known, None where no moment can be."""
    return 0 if one.window is not None and one.clock in ("utc", "local") else None


def _of_year(one: Timed, known: Sequence[Window]) -> tuple[int, str]:
    """Take the year that brings it nearest to the others, else that of the file's last change."""
    window = one.window or (0, 0)
    beside = known or [(one.modified_ns, one.modified_ns)]
    years = {_year(t) + d for w in beside for t in w for d in (-1, 0, 1)}
    shift = _nearest(
        [_years(window[0], y - YEARLESS) for y in sorted(years)], window, beside, known
    )
    source = "by the other sources" if known else "from the file's date"
    year = _year(window[0] + shift)
    return shift, f"the year, which the lines do not give, is taken as {year} ({source})"


def _of_day(one: Timed, known: Sequence[Window]) -> tuple[int, str]:
    """Take the day that brings it nearest to the others, else that of the file's last change."""
    window = one.window or (0, 0)
    beside = known or [(one.modified_ns, one.modified_ns)]
    days = {(t - window[0]) // DAY + d for w in beside for t in w for d in (-1, 0, 1)}
    shift = _nearest([day * DAY for day in sorted(days)], window, beside, known)
    day = datetime.fromtimestamp((window[0] + shift) / SECOND, UTC).date()
    return shift, f"the day, which the rows do not give, is taken as {day}"


def _nearest(
    shifts: Sequence[int], window: Window, beside: Sequence[Window], known: Sequence[Window]
) -> int:
    """Give the shift that brings a window nearest; a file holds nothing later than its date."""
    past = [s for s in shifts if known or window[1] + s <= beside[0][1] + DAY]
    return min(past or shifts, key=lambda s: min(_apart(_moved(window, s), w) for w in beside))


def _zone(windows: Sequence[Window], utc: Sequence[Window]) -> int:
    """Give the smallest zone that brings most windows onto what is UTC; 0 where one is already."""
    meets = [
        sum(any(_apart(_moved(w, zone), u) <= NEAR for u in utc) for w in windows) for zone in ZONES
    ]
    return 0 if meets[0] else ZONES[meets.index(max(meets))]


def _zone_said(zone: int) -> str:
    if not zone:
        return "its times, which name no zone, are taken as UTC"
    sign = "-" if zone > 0 else "+"
    hours, minutes = divmod(abs(zone) // (60 * SECOND), 60)
    return f"its times fit the other sources in the zone UTC{sign}{hours:02d}:{minutes:02d}"


def _moved(window: Window, shift: int) -> Window:
    return window[0] + shift, window[1] + shift


def _apart(one: Window, other: Window) -> int:
    return max(one[0], other[0]) - min(one[1], other[1])


def _year(epoch_ns: int) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=epoch_ns // SECOND)).year


def _years(at_ns: int, more: int) -> int:
    """Give the ns from a date to the same date some years on; 29 February stands for itself."""
    then = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at_ns // SECOND)
    later = datetime(then.year + more, 1, 1, tzinfo=UTC)
    start = datetime(then.year, 1, 1, tzinfo=UTC)
    passed = then - start
    leap = _is_leap(then.year), _is_leap(then.year + more)
    if then.month > 2 and leap[0] != leap[1]:
        passed += timedelta(days=1 if leap[1] else -1)
    return int((later + passed - then).total_seconds()) * SECOND


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
