"""The table of the steps of one source, and how surely they were found."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from teller.ingest.step_names import UNKNOWN

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NONE: Final = "none"
NVTX_PERIOD: Final = "nvtx_period"
KERNEL_PERIOD: Final = "kernel_period"

# Sorted by start; no step begins before the one in front has ended.
STEPS: Final = pa.schema(
    [
        pa.field("step_index", pa.int64(), nullable=False),
        pa.field("phase", pa.string(), nullable=False),  # prefill, decode, mixed or unknown
        pa.field("start_ns", pa.int64(), nullable=False),
        pa.field("end_ns", pa.int64(), nullable=False),
        pa.field("token_count", pa.int64()),
        pa.field("batch_size", pa.int64()),
        pa.field("context_tokens", pa.int64()),
        pa.field("lane", pa.string()),  # of the annotation; null: the window is one of device work
        pa.field("place", pa.int64()),  # of the annotation's span; null where a step has none
    ]
)


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps (table `STEPS`), the way they were found, and how sure that is, 0 to 1."""

    table: pa.Table
    found_by: str  # an engine, "profiler_step", "iteration", "nvtx_period", "kernel_period", "none"
    confidence: float


def no_steps() -> Steps:
    """Give the answer that there are none to be seen."""
    return Steps(STEPS.empty_table(), NONE, 0.0)


def table_of(start: Ints, end: Ints, **known: Any) -> pa.Table:
    """Give a step table; what is not `known` is null, unknown or counted from 0."""
    rows = len(start)
    columns: dict[str, Any] = {
        "step_index": np.arange(rows),
        "phase": pa.repeat(UNKNOWN, rows),
        "start_ns": start,
        "end_ns": end,
        **known,
    }
    return pa.table(
        [_column(columns.get(field.name), field.type, rows) for field in STEPS], schema=STEPS
    )


def _column(values: Any, kind: pa.DataType, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, kind)
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)


def without_overlap(start: Ints, end: Ints) -> Ints:
    """Give the ends of spans in start order, each cut where the next begins."""
    if len(start) < 2:
        return end
    return np.append(np.minimum(end[:-1], start[1:]), end[-1])
