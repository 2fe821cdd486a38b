"""Times out of headers: civil and boot time as columns of nanoseconds."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.strings import Ints, ints
from teller.ingest.records import YEARLESS

NONE, UTC, LOCAL, NO_YEAR, BOOT = range(5)
SECOND: Final = 1_000_000_000
DAY: Final = 86_400 * SECOND
YEARS: Final = (1970, 2199)  # what fits int64 nanoseconds and is meant
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LARGEST_BOOT: Final = 1e9  # seconds: thirty years


@dataclass(frozen=True, slots=True)
class Times:
    """Times of some rows: ns, one of the five kinds, how fine; 0 and NONE where there is none."""

    ns: Ints
    kind: npt.NDArray[np.int8]
    resolution: Ints

    @classmethod
    def none(cls, size: int) -> "Times":
        """Give rows without a time."""
        return cls(np.zeros(size, np.int64), np.zeros(size, np.int8), np.zeros(size, np.int64))


def read_times(groups: dict[str, Any], size: int) -> Times:
    """Read what the groups of one grammar say; what is no time is none."""
    if "boot" in groups:
        whole = pc.cast(groups["boot"], pa.float64()).to_numpy(zero_copy_only=False)
        ns, good = np.rint(whole * 1e6).astype(np.int64) * 1000, whole < LARGEST_BOOT
        return _times(ns, good, BOOT, np.full(size, 1000))
    if "usec" in groups:
        usec = _number(groups, "usec", size)
        return _times(usec * 1000, usec < LARGEST_BOOT * 1e6, BOOT, np.full(size, 1000))
    if "d" not in groups:
        return Times.none(size)
    return _civil(groups, size)


def _civil(groups: dict[str, Any], size: int) -> Times:
    year, month, day = _number(groups, "y", size), _month(groups, size), _number(groups, "d", size)
    hour, minute, second = (_number(groups, name, size) for name in ("h", "mi", "s"))
    good = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    good &= (hour < 24) & (minute < 60) & (second <= 60)
    good &= (year == 0) | ((YEARS[0] <= year) & (year <= YEARS[1]))
    used = np.where(good & (year > 0), year, YEARLESS)
    months = ((used - 1970) * 12 + np.where(good, month, 1) - 1).astype("M8[M]")
    days = months.astype("M8[D]").astype(np.int64) + np.where(good, day, 1) - 1
    fraction, resolution = _fraction(groups, size)
    ns = days * DAY + (hour * 3600 + minute * 60 + second) * SECOND + fraction
    zoned, offset = _zone(groups, size)
    kind = np.where(zoned, UTC, np.where(year > 0, LOCAL, NO_YEAR))
    return _times(ns - offset, good, kind, resolution)


def _times(ns: Ints, good: npt.NDArray[np.bool_], kind: Any, resolution: Ints) -> Times:
    return Times(
        np.where(good, ns, 0),
        np.where(good, kind, NONE).astype(np.int8),
        np.where(good, resolution, 0),
    )


def _number(groups: dict[str, Any], name: str, size: int) -> Ints:
    if name not in groups:
        return np.zeros(size, np.int64)
    text = groups[name]
    return ints(pc.cast(pc.if_else(pc.equal(text, ""), "0", text), pa.int64()))


def _month(groups: dict[str, Any], size: int) -> Ints:
    if "mon" in groups:
        return ints(pc.fill_null(pc.index_in(groups["mon"], pa.array(MONTHS)), -1)) + 1
    return _number(groups, "mo", size)


def _fraction(groups: dict[str, Any], size: int) -> tuple[Ints, Ints]:
    if "f" not in groups:
        return np.zeros(size, np.int64), np.full(size, SECOND)
    digits = ints(pc.binary_length(groups["f"]))
    padded = pc.utf8_rpad(groups["f"], 9, "0")
    return ints(pc.cast(padded, pa.int64())), 10 ** (9 - digits)


def _zone(groups: dict[str, Any], size: int) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Tell where a zone is named, and how far it is ahead of UTC, ns."""
    if "zone" not in groups:
        return np.zeros(size, np.bool_), np.zeros(size, np.int64)
    zone = groups["zone"]
    parts = pc.extract_regex(zone, r"^(?P<sign>[+-])(?P<h>\d\d):?(?P<m>\d\d)$")
    ahead = np.zeros(size, np.int64)
    there = np.flatnonzero(parts.is_valid().to_numpy(zero_copy_only=False))
    if len(there):
        known = parts.take(pa.array(there))
        minutes = ints(pc.cast(known.field("h"), pa.int64())) * 60
        minutes += ints(pc.cast(known.field("m"), pa.int64()))
        minus = pc.equal(known.field("sign"), "-").to_numpy(zero_copy_only=False)
        ahead[there] = np.where(minus, -minutes, minutes) * 60 * SECOND
    named = pc.not_equal(zone, "").to_numpy(zero_copy_only=False)
    return np.asarray(named, np.bool_), ahead
