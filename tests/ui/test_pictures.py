"""What is drawn is what the tables hold: no cell moved, no path lost, nothing silently left out."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from teller.ui.pictures import canvas, heat, network, tree


def test_cells_hold_the_excess_of_their_rank_and_step(heat_rows: Callable[..., pa.Table]) -> None:
    rows = heat_rows()
    cells = heat.grid(rows)
    assert cells.what == "excess over the expected time"
    assert cells.cells.shape == (8, 120)
    expected = np.array(rows["excess_ns"]).reshape(8, 120)
    assert (cells.cells == expected).all()
    assert cells.lost.argmax() == 5
    assert cells.lost[5] == expected[5].sum()


def test_bins_keep_the_worst_so_that_one_bad_step_in_many_is_seen() -> None:
    steps = 100_000
    slow = np.where(np.arange(steps) == 77_777, 5_000_000, 0)
    rows = pa.table({
        "rank": np.zeros(steps, int), "step_index": np.arange(steps),
        "dur_ns": slow + 1_000_000, "excess_ns": slow,
    })  # fmt: skip
    cells = heat.grid(rows)
    assert cells.cells.shape[1] <= 320
    assert np.nanmax(cells.cells) == 5_000_000
    column = int(np.nanargmax(cells.cells[0]))
    assert cells.steps[column] <= 77_777 < cells.steps[column] + cells.per_column


def test_without_excess_durations_are_drawn_and_gaps_stay_empty() -> None:
    rows = pa.table({
        "rank": [0, 0, 3], "step_index": [10, 12, 12], "dur_ns": [5, 6, 7],
        "excess_ns": pa.array([None, None, None], pa.int64()),
    })  # fmt: skip
    cells = heat.grid(rows)
    assert cells.what == "duration of the step"
    assert np.array_equal(cells.cells, np.array([[5, 6], [np.nan, 7]]), equal_nan=True)
    assert "<svg" in heat.draw(rows, [], {}, "h")


def test_a_tree_says_how_many_spans_it_leaves_out(step_spans: pa.Table) -> None:
    seen = tree.boxes(step_spans)
    assert seen.left_out == 0
    assert [lane for lane, _, _ in seen.bands] == ["thread 4711", "stream 7", "stream 19"]
    tiny = step_spans.slice(0, 1).set_column(6, "end_ns", pa.array([1]))
    assert tree.boxes(pa.concat_tables([step_spans, tiny])).left_out == 1


def test_a_name_that_is_too_long_for_its_box_is_in_the_tool_tip(step_spans: pa.Table) -> None:
    drawn = tree.draw(step_spans, "t")
    assert "<title>gate_up_gemm (device): 11.0 ms, 8 ms more than expected</title>" in drawn
    assert drawn.count("<title>") >= step_spans.num_rows


def test_paths_sum_what_several_operations_carried() -> None:
    edges = pa.table({
        "src_rank": [0, 0, 1], "dst_rank": [1, 1, 0], "size_bytes": [10, 5, None],
        "pure_p50_ns": [100, 300, 7],
    })  # fmt: skip
    found = network.net(edges, {0: "a", 1: "b"}, (1,))
    assert dict(found.edges) == {(0, 1): (15.0, 300.0), (1, 0): (0.0, 7.0)}
    assert found.late == {1}


def test_many_ranks_are_drawn_by_host(ring_edges: Callable[..., pa.Table]) -> None:
    found = network.net(ring_edges(256), {r: f"node-{r // 16}" for r in range(256)}, (40,))
    assert len(found.ends) == 16
    assert found.ends[:3] == ("node-0", "node-1", "node-2")
    assert len(found.edges) == 16
    assert found.late == {2}


def test_one_rank_alone_and_no_paths_make_no_trouble() -> None:
    none = pa.table({
        name: pa.array([], pa.int64())
        for name in ("src_rank", "dst_rank", "size_bytes", "pure_p50_ns")
    })  # fmt: skip
    assert "<svg" in network.draw(none, {0: "a"}, (), "n")


def test_ticks_are_round_and_few() -> None:
    assert canvas.every(list(range(8)), 24) == list(range(8))
    assert canvas.every(list(range(0, 1024, 8)), 24) == list(range(0, 128, 8))
    assert len(canvas.every(list(range(100_000)), 12)) <= 12
