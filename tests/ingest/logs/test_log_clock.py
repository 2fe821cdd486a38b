"""One clock for a file, whatever its lines leave out."""

import calendar

import numpy as np
import pyarrow as pa

from teller.ingest.logs.clock import Clock
from teller.ingest.logs.times import BOOT, LOCAL, NO_YEAR, NONE, UTC

S = 1_000_000_000


def at(year: int, month: int, day: int, hour: int = 0) -> int:
    return calendar.timegm((year, month, day, hour, 0, 0)) * S


def settled(clock: Clock, *rows: tuple[int, int]) -> list[int | None]:
    ns = np.array([r[0] for r in rows], np.int64)
    kind = np.array([r[1] for r in rows], np.int64)
    found: pa.Array = clock.settle(ns, kind)
    times: list[int | None] = found.to_pylist()
    return times


def test_a_line_after_new_year_is_in_the_next_year() -> None:
    clock = Clock()
    times = settled(
        clock,
        (at(2000, 12, 31, 23), NO_YEAR),
        (at(2000, 1, 1), NO_YEAR),
        (at(2000, 12, 31, 23), NO_YEAR),  # another process, a little late
        (0, NONE),
    )
    assert times == [at(2000, 12, 31, 23), at(2001, 1, 1), at(2000, 12, 31, 23), None]
    assert settled(clock, (at(2000, 1, 2), NO_YEAR)) == [at(2001, 1, 2)]
    assert clock.kind == "yearless"


def test_a_line_with_a_year_gives_it_to_those_without() -> None:
    clock = Clock()
    times = settled(
        clock,
        (at(2000, 12, 31, 23), NO_YEAR),
        (at(2025, 12, 31, 23), LOCAL),
        (at(2000, 1, 1), NO_YEAR),
    )
    assert times == [at(2025, 12, 31, 23), at(2025, 12, 31, 23), at(2026, 1, 1)]
    assert clock.kind == "local"


def test_a_line_with_a_zone_tells_the_zone_of_its_neighbours() -> None:
    clock = Clock()
    times = settled(
        clock,
        (at(2026, 3, 4, 10), UTC),
        (at(2026, 3, 4, 12), LOCAL),
        (at(2000, 3, 4, 12), NO_YEAR),
    )
    assert times == [at(2026, 3, 4, 10)] * 3
    assert clock.kind == "utc"


def test_time_since_boot_is_no_civil_time() -> None:
    clock = Clock()
    assert settled(clock, (5 * S, BOOT), (6 * S, BOOT), (at(2026, 1, 1), LOCAL)) == [
        5 * S,
        6 * S,
        None,
    ]
    assert clock.kind == "boot"


def test_a_file_without_times_has_no_clock() -> None:
    clock = Clock()
    assert settled(clock, (0, NONE)) == [None]
    assert clock.kind == "none"
