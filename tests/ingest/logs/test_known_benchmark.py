"""What tables of benchmarks mean, whole and torn."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from teller.ingest.logs.known import benchmark

Lines = Callable[..., pa.Table]

HEAD = "#       size         count      type   redop    root     time   algbw   busbw #wrong"
ROW = "  33554432  8388608  float  sum  -1  1059.9  31.66  59.36  0  1054.0  31.84  59.69  0"


def bandwidths(lines: pa.Table) -> list[tuple[float, str]]:
    """Give value and text of what lines state."""
    made = benchmark.knowing().learn(lines).learned.samples.to_pylist()
    return [(row["value"], row["text"]) for row in made]


def test_a_row_gives_both_its_halves(lines: Lines) -> None:
    found = bandwidths(lines(["# Collective test starting: all_reduce_perf", HEAD, ROW]))
    assert found == [
        (59.36e9, "all_reduce 33554432 bytes out-of-place"),
        (59.69e9, "all_reduce 33554432 bytes in-place"),
    ]


def test_rows_of_older_versions_lack_columns(lines: Lines) -> None:
    row = "   16384   4096   float     36.18    0.45    0.79    N/A    35.87    0.46    0.80    N/A"
    assert bandwidths(lines([row])) == [
        (0.79e9, "16384 bytes out-of-place"),
        (0.80e9, "16384 bytes in-place"),
    ]


def test_a_table_inside_one_message(lines: Lines) -> None:
    assert len(bandwidths(lines(["\n".join([HEAD, ROW, ROW])]))) == 4


def test_torn_rows_take_the_size_that_was_begun(lines: Lines) -> None:
    knowing = benchmark.knowing()
    knowing.learn(lines([HEAD, "     8388608       2097152     float     sum      -1"]))
    later = knowing.learn(
        lines(["    83.33  100.66  100.66      ", "    80.98  103.59  103.59      0"])
    )
    found = [(row["value"], row["text"]) for row in later.learned.samples.to_pylist()]
    assert found == [(100.66e9, "8388608 bytes torn row"), (103.59e9, "8388608 bytes torn row")]
    assert bandwidths(lines(["    80.98  103.59  103.59      0"])) == []  # no table: any numbers
    assert bandwidths(lines([HEAD, "    80.98  103.59  103.59      0"])) == [
        (103.59e9, "unknown bytes torn row")
    ]


def test_ranks_have_hosts_pids_and_devices(lines: Lines) -> None:
    text = "#  Rank 11 Group  0 Pid   6736 on ztan-mig-gq73 device  3 [0000:0c:00] NVIDIA H100"
    local = "#   Rank  3 Pid 112424 on localhost device  3 [0x00] A100-SXM4-40GB"
    rows = benchmark.knowing().learn(lines([text, local])).learned.members.to_pylist()
    assert [(r["rank"], r["host"], r["pid"], r["device_index"]) for r in rows] == [
        (11, "ztan-mig-gq73", 6736, 3),
        (3, None, 112424, 3),
    ]


def test_wrong_results_are_an_error(lines: Lines) -> None:
    texts = ["# Out of bounds values : 3 FAILED", "# Out of bounds values : 0 OK"]
    assert [text for _, text in bandwidths(lines(texts))] == ["values : 3 FAILED"]


@pytest.mark.parametrize("name", ["allreduce", "alltoall", "reducescatter"])
def test_real_tables(shared: Path, lines: Lines, name: str) -> None:
    path = shared / "traces" / "nccl_tests_log" / f"superbench_nccl_{name}.log"
    texts = path.read_text().splitlines()
    found = bandwidths(lines(texts))
    fields = [text.split() for text in texts if re.match(r"\s+\d+ +\d+ +float", text)]
    for place, column in (("out-of-place", -6), ("in-place", -2)):
        values = [value / 1e9 for value, text in found if text.endswith(place)]
        assert values == pytest.approx([float(field[column]) for field in fields])


def test_real_torn_tables_show_the_fault(shared: Path, lines: Lines) -> None:
    found = {}
    for name in ("all_subsys", "fault"):
        path = shared / "traces" / "nccl_log" / f"nccl2.27_2xa100_{name}.log"
        rows = bandwidths(lines(path.read_text(errors="replace").splitlines()))
        assert len(rows) == 23  # 11 sizes, two halves each, and the average
        assert "all_reduce 8589934592 bytes torn row" in [text for _, text in rows]
        found[name] = next(value for value, text in rows if text == "average")
    assert found == {"all_subsys": 178.078e9, "fault": 28.2632e9}


def test_real_steps(shared: Path, lines: Lines) -> None:
    traces = shared / "traces"
    path = traces / "triton_log" / "superbench_dist_inference.log"
    meant = benchmark.knowing().learn(lines(path.read_text().splitlines()))
    assert meant.learned.samples["value"].to_pylist()[:2] == [1_833_900, 1_842_220]
    assert meant.told is not None
    assert meant.told["step_index"].to_pylist() == list(range(100))
    path = traces / "nccl_tests_log" / "superbench_megatron_deepspeed.log"
    trained = bandwidths(lines(path.read_text(errors="replace").splitlines()))
    assert trained[0] == (76_015_300_000, "1")
    assert len(trained) == 5
