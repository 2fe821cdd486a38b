"""Results of the projection recipe: four ranks of a JAX run, and small results made by hand."""

import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from teller.ingest.readers import nsys_dir, nsys_recipe
from teller.ingest.source import CALLS, SPANS, Reading

RANKS = range(4)
TRACE = "nvtx_gpu_proj_trace/trace.parquet"


def pack(shared: Path, rank: int) -> Path:
    return shared / f"traces/nsys_parquet/pax_fsdp4_4proc_proc{rank}.zip"


@pytest.fixture(scope="module")
def readings(shared: Path) -> list[Reading]:
    return [nsys_recipe.read(pack(shared, rank)) for rank in RANKS]


@pytest.mark.parametrize("rank", RANKS)
def test_each_projected_range_is_a_span_with_its_times(
    rank: int, shared: Path, readings: list[Reading]
) -> None:
    path = pack(shared, rank)
    assert nsys_recipe.looks_like(path.read_bytes()[: 1 << 16], path)
    with zipfile.ZipFile(path) as packed:
        table = pq.read_table(io.BytesIO(packed.read(TRACE)))
    (source,) = readings[rank].sources
    spans = source.spans
    spans.validate(full=True)
    assert (spans.schema, source.calls.schema) == (SPANS, CALLS)
    assert spans["start_ns"].to_pylist() == table["Projected Start"].to_pylist()
    length = pc.subtract(spans["end_ns"], spans["start_ns"])
    assert length.to_pylist() == table["Projected Duration"].to_pylist()
    names = pc.fill_null(table["Name"], "unnamed range").to_pylist()
    assert spans["name"].to_pylist() == names
    starts = [n for n in names if "hlo_op=all-reduce" in n and "-done" not in n]
    assert source.calls["op"].to_pylist().count("all_reduce") == len(starts)


def test_ranks_come_from_the_environment_not_from_the_report_number(
    readings: list[Reading],
) -> None:
    facts = [reading.sources[0].facts for reading in readings]
    assert [f.rank for f in facts] == [0, 1, 2, 3]
    assert {f.rank_source for f in facts} == {"environment"}
    assert {f.host for f in facts} == {"nvdl-a112-luna04"}
    assert [f.device_index for f in facts] == [0, 1, 2, 3]
    assert len({f.gpus[0].uuid for f in facts}) == 4


def result(folder: Path, **columns: list[object]) -> Path:
    base = {"Projected Start": [5, 6], "Projected Duration": [10, 2]}
    (folder / TRACE).parent.mkdir(parents=True)
    pq.write_table(pa.table(base | columns), folder / TRACE)
    return folder


def test_a_folder_holds_the_same_as_a_zip(shared: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(pack(shared, 1)) as packed:
        packed.extractall(tmp_path)
    assert nsys_recipe.looks_like(b"", tmp_path)
    assert not nsys_dir.looks_like(b"", tmp_path)
    one, two = (nsys_recipe.read(p).sources[0] for p in (tmp_path, pack(shared, 1)))
    assert one.facts.rank == two.facts.rank == 1
    assert one.spans.equals(two.spans)


def test_several_reports_in_one_result_are_ranks_by_their_order(tmp_path: Path) -> None:
    result(tmp_path, Rank=[0, 1], PID=[11, 11], TID=[3, 4], Name=["a", None])
    reading = nsys_recipe.read(tmp_path)
    assert [(s.facts.rank, s.facts.rank_source) for s in reading.sources] == [
        (0, "report order"), (1, "report order"),
    ]  # fmt: skip
    assert [s.spans["lane"].to_pylist() for s in reading.sources] == [
        ["projected 3"],
        ["projected 4"],
    ]


def test_start_and_length_are_enough(tmp_path: Path) -> None:
    reading = nsys_recipe.read(result(tmp_path))
    (source,) = reading.sources
    assert source.facts.rank is None
    assert source.spans["end_ns"].to_pylist() == [15, 8]
    assert source.spans["name"].to_pylist() == ["unnamed range"] * 2


def test_a_cut_zip_is_taken_and_named(shared: Path, tmp_path: Path) -> None:
    content = pack(shared, 0).read_bytes()
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as packed:
        packed.writestr(TRACE, b"x" * 100_000)
    cut = tmp_path / "cut.zip"
    cut.write_bytes((tmp_path / "whole.zip").read_bytes()[:50_000])
    assert nsys_recipe.looks_like(cut.read_bytes()[: 1 << 16], cut)
    reading = nsys_recipe.read(cut)
    assert reading.sources == ()
    assert any("zip file is broken" in r.what for r in reading.remarks)
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as packed:
        packed.writestr("readme.txt", content[:10])
    assert not nsys_recipe.looks_like(other.read_bytes(), other)
