"""Replicas: data-parallel ranks that share no collective step apart from each other."""

import pyarrow as pa
import pytest

from teller.graph.replicas import replicas

PLACES = [{"tp": rank % 2, "dp": rank // 2} for rank in range(6)]


def members(*joined: tuple[int, ...]) -> pa.Table:
    """Give one collective for each tuple of sources."""
    rows = [(number, source, "order" if len(one) > 1 else "single")
            for number, one in enumerate(joined) for source in one]  # fmt: skip
    number, source, by = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "number": pa.array(number, pa.int64()),
            "source": pa.array(source, pa.int64()),
            "matched_by": pa.array(by, pa.string()),
        }
    )


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ([], [0, 0, 1, 1, 2, 2]),
        ([(0, 1), (2, 3), (4, 5)], [0, 0, 1, 1, 2, 2]),
        ([(4, 5), (1, 2)], [0, 0, 0, 0, 2, 2]),  # experts over two of the three
        ([(5, 3), (3, 0)], [0, 0, 0, 0, 0, 0]),
        ([(5,), (0,)], [0, 0, 1, 1, 2, 2]),
    ],
)
def test_a_collective_makes_one_replica_of_two(
    joined: list[tuple[int, ...]], expected: list[int]
) -> None:
    assert replicas(PLACES, members(*joined)).tolist() == expected


def test_all_are_one_where_not_every_source_tells_its_place() -> None:
    assert replicas([*PLACES[:-1], {"tp": 1}], members()).tolist() == [0] * 6
    assert replicas([], members()).tolist() == []
