"""Steps without annotations: ranges or kernels that come again and again in the same order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.device_work import DeviceWork, codes_of
from teller.ingest.operators import classify
from teller.ingest.periods import LEAST_ROUNDS, Rounds, find_rounds
from teller.ingest.source import ENGINE, FRAMEWORK
from teller.ingest.step_table import (
    KERNEL_PERIOD,
    NVTX_PERIOD,
    Ints,
    Steps,
    table_of,
    without_overlap,
)

RANGES_TRUST: Final = 0.8  # what a perfect repetition is worth beside an annotation
OPS_TRUST: Final = 0.6
KERNELS_TRUST: Final = 0.7
DEEPEST: Final = 4  # levels of ranges that are looked at from the outside
ALONE: Final = 0.8  # of the time of a level in one range: each of them is a step
COVERED: Final = 0.5
MOST: Final = 0.8
OF_ALL: Final = 0.5  # of the modules seen: a step runs them all, but for captures cut short
NUMBERED: Final = r"\w\.\d+(?:\.|\b)|^nn\.Module: .*_\d+$"
BESIDE: Final = r" (?:annotations|syncs|ranges)$|^overhead$"
ONCE_A_STEP: Final = ("sampling", "memcpy_d2h", "graph")
SHAPED: Final = ("gemm", "attention")  # the library picks another kernel for another batch


def repeated_ranges(
    spans: pa.Table, work: DeviceWork, layers: Sequence[str] = (ENGINE,)
) -> Steps | None:
    """Give steps from the ranges of the lane where they repeat best; None without any.

    Below the engine a round may be a layer: there it must have rounds inside, or a pause in front.
    """
    row = _range_rows(spans, layers)
    surely = FRAMEWORK in layers
    if len(row) < LEAST_ROUNDS:
        return None
    code = _operator_codes(spans["name"].chunk(0), row)
    lane = codes_of(spans["lane"].chunk(0))[row]
    start, end = spans["start_ns"].to_numpy()[row], spans["end_ns"].to_numpy()[row]
    best: _Level | None = None
    for one in np.unique(lane):
        own = np.flatnonzero(lane == one)
        own = own[np.lexsort((-end[own], start[own]))]
        ranges = _Ranges(start, end, code, _quiet_before(spans, int(one), start))
        level = _repeating_level(ranges, own, work, surely)
        if level is not None and (best is None or level.covered > best.covered):
            best = level
    if best is None:
        return None
    place = spans["place"].to_numpy()[row][best.leader] if best.single else None
    name = spans["lane"].chunk(0).dictionary[int(lane[best.leader[0]])].as_py()
    table = table_of(best.start, best.end, lane=pa.repeat(name, len(best.start)), place=place)
    return Steps(table, NVTX_PERIOD, (OPS_TRUST if surely else RANGES_TRUST) * best.fit)


def repeated_kernels(
    spans: pa.Table, work: DeviceWork, families: pa.Array | None = None
) -> Steps | None:
    """Give steps from the sequence of work on the busiest stream; None where it does not repeat."""
    if not len(work.row):
        return None
    busy = np.bincount(work.lane, weights=work.end_ns - work.start_ns)
    own = np.flatnonzero(work.lane == np.argmax(busy))
    start, end = work.start_ns[own], work.end_ns[own]
    codes, family = _kernel_codes(spans, work.name[own], work.row[own], families)
    rounds = find_rounds(codes, _pauses(work, own))
    if rounds is None or rounds.fit < COVERED or not _is_a_step(rounds, family):
        return None
    first = start[rounds.first]
    bounds = np.column_stack((rounds.first, rounds.last)).ravel()
    reach = np.maximum.reduceat(np.append(end, 0), bounds)[::2]
    return Steps(
        table_of(first, without_overlap(first, reach)), KERNEL_PERIOD, KERNELS_TRUST * rounds.fit
    )


def are_layers(spans: pa.Table, steps: Steps) -> bool:
    """Tell whether each round runs modules of its own ("blocks.7"): then it is a layer, no step."""
    name = spans["name"].chunk(0)
    numbered = pc.match_substring_regex(name.dictionary, NUMBERED).to_numpy(zero_copy_only=False)
    host = spans["stream"].chunk(0).is_null().to_numpy(zero_copy_only=False)
    row = np.flatnonzero(numbered[codes_of(name)] & host)
    start = steps.table["start_ns"].to_numpy()
    whose = np.searchsorted(start, spans["start_ns"].to_numpy()[row], side="right") - 1
    row, whose = row[whose >= 0], whose[whose >= 0]
    modules, which = np.unique(codes_of(name)[row], return_inverse=True)
    if len(modules) < 2 * LEAST_ROUNDS:
        return False
    pairs = np.unique(whose * len(modules) + which)
    each = np.bincount(pairs // len(modules), minlength=len(start))
    return bool(np.median(each) < OF_ALL * len(modules))


def _range_rows(spans: pa.Table, layers: Sequence[str]) -> Ints:
    layer, lane = spans["layer"].chunk(0), spans["lane"].chunk(0)
    wanted = pc.is_in(layer.dictionary, pa.array(layers)).to_numpy(zero_copy_only=False)
    beside = pc.match_substring_regex(lane.dictionary, BESIDE).to_numpy(zero_copy_only=False)
    host = spans["stream"].chunk(0).is_null().to_numpy(zero_copy_only=False)
    lasting = spans["end_ns"].to_numpy() > spans["start_ns"].to_numpy()
    return np.flatnonzero(wanted[codes_of(layer)] & host & lasting & ~beside[codes_of(lane)])


def _operator_codes(name: pa.DictionaryArray, row: Ints) -> Ints:
    used, inverse = np.unique(codes_of(name)[row], return_inverse=True)
    operators = classify(name.dictionary.take(pa.array(used)))["operator"].combine_chunks()
    return codes_of(operators.dictionary_encode())[inverse]


@dataclass(frozen=True, slots=True)
class _Level:
    """Rounds of ranges of one lane; `leader` is the row that begins each."""

    leader: Ints
    start: Ints
    end: Ints
    filled: int  # ns with a range open
    fit: float
    single: bool
    marked: bool  # as more than a layer

    @property
    def covered(self) -> int:
        return int((self.end - self.start).sum())


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Engine ranges; `quiet` is how long their lane had done nothing at all before each."""

    start: Ints
    end: Ints
    code: Ints
    quiet: Ints


def _quiet_before(spans: pa.Table, lane: int, start: Ints) -> Ints:
    """Give how long before each start the last span of any kind on the lane had ended."""
    row = np.flatnonzero(codes_of(spans["lane"].chunk(0)) == lane)
    all_start = spans["start_ns"].to_numpy()[row]
    order = np.argsort(all_start, kind="stable")
    reach = np.maximum.accumulate(spans["end_ns"].to_numpy()[row][order])
    before = np.searchsorted(all_start[order], start, side="left") - 1
    return np.where(before < 0, 0, np.maximum(start - reach[np.maximum(before, 0)], 0))


def _repeating_level(ranges: _Ranges, own: Ints, work: DeviceWork, surely: bool) -> _Level | None:
    """Give the rounds of the outermost level of one lane that repeats and holds most work."""
    for _ in range(DEEPEST):
        if len(own) < LEAST_ROUNDS:
            return None
        reach = np.maximum.accumulate(ranges.end[own])
        outer = np.append(True, ranges.end[own][1:] > reach[:-1])
        for level in _levels(ranges, own[outer]):
            if _holds(level, work) and (level.marked or not surely):
                return level
        own = own[~outer]
    return None


def _levels(ranges: _Ranges, at: Ints) -> Iterator[_Level]:
    """Give what may be the rounds of a level: each range of its main operator, or all in order."""
    if len(at) < LEAST_ROUNDS:
        return
    start, end, code = ranges.start[at], ranges.end[at], ranges.code[at]
    time = np.bincount(code, weights=end - start)
    share = float(time.max() / time.sum())
    main = np.flatnonzero(code == np.argmax(time))
    if share >= ALONE and len(main) >= LEAST_ROUNDS:
        closed = without_overlap(start[main], end[main])
        yield _Level(
            at[main], start[main], closed, int(time.max()), share, single=True, marked=False
        )
    _, dense = np.unique(code, return_inverse=True)
    rounds = find_rounds(dense.astype(np.int64), ranges.quiet[at])
    if rounds is not None:
        first = start[rounds.first]
        closed = without_overlap(first, end[rounds.last - 1])
        marked = rounds.nested or rounds.paused
        filled = int((end - start)[rounds.first[0] : rounds.last[-1]].sum())
        yield _Level(at[rounds.first], first, closed, filled, rounds.fit, False, marked)


def _holds(level: _Level, work: DeviceWork) -> bool:
    """Tell whether the rounds follow closely, are full of ranges, and hold most device work."""
    window = int(level.end[-1] - level.start[0])
    if min(level.covered, level.filled) < COVERED * window:
        return False
    return not len(work.row) or work.share_inside(level.start, level.end) >= COVERED


def _idle(start: Ints, end: Ints) -> Ints:
    reach = np.maximum.accumulate(end)
    return np.append(0, np.maximum(start[1:] - reach[:-1], 0))


def _pauses(work: DeviceWork, own: Ints) -> Ints:
    """Give the pause before each launch, or before each work where launches are not known."""
    if np.count_nonzero(work.launched[own]) < MOST * len(own):
        return _idle(work.start_ns[own], work.end_ns[own])
    return np.append(0, np.maximum(np.diff(work.launch_ns[own]), 0))


def _is_a_step(rounds: Rounds, family: npt.NDArray[np.object_]) -> bool:
    """Tell a step from a layer: it has rounds inside, is waited for, or ends with a token."""
    if rounds.nested or rounds.paused:
        return True
    marks = np.isin(family, ONCE_A_STEP)
    held = np.add.reduceat(np.append(marks, False), rounds.first)
    return bool(np.mean(held > 0) >= MOST)


def _kernel_codes(
    spans: pa.Table, name: Ints, row: Ints, families: pa.Array | None
) -> tuple[Ints, npt.NDArray[np.object_]]:
    """Give a code for each operator (family, where the batch picks the kernel), and families."""
    used, first, inverse = np.unique(name, return_index=True, return_inverse=True)
    words = spans["name"].chunk(0).dictionary.take(pa.array(used))
    if families is None:
        table = classify(words)
        operator, family = table["operator"].combine_chunks(), table["family"].combine_chunks()
    else:
        operator, family = words, families.take(pa.array(row[first])).cast(pa.string())
    shaped = pc.is_in(family, pa.array(SHAPED))
    codes = codes_of(pc.if_else(shaped, family, operator).dictionary_encode())
    return codes[inverse], family.to_numpy(zero_copy_only=False)[inverse]
