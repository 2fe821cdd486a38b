"""Of a step's tree only what matters is shown, with the calls that lead there."""

from typing import Any

import pyarrow as pa

from teller.ui.branches import Branch, branches

# id, parent, operator, layer, stream, dur, self, excess
SPANS = [
    (1, None, "step", "engine", None, 1000, 1, 0),
    (2, 1, "forward", "framework", None, 900, 1, 0),
    (3, 2, "layer", "framework", None, 800, 1, 0),
    (4, 3, "mlp", "framework", None, 700, 1, 0),
    (5, 4, "linear", "framework", None, 600, 1, 0),
    (6, 5, "cudaLaunchKernel", "runtime", None, 5, 1, 0),
    (7, 6, "gemm", "device", 7, 500, None, 400),
    *((100 + n, 1, "tiny", "framework", None, 2, 2, 0) for n in range(30)),
    *((200 + n, 1, "norm", "device", 7, 90, None, 0) for n in range(5)),
    (300, 1, "all_reduce", "comm", 9, 60, None, 0),
]
NAMES = ("id", "parent_id", "operator", "layer", "stream", "dur_ns", "self_ns", "excess_ns")


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [pa.array(c) for c in zip(*rows, strict=True)]
    made = pa.table(dict(zip(NAMES, columns, strict=True)))
    return made.append_column("name", made["operator"])


def shown(branch: Branch) -> list[str]:
    own = f"{branch.span['name']}+{branch.folded}" if branch.folded else branch.span["name"]
    return [own, *(name for below in branch.below for name in shown(below))]


def test_late_work_comes_with_its_calls_and_handing_on_is_folded() -> None:
    met = {"wait_ns": 30, "skew_ns": 30}
    (top,) = branches(table(SPANS), {300: met})
    names = shown(top)
    assert names[:5] == ["step", "forward", "linear+2", "cudaLaunchKernel", "gemm"]
    assert names.count("norm") == 2  # of many alike
    assert "all_reduce" in names
    (comm,) = [b for b in top.below if b.span["name"] == "all_reduce"]
    assert comm.collective is met
    assert len(SPANS) - top.size == 30 + 3


def test_a_step_without_spans_has_no_branches() -> None:
    assert branches(table(SPANS).slice(0, 0), {}) == ()
