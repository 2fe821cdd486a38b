"""The same export as a folder of Parquet or Arrow files reads the same as its SQLite file."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from teller.ingest.readers import nsys, nsys_dir
from teller.ingest.source import Source

FILES = (
    "traces/nsys_sqlite/flameox_2025.5.2_cudagraph.sqlite",
    "traces/nsys_sqlite/mordred_2021.sqlite",
    "traces/nsys_sqlite/nsysai_mfu_2gpu_before.sqlite",
    "traces/nsys_sqlite/nsysai_healthy_1pct_SYNTHETIC.sqlite",
    "cases/o09_single_rank_host_pause_nsys/node-a.sqlite",
)


def _parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path.with_suffix(".parquet"))


def _stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path.with_suffix(".arrow"), table.schema) as out:
        out.write_table(table)


def _file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path.with_suffix(".arrow"), table.schema) as out:
        out.write_table(table)


def export(source: Path, folder: Path, write: Callable[[pa.Table, Path], None]) -> None:
    """Write each table of a SQLite export into a file of its own."""
    folder.mkdir()
    with closing(sqlite3.connect(f"file:{source}?immutable=1", uri=True)) as base:
        base.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            described = base.execute(f"PRAGMA table_info({name})").fetchall()
            types = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
            rows = base.execute(f"SELECT * FROM {name}").fetchall()
            columns = list(zip(*rows, strict=True)) or [()] * len(described)
            write(
                pa.table({
                    row[1]: pa.array(values, types[row[2] or "INTEGER"])
                    for row, values in zip(described, columns, strict=True)
                }),
                folder / name,
            )  # fmt: skip


def alike(source: Source) -> Source:
    return replace(source, facts=replace(source.facts, path="", format=""))


@pytest.mark.parametrize(
    ("name", "write"),
    [*((name, _parquet) for name in FILES), (FILES[0], _stream), (FILES[0], _file)],
)
def test_a_folder_of_tables_gives_what_the_sqlite_file_gives(
    name: str, write: Callable[[pa.Table, Path], None], shared: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "report_pqtdir"
    export(shared / name, folder, write)
    assert nsys_dir.looks_like(b"", folder)
    found, expected = nsys_dir.read(folder), nsys.read(shared / name)
    assert len(found.sources) == len(expected.sources)
    for one, two in zip(map(alike, found.sources), map(alike, expected.sources), strict=True):
        assert one.facts == two.facts
        assert one.spans.to_pylist() == two.spans.to_pylist()
        assert one.calls.to_pylist() == two.calls.to_pylist()
    assert [r.what for r in found.remarks] == [r.what for r in expected.remarks]


def test_other_folders_are_refused(tmp_path: Path) -> None:
    assert not nsys_dir.looks_like(b"", tmp_path)
    _parquet(pa.table({"id": [1]}), tmp_path / "StringIds")
    assert not nsys_dir.looks_like(b"", tmp_path)
    assert not nsys_dir.looks_like(b"", tmp_path / "StringIds.parquet")


def _small(folder: Path) -> None:
    _parquet(pa.table({"id": [1], "value": ["gemm"]}), folder / "StringIds")
    kernels = {"start": [1, 5], "end": [2, 9], "shortName": [1, 1], "globalPid": [1 << 24] * 2}
    _parquet(pa.table(kernels), folder / "CUPTI_ACTIVITY_KIND_KERNEL")


def test_a_broken_file_is_named_and_the_others_are_used(tmp_path: Path) -> None:
    _small(tmp_path)
    (tmp_path / "NVTX_EVENTS.parquet").write_bytes(b"PAR1 and nothing else")
    reading = nsys_dir.read(tmp_path)
    assert [s.spans["name"].to_pylist() for s in reading.sources] == [["gemm", "gemm"]]
    (remark,) = reading.remarks
    assert remark.path.endswith("NVTX_EVENTS.parquet")
    assert "cannot be read" in remark.what


def test_unsigned_and_narrow_columns_are_the_same_numbers(tmp_path: Path) -> None:
    _small(tmp_path)
    columns = {
        "start": pa.array([3], pa.uint64()),
        "end": pa.array([4], pa.int32()),
        "globalTid": pa.array([(0xFE << 56) | 7 << 24 | 5], pa.uint64()),
        "nameId": pa.array([1], pa.uint32()),
    }
    _parquet(pa.table(columns), tmp_path / "CUPTI_ACTIVITY_KIND_RUNTIME")
    reading = nsys_dir.read(tmp_path)
    assert sorted(s.facts.pid or 0 for s in reading.sources) == [1, 7]
    api = next(s for s in reading.sources if s.facts.pid == 7)
    assert api.spans.to_pylist()[0] | {"place": 2} == api.spans.to_pylist()[0]
    assert api.spans["lane"].to_pylist() == ["thread 5"]
