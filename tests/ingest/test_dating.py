"""Which moment a log means, found by what lies beside it."""

from datetime import UTC, datetime

import pytest

from teller.ingest.dating import HOUR, Dated, Timed, Window, date


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000_000


def window(start: str, end: str) -> Window:
    return at(start), at(end)


TRACE = window("2026-03-04T10:02:11", "2026-03-04T10:02:41")


def moved(one: Timed, dated: Dated) -> Window:
    assert one.window is not None
    assert dated.shift_ns is not None
    return one.window[0] + dated.shift_ns, one.window[1] + dated.shift_ns


def test_a_utc_source_stays_as_it_is() -> None:
    assert date([Timed("utc", TRACE)], []) == [Dated(0)]


def test_the_year_is_that_of_the_capture_beside_it() -> None:
    log = Timed("yearless", window("2000-03-04T10:02:00", "2000-03-04T10:03:00"))
    [dated] = date([log], [TRACE])
    assert moved(log, dated) == window("2026-03-04T10:02:00", "2026-03-04T10:03:00")
    assert "2026" in dated.said


def test_the_year_is_that_of_the_file_where_nothing_lies_beside_it() -> None:
    log = Timed("yearless", window("2000-12-31T23:59:00", "2001-01-01T00:01:00"),
                at("2025-01-02T00:00:00"))  # fmt: skip
    [dated] = date([log], [])
    assert moved(log, dated) == window("2024-12-31T23:59:00", "2025-01-01T00:01:00")
    assert "from the file's date" in dated.said


def test_the_end_of_february_lands_on_its_own_day_in_every_year() -> None:
    for year in ("2023", "2024", "2026"):
        log = Timed("yearless", window("2000-03-01T00:00:00", "2000-03-01T00:01:00"),
                    at(f"{year}-03-02T00:00:00"))  # fmt: skip
        [dated] = date([log], [])
        assert moved(log, dated)[0] == at(f"{year}-03-01T00:00:00")


@pytest.mark.parametrize("hours", [-7, -4, 1, 5.5, 8, 9, 12])
def test_a_zone_is_found_by_the_capture_beside_it(hours: float) -> None:
    shift = int(hours * HOUR)
    log = Timed("local", (TRACE[0] + shift, TRACE[1] + shift))
    [dated] = date([log], [TRACE])
    assert dated.shift_ns == -shift
    assert "zone" in dated.said


def test_a_log_that_meets_the_capture_is_not_moved() -> None:
    log = Timed("local", window("2026-03-04T04:00:00", "2026-03-04T16:00:00"))
    assert date([log], [TRACE])[0].shift_ns == 0


def test_a_log_of_another_day_is_not_moved() -> None:
    log = Timed("local", window("2026-02-01T04:00:00", "2026-02-01T16:00:00"))
    assert date([log], [TRACE])[0].shift_ns == 0


def test_times_of_day_take_the_day_of_a_log_beside_them() -> None:
    log = Timed("yearless", window("2000-04-15T07:22:00", "2000-04-15T07:31:00"),
                at("2026-04-16T00:00:00"))  # fmt: skip
    table = Timed("yearless", window("2000-01-01T07:24:58", "2000-01-01T07:30:11"),
                  at("2026-05-01T00:00:00"), day_unknown=True)  # fmt: skip
    first, second = date([log, table], [])
    assert moved(log, first)[0] == at("2026-04-15T07:22:00")
    assert moved(table, second) == window("2026-04-15T07:24:58", "2026-04-15T07:30:11")


def test_what_has_no_times_cannot_be_dated() -> None:
    assert date([Timed("none", None), Timed("boot", (0, 5))], [TRACE]) == [Dated(None)] * 2


def test_two_logs_of_one_day_are_not_brought_together() -> None:
    morning = Timed("local", window("2026-07-07T08:00:00", "2026-07-07T08:10:00"))
    later = Timed("local", window("2026-07-07T15:00:00", "2026-07-07T15:10:00"))
    assert [d.shift_ns for d in date([morning, later], [])] == [0, 0]


def test_logs_of_one_run_share_their_zone() -> None:
    shift = 9 * HOUR
    near = Timed("local", (TRACE[0] + shift, TRACE[1] + shift))
    before = Timed("local", window("2026-03-04T18:37:00", "2026-03-04T18:41:00"))
    assert [d.shift_ns for d in date([near, before], [TRACE])] == [-shift, -shift]


def test_a_file_holds_nothing_later_than_its_own_date() -> None:
    log = Timed("yearless", window("2000-11-15T07:22:00", "2000-11-15T07:31:00"),
                at("2026-03-01T00:00:00"))  # fmt: skip
    [dated] = date([log], [])
    assert moved(log, dated)[0] == at("2025-11-15T07:22:00")
