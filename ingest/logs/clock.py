"""One clock for a file whose lines name a zone, name none, lack the year, or count from boot."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from teller.ingest.logs.strings import Flags, Ints
from teller.ingest.logs.times import BOOT, DAY, LOCAL, NO_YEAR, NONE, SECOND, UTC
from teller.ingest.records import YEARLESS, ClockKind

NEW_YEAR: Final = 330 * DAY  # a step back of eleven months is the turn of the year
QUARTER: Final = 900 * SECOND  # zones differ by whole quarters of an hour
NEAR: Final = 120 * SECOND  # how far apart lines that follow each other may be


@dataclass(slots=True)
class Clock:
    """Puts the times of one file on one clock; the first block with times decides which."""

    kind: ClockKind = "none"
    _ahead: int | None = None  # how far lines without a zone are ahead of UTC, ns; None: unknown
    _reference: int | None = None  # the last time whose year is known
    _years: int = 0  # how often the year turned
    _last: int | None = None

    def settle(self, ns: Ints, kind: Ints) -> pa.Array:
        """Give the times of the next lines on the file's clock; null where a line has none."""
        if not (kind != NONE).any():
            return pa.nulls(len(ns), pa.int64())
        if self.kind == "none":
            self._decide(ns, kind)
        if self.kind == "boot":
            return pa.array(ns, mask=kind != BOOT)
        if self.kind == "yearless":
            return self._unwrapped(ns, kind)
        times = self._with_years(ns, kind)
        civil = (kind == LOCAL) | (kind == NO_YEAR)
        if self._ahead is not None:
            times = np.where(civil, times - self._ahead, times)
        mine = (kind == UTC) if self.kind == "utc" else civil
        return pa.array(times, mask=~(mine | (civil & (self._ahead is not None))))

    def _decide(self, ns: Ints, kind: Ints) -> None:
        utc, local, yearless, boot = (int((kind == k).sum()) for k in (UTC, LOCAL, NO_YEAR, BOOT))
        if boot > utc + local + yearless:
            self.kind = "boot"
        elif utc == local == 0:
            self.kind = "yearless"
        elif utc == 0:
            self.kind = "local"
        else:
            self._ahead = self._zone(ns, kind)
            known = self._ahead is not None or utc >= local + yearless
            self.kind = "utc" if known else "local"

    def _zone(self, ns: Ints, kind: Ints) -> int | None:
        """Tell how far lines without a zone are ahead, by the lines with one before them."""
        civil = (kind == LOCAL) | (kind == NO_YEAR)
        if not civil.any():
            return None
        times = self._with_years(ns, kind)
        before = _last(kind == UTC)
        rows = np.flatnonzero(civil & (before >= 0))
        if not len(rows):
            return None
        apart = times[rows] - times[before[rows]]
        whole = np.rint(apart / QUARTER).astype(np.int64) * QUARTER
        zone = int(np.sort(whole)[len(whole) // 2])
        good = int(np.median(np.abs(apart - zone))) < NEAR and abs(zone) <= DAY
        return zone if good else None

    def _with_years(self, ns: Ints, kind: Ints) -> Ints:
        """Give the yearless the year that brings them nearest to a line with a year."""
        bare, sure = kind == NO_YEAR, (kind == LOCAL) | (kind == UTC)
        known = np.flatnonzero(sure)
        if bare.any():
            at = _last(sure)
            first = self._reference
            if first is None:
                first = int(ns[known[0]]) if len(known) else None
            if first is None:
                return ns
            near = np.where(at >= 0, ns[np.maximum(at, 0)], first)
            ns = ns.copy()
            ns[bare] = _nearest(ns[bare], near[bare])
        if len(known):
            self._reference = int(ns[known[-1]])
        return ns

    def _unwrapped(self, ns: Ints, kind: Ints) -> pa.Array:
        """Count the turns of the year."""
        there = np.flatnonzero((kind == NO_YEAR) | (kind == LOCAL))
        bare = _in_year(ns, np.full(len(ns), YEARLESS))
        if len(there):
            found = bare[there]
            step = np.diff(found, prepend=found[0] if self._last is None else self._last)
            turns = self._years + np.cumsum((step < -NEW_YEAR).astype(int) - (step > NEW_YEAR))
            self._last, self._years = int(found[-1]), int(turns[-1])
            bare[there] = _in_year(found, YEARLESS + turns)
        mask: Flags = np.ones(len(ns), np.bool_)
        mask[there] = False
        return pa.array(bare, mask=mask)


def _last(flag: Flags) -> Ints:
    """Give each row the last row up to it where the flag is set, or -1."""
    return np.maximum.accumulate(np.where(flag, np.arange(len(flag)), -1))


def _in_year(ns: Ints, year: Ints) -> Ints:
    """Give the same date and time of another year; the 29th of February may become March."""
    months = ns.astype("M8[ns]").astype("M8[M]")
    within = ns - months.astype("M8[ns]").astype(np.int64)
    moved = months.astype(np.int64) % 12 + (year - 1970) * 12
    return moved.astype("M8[M]").astype("M8[ns]").astype(np.int64) + within


def _nearest(ns: Ints, near: Ints) -> Ints:
    year = near.astype("M8[ns]").astype("M8[Y]").astype(np.int64) + 1970
    around = np.stack([_in_year(ns, year + by) for by in (-1, 0, 1)])
    best = np.argmin(np.abs(around - near), axis=0)
    chosen: Ints = around[best, np.arange(len(ns))]
    return chosen
