"""Picks by columns do what loops over rows would do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller.models.slice_picks import Ints, Picks, across, expanded, first_of_each, places

SMALL = st.integers(0, 5)
PAIRS = st.lists(st.tuples(SMALL, SMALL), max_size=12)


def column(values: list[int]) -> Ints:
    return np.array(values, np.int64)


@given(st.lists(st.tuples(SMALL, SMALL, st.sampled_from([1, 2, 4]), SMALL), max_size=12))
def test_a_span_is_picked_once_with_all_its_reasons(rows: list[tuple[int, int, int, int]]) -> None:
    slot, row, why, hop = (column([r[n] for r in rows]) for n in range(4))
    found = Picks.joined([Picks(slot, row, why, hop)])
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for s, r, w, h in rows:
        reasons, nearest = expected.get((s, r), (0, h))
        expected[s, r] = reasons | w, min(nearest, h)
    told = zip(found.slot, found.row, found.why, found.hop, strict=True)
    assert [((s, r), (w, h)) for s, r, w, h in told] == sorted(expected.items())


@given(PAIRS, st.integers(1, 3))
def test_the_largest_of_each_group_are_kept(rows: list[tuple[int, int]], most: int) -> None:
    group, size = (column([r[n] for r in rows]) for n in (0, 1))
    kept = first_of_each([group], most, size)
    for one in set(group.tolist()):
        of_group = sorted(size[group == one].tolist(), reverse=True)
        mine = kept[group[kept] == one]
        assert sorted(size[mine].tolist(), reverse=True) == of_group[:most]


@given(PAIRS)
def test_ranges_are_written_out(rows: list[tuple[int, int]]) -> None:
    low, high = (column([r[n] for r in rows]) for n in (0, 1))
    found, which = expanded(low, high)
    pairs = [(i, n) for i, (a, b) in enumerate(rows) for n in range(a, b)]
    assert list(zip(which, found, strict=True)) == pairs


@given(PAIRS, st.lists(SMALL, max_size=6))
def test_a_join_gives_every_pair(have: list[tuple[int, int]], wanted: list[int]) -> None:
    have = sorted(have)
    left, right = (column([h[n] for h in have]) for n in (0, 1))
    found, which = across(left, right, column(wanted))
    pairs = [(i, b) for i, w in enumerate(wanted) for a, b in have if a == w]
    assert list(zip(which, found, strict=True)) == pairs


@given(st.sets(SMALL), st.lists(SMALL, max_size=6))
def test_a_place_is_where_the_id_is_or_minus_one(have: set[int], wanted: list[int]) -> None:
    ids = sorted(have)
    found = places(column(ids), column(wanted)).tolist()
    assert found == [ids.index(w) if w in have else -1 for w in wanted]
