"""What Arrow lacks for columns of text: cutting each value at its own place, joining runs."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def ints(column: Any) -> Ints:
    """Give a column without nulls as numpy."""
    return np.asarray(pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False))


def flags(column: Any) -> Flags:
    """Give a column of truth values; null is false."""
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)


def cut(text: pa.Array, at: Ints) -> tuple[pa.Array, pa.Array]:
    """Cut each value behind its first `at` bytes; there must be no nulls."""
    size = len(text)
    if size == 0:
        return text, text
    _, places, data = text.buffers()
    ends = np.frombuffer(places, np.int32)[text.offset : text.offset + size + 1]
    between = np.empty(2 * size + 1, np.int32)
    between[0::2] = ends
    between[1::2] = ends[:-1] + at
    halves = pa.StringArray.from_buffers(2 * size, pa.py_buffer(between), data)
    first = np.arange(0, 2 * size, 2)
    return halves.take(pa.array(first)), halves.take(pa.array(first + 1))


def join_runs(text: pa.Array, starts: Ints, between: str) -> pa.Array:
    """Join runs of values into one each; `starts` are the first rows of the runs, from row 0."""
    ends = pa.array(np.append(starts, len(text)), pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(ends, text), between)


def order_in_group(group: Ints) -> Ints:
    """Give each row its number among the rows of its group, from 0, in the order of rows."""
    order = np.argsort(group, kind="stable")
    ranked = group[order]
    firsts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    sizes = np.diff(np.append(firsts, len(group)))
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(firsts, sizes)
    return place
