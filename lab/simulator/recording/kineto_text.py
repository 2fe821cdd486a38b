"""Columns of numbers and texts as events of a Kineto trace, all of a kind at once."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.lab.simulator.happened import Ints

THOUSAND: Final = 1_000
_DIGITS: Final = pa.array([f".{n:03d}" for n in range(THOUSAND)])


@dataclass(frozen=True, slots=True)
class Times:
    """How a generation writes times: what they count from, and whether with fractions of a µs."""

    base_ns: int
    whole: bool

    def text(self, time_ns: Ints) -> pa.Array:
        """Give moments in µs."""
        return self.lasting(time_ns - self.base_ns)

    def lasting(self, ns: Ints) -> pa.Array:
        """Give durations in µs."""
        micro = pc.cast(pa.array(ns // THOUSAND), pa.string())
        if self.whole:
            return micro
        return joined(micro, _DIGITS.take(pa.array(ns % THOUSAND)))


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
