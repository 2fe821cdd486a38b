"""Distinct values of columns, so that text is made once for each and taken for all rows."""

import numpy as np
import pyarrow as pa

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
