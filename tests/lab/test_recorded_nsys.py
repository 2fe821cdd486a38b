"""Simulated nsys exports, read by SQLite alone and by our own reader."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller.ingest.readers import nsys as reader
from teller.ingest.source import Source
from teller.lab.simulator.happened import Happened, HostKind
from teller.lab.simulator.recording import looks, nsys
from teller.lab.simulator.recording.nsys_schema import _TABLES, columns
from teller.lab.simulator.recording.plan import NSYS, Clock, Recording, Window, plain
from teller.lab.simulator.recording.seen import windows
from tests.lab.small import GEMM, MS, STEP_NS, T0, US, small

REAL = {
    "3.13.2": "pipit_cloverleaf_2024.5.1", "3.17.2": "gemm_2025.1.3_nokernel",
    "3.24.0": "flameox_2025.5.2_cudagraph", "3.24.14": "nsysai_mock",
    "3.25.0": "nsysai_h100_2gpu_1s", "2.9.1": "pipit_saxpy_mpi_2022.2.1_lazyfalse",
}  # fmt: skip
NAMED = {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY"}  # pipit added names to these


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def export(
    folder: Path, happened: Happened, recording: Recording, ranks: tuple[int, ...] = (0,)
) -> Path:
    path = folder / "report.sqlite"
    nsys.write(path, happened, recording, ranks, windows(happened, recording)[0])
    return path


def by_rank(path: Path) -> dict[int | None, Source]:
    return {source.facts.rank: source for source in reader.read(path).sources}


@pytest.mark.parametrize("version", sorted(REAL))
def test_tables_have_the_columns_of_real_exports(shared: Path, version: str) -> None:
    real = shared / "traces" / "nsys_sqlite" / f"{REAL[version]}.sqlite"
    there = {name for (name,) in rows(real, "SELECT name FROM sqlite_master WHERE type='table'")}
    compared = 0
    for table in sorted(there & set(_TABLES)):
        told = rows(real, f"SELECT name, type, \"notnull\" FROM pragma_table_info('{table}')")
        if version == "2.9.1" and table in NAMED:
            told = [row for row in told if row[0] != "name"]
        ours = [
            (name, said.split()[0], int("NOT NULL" in said))
            for name, said in columns(table, version).items()
        ]
        assert ours == told, table
        compared += 1
    assert compared >= 12


@pytest.mark.parametrize("version", NSYS)
def test_every_schema_gives_all_spans_to_the_ns(version: str, tmp_path: Path) -> None:
    happened = small()
    clock = Clock(1_234_567, 20.0)
    recording = plain(happened.scene, nsys=version, clocks=(clock, clock))
    found = by_rank(export(tmp_path, happened, recording, (0, 1)))
    for rank in (0, 1):
        host, device, source = happened.host[rank], happened.device[rank], found[rank]
        own = host.process == 0
        waits = sum(happened.names[n] == "cudaStreamSynchronize" for n in host.name)
        assert source.spans.num_rows == int(own.sum()) + len(device.name) + waits
        read = source.spans.to_pydict()
        steps = [(s, e) for n, s, e in zip(read["name"], read["start_ns"], read["end_ns"],
                                           strict=True) if n.startswith("execute_")]  # fmt: skip
        true = [(T0 + clock.one(s), T0 + clock.one(s + 15 * MS))
                for s in range(STEP_NS, 7 * STEP_NS, STEP_NS)]  # fmt: skip
        epoch = source.facts.epoch_ns or 0
        assert sorted((s + epoch, e + epoch) for s, e in steps) == true
        work = [s + epoch for s, stream in zip(read["start_ns"], read["stream"], strict=True)
                if stream is not None]  # fmt: skip
        assert sorted(work) == sorted((T0 + clock.at(device.start_ns)).tolist())


def test_plain_sql_joins_kernels_to_launches_and_names(tmp_path: Path) -> None:
    happened = small(replayed=())
    path = export(tmp_path, happened, plain(happened.scene, nsys="3.17.2"))
    query = """
        SELECT s.value, d.value, r.value, count(*), sum(k.end - k.start)
        FROM CUPTI_ACTIVITY_KIND_KERNEL k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME a ON a.correlationId = k.correlationId
            AND a.globalTid >> 24 = k.globalPid >> 24 AND a.start <= k.start
        JOIN StringIds s ON s.id = k.shortName JOIN StringIds d ON d.id = k.demangledName
        JOIN StringIds r ON r.id = a.nameId GROUP BY 1, 2, 3 ORDER BY 1"""
    gemm, ring = rows(path, query)
    assert gemm == ("Kernel2", looks.demangled(GEMM), "cudaLaunchKernel_v7000", 18, 18 * 50 * US)
    assert (ring[0], ring[2], ring[3]) == (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "cudaLaunchKernelExC_v11060", 18
    )  # fmt: skip
    waits = rows(path, "SELECT syncType, count(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
    assert waits == [(3, 6)]


def test_a_graph_is_one_row_or_its_nodes(tmp_path: Path) -> None:
    happened = small(replayed=(2, 3))
    for mode, graphs, nodes, kernels in (("graph", 2, 0, 24), ("node", 0, 12, 36)):
        path = tmp_path / f"{mode}.sqlite"
        recording = plain(happened.scene, nsys="3.24.0", graph_mode=mode)
        nsys.write(path, happened, recording, [0], Window(0, happened.end_ns))
        there = {n for (n,) in rows(path, "SELECT name FROM sqlite_master")}
        assert ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE" in there) == bool(graphs)
        if graphs:
            [(count, shortest)] = rows(path, "SELECT count(*), min(end - start) FROM"
                                       " CUPTI_ACTIVITY_KIND_GRAPH_TRACE")  # fmt: skip
            assert count == graphs
            assert shortest > 4 * MS
        [(all_, inside)] = rows(path, "SELECT count(*), count(graphNodeId) FROM"
                                " CUPTI_ACTIVITY_KIND_KERNEL")  # fmt: skip
        assert (all_, inside) == (kernels, nodes)


def test_what_hangs_is_open_on_the_host_and_not_there_on_the_device(tmp_path: Path) -> None:
    happened = small(hang=True)
    path = export(tmp_path, happened, plain(happened.scene, nsys="3.25.0"))
    [(open_,)] = rows(path, "SELECT count(*) FROM NVTX_EVENTS WHERE end IS NULL AND eventType=59")
    assert open_ == 1
    kernels = rows(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")[0][0]
    assert kernels == int((happened.device[0].end_ns >= 0).sum()) - 6  # six copies


def test_lost_events_leave_orphans_and_a_warning(tmp_path: Path) -> None:
    happened = small(steps=40, replayed=())
    lossy = plain(happened.scene, nsys="3.24.0", lost=0.2, seed=3)
    path = export(tmp_path, happened, lossy)
    [(kernels,)] = rows(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    [(orphans,)] = rows(
        path,
        """SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE
        correlationId NOT IN (SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME)""",
    )
    assert 120 <= kernels < 240
    assert orphans > 0
    assert any("Not all CUDA events" in remark.what for remark in reader.read(path).remarks)
    whole = rows(path, "SELECT count(*) FROM NVTX_EVENTS WHERE text LIKE 'execute_%'")[0][0]
    assert whole == 40  # ranges are not the device's


def test_a_window_holds_what_began_in_it(tmp_path: Path) -> None:
    happened = small()
    recording = plain(happened.scene, nsys="3.7.4", shares=((0.35, 0.8),))
    [window] = windows(happened, recording)
    source = by_rank(export(tmp_path, happened, recording))[0]
    names = source.spans["name"].to_pylist()
    begun = [s for s in range(STEP_NS, 7 * STEP_NS, STEP_NS)
             if window.start_ns <= s < window.end_ns]  # fmt: skip
    assert sum(name.startswith("execute_") for name in names) == len(begun) == 3


def test_payloads_name_communicator_and_size_as_the_release_did(tmp_path: Path) -> None:
    happened = small(replayed=())
    for library, comm in (("2.27.7", "a292d1d22bddf873"), ("2.21.5", None)):
        path = tmp_path / f"{library}.sqlite"
        recording = plain(happened.scene, nsys="3.25.0", payload=True, nccl=library)
        nsys.write(path, happened, recording, [0], Window(0, happened.end_ns))
        calls = by_rank(path)[0].calls
        assert set(calls["comm"].to_pylist()) == {comm}
        assert set(calls["size_bytes"].to_pylist()) == {32 * 4096 * 2}


def test_repeated_pids_keep_hosts_apart_by_name(tmp_path: Path) -> None:
    happened = small()
    recording = plain(happened.scene, nsys="3.25.0", repeated_pids=True)
    found = []
    for host, ranks in ((0, (0, 1)), (1, (2, 3))):
        path = tmp_path / f"{host}.sqlite"
        nsys.write(path, happened, recording, ranks, Window(0, happened.end_ns))
        sources = [s for s in reader.read(path).sources if s.facts.rank is not None]
        found.append([(s.facts.pid, s.facts.host, s.facts.rank) for s in sources])
    assert found == [
        [(30, "node-0", 0), (37, "node-0", 1)], [(30, "node-1", 2), (37, "node-1", 3)]
    ]  # fmt: skip


def test_ranges_of_operators_and_of_the_interpreter_are_recorded_if_wanted(tmp_path: Path) -> None:
    happened = small(replayed=())
    kinds = [happened.host[0].kind == kind for kind in (HostKind.OPERATOR, HostKind.MODULE)]
    there = int(np.sum(kinds))
    counts = {}
    for operators in (True, False):
        path = tmp_path / f"{operators}.sqlite"
        recording = plain(happened.scene, nsys="3.25.0", operators=operators)
        nsys.write(path, happened, recording, [0], Window(0, happened.end_ns))
        counts[operators] = rows(path, "SELECT count(*) FROM NVTX_EVENTS")[0][0]
    assert counts[True] - counts[False] == there == 54


def test_the_engine_is_in_the_report_of_its_host_alone(tmp_path: Path) -> None:
    happened = small()
    counts = []
    for per in ("rank", "host"):
        path = tmp_path / f"{per}.sqlite"
        recording = plain(happened.scene, nsys="3.25.0", per=per)
        nsys.write(path, happened, recording, [0], Window(0, happened.end_ns))
        counts.append(rows(path, "SELECT count(*) FROM NVTX_EVENTS WHERE text = 'schedule'")[0][0])
    assert counts == [0, 6]
