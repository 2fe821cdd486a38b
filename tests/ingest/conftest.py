"""What tests of ingest share: a span table from rows made by hand."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from teller.ingest.source import SPANS, WORDS

# name, layer, lane, stream, start_ns, end_ns, correlation
Row = tuple[str, str, str, int | None, int, int, int | None]


def _spans(rows: Iterable[Row]) -> pa.Table:
    """Give a span table of (name, layer, lane, stream, start, end, correlation) rows."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    name, layer, lane, stream, start, end, correlation = columns or ([],) * 7
    words = [pa.array(c, pa.string()).dictionary_encode().cast(WORDS) for c in (name, layer, lane)]
    whole = [stream, [None] * len(start), start, end]
    return pa.table(
        [
            pa.array(range(len(start)), pa.int64()),
            *words,
            *(pa.array(c, pa.int64()) for c in whole),
            pa.array([False] * len(start)),
            pa.array(correlation, pa.int64()),
            pa.nulls(len(start), pa.int64()),
        ],
        schema=SPANS,
    )


@pytest.fixture(scope="session")
def spans() -> Callable[[Iterable[Row]], pa.Table]:
    """Give what makes a span table of rows; `place` is the number of the row."""
    return _spans
