"""Whatever events say and however the text is cut into steps, the tables are the same and exact."""

import gzip
import json
import re
import tempfile
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller.ingest.readers import kineto
from teller.ingest.source import Reading

BASE = 1_770_000_000_000_000_000
TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['"}, {"ph": "X"', "},{", '\\"', "]}", "nccl:all_reduce", "[{", "\n", '"traceEvents": [']
)
NUMBER = st.integers(-10, 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXT | st.sampled_from(["ph", "name"]), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGS = st.dictionaries(
    st.sampled_from(["correlation", "stream", "device", "bytes", "list", "External id"]) | TEXT,
    VALUE,
    max_size=4,
)
TIME = st.decimals("0", "99999", places=3) | st.decimals("0", "9999", places=5) | st.integers(0, 99)
EVENT = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXXXsfMiBE"), "name": TEXT, "ts": TIME},
    optional={
        "cat": st.sampled_from(["kernel", "cpu_op", "cuda_runtime", "user_annotation", "odd"]),
        "pid": st.integers(0, 3) | TEXT, "tid": st.integers(-1, 3) | TEXT, "dur": TIME,
        "args": ARGS | VALUE, "id": st.integers(),
    },
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> tuple[list[dict[str, Any]], bytes]:
    """Give events, and a trace of them in some layout, with every digit of their times."""
    events = draw(st.lists(EVENT, min_size=1, max_size=30))
    marked = [
        {k: f"\ue000{v}\ue000" if k in ("ts", "dur") else v for k, v in draw(shuffled(e)).items()}
        for e in events
    ]
    header = {"schemaVersion": 1, "baseTimeNanoseconds": BASE, "distributedInfo": {"rank": 1}}
    text = json.dumps(
        {**header, "traceEvents": marked, "traceName": "x"},
        indent=draw(st.sampled_from([None, 0, 2])), ensure_ascii=False,
        separators=draw(st.sampled_from([(",", ":"), (", ", " : "), (" ,", ": ")])),
    )  # fmt: skip
    return events, re.sub('"\ue000([^\ue000]+)\ue000"', r"\1", text).encode()


def shuffled(event: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.permutations(list(event.items())).map(dict)


def read_in_pieces(folder: Path, text: bytes, piece: int, stretch: int, block: int) -> Reading:
    path = folder / "pieces.json"
    # every member of a gzip file comes out as a piece of its own
    parts = (gzip.compress(text[i : i + piece], 0) for i in range(0, len(text), piece))
    path.write_bytes(b"".join(parts))
    return kineto.read_in_steps(path, stretch=stretch, block=block)


def nanoseconds(value: Decimal | int) -> int:
    return int((Decimal(value) * 1000).to_integral_value(ROUND_HALF_EVEN))


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(texts(), st.integers(1, 400), st.integers(1, 2000), st.integers(1, 9))
def test_steps_of_any_size_give_the_same_exact_tables(
    made: tuple[list[dict[str, Any]], bytes], piece: int, stretch: int, block: int
) -> None:
    events, text = made
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.json")
        path.write_bytes(text)
        whole = kineto.read(path)
        steps = read_in_pieces(Path(folder), text, piece, stretch, block)
    assert [r.what for r in steps.remarks] == [r.what for r in whole.remarks]
    assert len(steps.sources) == len(whole.sources)
    for one, other in zip(steps.sources, whole.sources, strict=True):
        assert one.spans.to_pylist() == other.spans.to_pylist()
        assert one.calls.to_pylist() == other.calls.to_pylist()
        assert one.facts.event_count == other.facts.event_count == len(events)
    rows = [row for source in whole.sources for row in source.spans.to_pylist()]
    found = {row["place"]: row for row in rows}
    for place, event in enumerate(events):
        if event["ph"] == "X":
            row, start = found[place], nanoseconds(event["ts"])
            assert row["name"] == event["name"]
            assert row["start_ns"] == BASE + start
            assert row["end_ns"] == BASE + start + nanoseconds(event.get("dur", 0))
            assert row["open"] == ("dur" not in event)
