"""Spells in which an engine runs nothing."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from teller.ingest.readers import log
from teller.ingest.spells import BLOCKED, IDLE, with_spells

LINE = (
    "INFO 04-15 07:{minute:02d}:{second:02d} [loggers.py:271] Engine 000: Avg prompt throughput: "
    "0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: {running} reqs, "
    "Waiting: {waiting} reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 3.0%"
)


def spells(path: Path, states: str) -> list[tuple[str, int, float]]:
    """Give the spells of a log with a line every ten seconds: busy, idle or blocked."""
    requests = {"b": (3, 0), "i": (0, 0), "w": (0, 2)}
    lines = [
        LINE.format(
            minute=at // 6, second=at % 6 * 10, running=requests[s][0], waiting=requests[s][1]
        )
        for at, s in enumerate(states)
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    samples = log.read(path).records[0].samples
    samples = samples.append_column("input_id", pa.array(np.ones(len(samples), np.int64)))
    rows = with_spells(samples).slice(len(samples)).to_pylist()
    return [(r["name"], r["line"], r["value"] / 1e9) for r in rows]


def test_a_spell_ends_with_the_first_line_of_another_state(tmp_path: Path) -> None:
    assert spells(tmp_path / "vllm.log", "bbiiiiwwwb") == [(IDLE, 3, 40), (BLOCKED, 7, 30)]


def test_a_spell_at_the_end_lasts_to_the_last_line(tmp_path: Path) -> None:
    assert spells(tmp_path / "vllm.log", "bwww") == [(BLOCKED, 2, 20)]


def test_one_line_of_waiting_requests_is_no_spell(tmp_path: Path) -> None:
    assert spells(tmp_path / "vllm.log", "bbwbb") == []
