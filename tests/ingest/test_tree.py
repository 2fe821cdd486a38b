"""Call trees, launches, gaps and self time inside one source."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from teller.ingest import tree
from teller.ingest.source import SPANS

Row = tuple[str, str, int | None, int, int, int | None]


def spans(rows: list[Row]) -> pa.Table:
    """Rows are (name, lane, stream, start, end, correlation)."""
    return pa.table(
        {
            "place": range(len(rows)),
            "name": [r[0] for r in rows],
            "layer": ["device" if r[2] is not None else "framework" for r in rows],
            "lane": [r[1] for r in rows],
            "stream": [r[2] for r in rows],
            "device_index": [None] * len(rows),
            "start_ns": [r[3] for r in rows],
            "end_ns": [r[4] for r in rows],
            "open": [False] * len(rows),
            "correlation": [r[5] for r in rows],
            "size_bytes": [None] * len(rows),
        },
        schema=SPANS,
    )


def built(rows: list[Row]) -> tree.Tree:
    return tree.build(tree.columns(spans(rows)))


def test_spans_nest_by_lane_only() -> None:
    found = built(
        [
            ("step", "a", None, 0, 1000, None),
            ("op", "a", None, 100, 400, None),
            ("inner", "a", None, 150, 300, None),
            ("next", "a", None, 400, 900, None),
            ("other", "b", None, 100, 200, None),
        ]
    )
    assert found.parent.tolist() == [-1, 0, 1, 0, -1]
    assert found.depth.tolist() == [0, 1, 2, 1, 0]
    assert found.self_ns.tolist() == [200, 150, 150, 500, 100]


def test_a_sibling_that_begins_a_nanosecond_early_is_still_a_sibling() -> None:
    found = built(
        [
            ("step", "a", None, 0, 10_000, None),
            ("one", "a", None, 100, 2_001, None),
            ("two", "a", None, 2_000, 9_000, None),
            ("short", "a", None, 8_999, 9_100, None),
        ]
    )
    assert found.parent.tolist() == [-1, 0, 0, 0]


def test_a_child_that_ends_just_after_its_parent_is_its_child() -> None:
    found = built(
        [
            ("step", "a", None, 0, 10_000, None),
            ("op", "a", None, 100, 10_001, None),
        ]
    )
    assert found.parent.tolist() == [-1, 0]
    assert found.self_ns.tolist() == [100, 9_901]


def test_device_work_hangs_under_the_last_call_with_its_correlation() -> None:
    found = built(
        [
            ("cudaGraphLaunch", "a", None, 0, 50, 7),
            ("cudaLaunchKernel", "a", None, 5_000_000, 5_000_050, 7),
            ("k1", "s", 7, 100, 200, 7),
            ("k2", "s", 7, 230, 300, 7),
            ("k3", "s", 7, 5_000_100, 5_000_200, 7),
            ("orphan", "s", 7, 6_000_000, 6_000_001, 99),
        ]
    )
    assert found.launched_by.tolist() == [-1, -1, 0, 0, 1, -1]
    assert found.previous.tolist() == [-1, -1, -1, 2, 3, 4]
    assert found.gap.tolist() == [0, 4_999_950, 0, 30, 4_999_800, 999_800]
    assert found.parent.tolist() == [-1] * 6


def test_a_synchronisation_waits_for_the_work_that_ended_last_in_it() -> None:
    rows = tree.columns(
        spans(
            [
                ("k1", "s", 7, 0, 100, None),
                ("k2", "s", 7, 100, 500, None),
                ("cudaStreamSynchronize", "a", None, 50, 510, None),
                ("cudaStreamSynchronize", "a", None, 600, 610, None),
            ]
        )
    )
    assert tree.waited_for(rows, np.array([2, 3])).tolist() == [1, -1]


@given(st.data())
def test_any_proper_nesting_is_found_again(data: st.DataObject) -> None:
    """Draw a random tree, cut its time into nested intervals, and rebuild it."""
    size = data.draw(st.integers(1, 60))
    above = [-1] + [data.draw(st.integers(-1, i - 1)) for i in range(1, size)]
    children: dict[int, list[int]] = {}
    for child, parent in enumerate(above):
        children.setdefault(parent, []).append(child)
    begin, end, clock = [0] * size, [0] * size, 0

    def walk(node: int) -> None:
        nonlocal clock
        begin[node] = clock = clock + data.draw(st.integers(0, 2)) + 1
        for child in children.get(node, []):
            walk(child)
        end[node] = clock = clock + data.draw(st.integers(0, 2)) + 1

    for root in children[-1]:
        walk(root)
    places = data.draw(st.permutations(range(size)))
    found = built([("x", "a", None, begin[i] * 10_000, end[i] * 10_000, None) for i in places])
    at = {node: row for row, node in enumerate(places)}
    assert found.parent.tolist() == [-1 if above[node] < 0 else at[above[node]] for node in places]
    total = sum(end[root] - begin[root] for root in children[-1])
    assert found.self_ns.sum() == total * 10_000
