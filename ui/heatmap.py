"""Rank by step as few cells: for each, the most time lost there."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

MOST_ROWS: Final = 64
MOST_COLUMNS: Final = 160


def cells(
    heat: pa.Table, rows: int = MOST_ROWS, columns: int = MOST_COLUMNS
) -> list[dict[str, Any]]:
    """Give cells of the query `rank_iteration_heat`: excess in ms, of the worst step in each.

    Neighbouring ranks and steps share a cell where there are more than that; `rank` and `step` are
    those of the worst.
    """
    told = heat.select(["rank", "step_index", "excess_ns", "dur_ns"]).drop_null()
    if not told.num_rows:
        return []
    rank, step, excess, dur = (
        np.asarray(told[name].combine_chunks().to_numpy(), np.int64) for name in told.column_names
    )
    row = _bin(rank, rows)
    column = _bin(step, columns)
    order = np.lexsort((excess, column, row))
    last = np.flatnonzero(
        np.r_[(np.diff(row[order]) != 0) | (np.diff(column[order]) != 0), True]
    )  # the worst of each cell
    kept = order[last]
    return [
        {"row": int(r), "column": int(c), "rank": int(a), "step": int(b),
         "excess_ms": max(int(e), 0) / 1e6, "dur_ms": int(d) / 1e6}
        for r, c, a, b, e, d in zip(
            row[kept], column[kept], rank[kept], step[kept], excess[kept], dur[kept], strict=True
        )
    ]  # fmt: skip


def _bin(values: Any, most: int) -> Any:
    """Give the first value of each bin of neighbours."""
    known, place = np.unique(values, return_inverse=True)
    per = -(-len(known) // most)
    return known[(place // per) * per]
