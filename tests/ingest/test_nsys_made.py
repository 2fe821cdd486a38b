"""Small exports made by hand: what fixtures, old releases and odd programs leave."""

import gzip
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from teller.ingest.readers import nsys
from teller.ingest.source import Reading, Source

Table = tuple[str, Sequence[Sequence[Any]]]  # column definitions, rows
Make = Callable[..., Reading]
STRINGS = "id INTEGER PRIMARY KEY, value TEXT"
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX = '"start" INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER'
ONE, TWO = 1 << 48 | 4711 << 24, 1 << 48 | 4712 << 24


@pytest.fixture
def made(tmp_path: Path) -> Make:
    def make(**tables: Table) -> Reading:
        path = tmp_path / "made.sqlite"
        with closing(sqlite3.connect(path)) as base:
            for name, (columns, rows) in ({"StringIds": (STRINGS, [])} | tables).items():
                base.execute(f"CREATE TABLE {name} ({columns})")
                marks = ",".join("?" * (columns.count(",") + 1))
                base.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
            base.commit()
        assert nsys.looks_like(path.read_bytes()[: 1 << 16], path)
        reading = nsys.read(path)
        for source in reading.sources:
            source.spans.validate(full=True)
            source.calls.validate(full=True)
        return reading

    return make


def rows(source: Source, *columns: str) -> list[tuple[Any, ...]]:
    table = source.spans.sort_by("place")
    return list(zip(*(table[c].to_pylist() for c in columns), strict=True))


def test_a_kernel_with_start_end_and_name_is_enough(made: Make) -> None:
    reading = made(CUPTI_ACTIVITY_KIND_KERNEL=('"start", "end", name TEXT', [(5, 9, "saxpy")]))
    (source,) = reading.sources
    assert source.facts.pid is None
    assert rows(source, "name", "layer", "stream", "start_ns", "end_ns") == [
        ("saxpy", "device", -1, 5, 9)
    ]


def test_rows_without_substance_are_left_out_and_keep_their_place(made: Make) -> None:
    columns = '"start", "end", deviceId, streamId, correlationId, globalPid, shortName'
    reading = made(
        StringIds=(STRINGS, [(1, "gemm")]),
        CUPTI_ACTIVITY_KIND_KERNEL=(columns, [
            (0, 0, 0, 7, 1, ONE, 1), (5, 9, (1 << 31) - 1, 7, 2, ONE, 1),
            (None, 9, 0, 7, 3, ONE, 1),
            (10, 8, 0, 7, 4, ONE, 1), (20, None, 0, 7, 5, ONE, 99), (30, 50, 1, 8, 6, ONE, None),
        ]),
    )  # fmt: skip
    (source,) = reading.sources
    assert rows(source, "place", "name", "lane", "start_ns", "end_ns", "open") == [
        (3, "gemm", "device 0 stream 7", 10, 10, False),
        (4, "unnamed kernel", "device 0 stream 7", 20, 50, True),
        (5, "unnamed kernel", "device 1 stream 8", 30, 50, False),
    ]
    said = {(r.place, r.what.split(":")[0]) for r in reading.remarks}
    assert said == {
        (KERNEL, "2 rows without a device or times"), (KERNEL, "1 row without a start"),
        (KERNEL, "1 row with an end before the start"), (KERNEL, "1 row without an end"),
    }  # fmt: skip


def test_one_correlation_id_in_two_processes_stays_apart(made: Make) -> None:
    columns = '"start", "end", globalTid, correlationId, nameId, returnValue'
    device = '"start", "end", deviceId, streamId, correlationId, globalPid, demangledName'
    reading = made(
        StringIds=(STRINGS, [(1, "cudaLaunchKernel_v7000"), (2, "void gemm<float>(float*)")]),
        CUPTI_ACTIVITY_KIND_RUNTIME=(columns, [
            (1, 2, ONE | 5, 77, 1, 0), (3, 4, TWO | 6, 77, 1, 700), (5, 6, TWO | 6, 78, 1, 600),
        ]),
        CUPTI_ACTIVITY_KIND_KERNEL=(device, [(9, 12, 0, 7, 77, TWO, 2), (8, 11, 0, 7, 77, ONE, 2)]),
    )  # fmt: skip
    one, two = reading.sources
    assert (one.facts.pid, two.facts.pid) == (4711, 4712)
    assert rows(one, "layer", "lane", "correlation", "start_ns") == [
        ("device", "device 0 stream 7", 77, 8), ("runtime", "thread 5", 77, 1),
    ]  # fmt: skip
    assert rows(two, "layer", "start_ns") == [("device", 9), ("runtime", 3), ("runtime", 5)]
    (failed,) = (r for r in reading.remarks if r.place == API)
    assert "1 CUDA API call of process 4712 failed" in failed.what
    assert "cudaLaunchKernel_v7000 returned 700 at 3 ns" in failed.what


def test_ranges_open_at_the_end_marks_and_start_end_ranges(made: Make) -> None:
    reading = made(NVTX_EVENTS=(NVTX, [
        (0, 100, 59, "step", ONE | 1), (10, None, 59, "still running", ONE | 1),
        (20, None, 34, "a mark", ONE | 1), (30, 200, 60, "request 1", ONE | 1),
        (5, None, 39, "thread name", ONE | 1), (40, 50, 59, None, ONE | 1),
    ]))  # fmt: skip
    (source,) = reading.sources
    assert rows(source, "name", "lane", "start_ns", "end_ns", "open") == [
        ("step", "thread 1", 0, 100, False), ("still running", "thread 1", 10, 200, True),
        ("a mark", "thread 1", 20, 20, False), ("request 1", "thread 1 ranges", 30, 200, False),
        ("unnamed range", "thread 1", 40, 50, False),
    ]  # fmt: skip
    assert reading.remarks == ()


def test_layers_follow_from_label_and_domain_wherever_the_domain_is_named(made: Make) -> None:
    reading = made(NVTX_EVENTS=(NVTX + ", domainId INTEGER", [
        (0, 1, 59, "aten::mm, op_id = 3", ONE, 0), (1, 2, 59, "AddmmBackward0, op_id = 4", ONE, 0),
        (2, 3, 59, "ncclAllReduce", ONE, 9), (3, 4, 59, "execute_model", ONE, 0),
        (4, 5, 59, "all_gather", ONE, 2), (5, 6, 59, "all_gather", ONE, 3),
        (6, None, 75, "c10d", ONE, 2),
    ]))  # fmt: skip
    (source,) = reading.sources
    assert [layer for (layer,) in rows(source, "layer")] == [
        "framework", "framework", "comm", "engine", "comm", "engine",
    ]  # fmt: skip
    assert source.calls["op"].to_pylist() == ["all_reduce", "all_gather"]


def test_a_kernel_takes_over_the_payload_of_the_range_that_launched_it(made: Make) -> None:
    payload = {"NCCL communicator ID": (1 << 64) - 2, "Message size [bytes]": 4096, "Seq": 12,
               "No. of ranks": 4, "Rank": 1}  # fmt: skip
    device = '"start", "end", deviceId, streamId, correlationId, globalPid, demangledName'
    reading = made(
        StringIds=(STRINGS, [
            (1, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            (2, "cudaLaunchKernelExC_v11060"),
        ]),
        NVTX_EVENTS=(NVTX + ", domainId, jsonText TEXT", [
            (0, 10, 59, "ncclAllReduce", ONE | 1, 1, json.dumps(payload)),
            (20, 30, 59, "ncclAllReduce", ONE | 1, 1, "no json"),
        ]),
        CUPTI_ACTIVITY_KIND_RUNTIME=('"start", "end", globalTid, correlationId, nameId', [
            (5, 6, ONE | 1, 1, 2), (12, 13, ONE | 1, 2, 2),
        ]),
        CUPTI_ACTIVITY_KIND_KERNEL=(device, [(50, 60, 0, 7, 1, ONE, 1), (60, 70, 0, 7, 2, ONE, 1)]),
    )  # fmt: skip
    (source,) = reading.sources
    said = source.calls.sort_by("place").to_pylist()
    assert [(c["op"], c["comm"], c["seq"], c["size_bytes"], c["dtype"]) for c in said] == [
        ("all_reduce", "fffffffffffffffe", 12, 4096, None),
        ("all_reduce", None, None, None, None),
        ("all_reduce", "fffffffffffffffe", 12, 4096, "bf16"),
        ("all_reduce", None, None, None, "bf16"),
    ]
    assert [(g.comm, g.size) for g in source.facts.groups] == [("fffffffffffffffe", 4)]
    assert any("1 payloads" in r.what for r in reading.remarks)


def test_text_that_is_no_utf8_or_holds_a_nul_is_mended(made: Make) -> None:
    reading = made(
        StringIds=(STRINGS, [(1, "PATH=/bin\0TOKEN=secret")]),
        NVTX_EVENTS=('"start", "end", eventType, text TEXT, textId INTEGER, globalTid INTEGER', [
            (0, 1, 59, sqlite3.Binary(b"caf\xe9"), None, ONE), (1, 2, 59, None, 1, ONE),
            (2, 3, 59, "größe", None, ONE),
        ]),
    )  # fmt: skip
    (source,) = reading.sources
    assert [name for (name,) in rows(source, "name")] == ["caf�", "PATH=/bin", "größe"]
    assert "secret" not in str(source.spans["name"].combine_chunks().dictionary)


def test_values_of_another_type_after_many_rows_are_cast(made: Make) -> None:
    late = [(n, n + 1, 59, None, ONE) for n in range(70_000)]
    reading = made(NVTX_EVENTS=(
        '"start", "end", eventType, text, globalTid', [*late, ("70000", 70001.0, 59, "late", ONE)],
    ))  # fmt: skip
    (source,) = reading.sources
    assert rows(source, "name", "start_ns", "end_ns")[-1] == ("late", 70_000, 70_001)
    assert source.facts.event_count == 70_001


def test_only_whitelisted_variables_are_looked_at(made: Make) -> None:
    variable = "PROCESS_0:ENVIRONMENT_VARIABLE"
    reading = made(
        NVTX_EVENTS=(NVTX, [(0, 1, 59, "step", ONE)]),
        META_DATA_CAPTURE=("name TEXT, value TEXT", [
            (variable, 'RANK="3"'), (variable, "WORLD_SIZE=<redacted>"),
            (variable, "HF_TOKEN=secret"),
        ]),
    )  # fmt: skip
    facts = reading.sources[0].facts
    assert (facts.rank, facts.rank_source, facts.world_size) == (3, "environment", None)
    assert "secret" not in repr(reading)


@pytest.mark.parametrize(
    ("options", "first", "epoch"),
    [
        ([], 5, 1000),
        ([("EXPORT_PARAM_TIME_SHIFT", "40")], 5, 960),
        ([("EXPORT_PARAM_TIME_NORMALIZE", "true")], 5, None),
        ([("EXPORT_PARAM_TIME_NORMALIZE", "true")], 1_700_000_000_000_000_000, 0),
    ],
)
def test_times_that_the_exporter_moved_are_seen(
    options: list[tuple[str, str]], first: int, epoch: int | None, made: Make
) -> None:
    reading = made(
        NVTX_EVENTS=(NVTX, [(first, first + 1, 59, "step", ONE)]),
        META_DATA_EXPORT=("name TEXT, value TEXT", options),
        TARGET_INFO_SESSION_START_TIME=("utcEpochNs INTEGER", [(1000,)]),
    )
    assert reading.sources[0].facts.epoch_ns == epoch
    assert (epoch is None) == any("normalised" in r.what for r in reading.remarks)


def test_pipeline_and_tensor_places_give_ranks_once_the_world_fits(made: Make) -> None:
    ids = [1 << 48 | pid << 24 for pid in range(10, 14)]
    names = [f"VLLM::Worker_PP{n // 2}_TP{n % 2}" for n in range(4)]
    reading = made(
        NVTX_EVENTS=(NVTX, [(0, 1, 59, "step", g) for g in ids]),
        PROCESSES=("globalPid, pid, name TEXT", [(g, (g >> 24) & 0xFFFFFF, n)
                                                for g, n in zip(ids, names, strict=True)]),
        META_DATA_CAPTURE=("name TEXT, value TEXT", [
            row for k, g in enumerate(ids) for row in (
                (f"PROCESS_{k}:PID", str((g >> 24) & 0xFFFFFF)),
                (f"PROCESS_{k}:ENVIRONMENT_VARIABLE", "WORLD_SIZE=4"))
        ]),
    )  # fmt: skip
    assert [s.facts.rank for s in reading.sources] == [0, 1, 2, 3]
    assert dict(reading.sources[3].facts.places) == {"pp": 1, "tp": 1}


def test_warnings_of_the_profiler_are_remarks_once(made: Make) -> None:
    lost = [(2, "CUDA buffers were dropped"), (2, "CUDA buffers were dropped"), (1, "started")]
    reading = made(
        NVTX_EVENTS=(NVTX, [(0, 1, 59, "step", ONE)]),
        DIAGNOSTIC_EVENT=("severity INTEGER, text TEXT",
                          [*lost, *((3, f"error {n}") for n in range(12))]),
    )  # fmt: skip
    said = [r.what for r in reading.remarks]
    assert said[0] == "warning of the profiler: CUDA buffers were dropped (2 times)"
    assert len(said) == 11
    assert said[-1] == "3 other warnings of the profiler"


def test_gzip_is_known_by_its_content(made: Make, tmp_path: Path) -> None:
    plain = made(NVTX_EVENTS=(NVTX, [(0, 1, 59, "step", ONE)]))
    content = (tmp_path / "made.sqlite").read_bytes()
    packed = tmp_path / "odd name"
    packed.write_bytes(gzip.compress(content))
    assert nsys.looks_like(content[: 1 << 16], packed)
    assert nsys.read(packed).sources[0].spans.equals(plain.sources[0].spans)
