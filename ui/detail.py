"""How much of a step reaches the browser: what can be seen at a zoom, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ui.desk import Place

MOST_SENT: Final = 12_000  # spans of a picture
MOST_READ: Final = 60_000  # spans of the steps that are read at once; of more, the longest
FINE: Final = 20_000  # parts of a window that are told apart where there are more


@dataclass(frozen=True, slots=True)
class Seen:
    """Spans for a picture, and the number that is too short for it."""

    spans: pa.Table
    left_out: int


def seen(place: Place, steps: Sequence[int], start_ns: int, end_ns: int) -> Seen:
    """Give the spans of steps that show in a window of time, the longest where there are many."""
    total = span_count(place, steps)
    least = 0 if total <= MOST_READ else max(1, (end_ns - start_ns) // FINE)
    if least:
        found = place.ask("window_spans", steps=list(steps), from_ns=start_ns, to_ns=end_ns,
                          least_ns=least)  # fmt: skip
    else:  # all of the steps at once: another zoom then asks nothing
        whole = place.ask("window_spans", steps=list(steps), from_ns=-(1 << 61), to_ns=1 << 61,
                          least_ns=0)  # fmt: skip
        ends = pc.add(whole["start_ns"], whole["dur_ns"])
        inside = pc.and_(pc.less(whole["start_ns"], end_ns), pc.greater_equal(ends, start_ns))
        found = whole.filter(inside)
    kept = longest(found)
    return Seen(kept, (total if least else found.num_rows) - kept.num_rows)


def longest(spans: pa.Table, most: int = MOST_SENT) -> pa.Table:
    """Give the longest spans, in the order in which they stand."""
    if spans.num_rows <= most:
        return spans
    length = spans["dur_ns"].combine_chunks().to_numpy(zero_copy_only=False)
    return spans.take(pa.array(np.sort(np.argpartition(length, -most)[-most:])))


def span_count(place: Place, steps: Sequence[int]) -> int:
    """Give the number of spans of steps."""
    counted = place.ask("slice_counts", steps=list(steps))
    return int(pc.sum(counted["span_count"]).as_py() or 0)
