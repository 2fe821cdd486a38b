"""Which iterations served each request: those whose ranges name it, else those of its window."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

BY_RANGE: Final = "range"
BY_TIME: Final = "time"
SURE: Final = {BY_RANGE: 1.0, BY_TIME: 0.9}
COARSE: Final = 0.6  # where the window's end is known to the second
FINE_NS: Final = 1_000_000
NEAR: Final = 0.5  # of the confidence is left of a line beside the iterations that served
MOST_ITERATIONS: Final = 512  # a longer request keeps the slowest of each of so many stretches
LEAST_ITERATIONS: Final = 16
MOST_PAIRS: Final = 2_000_000  # of a run, about: the more requests, the fewer iterations of each
DENSE: Final = 0.5  # of the iterations of a window: ranges that name so many name all


@dataclass(frozen=True, slots=True)
class Served:
    """Iterations in order of start, and by request a window of their places and single ones."""

    begin_ns: Ints  # of iterations
    end_ns: Ints
    dur_ns: Ints
    step_index: Ints
    names: pa.Array  # of requests
    first: Ints  # of each request: the first place of its window
    last: Ints  # the place after its last; the same where it has no window
    sure: Floats  # confidence of the window
    request: Ints  # requests that ranges name, and the places where they do, in order
    place: Ints

    def pairs(self) -> tuple[Ints, Ints, pa.Array, Floats]:
        """Give requests, step numbers, what ties them, and how surely; windows are thinned."""
        length = self.last - self.first
        each = MOST_PAIRS // max(int((length > 0).sum()), 1)
        count = np.minimum(length, min(max(each, LEAST_ITERATIONS), MOST_ITERATIONS))
        who = np.repeat(np.arange(len(count)), count)
        nth = np.arange(len(who)) - np.repeat(np.cumsum(count) - count, count)
        # the slowest of each stretch: all of them where a stretch is one iteration
        low, high = (self.first[who] + n * length[who] // count[who] for n in (nth, nth + 1))
        place = _slowest(self.dur_ns, low, high)
        if len(self.request):
            fresh = ~np.isin(self._key(who, place), self._key(self.request, self.place))
            who, place = who[fresh], place[fresh]
        words = ((BY_RANGE, len(self.request)), (BY_TIME, len(who)))
        by = pa.concat_arrays([pa.repeat(word, size) for word, size in words])
        sure = np.r_[np.full(len(self.request), SURE[BY_RANGE]), self.sure[who]]
        step = self.step_index[np.r_[self.place, place]]
        return np.r_[self.request, who], step, by, sure

    def at(self, who: Ints, time: Ints, fine: Ints) -> tuple[Ints, Floats]:
        """Give the step number in which each line about a request fell, and how surely.

        -1 where nothing served it. Beside the iterations that served it, the next one is taken,
        else the last: it was queued when the line was written, or had just ended.
        """
        low = np.searchsorted(self.end_ns, time)
        high = np.searchsorted(self.begin_ns, time + fine)
        width = len(self.begin_ns) + 1
        key = self._key(self.request, self.place)
        start, stop = (np.searchsorted(key, who * width + p) for p in (low, high))
        named = np.isin(who, self.request)
        by_range = _chosen(start, stop, np.searchsorted(key, who * width),
                           np.searchsorted(key, who * width + width))  # fmt: skip
        by_time = _chosen(low, high, self.first[who], self.last[who])
        use = named & ((by_range[1] >= 1) | (self.first[who] == self.last[who]))
        index = np.where(use, 0, by_time[0])
        if len(self.place):
            index = np.where(use, self.place[np.clip(by_range[0], 0, len(key) - 1)], index)
        served = use | (self.last[who] > self.first[who])
        many = np.where(use, by_range[1], by_time[1])
        sure = np.where(use, SURE[BY_RANGE], self.sure[who])
        sure = np.where(many >= 1, sure / np.maximum(many, 1), sure * NEAR)
        step = self.step_index[np.clip(index, 0, max(len(self.step_index) - 1, 0))]
        return np.where(served, step, -1), np.where(served, sure, 0.0)

    def _key(self, who: Ints, place: Ints) -> Ints:
        """Give one number for a request and a place."""
        key: Ints = who * (len(self.begin_ns) + 1) + place
        return key


def serve(requests: pa.Table, ranges: pa.Table, iterations: pa.Table) -> Served:
    """Find who served whom; `ranges` name requests in steps (`ASKED`)."""
    ordered = iterations.sort_by("start_ns")
    begin = ordered["start_ns"].to_numpy()
    finish = np.maximum.accumulate(ordered["end_ns"].to_numpy()) if len(begin) else begin
    index = ordered["step_index"].to_numpy()
    names = _array(requests["name"])
    who, place = _named(ranges, names, index)
    first, last = _windows(requests, begin, finish)
    first, last = _without_named(first, last, who, place)
    coarse = pc.fill_null(requests["coarse_ns"], 0).to_numpy()
    sure = np.where(coarse > FINE_NS, COARSE, SURE[BY_TIME])
    dur = ordered["end_ns"].to_numpy() - begin
    return Served(begin, finish, dur, index, names, first, last, sure, who, place)


def _array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _slowest(dur: Ints, low: Ints, high: Ints) -> Ints:
    """Give the place of the longest in each stretch from `low` to before `high`.

    A stretch is two overlapping ones whose width is a power of two, each looked up in a table.
    """
    widest = int((high - low).max(initial=1))
    table = [np.arange(len(dur))]
    while 2 << (len(table) - 1) <= widest:
        half = 1 << (len(table) - 1)
        table.append(_longer(dur, table[-1][:-half], table[-1][half:]))
    level = np.log2(high - low).astype(np.int64)
    found = low.copy()
    for n in np.unique(level[level > 0]).tolist():
        at = np.flatnonzero(level == n)
        found[at] = _longer(dur, table[n][low[at]], table[n][high[at] - (1 << n)])
    return found


def _longer(dur: Ints, one: Ints, other: Ints) -> Ints:
    return np.where(dur[other] > dur[one], other, one)


def _named(ranges: pa.Table, names: pa.Array, index: Ints) -> tuple[Ints, Ints]:
    """Give the requests that ranges in steps name, and the places of these steps."""
    inside = ranges.filter(pc.is_valid(ranges["step_index"]))
    who = pc.index_in(_array(inside["name"]), names).to_numpy(zero_copy_only=False)
    step = inside["step_index"].to_numpy()
    if not len(index) or not len(step):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(index, kind="stable")
    at = order[np.minimum(np.searchsorted(index[order], step), len(index) - 1)]
    known = index[at] == step
    pairs = np.unique(np.stack([who[known].astype(np.int64), at[known]]), axis=1)
    return pairs[0], pairs[1]


def _windows(requests: pa.Table, begin: Ints, finish: Ints) -> tuple[Ints, Ints]:
    """Give the places of iterations from leaving the queue to the end, or to the first token."""
    start, first, end = (_array(requests[c]) for c in ("start_ns", "first_token_ns", "end_ns"))
    queued = pc.add(start, pc.fill_null(_array(requests["queue_ns"]), 0))
    since = pc.coalesce(queued, first)
    until = pc.add(pc.coalesce(end, first), pc.fill_null(_array(requests["coarse_ns"]), 0))
    known = pc.and_(since.is_valid(), until.is_valid()).to_numpy(zero_copy_only=False)
    low = np.searchsorted(finish, pc.fill_null(since, 0).to_numpy())
    high = np.searchsorted(begin, pc.fill_null(until, 0).to_numpy(), side="right")
    return low, np.where(known, np.maximum(high, low), low)


def _without_named(first: Ints, last: Ints, who: Ints, place: Ints) -> tuple[Ints, Ints]:
    """Take the window from requests of which ranges name most of its steps: they name all."""
    if not len(who):
        return first, last
    named, at, count = np.unique(who, return_index=True, return_counts=True)
    reach = np.maximum(place[at + count - 1] - place[at] + 1, (last - first)[named])
    whole = named[(count > 1) & (count >= DENSE * reach)]
    last = last.copy()
    last[whole] = first[whole]
    return first, last


def _chosen(low: Ints, high: Ints, least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """Give the first place of [low, high) that lies in [least, most), and how many do.

    Where none does, the next one after is given, else the last one before.
    """
    start, stop = np.maximum(low, least), np.minimum(high, most)
    nearest = np.clip(low, least, np.maximum(most - 1, least))
    found = stop > start
    return np.where(found, start, nearest), np.where(found, stop - start, 0)
