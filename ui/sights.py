"""What the pictures of a run are drawn from, asked of the graph by named queries."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class StepSight:
    """The spans of one step that is worth looking at."""

    rank: int
    step_index: int
    spans: pa.Table


@dataclass(frozen=True, slots=True)
class RunSight:
    """The tables of one run; a table without rows gives no picture."""

    hosts: Mapping[int, str]  # of each rank
    heat: pa.Table
    edges: pa.Table
    step: StepSight | None = None
