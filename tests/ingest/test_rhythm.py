"""Pauses of an engine, told from the rhythm of its lines."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers import log
from teller.ingest.rhythm import NAME, with_gaps

LINE = (
    "[2026-06-12 {at} TP0] Decode batch. #running-req: {running}, token usage: 0.44, "
    "cuda graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: 0, "
)


def gaps(path: Path, lines: list[str]) -> list[tuple[int, float]]:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    samples = log.read(path).records[0].samples
    samples = samples.append_column("input_id", pa.array(np.ones(len(samples), np.int64)))
    found = with_gaps(samples)
    found = found.filter(pc.equal(found["name"], NAME))
    return list(zip(found["line"].to_pylist(), found["value"].to_pylist(), strict=True))


def decode(second: int, rate: float, running: int = 16) -> str:
    at = f"10:{second // 60:02d}:{second % 60:02d}"
    return LINE.format(at=at, running=running, rate=rate)


def test_a_late_line_with_a_low_throughput_is_a_pause(tmp_path: Path) -> None:
    lines = [decode(2 * n, 320) for n in range(8)]
    lines.append(decode(14 + 11, 640 / 11))
    assert gaps(tmp_path / "sglang.log", lines) == [(9, 11e9)]


def test_a_cut_log_has_no_pause(tmp_path: Path) -> None:
    lines = [decode(2 * n, 320) for n in range(8)]
    lines += [decode(1000 + 2 * n, 320) for n in range(4)]
    assert gaps(tmp_path / "sglang.log", lines) == []


def test_an_engine_without_requests_does_not_pause(tmp_path: Path) -> None:
    lines = [decode(2 * n, 320) for n in range(8)]
    lines += [decode(15, 300, running=0), decode(60, 14)]
    assert gaps(tmp_path / "sglang.log", lines) == []
