"""A note beside the data tells the usual figures and those of now, by how it is made."""

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest

from teller.ingest.readers import note
from teller.ingest.records import Records


def found(records: Records, name: str, *columns: str) -> list[tuple[object, ...]]:
    table = records.samples.filter(pc.equal(records.samples["name"], name))
    return [tuple(row[c] for c in columns) for row in table.to_pylist()]


def test_a_note_gives_both_states_with_their_lines(shared: Path) -> None:
    path = shared / "cases/o01_ib_unreachable_socket_fallback/baseline_note.json"
    assert note.looks_like(path.read_bytes(), path)
    (records,) = note.read(path).records
    usual, now = json.loads(path.read_text()).values()
    for name, figures in (("note.usual", usual), ("note.now", now)):
        assert found(records, name, "text", "value") == list(figures.items())
    lines = path.read_text().splitlines()
    for name in ("note.usual", "note.now"):
        for line, text, value in found(records, name, "line", "text", "value"):
            assert f'"{text}": {value}' in lines[int(str(line)) - 1]
    assert found(records, "note.slowdown_ratio", "text", "value") == [
        ("gen_tokens_per_s_at_8_running", pytest.approx(412.0 / 39.5)),
        ("allreduce_1GiB_ms", pytest.approx(402.0 / 47.5)),
    ]


@pytest.mark.parametrize(
    ("usual", "now"),
    [("before", "after"), ("last_week", "this_week"), ("healthy run", "now"), ("Usual", "Today")],
)
def test_the_words_of_the_titles_tell_the_states(tmp_path: Path, usual: str, now: str) -> None:
    path = tmp_path / "n.json"
    path.write_text(json.dumps({now: {"ttft_ms": 900}, usual: {"ttft_ms": 200}, "why": "?"}))
    assert note.looks_like(path.read_bytes(), path)
    (records,) = note.read(path).records
    assert found(records, "note.usual", "value") == [(200.0,)]
    assert found(records, "note.now", "value") == [(900.0,)]


@pytest.mark.parametrize(
    "content",
    [{}, [], {"before": {"a": 1}}, {"before": {"a": 1}, "after": {"b": 1}},
     {"before": {"a": "x"}, "after": {"a": "y"}}, {"a": {"x": 1}, "b": {"x": 2}},
     {"before": {"a": True}, "after": {"a": False}}, {"before": 1, "after": 2}],
)  # fmt: skip
def test_other_json_is_no_note(tmp_path: Path, content: object) -> None:
    assert not note.looks_like(json.dumps(content).encode(), tmp_path)
