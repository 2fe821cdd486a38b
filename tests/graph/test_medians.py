"""Medians of groups."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller.graph.medians import codes, leave_one_out_median


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=40))
def test_the_median_of_the_others_is_just_that(rows: list[tuple[int, int]]) -> None:
    group = np.array([g for g, _ in rows])
    value = np.array([float(v) for _, v in rows])
    median, size = leave_one_out_median(group, value)
    for i, (g, _) in enumerate(rows):
        others = [v for j, (h, v) in enumerate(rows) if h == g and j != i]
        assert size[i] == len(others) + 1
        assert np.isnan(median[i]) if not others else median[i] == np.median(others)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=30))
def test_rows_have_one_number_exactly_where_they_are_equal(rows: list[tuple[int, int]]) -> None:
    code = codes(np.array([a for a, _ in rows]), np.array([b for _, b in rows]))
    assert len(set(code.tolist())) == len(set(rows))
    assert len(set(zip(rows, code.tolist(), strict=True))) == len(set(rows))
