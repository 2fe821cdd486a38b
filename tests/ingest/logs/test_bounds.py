"""Facts of huge logs are bounded: what is outermost stays, the rest is counted."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from teller.ingest.logs import bounds
from teller.ingest.logs.bounds import ALL, Bounds
from teller.ingest.readers import log
from teller.ingest.records import JOINS, SAMPLES, Learned

SECOND = 1_000_000_000


def samples(size: int, seed: int, start_ns: int = 0) -> pa.Table:
    """Give as many samples of two processes, a hundred a second."""
    value = np.random.default_rng(seed).integers(0, 10**6, size).astype(float)
    made = {
        "name": ["engine.running"] * size,
        "value": value,
        "text": [""] * size,
        "time_ns": start_ns + np.arange(size) * SECOND // 100,
        "process": np.array(["a", "b"])[np.arange(size) % 2],
        "line": np.arange(size),
    }
    columns = [pa.array(made.get(f.name, [None] * size), f.type) for f in SAMPLES]
    return pa.table(columns, schema=SAMPLES)


def test_what_fits_is_kept_whole() -> None:
    facts = Bounds()
    facts.add(Learned(samples=samples(1000, 1)))
    assert pa.concat_tables(facts.take("samples")).cast(SAMPLES).equals(samples(1000, 1))
    assert not +facts.left_out


def test_beyond_that_first_last_least_and_greatest_of_each_second_stay() -> None:
    facts = Bounds()
    facts.add(Learned(samples=samples(ALL, 1)))
    later = samples(50_000, 2, start_ns=10**6 * SECOND)
    facts.add(Learned(samples=later))
    kept = facts.take("samples")[1].cast(SAMPLES)
    second = pc.divide(later["time_ns"], SECOND)
    groups = later.append_column("second", second).group_by(["process", "second"])
    outer = groups.aggregate(
        [("line", "min"), ("line", "max"), ("value", "min"), ("value", "max")]
    ).to_pylist()
    lines, values = set(kept["line"].to_pylist()), set(kept["value"].to_pylist())
    assert {row[f"line_{end}"] for row in outer for end in ("min", "max")} <= lines
    assert {row[f"value_{end}"] for row in outer for end in ("min", "max")} <= values
    assert len(kept) <= 4 * len(outer)
    assert facts.left_out["samples"] == 50_000 - len(kept)


def test_texts_that_tell_cases_do_not_keep_every_sample() -> None:
    facts = Bounds()
    facts.add(Learned(samples=samples(ALL, 1)))
    size = 20_000
    steps = samples(size, 3).set_column(2, "text", pa.array(map(str, range(size))))
    facts.add(Learned(samples=steps))
    assert len(facts.take("samples")[1]) <= 4 * 2 * (size // 100)


def test_joins_end_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bounds.MOST, "joins", 5)
    facts = Bounds()
    row = pa.table([pa.nulls(3, f.type) for f in JOINS], schema=JOINS)
    for _ in range(3):
        facts.add(Learned(joins=row))
    assert sum(map(len, facts.take("joins"))) == 5
    assert facts.left_out["joins"] == 4


def test_a_log_says_what_it_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "ALL", 10)
    text = "Engine 000: Avg generation throughput: {}.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs"
    path = tmp_path / "a.log"
    path.write_text("".join(f"INFO 03-04 10:00:00 [a.py:1] {text.format(n)}\n" for n in range(100)))
    reading = log.read(path)
    found = reading.records[0].samples
    rates = found.filter(pc.equal(found["name"], "engine.generation_tokens_per_s"))
    assert rates["value"].to_pylist() == [0.0, 99.0]
    assert any("294 of its samples were counted" in r.what for r in reading.remarks)
