"""What tests of log lines share: a table of lines from their texts."""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from teller.ingest.records import LINES

Lines = Callable[..., pa.Table]
GIVEN = pa.schema([field for field in LINES if field.name not in ("template", "params")])


def _lines(texts: Sequence[str], first: int = 1, **same: object) -> pa.Table:
    """Give lines as knowledge gets them; `same` are columns with one value for all."""
    size = len(texts)
    empty = {"process": "", "level": "", "origin": ""} | same
    made = {"text": list(texts), "line": range(first, first + size), "place": range(size)}
    columns = [
        pa.array(list(made.get(field.name) or [empty.get(field.name)] * size)).cast(field.type)
        for field in GIVEN
    ]
    return pa.table(columns, schema=GIVEN)


@pytest.fixture(scope="session")
def lines() -> Lines:
    """Give what makes a table of lines from texts."""
    return _lines
