"""One clock for all ranks, from the ends of collectives that all ranks leave together.

Each rank's clock gets an offset and, over long captures, a drift against the lowest rank that it
can be tied to; what is left between ranks afterwards is the residual.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.collectives import LEAVE_TOGETHER, WAIT_FOR_ALL

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEWEST_FOR_DRIFT: Final = 30
SHORTEST_FOR_DRIFT_NS: Final = 500_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """How one source's UTC times become common ones: add `offset_ns` and the drift since `at_ns`.

    `residual_ns` is the spread that is left, None where nothing tied this rank to another.
    """

    offset_ns: int = 0
    drift_ppm: float = 0.0
    at_ns: int = 0
    residual_ns: int | None = None
    matched: int = 0

    def common(self, time: Ints) -> Ints:
        """Put times on the common clock."""
        common: Ints = time + self.offset_ns
        if self.drift_ppm:
            drift = (time - self.at_ns) * (self.drift_ppm * 1e-6)
            common = common + np.rint(drift).astype(np.int64)
        return common


def align(members: pa.Table, sources: int) -> list[Clock]:
    """Give each source its clock, from MEMBERS whose times are UTC."""
    ends, at = _matrix(members, sources)
    clocks: list[Clock | None] = [None] * sources
    while None in clocks:
        start = clocks.index(None)
        clocks[start] = Clock(at_ns=at)
        while (link := _nearest_tie(ends, clocks)) is not None:
            clocks[link] = _fit(ends, clocks, link, at)
    return [c if c is not None else Clock() for c in _settle(ends, clocks, at)]


def _matrix(members: pa.Table, sources: int) -> tuple[Floats, int]:
    """Give ends as (collective, source), relative to the first; nan where a rank is missing."""
    members = members.filter(pc.not_equal(members["matched_by"], "single"))
    together = members.filter(pc.is_in(members["op"], pa.array(LEAVE_TOGETHER)))
    # Ranks leave an all-to-all less sharply together; it serves where there is nothing else.
    members = (
        together
        if together.num_rows
        else members.filter(pc.is_in(members["op"], pa.array(WAIT_FOR_ALL)))
    )
    if not members.num_rows:
        return np.full((0, sources), np.nan), 0
    at = int(pc.min(members["end_ns"]).as_py())
    _, row = np.unique(members["number"].to_numpy(), return_inverse=True)
    ends = np.full((row.max() + 1, sources), np.nan)
    ends[row, members["source"].to_numpy()] = members["end_ns"].to_numpy() - at
    return ends, at


def _nearest_tie(ends: Floats, clocks: list[Clock | None]) -> int | None:
    """Give the open source that shares most collectives with the settled ones."""
    settled = [i for i, c in enumerate(clocks) if c is not None]
    known = ~np.isnan(ends)
    anchored = known[:, settled].any(axis=1) if len(ends) else np.zeros(0, bool)
    shared = [(int((known[:, i] & anchored).sum()), -i) for i, c in enumerate(clocks) if c is None]
    best = max(shared, default=(0, 0))
    return -best[1] if best[0] else None


def _common(ends: Floats, clocks: list[Clock | None], leave_out: int) -> Floats:
    """Give each collective's end on the common clock, by the median over settled sources."""
    columns = []
    for i, clock in enumerate(clocks):
        if clock is None or i == leave_out:
            continue
        columns.append(ends[:, i] * (1 + clock.drift_ppm * 1e-6) + clock.offset_ns)
    stack = np.stack(columns, axis=1)
    some = ~np.isnan(stack).all(axis=1)
    middle = np.full(len(ends), np.nan)
    middle[some] = np.nanmedian(stack[some], axis=1)
    return middle


def _fit(ends: Floats, clocks: list[Clock | None], source: int, at: int) -> Clock:
    apart = _common(ends, clocks, source) - ends[:, source]
    both = ~np.isnan(apart)
    apart, time = apart[both], ends[both, source]
    if not len(apart):
        return Clock(at_ns=at)
    offset = float(np.median(apart))
    slope = _slope(time, apart)
    if slope:
        offset = float(np.median(apart - slope * time))
    left = apart - slope * time - offset
    residual = round(1.4826 * float(np.median(np.abs(left))))
    return Clock(round(offset), slope * 1e6, at, residual, len(apart))


def _slope(time: Floats, apart: Floats) -> float:
    """Give the drift, 0 where it is not clearly above the noise."""
    if len(time) < FEWEST_FOR_DRIFT or np.ptp(time) < SHORTEST_FOR_DRIFT_NS:
        return 0.0
    order = np.argsort(time)
    third = len(time) // 3
    first, last = order[:third], order[-third:]
    run = float(np.median(time[last]) - np.median(time[first]))
    rise = float(np.median(apart[last]) - np.median(apart[first]))
    noise = 1.4826 * max(
        float(np.median(np.abs(apart[half] - np.median(apart[half])))) for half in (first, last)
    )
    sure = abs(rise) > 6 * noise / np.sqrt(third) + 2_000
    return rise / run if sure and run and abs(rise / run) < 1e-3 else 0.0


def _settle(ends: Floats, clocks: list[Clock | None], at: int) -> list[Clock]:
    """Fit all but the reference once more, now against the median of all, and give residuals."""
    settled = [c if c is not None else Clock() for c in clocks]
    if not len(ends) or len(settled) < 2:
        return settled
    open_clocks: list[Clock | None] = list(settled)
    result = []
    for i, clock in enumerate(settled):
        again = _fit(ends, open_clocks, i, at)
        reference = clock.matched == 0
        if reference and again.matched:
            again = Clock(0, 0.0, at, again.residual_ns, again.matched)
        result.append(again if again.matched else clock)
    return result
