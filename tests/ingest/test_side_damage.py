"""Whatever is done to a side file, its reader gives what is left or says what is wrong."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teller.ingest.readers import (
    client,
    client_results,
    comm_records,
    gpu_csv,
    gpu_dmon,
    host_facts,
    host_metrics,
    nccl_topology,
    note,
    otlp,
    prometheus,
    trtllm_stats,
)
from teller.ingest.records import TABLES
from teller.ingest.source import Reader, Reading

# one small file for each reader that has all its words
WHOLE: dict[str, tuple[Reader, bytes]] = {
    "prometheus": (
        prometheus,
        b'# TYPE vllm:x counter\nvllm:x_total{engine="0"} 3 1789186200000\n'
        b'DCGM_FI_DEV_SM_CLOCK{gpu="0",Hostname="h"} 1980\n',
    ),
    "gpu_csv": (
        gpu_csv,
        b"timestamp, index, uuid, power.draw [W], clocks_event_reasons.active\n"
        b"2026/09/12 04:10:00.000, 0, GPU-1, 91.5 W, 0x0000000000000004\n",
    ),
    "gpu_dmon": (gpu_dmon, b"#Time        gpu   pwr    sm\n 04:10:00      0    43     7\n"),
    "pmon": (gpu_dmon, b"# gpu pid type sm command\n 0 1234 C 50 python3\n"),
    "lsmod": (host_facts, b"Module  Size  Used by\nnvidia 5 0\n"),
    "gids": (
        host_facts,
        b"DEV\tPORT\tINDEX\tGID\tIPv4\tVER\tDEV\nm\t1\t0\tfe80::1:2:3:4:5\tv1\te\n",
    ),
    "topo": (host_facts, b"\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV4\t0-3\nGPU1\tNV4\tX\t4-7\n"),
    "query": (host_facts, b"==NVSMI LOG==\nGPU 00000000:D8:00.0\n  Clocks\n    SM : 135 MHz\n"),
    "ibstat": (host_facts, b"CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n"),
    "fabric": (
        host_facts,
        b'Switch 41 "S-0a" # "s"\n[1] "H-0b"[1](0b) # "host mlx5_0" lid 1 4xHDR\n',
    ),
    "lspci": (host_facts, b"00:01.0 PCI bridge: X\n\tACSCtl: SrcValid+ ReqRedir+\n"),
    "status": (host_facts, b"Name:\tp\nPid:\t7\nThreads:\t3\nCpus_allowed_list:\t0-7\n"),
    "sched": (host_facts, b"p (7, #threads: 4)\n---\nse.sum_exec_runtime : 12.5\n"),
    "taskset": (host_facts, b"pid 12's current affinity mask: ff0\n"),
    "cgroup": (host_facts, b"nr_throttled 4\nthrottled_usec 1500\n"),
    "topology": (
        nccl_topology,
        b'<system version="1"><cpu numaid="0" affinity="ff"><pci busid="0:1:0.0">'
        b'<gpu dev="0"/><net name="n" speed="100"/></pci></cpu></system>',
    ),
    "client": (client, b"request,sent,result,ttft\n1,04:10:00,ok,0.5\n2,04:10:01,timeout,0.7\n"),
    "client_jsonl": (client, b'{"id": "1", "sent": 1789186200.5, "ttft": 0.5, "n": 3}\n'),
    "results": (
        client_results,
        b'{"input_lens": [1], "output_lens": [2], "ttfts": [0.5], "itls": [[0.1]], "errors": [""]}',
    ),
    "profile": (
        client_results,
        b'{"experiments": [{"requests": [{"timestamp": 1789186200000000000,'
        b' "response_timestamps": [1789186201000000000]}]}]}',
    ),
    "calls": (comm_records, b'{"op": "broadcast", "group": "0", "seq": 1, "t0": 5, "t1": 9}\n'),
    "monitor": (
        host_metrics,
        b'{"t": 5, "nodes": [{"rank": 0, "host": "h", "oncpu_ns": 3, "tcp": {"p": {"tx": 1}}}],'
        b' "cpu": [[1, 2, 3, 4, 5, 6, 7, 8]]}\n',
    ),
    "node": (host_metrics, b'{"time": "2021-12-06 04:19:35", "gpu_usage:0": 56}\n'),
    "iterations": (trtllm_stats, b'[{"iter": 1, "iterLatencyMS": 16.5, "hostStepTimeMS": 2}]'),
    "otlp": (
        otlp,
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "llm_request", "spanId": "a",'
        b' "startTimeUnixNano": "1789186200000000000", "endTimeUnixNano": 1789186201}]}]}]}',
    ),
    "note": (note, b'{"before": {"a": 1, "b": 2}, "after": {"a": 3, "b": 4}}'),
}
ODD = (b"9" * 25, b"-1", b"1e999", b"null", b"[]", b"{}", b'""', b"\0", b"\xff\xfe", b"\n", b"\r\n",
       b",", b"0x", b"NaN", b"\t", b'"', b"\xc2\xb2", b"true")  # fmt: skip


def checked(reader: Reader, path: Path) -> Reading:
    """Read, and see that the tables are sound and that something is said."""
    reading = reader.read(path)
    assert reading.records or reading.remarks
    for records in reading.records:
        for name in TABLES:
            getattr(records, name).validate(full=True)
        assert any(getattr(records, name).num_rows for name in TABLES)
    return reading


def tables(reading: Reading) -> Iterator[object]:
    for records in reading.records:
        yield records.clock
        yield from (getattr(records, name).to_pylist() for name in TABLES)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_file_is_recognised_by_its_reader_alone(tmp_path: Path, kind: str) -> None:
    reader, content = WHOLE[kind]
    assert [r for r, _ in WHOLE.values() if r.looks_like(content, tmp_path)] == [
        r for r, _ in WHOLE.values() if r is reader
    ]
    (tmp_path / "f").write_bytes(content)
    reading = checked(reader, tmp_path / "f")
    assert reading.records
    assert not reading.remarks


@pytest.mark.parametrize("kind", WHOLE)
def test_gzip_mark_and_line_ends_make_no_difference(tmp_path: Path, kind: str) -> None:
    reader, content = WHOLE[kind]
    (tmp_path / "f").write_bytes(content)
    plain = list(tables(reader.read(tmp_path / "f")))
    dressed = b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")
    assert reader.looks_like(dressed, tmp_path)
    (tmp_path / "f").write_bytes(gzip.compress(dressed))
    assert list(tables(reader.read(tmp_path / "f"))) == plain


@pytest.mark.parametrize("kind", WHOLE)
def test_a_cut_gzip_and_an_empty_file_are_said(tmp_path: Path, kind: str) -> None:
    reader, content = WHOLE[kind]
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(content)[:-9])
    assert any("gzip" in remark.what for remark in checked(reader, path).remarks)
    path.write_bytes(b"")
    assert not checked(reader, path).records
    assert not reader.looks_like(b"", path)


@pytest.mark.parametrize("kind", WHOLE)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    hurts=st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 30), st.sampled_from((b"", *ODD))), max_size=4
    )
)
def test_no_damage_raises(tmp_path: Path, kind: str, hurts: list[tuple[int, int, bytes]]) -> None:
    reader, content = WHOLE[kind]
    for at, length, odd in hurts:
        at %= len(content) + 1
        content = content[:at] + odd + content[at + length :]
    path = tmp_path / "f"
    path.write_bytes(content)
    reader.looks_like(content, path)
    checked(reader, path)


def test_a_reader_takes_a_file_of_another_kind_without_a_fall(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for reader, _ in WHOLE.values():
        for _, content in WHOLE.values():
            path.write_bytes(content)
            checked(reader, path)
        path.write_bytes(json.dumps([[[]]] * 9, indent=1).encode())
        checked(reader, path)
