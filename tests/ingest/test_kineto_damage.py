"""Damaged traces give what is whole, and remarks that say where, what and what to do."""

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from teller.ingest.readers import kineto
from teller.ingest.source import Reading, Remark

BASE = 1_770_000_000_000_000_000
Event = dict[str, Any]


def op(name: str = "aten::mm", ts: float = 100, **more: Any) -> Event:
    common = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": 5}
    return common | {"args": {"External id": 1, "list": [{"ph": 1}, {"a": "}, {"}]}} | more


def trace(events: Sequence[Mapping[str, Any]], rank: int = 0) -> bytes:
    header = {"schemaVersion": 1, "distributedInfo": {"rank": rank}, "baseTimeNanoseconds": BASE}
    return json.dumps({**header, "traceEvents": list(events)}, indent=1).encode()


def read(folder: Path, text: bytes) -> Reading:
    path = folder / "made.json"
    path.write_bytes(text)
    return kineto.read(path)


def names(reading: Reading) -> list[str]:
    return [name for source in reading.sources for name in source.spans["name"].to_pylist()]


def one(reading: Reading) -> Remark:
    (remark,) = reading.remarks
    assert remark.remedy
    return remark


def numbered(count: int) -> list[Event]:
    return [op(f"op {i}", i * 10.5) for i in range(count)]


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.99])
def test_a_cut_file_gives_every_whole_event(share: float, tmp_path: Path) -> None:
    text = trace(numbered(50))
    cut = text[: int(len(text) * share)]
    reading = read(tmp_path, cut)
    # an event is whole where the brace that closes it, at its indentation, is there
    whole = len(re.findall(rb"\n  \}", cut.partition(b"traceEvents")[2]))
    assert names(reading) == [f"op {i}" for i in range(whole)]
    said = [r for r in reading.remarks if "cut" in r.what]
    assert [r.place.split(" (")[0] for r in said] == [f"byte {len(cut)}"]


def test_a_file_that_is_cut_behind_a_whole_event_keeps_it(tmp_path: Path) -> None:
    text = trace([op("a"), op("b")])
    reading = read(tmp_path, text[: text.rindex(b"]")])
    assert "cut" in one(reading).what
    assert names(reading) == ["a", "b"]


def test_a_comma_behind_the_last_event_is_no_damage(tmp_path: Path) -> None:
    text = trace([op("a"), op("b")]).partition(b'Events": ')[2].rpartition(b"\n ]")[0] + b","
    assert names(read(tmp_path, text + b"\n]")) == ["a", "b"]
    assert read(tmp_path, text + b"\n]").remarks == ()
    assert names(read(tmp_path, text)) == ["a", "b"]


@pytest.mark.parametrize("keep", [0.3, 0.5, 0.8])
def test_a_cut_gzip_gives_what_was_decompressed(keep: float, tmp_path: Path) -> None:
    packed = gzip.compress(trace(numbered(3000)))
    reading = read(tmp_path, packed[: int(len(packed) * keep)])
    found = names(reading)
    assert found == [f"op {i}" for i in range(len(found))]
    assert len(found) > 3000 * keep * 0.5
    assert re.search(r"cut.*byte \d+.*gzip stream ends early", one(reading).what)


@pytest.mark.parametrize("at", [0.2, 0.5, 0.9])
def test_an_overwritten_gzip_gives_what_stands_before_the_damage(at: float, tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(trace(numbered(20_000)), 1))
    place = int(len(packed) * at)
    packed[place : place + 64] = b"\xff" * 64
    reading = read(tmp_path, bytes(packed))
    found = names(reading)
    assert found == [f"op {i}" for i in range(len(found))]
    assert len(found) > 20_000 * at - 200
    assert re.search(
        r"damaged.*gzip stream is damaged before compressed byte \d", one(reading).what
    )


def test_control_characters_are_replaced_and_located(tmp_path: Path) -> None:
    text = trace([op("a"), op("b\x07c"), op("d\x01\x02"), op("e")])
    text = text.replace(b"\\u0007", b"\x07").replace(b"\\u0001\\u0002", b"\x01\n")
    reading = read(tmp_path, text)
    assert names(reading) == ["a", "b?c", "d? ", "e"]
    at = text.index(b"\x07")
    line, column = text[:at].count(b"\n") + 1, at - text.rindex(b"\n", 0, at)
    remark = one(reading)
    assert remark.place == f"byte {at} (line {line} column {column})"
    assert "control character U+0007" in remark.what


def test_inf_and_nan_are_left_out_and_located(tmp_path: Path) -> None:
    text = trace(
        [op("a", dur="inf"), op("b"), op("c", args={"x": ["nan", "-Infinity"]}), op("d: nan,")]
    )
    text = text.replace(b'"inf"', b"inf").replace(b'"nan"', b"nan").replace(b'"-Inf', b"-Inf")
    text = text.replace(b'inity"', b"inity")
    reading = read(tmp_path, text)
    assert names(reading) == ["a", "b", "c", "d: nan,"]
    finite = {r.what.split(":")[0]: r for r in reading.remarks}
    assert finite["values that are not finite (bare inf or nan)"].place.startswith(
        f"byte {text.index(b'inf')} "
    )
    assert any("cpu_op have no dur" in r.what for r in reading.remarks)
    assert reading.sources[0].spans["open"].to_pylist() == [True, False, False, False]


def test_an_unescaped_quote_costs_its_own_event_only(tmp_path: Path) -> None:
    events = numbered(40)
    for i in (3, 17, 18, 39):
        events[i]["name"] = 'say \\"hi\\", "x'
    text = trace(events).replace(b'\\\\\\"', b'"').replace(b', \\"x', b', "x')
    reading = read(tmp_path, text)
    assert names(reading) == [f"op {i}" for i in range(40) if i not in (3, 17, 18, 39)]
    assert "no valid JSON (unescaped quotes, foreign bytes): 4" in one(reading).what
    assert reading.sources[0].facts.rank == 0


def test_bytes_that_are_no_utf_8_are_replaced(tmp_path: Path) -> None:
    text = trace([op("a"), op("b@c")]).replace(b"b@c", b"b\xffc")
    reading = read(tmp_path, text)
    assert len(names(reading)) >= 1
    assert all("\ufffd" in n or n == "a" for n in names(reading))


def test_values_that_are_no_events_are_left_out(tmp_path: Path) -> None:
    text = trace([op("a"), op("b"), op("c")]).replace(b'"b"', b'["b"]')
    reading = read(tmp_path, text)
    assert names(reading) == ["a", "c"]
    assert "1, left out" in one(reading).what


def test_two_interleaved_writers_are_refused(tmp_path: Path) -> None:
    texts = [trace(numbered(60), rank) for rank in (4, 6)]
    for size in (64, 512, 4000):
        blocks = [t[i : i + size] for i in range(0, len(texts[0]), size) for t in texts]
        reading = read(tmp_path, b"".join(blocks))
        assert reading.sources == ()
        assert "two ranks, 4 and 6, interleaved" in one(reading).what
        assert "one file per rank" in one(reading).remedy


def test_two_whole_traces_in_one_file_are_two_sources(tmp_path: Path) -> None:
    reading = read(tmp_path, trace([op("a")], 0) + b"\n" + trace([op("b")], 1))
    assert [s.facts.rank for s in reading.sources] == [0, 1]
    assert names(reading) == ["a", "b"]
    assert reading.remarks == ()
    again = read(tmp_path, trace([op("a")], 0) + trace([op("b")], 0))
    assert names(again) == ["a"]
    assert "repeat a rank" in one(again).what


def test_text_behind_the_trace_is_named(tmp_path: Path) -> None:
    text = trace([op("a")])
    remark = one(read(tmp_path, text + b"\nKilled\n"))
    assert remark.place.startswith(f"byte {len(text) + 1} ")


def test_a_header_that_is_cut_or_broken_is_named(tmp_path: Path) -> None:
    text = trace([op("a")])
    cut = read(tmp_path, text[:40])
    assert cut.sources == ()
    assert any("cut" in r.what for r in cut.remarks)
    broken = read(tmp_path, text.replace(b'"schemaVersion": 1', b'"schemaVersion": "a"b"'))
    assert names(broken) == ["a"]
    assert broken.sources[0].facts.rank == 0
    assert broken.sources[0].spans["start_ns"].to_pylist() == [BASE + 100_000]
    assert "header" in one(broken).what


def test_broken_times_are_counted_and_located(tmp_path: Path) -> None:
    events = [op("a", 10), op("neg", 20, dur=-7), op("far", 1e13), op("long", 30, dur=1e15)]
    events += [op("none", 40), op("text") | {"ts": "soon"}, op("z", 50)]
    del events[4]["dur"]
    text = trace(events)
    reading = read(tmp_path, text)
    spans = reading.sources[0].spans
    rows = zip(*(spans[c].to_pylist() for c in ("name", "start_ns", "end_ns", "open")), strict=True)
    assert [(n, s - BASE, e - s, o) for n, s, e, o in rows] == [
        ("a", 10_000, 5000, False),
        ("neg", 20_000, 0, False),
        ("long", 30_000, 0, True),
        ("none", 40_000, 0, True),
        ("z", 50_000, 5000, False),
    ]
    places = {remark.place.split(" (")[0] for remark in reading.remarks}
    assert {
        f"byte {text.index(word)}" for word in (b"-7", b"10000000000000.0", b'"soon"')
    } <= places
    assert len(reading.remarks) == 5


@pytest.mark.parametrize("ts", ["1e40", "-1e40", "1e99", "9" * 30, "9" * 60, "[1]", "{}", "true"])
def test_a_time_out_of_this_world_costs_its_own_event_only(ts: str, tmp_path: Path) -> None:
    text = trace([op("a"), op("b", 12.5), op("c")]).replace(b"12.5", ts.encode())
    reading = read(tmp_path, text)
    assert names(reading) == ["a", "c"]
    assert "without a usable ts: 1" in one(reading).what
    assert one(reading).place.startswith(f"byte {text.index(ts.encode())} ")


def test_zero_length_is_no_damage(tmp_path: Path) -> None:
    assert read(tmp_path, trace([op("a", dur=0)])).remarks == ()


def test_an_empty_list_of_events_is_named(tmp_path: Path) -> None:
    assert "no events" in one(read(tmp_path, trace([]))).what


def test_asynchronous_spans_are_counted(tmp_path: Path) -> None:
    pair = [{"ph": p, "cat": "x", "name": "y", "id": 1, "pid": 9, "ts": 1} for p in "be"]
    assert "asynchronous" in one(read(tmp_path, trace([op("a"), *pair]))).what


def test_the_broken_traces_of_the_cases_are_named_as_expected(shared: Path) -> None:
    folder = shared / "cases/o11_broken_kineto_json"
    expected = json.loads((folder / "expected.json").read_text())
    for name, wanted in expected["files"].items():
        reading = kineto.read(folder / name)
        found = [row for s in reading.sources for row in s.spans.to_pylist()]
        kernels = sum(r["stream"] is not None and "Memcpy" not in r["name"] for r in found)
        least = wanted.get("kernels_recoverable", wanted.get("kernels", 0))
        assert kernels >= wanted.get("kernels_recoverable_min", least), name
        if "kernels_recoverable_min" not in wanted:
            assert kernels == least, name
        if "events_recoverable" in wanted:
            assert reading.sources[0].facts.event_count == wanted["events_recoverable"]
    for score in expected["score"]["data_quality"]:
        said = [
            f"{r.place} {r.what} {r.remedy}" for r in kineto.read(folder / score["file"]).remarks
        ]
        assert any(re.search(score["pattern"], text, re.I) for text in said), score
    assert kineto.read(folder / "ok_control.json").remarks == ()
