"""Times of a Kineto trace as text."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.lab.simulator.happened import Ints
from teller.lab.simulator.recording.columns import joined

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
