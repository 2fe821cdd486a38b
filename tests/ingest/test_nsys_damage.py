"""Damaged and foreign SQLite files: the good part is used, the bad part named."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from teller.ingest.readers import nsys

MFU = "traces/nsys_sqlite/nsysai_mfu_2gpu_before.sqlite"


@pytest.mark.parametrize("kept", [0.9, 0.5, 0.2, 0.05])
def test_of_a_cut_file_the_tables_before_the_cut_are_used(
    kept: float, shared: Path, tmp_path: Path
) -> None:
    content = (shared / "traces/nsys_sqlite/nsysai_mfu_2gpu_before.sqlite").read_bytes()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(content[: int(len(content) * kept)])
    assert nsys.looks_like(content[: 1 << 16], cut)
    reading = nsys.read(cut)
    size = int(len(content) * kept)
    assert any(
        r.what == f"the file is cut: {size} bytes of {len(content)}" for r in reading.remarks
    )
    assert kept < 0.1 or [s.facts.pid for s in reading.sources] == [144, 145]
    assert kept < 0.9 or sum(s.facts.event_count for s in reading.sources) > 25_000


def test_a_broken_gzip_stream_is_named_and_its_beginning_used(shared: Path, tmp_path: Path) -> None:
    content = (shared / "testbed-prototype/demo-run/rank0.nsys.sqlite.gz").read_bytes()
    cut = tmp_path / "rank0.sqlite.gz"
    cut.write_bytes(content[: len(content) * 3 // 4])
    reading = nsys.read(cut)
    assert any("gzip stream is broken" in r.what for r in reading.remarks)
    assert any("the file is cut" in r.what for r in reading.remarks)
    assert len(reading.sources) == 1


def test_a_damaged_page_costs_the_rows_after_it_in_its_table_only(
    shared: Path, tmp_path: Path
) -> None:
    whole = nsys.read(shared / MFU)
    content = bytearray((shared / MFU).read_bytes())
    last = len(content) // 4096 * 3 // 4 * 4096
    content[last : last + 8] = b"\xff" * 8
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(content)
    reading = nsys.read(damaged)
    assert [r.place for r in reading.remarks] == ["table NVTX_EVENTS"]
    assert "malformed" in reading.remarks[0].what
    kept, all_of = (sum(s.facts.event_count for s in r.sources) for r in (reading, whole))
    lost = int(reading.remarks[0].what.split("the ")[-1].split()[0])
    assert kept == all_of - (19118 - lost)


@pytest.mark.parametrize("size", [16, 50, 100, 4096])
def test_a_file_that_is_hardly_there_gives_a_remark(
    size: int, shared: Path, tmp_path: Path
) -> None:
    stump = tmp_path / "stump.sqlite"
    stump.write_bytes((shared / MFU).read_bytes()[:size])
    reading = nsys.read(stump)
    assert reading.sources == ()
    assert any("cut" in r.what for r in reading.remarks)


def test_an_empty_file_gives_a_remark(tmp_path: Path) -> None:
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    assert not nsys.looks_like(b"", empty)
    reading = nsys.read(empty)
    assert (reading.sources, len(reading.remarks)) == ((), 1)


def test_a_path_that_is_not_there_is_an_error_of_the_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        nsys.read(tmp_path / "none.sqlite")


@pytest.mark.parametrize(
    ("tables", "what"),
    [
        (("rocpd_kernel_dispatch", "rocpd_string"), "rocprofiler"),
        (("StringTable", "CUPTI_ACTIVITY_KIND_KERNEL"), "nvprof"),
        (("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",), "nvprof"),
        (("users", "orders"), "tables orders, users"),
        ((), "without tables"),
    ],
)
def test_other_databases_are_refused_and_named(
    tables: tuple[str, ...], what: str, tmp_path: Path
) -> None:
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as base:
        base.execute("PRAGMA user_version = 1")
        for table in tables:
            base.execute(f"CREATE TABLE {table} (id INTEGER)")
    assert not nsys.looks_like(other.read_bytes()[: 1 << 16], other)
    assert what in nsys.why_not(other)
