"""Whether a file is written out, by its ends: each format cut at any length, and whole."""

import gzip
import pickle
import sqlite3
import zipfile
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from teller.ingest.glance import is_whole, look, may_grow


@pytest.fixture
def made(tmp_path: Path) -> dict[str, Path]:
    """One file of each format."""
    given = {
        n: tmp_path / n
        for n in ("a.json", "a.json.gz", "a.sqlite", "a.zip", "a.parquet", "a.pickle")
    }
    text = b'{"traceEvents": [' + b",".join([b'{"ph": "X"}'] * 9000) + b"]}\n"
    given["a.json"].write_bytes(text)
    given["a.json.gz"].write_bytes(gzip.compress(text[:50_000]) + gzip.compress(text[50_000:]))
    with sqlite3.connect(given["a.sqlite"]) as base:
        base.execute("CREATE TABLE t (x)")
        base.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(9000)])
    base.close()
    with zipfile.ZipFile(given["a.zip"], "w") as packed:
        packed.writestr("a.json", text)
    pq.write_table(pa.table({"x": list(range(9000))}), given["a.parquet"])
    given["a.pickle"].write_bytes(pickle.dumps({"entries": list(range(9000))}))
    return given


@pytest.mark.parametrize(
    "name", ["a.json", "a.json.gz", "a.sqlite", "a.zip", "a.parquet", "a.pickle"]
)
def test_a_file_is_whole_at_its_full_length_alone(made: dict[str, Path], name: str) -> None:
    path = made[name]
    whole = path.read_bytes()
    assert is_whole(path)
    for share in (0.2, 0.45, 0.9, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        assert not is_whole(path), share


def test_a_database_with_a_journal_is_being_written(made: dict[str, Path]) -> None:
    made["a.sqlite"].with_name("a.sqlite-wal").write_bytes(b"1")
    assert not is_whole(made["a.sqlite"])


def test_lines_may_grow_and_packed_or_whole_documents_do_not(tmp_path: Path) -> None:
    demo = files("teller").joinpath("demo/run")
    for name, grows in (("rank0.log", True), ("comm_rank0.jsonl", True), ("client.jsonl", True)):
        packed = demo.joinpath(f"{name}.gz").read_bytes()
        (tmp_path / f"{name}.gz").write_bytes(packed)
        (tmp_path / name).write_bytes(gzip.decompress(packed))
        assert may_grow(tmp_path / name) is grows
        assert not may_grow(tmp_path / f"{name}.gz")
    assert len(look(tmp_path)[0]) == 6
