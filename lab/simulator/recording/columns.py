"""Columns as text: distinct values are made once and taken for all rows, pieces put together."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.lab.simulator.happened import Ints


def distinct(*columns: Ints) -> tuple[list[tuple[int, ...]], Ints]:
    """Give the distinct rows of columns, and for each row which of them it is."""
    key = np.zeros(len(columns[0]), np.int64)
    parts: list[tuple[Ints, int]] = []
    for column in columns:
        values, which = _coded(column)
        key = key * max(len(values), 1) + which
        parts.append((values, max(len(values), 1)))
    keys, which = _coded(key)
    found = []
    for values, size in reversed(parts):
        found.append(values[keys % size].tolist() if len(values) else [])
        keys = keys // size
    return list(zip(*reversed(found), strict=True)), which


def _coded(column: Ints) -> tuple[Ints, Ints]:
    coded = pa.array(column).dictionary_encode()
    return coded.dictionary.to_numpy().copy(), coded.indices.to_numpy().astype(np.int64)


def number(values: Ints) -> pa.Array:
    """Give numbers as text."""
    return pc.cast(pa.array(values), pa.string())


def picked(texts: list[str], rows: Ints) -> pa.Array:
    """Give the text of each row out of a few."""
    return pa.array(texts, pa.string()).take(pa.array(rows))


def joined(*pieces: "str | pa.Array") -> pa.Array:
    """Put pieces together, row by row; at least one is a column."""
    return pc.binary_join_element_wise(*pieces, "")


def text_of(column: pa.Array) -> memoryview:
    """Give all rows of a column as one text, which is not copied."""
    buffer = column.buffers()[2]
    if buffer is None or not len(column):
        return memoryview(b"")
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :]
    return memoryview(buffer)[int(offsets[0]) : int(offsets[len(column)])]
