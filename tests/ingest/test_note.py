"""A note beside the data tells the usual figures and those of now, by how it is made."""

import json
from pathlib import Path

import pytest

from teller.ingest.readers import note


def test_a_note_gives_both_states_with_their_lines(shared: Path) -> None:
    path = shared / "cases/o01_ib_unreachable_socket_fallback/baseline_note.json"
    assert note.looks_like(path.read_bytes(), path)
    (records,) = note.read(path).records
    usual, now = json.loads(path.read_text()).values()
    found = [(s["name"], s["text"], s["value"]) for s in records.samples.to_pylist()]
    assert found == [("note.usual", *item) for item in usual.items()] + [
        ("note.now", *item) for item in now.items()
    ]
    lines = path.read_text().splitlines()
    for sample in records.samples.to_pylist():
        assert sample["text"] in lines[sample["line"] - 1]
        assert f"{sample['value']:g}" in lines[sample["line"] - 1]


@pytest.mark.parametrize(
    ("usual", "now"),
    [("before", "after"), ("last_week", "this_week"), ("healthy run", "now"), ("Usual", "Today")],
)
def test_the_words_of_the_titles_tell_the_states(tmp_path: Path, usual: str, now: str) -> None:
    path = tmp_path / "n.json"
    path.write_text(json.dumps({now: {"ttft_ms": 900}, usual: {"ttft_ms": 200}, "why": "?"}))
    assert note.looks_like(path.read_bytes(), path)
    (records,) = note.read(path).records
    found = [(s["name"], s["value"]) for s in records.samples.to_pylist()]
    assert found == [("note.usual", 200.0), ("note.now", 900.0)]


@pytest.mark.parametrize(
    "content",
    [{}, [], {"before": {"a": 1}}, {"before": {"a": 1}, "after": {"b": 1}},
     {"before": {"a": "x"}, "after": {"a": "y"}}, {"a": {"x": 1}, "b": {"x": 2}},
     {"before": {"a": True}, "after": {"a": False}}, {"before": 1, "after": 2}],
)  # fmt: skip
def test_other_json_is_no_note(tmp_path: Path, content: object) -> None:
    assert not note.looks_like(json.dumps(content).encode(), tmp_path)
