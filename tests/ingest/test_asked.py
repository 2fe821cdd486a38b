"""Ids of requests in the names of ranges."""

from pathlib import Path

import pyarrow as pa
import pytest

from teller.ingest.asked import asked, requests_in
from teller.ingest.readers import kineto
from teller.ingest.source import WORDS


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("step[DECODE bs=2] rids=['abc', 'def-1']", ["abc", "def-1"]),
        ("schedule {'request_id': 'cmpl-7-0', 'tokens': 12}", ["cmpl-7-0"]),
        ("Scheduler Req 0f8fad5b", ["0f8fad5b"]),
        ("add chatcmpl-0f8fad5b-x to the queue", ["chatcmpl-0f8fad5b-x"]),
        ("requestId=5, n=3", ["5"]),
        ("decode rids=[a1, b2, c", ["a1", "b2"]),  # cut off in its last id
        ("rid: None", []),
        ("void gemm<grid=3, stride=7>", []),
        ("vllm/v1/request.py(33): request_id", []),
        ("requests/api.py(14): request", []),
    ],
)
def test_a_name_tells_its_requests(name: str, ids: list[str]) -> None:
    _, found = requests_in(pa.array(["gemm", name]))
    assert found.to_pylist() == ids


def test_each_step_is_told_once_for_each_request() -> None:
    names = ["decode rids=[a, b]", "gemm", "decode rids=[a, b]", "rid=a done"]
    spans = pa.table(
        {
            "name": pa.array(names).dictionary_encode().cast(WORDS),
            "step_index": [4, 4, 4, None],
            "start_ns": [10, 11, 20, 90],
            "end_ns": [15, 12, 25, 95],
        }
    )
    rows = {tuple(row.values()) for row in asked(spans).to_pylist()}
    assert rows == {("a", 4, 10, 25), ("b", 4, 10, 25), ("a", None, 90, 95)}
    assert asked(spans.slice(1, 1)).num_rows == 0


def test_traces_that_name_no_request_tell_none(shared: Path) -> None:
    for path in sorted((shared / "traces" / "kineto_inference").glob("*decode*.gz")):
        for source in kineto.read(path).sources:
            assert ids_of(source.spans) == []


def ids_of(spans: pa.Table) -> list[str]:
    _, found = requests_in(pa.array(spans["name"].unique().cast(pa.string()).to_pylist()))
    ids: list[str] = found.to_pylist()
    return ids
