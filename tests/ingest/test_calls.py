"""What shaping adds to one source."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from teller.ingest import calls, tree


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 20), st.booleans()), min_size=1, max_size=15
    )
)
def test_covered_time_is_that_in_which_other_device_work_ran(
    rows: list[tuple[int, int, bool]],
) -> None:
    start = np.array([r[0] for r in rows])
    end = start + np.array([r[1] for r in rows])
    size = len(rows)
    columns = tree.Columns(
        np.arange(size), np.zeros(size, np.int64), start, end, np.ones(size, bool),
        np.full(size, -1),
    )  # fmt: skip
    layer = pa.table({"layer": ["comm" if r[2] else "device" for r in rows]})
    at = np.flatnonzero([r[2] for r in rows])
    covered = calls.covered(layer, columns, at)
    for found, i in zip(covered, at, strict=True):
        moments = range(start[i], end[i])
        busy = [any(start[j] <= t < end[j] for j in range(size) if not rows[j][2]) for t in moments]
        assert found == sum(busy)
