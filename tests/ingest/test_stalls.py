"""Idle time of the device in the middle of a step goes to the call that held the launches up."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from teller.ingest import operators, stalls, tree
from teller.ingest.source import SPANS

HOST, STREAM = "thread 1", "stream 7"


def row(name: str, start: int, end: int, call: int, *, device: bool = False) -> dict[str, Any]:
    return {
        "name": name, "layer": "device" if device else "runtime",
        "lane": STREAM if device else HOST, "stream": 7 if device else None,
        "start_ns": start * 1000, "end_ns": end * 1000, "open": False, "correlation": call,
    }  # fmt: skip


def launch(number: int, at: int, begin: int, end: int) -> list[dict[str, Any]]:
    return [
        row("cudaLaunchKernel", at, at + 4, number),
        row("gemm", begin, end, number, device=True),
    ]


def found(rows: list[dict[str, Any]], steps: list[int]) -> list[dict[str, Any]]:
    """Give the stalls of rows whose step is told; times are in µs."""
    table = pa.Table.from_pylist(
        [r | {"place": n, "device_index": 0, "size_bytes": None} for n, r in enumerate(rows)],
        schema=SPANS,
    )
    table = table.unify_dictionaries().combine_chunks()
    columns = tree.columns(table)
    named = operators.classify(table["name"].cast(pa.string()))
    both = table.append_column("operator", named["operator"]).append_column(
        "family", named["family"]
    )
    got = stalls.find(both, columns, tree.build(columns), np.array(steps))
    rows_found: list[dict[str, Any]] = got.to_pylist()
    return rows_found


BEFORE = launch(1, 0, 10, 110)
AFTER = launch(2, 300, 310, 400)  # the device is idle from 110 to 310


@pytest.mark.parametrize(
    ("call", "kind"),
    [("cudaStreamSynchronize", "sync"), ("cudaMalloc", "alloc"), ("cudaFree_v3020", "alloc")],
)
def test_a_call_that_drains_the_device_stalls_it(call: str, kind: str) -> None:
    rows = [*BEFORE, row(call, 20, 113, -1), *AFTER]
    operator = call.removesuffix("_v3020")
    assert found(rows, [0] * 5) == [
        {"kind": kind, "operator": operator, "held_ns": 200_000, "stalls": 1, "steps": 1}
    ]


def test_waiting_at_the_end_of_a_step_is_none() -> None:
    assert (
        found([*BEFORE, row("cudaStreamSynchronize", 20, 113, -1), *AFTER], [0, 0, 0, 1, 1]) == []
    )


def test_waiting_before_the_first_launch_is_none() -> None:
    rows = [*BEFORE, row("cudaStreamSynchronize", 20, 113, -1), *AFTER]
    assert found(rows, [0, 0, 1, 1, 1]) == []


def test_a_short_call_while_the_host_computes_is_none() -> None:
    assert found([*BEFORE, row("cudaEventQuery", 200, 203, -1), *AFTER], [0] * 5) == []


@pytest.mark.parametrize(
    ("copy", "lasts", "kind"),
    [
        ("Memcpy HtoD (Pageable -> Device)", 80, "copy"),
        ("Memcpy DtoH (Device -> Pageable)", 2, "sync"),
    ],
)
def test_a_blocking_copy_counts_with_its_own_time(copy: str, lasts: int, kind: str) -> None:
    done = 110 + lasts
    rows = [
        *BEFORE,
        row("cudaMemcpyAsync", 20, done + 3, 3), row(copy, 110, done, 3, device=True),
        *launch(2, done + 100, done + 110, done + 300),
    ]  # fmt: skip
    got = found(rows, [0] * 6)
    assert [(one["kind"], one["held_ns"]) for one in got] == [(kind, (lasts + 110) * 1000)]
