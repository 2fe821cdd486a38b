"""Log lines tied to steps: by step number, request, process and time, each with its confidence.

A line without a time stands between timed neighbours of its process and takes the time of the one
before. A time in whole seconds fits many short steps: the tie says so by its confidence.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.served import Served

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BY_NUMBER: Final = "number"
BY_REQUEST: Final = "request"
BY_PROCESS: Final = "process"
BY_TIME: Final = "time"
SURE: Final = {BY_NUMBER: 1.0, BY_PROCESS: 0.95, BY_TIME: 0.6}
ORDERED: Final = 0.3  # of the confidence is left where the time is a neighbour's
LEAST: Final = 0.02  # a tie less sure than this is none


@dataclass(frozen=True, slots=True)
class Ties:
    """One entry a line; null where there is no tie."""

    time_ns: pa.Array
    placed_by: pa.Array
    step_index: pa.Array
    step_rank: pa.Array
    tied_by: pa.Array
    confidence: pa.Array


def tie(lines: pa.Table, steps: pa.Table, served: Served | None = None) -> Ties:
    """Tie lines (of `Rows.lines`) to steps (of `Stepped.steps`), the surest way first."""
    time, placed = _placed(lines)
    size = lines.num_rows
    index, rank = np.full(size, -1), np.full(size, -1)
    how, sure = np.full(size, None, object), np.zeros(size)
    if steps.num_rows and size:
        _by_time(lines, steps, time, placed, index, rank, how, sure)
        if served is not None:
            _by_request(lines, steps, served, time, placed, index, rank, how, sure)
        _by_number(lines, steps, index, rank, how, sure)
    told = pc.fill_null(lines["step_index"].combine_chunks(), -1).to_numpy()
    shown = np.where(index >= 0, index, told)
    tied = index >= 0
    return Ties(
        pa.array(time, pa.int64(), mask=placed < 0),
        pa.array(np.array(["", "clock", "order"])[np.where(placed < 0, 0, placed + 1)]),
        pa.array(shown, pa.int64(), mask=shown < 0),
        pa.array(rank, pa.int64(), mask=~tied),
        pa.array(how, pa.string()),
        pa.array(sure, pa.float64(), mask=~tied),
    )


def _placed(lines: pa.Table) -> tuple[Ints, Ints]:
    """Give each line a time and how it got it: 0 its own, 1 a neighbour's, -1 none."""
    own = lines["time_ns"].combine_chunks()
    known = own.is_valid().to_numpy(zero_copy_only=False)
    time = pc.fill_null(own, 0).to_numpy().copy()
    placed = np.where(known, 0, -1)
    if not len(known):
        return time, placed
    file, place = lines["file"].to_numpy(), lines["place"].to_numpy()
    process = lines["process"].combine_chunks().cast(pa.string()).dictionary_encode().indices
    own_process, whole = pc.fill_null(process, -1).to_numpy(), np.zeros(len(file), np.int64)
    _follow(time, placed, file, own_process, place)
    _follow(time, placed, file, whole, place)
    _follow(time, placed, file, whole, -place)  # before the first time of its file
    return time, placed


def _follow(time: Ints, placed: Ints, file: Ints, lane: Ints, place: Ints) -> None:
    """Give lines without a time that of the one before them in their lane of the file."""
    order = np.lexsort((place, lane, file))
    at = np.where(placed[order] == 0, np.arange(len(order)), -1)
    before = np.maximum.accumulate(at)
    leader = order[np.maximum(before, 0)]
    same = (before >= 0) & (file[leader] == file[order]) & (lane[leader] == lane[order])
    open_ = (placed[order] < 0) & same
    time[order[open_]] = time[leader[open_]]
    placed[order[open_]] = 1


def _by_time(
    lines: pa.Table,
    steps: pa.Table,
    time: Ints,
    placed: Ints,
    index: Ints,
    rank: Ints,
    how: npt.NDArray[np.object_],
    sure: Floats,
) -> None:
    """Tie each timed line to the step of its rank, else of the lowest rank, that it falls in."""
    told = pc.fill_null(lines["rank"].combine_chunks(), -1).to_numpy()
    fine = pc.fill_null(lines["resolution_ns"].combine_chunks(), 1).to_numpy()
    owner = steps["rank"].to_numpy()
    lowest = int(owner.min())
    for one in np.unique(owner).tolist():
        mine = steps.filter(pc.equal(steps["rank"], one)).sort_by("start_ns")
        start, end = mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy()
        number = mine["step_index"].to_numpy()
        own = (placed >= 0) & (told == one)
        stranger = (placed >= 0) & (told < 0) if one == lowest else np.zeros(len(told), bool)
        for rows, by in ((own, BY_PROCESS), (stranger, BY_TIME)):
            at = np.flatnonzero(rows)
            first = np.searchsorted(end, time[at], side="left")
            last = np.searchsorted(start, time[at] + fine[at], side="left")
            many = last - first
            hit = many > 0
            chosen = at[hit]
            index[chosen] = number[first[hit]]
            rank[chosen] = one
            share = SURE[by] / many[hit] * np.where(placed[chosen] == 1, ORDERED, 1.0)
            sure[chosen] = share
            how[chosen] = by
            _drop(chosen[share < LEAST], index, rank, how, sure)


def _by_request(
    lines: pa.Table,
    steps: pa.Table,
    served: Served,
    time: Ints,
    placed: Ints,
    index: Ints,
    rank: Ints,
    how: npt.NDArray[np.object_],
    sure: Floats,
) -> None:
    """Tie timed lines about a request to the iterations that served it, unless another is surer."""
    who = pc.index_in(lines["request"].combine_chunks(), served.names)
    known = who.is_valid().to_numpy(zero_copy_only=False)
    at = np.flatnonzero(known & (placed >= 0))
    if not len(at):
        return
    fine = pc.fill_null(lines["resolution_ns"].combine_chunks(), 1).to_numpy()
    asked = pc.fill_null(who, -1).to_numpy().astype(np.int64)
    step, share = served.at(asked[at], time[at], fine[at])
    share = share * np.where(placed[at] == 1, ORDERED, 1.0)
    ran = _ran(steps, pc.fill_null(lines["rank"].combine_chunks(), -1).to_numpy()[at], step)
    # that a line fell into a step of the lowest rank says less than whom it speaks of
    better = (step >= 0) & (share >= LEAST) & ((share > sure[at]) | (how[at] == BY_TIME))
    chosen = at[better]
    index[chosen], rank[chosen] = step[better], ran[better]
    how[chosen], sure[chosen] = BY_REQUEST, share[better]


def _ran(steps: pa.Table, told: Ints, step: Ints) -> Ints:
    """Give the rank of each step: the line's own if it ran it, else the lowest that did."""
    owner, number = steps["rank"].to_numpy(), steps["step_index"].to_numpy()
    ranks = int(owner.max()) + 1
    keys = np.sort(number * ranks + owner)
    own = (told >= 0) & (told < ranks) & np.isin(step * ranks + told, keys)
    lowest = keys[np.minimum(np.searchsorted(keys, step * ranks), len(keys) - 1)] % ranks
    return np.where(own, told, lowest)


def _by_number(
    lines: pa.Table,
    steps: pa.Table,
    index: Ints,
    rank: Ints,
    how: npt.NDArray[np.object_],
    sure: Floats,
) -> None:
    """Tie lines that give the engine's own number of the step."""
    told = pc.fill_null(lines["step_index"].combine_chunks(), -1).to_numpy()
    who = pc.fill_null(lines["rank"].combine_chunks(), -1).to_numpy()
    owner, number = steps["rank"].to_numpy(), steps["step_index"].to_numpy()
    who = np.where(who < 0, int(owner.min()), who)
    wide = int(max(number.max(), told.max())) + 2
    keys = owner * wide + number
    known = (told >= 0) & np.isin(who * wide + told, keys)
    index[known], rank[known] = told[known], who[known]
    how[known], sure[known] = BY_NUMBER, SURE[BY_NUMBER]


def _drop(rows: Ints, index: Ints, rank: Ints, how: npt.NDArray[np.object_], sure: Floats) -> None:
    index[rows], rank[rows], how[rows], sure[rows] = -1, -1, None, 0.0
