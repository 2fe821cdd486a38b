"""What nvidia-smi prints of devices, as CSV or in columns, becomes samples of each device."""

import csv
from pathlib import Path

import pyarrow.compute as pc
import pytest

from teller.ingest.readers import gpu_csv, gpu_dmon
from teller.ingest.records import Records
from teller.ingest.source import Gpu

DMON = """\
#Date       Time        gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk
#YYYYMMDD   HH:MM:SS    Idx     W     C     C     %     %     %     %   MHz   MHz
 20260912   04:10:00      0    43    35     -     7     0     0     0  2505  1095
 20260912   04:10:00      1    44    36     -     0     0     0     0  2505  1980
 rubbish
#Date       Time        gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk
 20260912   04:10:01      0    43    35     -     0     0     0     0  2505
"""
PMON = """\
# gpu         pid   type     sm    mem    command
# Idx           #    C/G      %      %    name
    0       1234     C     50      3    python3
    0       1235     C     50      3    vllm::worker
    1          -     -      -      -    -
"""
DCGM = """\
#Entity   SMCLK                       MMCLK       GPUTL
ID
GPU 1     1410                        1215        33
GPU 0     1410                        1215        N/A
"""


def read(path: Path, text: str) -> Records:
    path.write_text(text)
    assert gpu_csv.looks_like(text.encode(), path)
    (records,) = gpu_csv.read(path).records
    return records


def rows(records: Records, name: str, *columns: str) -> list[tuple[object, ...]]:
    table = records.samples.filter(pc.equal(records.samples["name"], name))
    return [tuple(row[c] for c in columns) for row in table.to_pylist()]


@pytest.mark.parametrize(
    "file", ["o13_sw_thermal_slowdown_one_gpu/nvml.csv", "o03_straggler_slow_gpu_kineto/clocks.csv"]
)
def test_each_row_gives_clock_and_reasons_of_its_device(shared: Path, file: str) -> None:
    path = shared / "cases" / file
    assert gpu_csv.looks_like(path.read_bytes(), path)
    (records,) = gpu_csv.read(path).records
    with path.open(newline="") as opened:
        expected = [
            (row["host"], int(row["index"]), float(row["clocks.sm [MHz]"].split()[0]), line)
            for line, row in enumerate(csv.DictReader(opened), 2)
        ]
    found = rows(records, "gpu.sm_clock_mhz", "host", "device_index", "value", "line")
    assert found == expected
    assert len(rows(records, "gpu.throttle_reasons", "value")) == len(expected)
    assert records.clock == "local"


def test_a_software_thermal_slowdown_is_bit_32_and_stays_as_printed(shared: Path) -> None:
    path = shared / "cases/o13_sw_thermal_slowdown_one_gpu/nvml.csv"
    (records,) = gpu_csv.read(path).records
    slow = {r for r in rows(records, "gpu.throttle_reasons", "value", "text", "device_index")
            if int(str(r[0]).split(".")[0]) & 0x20}  # fmt: skip
    assert slow == {(32.0, "0x0000000000000020", 1)}


def test_old_names_other_units_and_missing_values_are_read(tmp_path: Path) -> None:
    records = read(
        tmp_path / "a.csv",
        "timestamp, index, name, uuid, pci.bus_id, clocks.current.sm [MHz], memory.used [MiB],"
        " clocks_throttle_reasons.active, ecc.errors.uncorrected.volatile.total,"
        " pcie.link.gen.current, pcie.link.width.max\n"
        "2026/09/12 04:10:00.250, 0, NVIDIA H200, GPU-1, 00000000:17:00.0, 1980 MHz, 3 MiB,"
        " 0x0000000000000004, 2, 5, 16\n"
        "2026/09/12 04:10:01.250, 1, NVIDIA H200, GPU-2, 00000000:18:00.0, [N/A], 1 MiB,"
        " Not Active, [N/A], 1, 16\n",
    )
    assert rows(records, "gpu.sm_clock_mhz", "value", "time_ns") == [
        (1980.0, 1_789_186_200_250_000_000)
    ]
    assert rows(records, "gpu.memory_used_bytes", "value") == [(3 * 1024**2,), (1024**2,)]
    assert rows(records, "gpu.ecc_errors", "value", "text") == [(2.0, "uncorrected")]
    assert rows(records, "gpu.throttle_reasons", "value", "device_index") == [(4.0, 0)]
    assert rows(records, "gpu.pcie_gen", "value", "device_index") == [(5.0, 0), (1.0, 1)]
    assert records.facts.gpus == (
        Gpu(0, "NVIDIA H200", "GPU-1", "00000000:17:00.0"),
        Gpu(1, "NVIDIA H200", "GPU-2", "00000000:18:00.0"),
    )


def test_single_columns_of_reasons_make_one_mask_and_plain_numbers_have_units(
    tmp_path: Path,
) -> None:
    records = read(
        tmp_path / "a.csv",
        "index, utilization.gpu, clocks_event_reasons.sw_thermal_slowdown,"
        " clocks_event_reasons.hw_slowdown\n0, 50, Active, Active\n1, 7, Not Active, Not Active\n",
    )
    assert rows(records, "gpu.throttle_reasons", "value") == [(40.0,), (0.0,)]
    assert rows(records, "gpu.utilisation_ratio", "value") == [(0.5,), (pytest.approx(0.07),)]


def test_rubbish_cut_rows_and_further_headers_cost_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b"\xef\xbb\xbfindex, power.draw [W]\r\n0, 91.5 W\r\n\r\nNVIDIA-SMI has failed\r\n"
        b"index, power.draw [W]\r\n1, 92.5 W\r\n\xff\xfe\x00,\r\n0, [Unknown Error]\r\n1"
    )
    reading = gpu_csv.read(path)
    found = rows(reading.records[0], "gpu.power_w", "value", "device_index", "line")
    assert found == [(91.5, 0, 2), (92.5, 1, 6)]
    (remark,) = reading.remarks
    assert remark.what.startswith("4 lines are")
    assert remark.place == "line 4"


def test_utf_16_as_powershell_redirects_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("index, temperature.gpu\n0, 61\n", encoding="utf-16")
    assert gpu_csv.looks_like(path.read_bytes(), path)
    assert rows(gpu_csv.read(path).records[0], "gpu.temperature_c", "value") == [(61.0,)]


def test_a_header_alone_gives_a_remark_and_no_records(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("index, power.draw [W]\n")
    reading = gpu_csv.read(path)
    assert not reading.records
    assert [remark.what for remark in reading.remarks] == [
        "holds no device figures that can be used"
    ]


def test_a_monitor_prints_a_figure_a_column(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text(DMON)
    assert gpu_dmon.looks_like(DMON.encode(), path)
    reading = gpu_dmon.read(path)
    (records,) = reading.records
    assert rows(records, "gpu.sm_clock_mhz", "value", "device_index", "time_ns", "line") == [
        (1095.0, 0, 1_789_186_200_000_000_000, 3),
        (1980.0, 1, 1_789_186_200_000_000_000, 4),
    ]
    assert [remark.place for remark in reading.remarks] == ["line 5"]
    assert records.clock == "local"


def test_processes_on_a_device_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "pmon.txt"
    path.write_text(PMON)
    (records,) = gpu_dmon.read(path).records
    assert rows(records, "gpu.processes", "value", "text", "device_index") == [
        (2.0, "python3 vllm::worker", 0)
    ]


def test_dcgmi_names_the_device_in_two_words(tmp_path: Path) -> None:
    path = tmp_path / "dcgmi.txt"
    path.write_text(DCGM)
    assert gpu_dmon.looks_like(DCGM.encode(), path)
    (records,) = gpu_dmon.read(path).records
    assert rows(records, "gpu.utilisation_ratio", "value", "device_index") == [
        (pytest.approx(0.33), 1)
    ]
