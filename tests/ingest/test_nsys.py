"""Public exports of Nsight Systems, counted once by the reader and once by plain SQL."""

import os
import shutil
import sqlite3
import zlib
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from teller.ingest.readers import nsys
from teller.ingest.source import CALLS, OPS, PLACE_BITS, SPANS, Reading, Source

FILES = (
    "traces/nsys_sqlite/centerformer_2022.4.2_nvtx22k.sqlite",
    "traces/nsys_sqlite/centerformer_2022.4.2_nvtxonly.sqlite",
    "traces/nsys_sqlite/flameox_2025.5.2_cudagraph.sqlite",
    "traces/nsys_sqlite/fuser_2024.6.2_8nics.sqlite",
    "traces/nsys_sqlite/fuser_2024.6.2_small.sqlite",
    "traces/nsys_sqlite/gemm_2025.1.3_nokernel.sqlite",
    "traces/nsys_sqlite/jacc_2026.2.1_cpuonly.sqlite",
    "traces/nsys_sqlite/mordred_2021.sqlite",
    "traces/nsys_sqlite/nsysai_h100_2gpu_1s.sqlite",
    "traces/nsys_sqlite/nsysai_healthy_1pct_SYNTHETIC.sqlite",
    "traces/nsys_sqlite/nsysai_healthy_judged_1pct_SYNTHETIC.sqlite",
    "traces/nsys_sqlite/nsysai_mfu_2gpu_after.sqlite",
    "traces/nsys_sqlite/nsysai_mfu_2gpu_before.sqlite",
    "traces/nsys_sqlite/nsysai_mock.sqlite",
    "traces/nsys_sqlite/pipit_cloverleaf_2024.5.1.sqlite",
    "traces/nsys_sqlite/pipit_saxpy_mpi_2022.2.1_lazyfalse.sqlite",
    "cases/o09_single_rank_host_pause_nsys/node-a.sqlite",
    "cases/o10_cuda_graph_level_trace_nsys/rank0.sqlite",
    "cases/o10_cuda_graph_level_trace_nsys/rank0_node.sqlite",
)
DEVICE_TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


class Plain:
    """The same file, asked in SQL; a table that is not there has no rows."""

    def __init__(self, path: Path) -> None:
        self.base = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        self.base.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self.tables = {n for (n,) in self.base.execute("SELECT name FROM sqlite_master")}

    def all(self, table: str, query: str) -> list[Any]:
        if table not in self.tables:
            return []
        return self.base.execute(query.format(table)).fetchall()

    def count(self, table: str, where: str = "1") -> int:
        rows = self.all(table, f"SELECT count(*) FROM {{}} WHERE {where}")
        return int(rows[0][0]) if rows else 0


@pytest.fixture(scope="module")
def readings(shared: Path) -> dict[str, Reading]:
    return {name: nsys.read(shared / name) for name in FILES}


def counted(source: Source, column: str) -> Counter[str]:
    return Counter(source.spans[column].to_pylist())


@pytest.mark.parametrize("name", FILES)
def test_a_public_export_is_recognised_and_its_tables_hold(
    name: str, shared: Path, readings: dict[str, Reading]
) -> None:
    head = (shared / name).read_bytes()[: 1 << 16]
    assert nsys.looks_like(head, shared / name)
    assert nsys.why_not(shared / name) == ""
    for source in readings[name].sources:
        assert source.spans.schema == SPANS
        assert source.calls.schema == CALLS
        source.spans.validate(full=True)
        source.calls.validate(full=True)
        assert not any(field.null_count for field in source.spans.columns[:4])
        assert pc.all(pc.less_equal(source.spans["start_ns"], source.spans["end_ns"])).as_py()
        assert set(source.calls["op"].to_pylist()) <= set(OPS)


@pytest.mark.parametrize("name", FILES)
def test_every_row_of_every_table_is_a_span(
    name: str, shared: Path, readings: dict[str, Reading]
) -> None:
    plain = Plain(shared / name)
    with closing(plain.base):
        expected = {
            "device": sum(plain.count(f"CUPTI_ACTIVITY_KIND_{t}") for t in DEVICE_TABLES),
            "api": plain.count("CUPTI_ACTIVITY_KIND_RUNTIME"),
            "syncs": plain.count("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
            "os": plain.count("OSRT_API"),
            "nvtx": plain.count("NVTX_EVENTS", "eventType IN (34, 59, 60)"),
        }
    found: Counter[str] = Counter()
    for source in readings[name].sources:
        layers = counted(source, "layer")
        lanes = counted(source, "lane")
        syncs = sum(n for lane, n in lanes.items() if lane.endswith("syncs"))
        overhead = sum(n for lane, n in lanes.items() if lane.startswith("overhead"))
        on_device = len(source.spans) - source.spans["stream"].null_count
        found["device"] += on_device
        found["api"] += layers["runtime"] - syncs - overhead
        found["syncs"] += syncs
        found["os"] += layers["os"]
        found["nvtx"] += layers["engine"] + layers["framework"] + layers["comm"]
        found["nvtx"] -= on_device - layers["device"]
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("name", FILES)
def test_launches_join_inside_their_process_only(
    name: str, shared: Path, readings: dict[str, Reading]
) -> None:
    plain = Plain(shared / name)
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    with closing(plain.base):
        columns = [r[1] for r in plain.all(kernel, "PRAGMA table_info({})")]
        own, its = ("globalPid >> 24", "globalTid >> 24") if "globalPid" in columns else (0, 0)
        calls = plain.all("CUPTI_ACTIVITY_KIND_RUNTIME", f"SELECT correlationId, {its} FROM {{}}")
        kernels = plain.all(kernel, f"SELECT correlationId, {own} FROM {{}}")
    known = set(calls)
    joined = 0
    for source in readings[name].sources:
        spans = source.spans
        api = spans.filter(pc.equal(spans["layer"].cast("string"), "runtime"))
        work = spans.filter(pc.and_(pc.is_valid(spans["stream"]), _is_kernel(spans["name"])))
        launched = pc.is_in(work["correlation"], api["correlation"].drop_null())
        joined += pc.sum(launched).as_py() or 0
    assert joined == sum(one in known for one in kernels)


def _is_kernel(names: Any) -> Any:
    return pc.invert(pc.match_substring_regex(names.cast("string"), "^(Memcpy|Memset|CUDA graph)"))


@pytest.mark.parametrize("name", FILES)
def test_times_names_and_places_are_those_of_the_rows(
    name: str, shared: Path, readings: dict[str, Reading]
) -> None:
    plain = Plain(shared / name)
    with closing(plain.base):
        api = plain.all(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            "SELECT t.start, t.end, t.correlationId, value FROM {} t JOIN StringIds ON id = nameId",
        )
        nvtx = plain.all(
            "NVTX_EVENTS",
            "SELECT start, ifnull(end, start), NULL, coalesce(text, value, 'unnamed range')"
            " FROM {} LEFT JOIN StringIds ON id = textId"
            " WHERE eventType = 34 OR (eventType IN (59, 60) AND end IS NOT NULL)",
        )
    said = Counter(map(tuple, api + nvtx))
    found: Counter[tuple[Any, ...]] = Counter()
    places: list[int] = []
    for source in readings[name].sources:
        columns = (
            source.spans[c].to_pylist() for c in ("start_ns", "end_ns", "correlation", "name")
        )
        found.update(zip(*columns, strict=True))
        places += source.spans["place"].to_pylist()
    assert not said - found
    assert len(set(places)) == len(places)
    assert not places or (min(places) >= 0 and max(places) < 1 << PLACE_BITS)


def test_pids_are_those_of_the_processes(readings: dict[str, Reading]) -> None:
    pids = {
        name.split("/")[-1]: [s.facts.pid for s in reading.sources]
        for name, reading in readings.items()
    }
    assert pids["nsysai_mfu_2gpu_before.sqlite"] == [144, 145]
    assert pids["nsysai_h100_2gpu_1s.sqlite"] == [111, 112]
    assert pids["mordred_2021.sqlite"] == [2142]
    assert pids["node-a.sqlite"] == [6101, 6102, 6103, 6104]
    assert pids["nsysai_healthy_1pct_SYNTHETIC.sqlite"] == [None]
    assert pids["jacc_2026.2.1_cpuonly.sqlite"] == []


def test_a_capture_without_any_trace_says_what_to_record(readings: dict[str, Reading]) -> None:
    remarks = readings["traces/nsys_sqlite/jacc_2026.2.1_cpuonly.sqlite"].remarks
    assert any("no process has rows" in r.what and "--trace" in r.remedy for r in remarks)
    assert any("Not all NVTX events" in r.what for r in remarks)


def test_facts_name_version_host_gpus_and_clock(readings: dict[str, Reading]) -> None:
    facts = readings["traces/nsys_sqlite/pipit_cloverleaf_2024.5.1.sqlite"].sources[0].facts
    assert facts.product == "Nsight Systems 2024.5.1.113, schema 3.13.2"
    assert (facts.host, facts.host_source) == ("nid008553", "Hostname")
    assert facts.epoch_ns == 1696392839587175550
    assert facts.process_name == "cuda-cloverleaf"
    assert [(g.index, g.bus) for g in facts.gpus] == [
        (0, "0000:03:00.0"), (1, "0000:41:00.0"), (2, "0000:82:00.0"), (3, "0000:c1:00.0"),
    ]  # fmt: skip
    assert facts.device_index == 0


def test_an_export_of_2021_has_no_clock_and_no_host(readings: dict[str, Reading]) -> None:
    facts = readings["traces/nsys_sqlite/mordred_2021.sqlite"].sources[0].facts
    assert (facts.product, facts.host, facts.epoch_ns) == ("Nsight Systems", "", None)


def test_ranks_come_from_thread_names(readings: dict[str, Reading]) -> None:
    facts = [s.facts for s in readings[FILES[16]].sources]
    assert [f.rank for f in facts] == [0, 1, 2, 3]
    assert {f.rank_source for f in facts} == {"thread name"}
    assert [dict(f.places) for f in facts] == [{"tp": n} for n in range(4)]
    assert [f.device_index for f in facts] == [0, 1, 2, 3]
    assert [[g.index for g in f.gpus] for f in facts] == [[0], [1], [2], [3]]


def test_all_reduce_kernels_are_calls_with_their_element_type(readings: dict[str, Reading]) -> None:
    for source in readings[FILES[16]].sources:
        assert source.calls["op"].to_pylist() == ["all_reduce"] * 10
        assert source.calls["dtype"].to_pylist() == ["bf16"] * 10


def test_graph_traces_are_spans_of_their_stream(readings: dict[str, Reading]) -> None:
    whole = readings[FILES[17]].sources[0]
    assert dict(whole.facts.options) == {"cuda_graph_trace": "graph", "graph_launches": "40"}
    graphs = whole.spans.filter(pc.equal(whole.spans["name"].cast("string"), "CUDA graph 1 exec 2"))
    assert len(graphs) == 40
    assert graphs["stream"].null_count == 0
    node = readings[FILES[18]].sources[0]
    assert dict(node.facts.options) == {"cuda_graph_trace": "node"}
    assert counted(node, "layer")["device"] == 192


def test_nccl_ranges_and_kernels_of_an_export_are_calls(
    shared: Path, readings: dict[str, Reading]
) -> None:
    name = "traces/nsys_sqlite/nsysai_mfu_2gpu_before.sqlite"
    plain = Plain(shared / name)
    with closing(plain.base):
        labels = plain.all(
            "NVTX_EVENTS",
            "SELECT substr(coalesce(text, value), 1, 15) AS label, count(*) FROM {}"
            " LEFT JOIN StringIds ON id = textId WHERE label LIKE 'nccl%' GROUP BY label",
        )
    host = dict(labels)
    ops: Counter[str] = Counter()
    for source in readings[name].sources:
        ops.update(source.calls["op"].to_pylist())
    # 64 of the 66 kernels were launched inside a range that says what they are
    assert ops == {
        "send": host["ncclSend"],
        "recv": host["ncclRecv"],
        "all_to_all": host["nccl:all_to_all"] + 64,
        "send_recv": 2,
    }


def test_a_gzip_export_of_ranges_gives_collectives_with_group_and_number(
    shared: Path, tmp_path: Path
) -> None:
    path = shared / "testbed-prototype/demo-run/rank1.nsys.sqlite.gz"
    unpacked = zlib.decompress(path.read_bytes(), wbits=31)
    (tmp_path / "plain.sqlite").write_bytes(unpacked)
    assert nsys.looks_like(unpacked[: 1 << 16], path)
    source = nsys.read(path).sources[0]
    facts = source.facts
    assert (facts.rank, facts.rank_source, facts.world_size) == (1, "environment", 2)
    assert (facts.pid, facts.host, dict(facts.places)) == (25716, "node-1", {"tp": 1})
    assert [(g.name, g.ranks) for g in facts.groups] == [("0", (0, 1)), ("1", (0, 1))]
    plain = Plain(tmp_path / "plain.sqlite")
    with closing(plain.base):
        said = plain.all(
            "NVTX_EVENTS",
            "SELECT value, json_extract(jsonText, '$.\"Process Group Name\"'),"
            " json_extract(jsonText, '$.Seq'),"
            " json_extract(jsonText, '$.\"Message size [bytes]\"'),"
            " json_extract(jsonText, '$.\"Peer rank\"')"
            " FROM {} JOIN StringIds ON id = textId WHERE domainId = 2 AND eventType = 59",
        )
    columns = (
        source.calls[c].to_pylist() for c in ("op", "group_name", "seq", "size_bytes", "peer")
    )
    assert Counter(zip(*columns, strict=True)) == Counter(said)


def test_nothing_is_written_beside_a_file(shared: Path, tmp_path: Path) -> None:
    copy = tmp_path / "with blank % and #.sqlite"
    shutil.copy(shared / FILES[2], copy)
    os.chmod(copy, 0o400)
    os.chmod(tmp_path, 0o500)
    try:
        assert len(nsys.read(copy).sources) == 1
        assert [p.name for p in tmp_path.iterdir()] == [copy.name]
    finally:
        os.chmod(tmp_path, 0o700)
