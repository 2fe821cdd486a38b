"""Times as side files write them, as ns: civil dates, times of day, epochs in any unit."""

import re
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

SECOND: Final = 1_000_000_000
DAY: Final = 946_684_800 * SECOND  # 2000-01-01, where a time of day stands that has no date

DATE_TIME: Final = (
    r"(?P<date>\d{4}[-/.]\d{2}[-/.]\d{2})[T _]+(?P<time>\d{2}:\d{2}:\d{2})"
    r"(?:[.,](?P<part>\d{1,9}))?\s?(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)
TIME_OF_DAY: Final = (
    r"^\s*(?P<time>(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d)(?:[.,](?P<part>\d{1,9}))?\s*$"
)

# what a file's name holds of its time: 20260912T041000Z, 2026-09-12_04-10-00, 1789185000
_NAME_DATE: Final = re.compile(
    r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)[T_. -]?([0-2]\d)[-:]?([0-5]\d)[-:]?([0-5]\d)(Z)?(?!\d)"
)
_NAME_EPOCH: Final = re.compile(r"(?<!\d)(1[5-9]\d{8}|1[5-9]\d{11}|1[5-9]\d{17})(?!\d)")


def civil(text: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Give ns of dates with times anywhere in a text, and whether each tells its zone."""
    parts = pc.extract_regex(text, DATE_TIME)
    date = pc.replace_substring_regex(pc.struct_field(parts, "date"), r"[/.]", "-")
    whole = pc.binary_join_element_wise(date, pc.struct_field(parts, "time"), " ")
    second = pc.strptime(whole, "%Y-%m-%d %H:%M:%S", "s", error_is_null=True).cast(pa.int64())
    zone = pc.struct_field(parts, "zone")
    ns = pc.add(pc.multiply(second, SECOND), fraction(pc.struct_field(parts, "part")))
    told = pc.fill_null(pc.not_equal(zone, ""), False)
    return pc.subtract(ns, pc.multiply(_offset(zone), SECOND)), told


def of_day(text: pa.Array) -> pa.Array:
    """Give ns of times of day, on the first day of 2000."""
    parts = pc.extract_regex(text, TIME_OF_DAY)
    clock = pc.split_pattern(pc.struct_field(parts, "time"), ":")
    figure = [pc.list_element(clock, at).cast(pa.int64()) for at in range(3)]
    second = pc.add(pc.add(pc.multiply(figure[0], 3600), pc.multiply(figure[1], 60)), figure[2])
    ns = pc.add(pc.multiply(second, SECOND), fraction(pc.struct_field(parts, "part")))
    return pc.add(ns, DAY)


def epoch(value: pa.Array) -> pa.Array:
    """Give ns of numbers since 1970, in s, ms, µs or ns as their size tells; else null."""
    # each unit covers the years 1973 to 5138, so no two can be mistaken for each other
    made = pa.nulls(len(value), pa.int64())
    whole = value.cast(pa.float64(), safe=False)
    for low, factor in ((1e8, 1e9), (1e11, 1e6), (1e14, 1e3)):
        fits = pc.and_(pc.greater_equal(whole, low), pc.less(whole, low * 1000))
        made = pc.if_else(pc.fill_null(fits, False), _ns(whole, factor), made)
    fits = pc.and_(pc.greater_equal(whole, 1e17), pc.less(whole, 9e18))
    exact = value.cast(pa.int64()) if pa.types.is_integer(value.type) else _ns(whole, 1.0)
    return pc.if_else(pc.fill_null(fits, False), exact, made)


def ns_of(value: pa.Array, factor: float) -> pa.Array:
    """Give whole ns of durations in a unit of `factor` ns; what cannot be one is null."""
    sane = pc.less(pc.abs(value), 9e18 / factor)
    return _ns(pc.if_else(pc.fill_null(sane, False), value, None), factor)


def of_name(path: Path) -> tuple[int | None, bool]:
    """Give the time that a file's name tells, in ns, and whether it is certainly UTC."""
    if date := _NAME_DATE.search(path.name):
        text = "{}-{}-{} {}:{}:{}{}".format(*date.groups(default=""))
        ns, told = civil(pa.array([text]))
        return ns[0].as_py(), told[0].as_py()
    if number := _NAME_EPOCH.search(path.name):
        return epoch(pa.array([float(number[1])]))[0].as_py(), True
    return None, False


def fraction(digits: pa.Array) -> pa.Array:
    """Give ns of the digits after a second's decimal mark; none are 0."""
    padded = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(digits, ""), 9, "0"), 0, 9)
    return padded.cast(pa.int64())


def _offset(zone: pa.Array) -> pa.Array:
    """Give seconds east of Greenwich; 0 where a zone is not told."""
    parts = pc.extract_regex(zone, r"(?P<sign>[+-])(?P<hour>\d{2}):?(?P<minute>\d{2})")
    hour, minute = (pc.struct_field(parts, name).cast(pa.int64()) for name in ("hour", "minute"))
    size = pc.add(pc.multiply(hour, 3600), pc.multiply(minute, 60))
    west = pc.equal(pc.struct_field(parts, "sign"), "-")
    return pc.fill_null(pc.if_else(west, pc.negate(size), size), 0)


def _ns(value: pa.Array, factor: float) -> pa.Array:
    # seconds and what is left apart: a double holds 16 digits, an epoch in ns has 19
    if factor == 1.0:
        return pc.cast(pc.round(value), pa.int64(), safe=False)
    whole = pc.floor(value)
    rest = pc.multiply(pc.subtract(value, whole), factor)
    whole_ns = pc.multiply(pc.cast(whole, pa.int64(), safe=False), int(factor))
    return pc.add(whole_ns, pc.cast(pc.round(rest), pa.int64(), safe=False))
