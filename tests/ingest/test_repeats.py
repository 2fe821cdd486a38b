"""Steps of small tables made by hand: what repeats, what is annotated, and what is neither."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from teller.ingest.operators import classify
from teller.ingest.source import SPANS
from teller.ingest.steps import STEPS, Steps, find_steps

Row = tuple[str, str, str, int | None, int, int, int | None]
Make = Callable[[Iterable[Row]], pa.Table]


def column(steps: Steps, name: str) -> list[Any]:
    values: list[Any] = steps.table[name].to_pylist()
    return values


def sequence(
    spans: Make, names: Sequence[str], *, pause_before: str = "", length: int = 10
) -> pa.Table:
    """Give one stream of kernels, and their launches with a pause before one name."""
    rows: list[Row] = []
    launch = device = 0
    for i, name in enumerate(names):
        launch += 1000 if name == pause_before else 2
        device = max(device, launch)
        rows.append(("cudaLaunchKernel", "runtime", "thread 1", None, launch, launch + 1, i + 1))
        rows.append((name, "device", "stream 7", 7, device, device + length, i + 1))
        device += length
    return spans(rows)


LAYER = ["rms_norm_kernel", "nvjet_qkv", "flash_fwd_kernel", "nvjet_o", "act_and_mul_kernel"]
STEP = ["embedding_kernel", *LAYER * 6, "nvjet_lm_head", "argmax_kernel"]


def test_kernels_that_repeat_are_steps_cut_at_the_pause(spans: Make) -> None:
    steps = find_steps(sequence(spans, STEP * 9, pause_before="embedding_kernel"))
    assert (steps.found_by, steps.table.num_rows) == ("kernel_period", 9)
    assert steps.confidence > 0.6
    assert steps.table.schema == STEPS
    table = sequence(spans, STEP * 9, pause_before="embedding_kernel")
    heads = table.filter(pc.equal(table["name"].cast(pa.string()), "embedding_kernel"))
    assert column(steps, "start_ns") == heads["start_ns"].to_pylist()
    assert column(steps, "step_index") == list(range(9))


def test_a_step_with_other_kernels_inside_does_no_harm(spans: Make) -> None:
    longer = [*STEP[:14], "copy_kernel", "copy_kernel", *STEP[14:]]
    steps = find_steps(
        sequence(spans, STEP * 4 + longer + STEP * 4, pause_before="embedding_kernel")
    )
    assert (steps.found_by, steps.table.num_rows) == ("kernel_period", 9)


def test_families_of_spans_may_be_given(spans: Make) -> None:
    table = sequence(spans, STEP * 9, pause_before="embedding_kernel")
    families = classify(table["name"])["family"].combine_chunks()
    assert find_steps(table, families=families).table.equals(find_steps(table).table)


def test_layers_alone_are_no_steps(spans: Make) -> None:
    assert find_steps(sequence(spans, LAYER * 30)).found_by == "none"


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(6, 400))
def test_a_shuffled_sequence_has_no_steps(spans: Make, seed: int, kinds: int, length: int) -> None:
    names = [f"kernel_{'abcdefghijkl'[k]}" for k in range(kinds)]
    shuffled = np.random.default_rng(seed).choice(names, length).tolist()
    steps = find_steps(sequence(spans, shuffled, pause_before="kernel_a"))
    assert (steps.found_by, steps.confidence, steps.table.num_rows) == ("none", 0.0, 0)


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(12)))
def test_the_order_of_rows_does_not_matter(spans: Make, order: list[int]) -> None:
    rows: list[Row] = [
        (f"step[DECODE bs={i}]", "engine", "thread 1", None, 100 * i, 100 * i + 90, None)
        for i in range(12)
    ]
    steps = find_steps(spans(rows[i] for i in order))
    assert column(steps, "batch_size") == list(range(12))
    assert column(steps, "place") == [order.index(i) for i in range(12)]


def annotated(*names: tuple[str, int, int], lane: str = "thread 1") -> list[Row]:
    return [(name, "engine", lane, None, start, end, None) for name, start, end in names]


def test_numbers_that_repeat_are_counted_anew(spans: Make) -> None:
    twice = [(f"execute_model step={i % 3}", 100 * i, 100 * i + 90) for i in range(6)]
    steps = find_steps(spans(annotated(*twice)))
    assert (steps.found_by, steps.confidence) == ("vllm, renumbered", 0.9)
    assert column(steps, "step_index") == list(range(6))


def test_an_engine_that_steps_once_in_many_profiler_steps_is_not_asked(spans: Make) -> None:
    profiler = [(f"ProfilerStep#{i}", 100 * i, 100 * i + 90) for i in range(4, 9)]
    once = annotated(("execute_model step=1", 410, 420), *profiler)
    assert find_steps(spans(once)).found_by == "profiler_step"
    every = [(f"execute_model step={i}", 100 * i + 10, 100 * i + 80) for i in range(4, 9)]
    assert find_steps(spans(annotated(*every, *profiler))).found_by == "vllm"


def test_an_inner_annotation_tells_what_the_outer_does_not(spans: Make) -> None:
    steps = find_steps(
        spans(
            annotated(
                ("execute_model step=7", 0, 100),
                ("execute_context_1(64)_generation_2(2)", 10, 90),
                ("execute_model step=8", 100, 200),
                ("execute_context_0(0)_generation_3(3)", 110, 190),
            )
        )
    )
    assert column(steps, "step_index") == [7, 8]
    assert column(steps, "phase") == ["mixed", "decode"]
    assert column(steps, "token_count") == [66, 3]
    assert column(steps, "end_ns") == [100, 200]


def test_of_two_threads_at_one_time_the_busier_steps(spans: Make) -> None:
    busy = [(f"execute_model step={i}", 100 * i, 100 * i + 90) for i in range(5)]
    idle = [(f"execute_model step={i}", 100 * i + 50, 100 * i + 60) for i in range(5)]
    steps = find_steps(spans(annotated(*busy) + annotated(*idle, lane="thread 2")))
    assert column(steps, "lane") == ["thread 1"] * 5


def test_captures_and_empty_tables_have_no_steps(spans: Make) -> None:
    captures = annotated(*((f"capture_{n}_FULL", 100 * n, 100 * n + 5) for n in (1, 2, 4, 8)))
    for table in (spans(captures), spans([]), SPANS.empty_table()):
        steps = find_steps(table)
        assert (steps.found_by, steps.confidence, steps.table.num_rows) == ("none", 0.0, 0)


def test_a_table_in_several_chunks_is_one_source(spans: Make) -> None:
    first = spans(annotated(("execute_model step=0", 0, 90)))
    second = spans(annotated(("execute_model step=1", 100, 190), lane="thread 1"))
    steps = find_steps(pa.concat_tables([first, second]))
    assert column(steps, "step_index") == [0, 1]


def test_rounds_with_modules_of_their_own_are_layers(spans: Make) -> None:
    layers: list[Row] = []
    for i in range(12):
        launch = 1000 * i
        layers.append((f"blocks.{i}.attn", "engine", "thread 1", None, launch, launch + 60, None))
        for k, name in enumerate(LAYER):
            call = launch + 10 * k
            number = 10 * i + k + 1
            layers.append(("cudaLaunchKernel", "runtime", "thread 1", None, call, call + 5, number))
            layers.append((name, "device", "stream 7", 7, call + 8, call + 17, number))
    assert find_steps(spans(layers)).found_by == "none"
    unnamed = [row for row in layers if row[1] != "engine"]
    assert find_steps(spans(unnamed)).table.num_rows == 12


def test_ops_of_a_processor_are_steps_where_it_pauses(spans: Make) -> None:
    ops: list[Row] = []
    at = 0
    for _ in range(6):
        at += 5000
        for name in ("embedding", *("linear", "layer_norm", "gelu") * 4, "argmax"):
            ops.append((f"aten::{name}", "framework", "thread 1", None, at, at + 400, None))
            at += 410
    steps = find_steps(spans(ops))
    assert (steps.found_by, steps.table.num_rows) == ("nvtx_period", 6)
    assert column(steps, "start_ns") == [row[4] for row in ops if row[0] == "aten::embedding"]
    assert column(steps, "lane") == ["thread 1"] * 6
