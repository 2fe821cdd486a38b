"""Steps without annotations: ranges or kernels that come again and again in the same order."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.device_work import DeviceWork, codes_of
from teller.ingest.operators import classify
from teller.ingest.periods import LEAST_ROUNDS, Rounds, find_rounds
from teller.ingest.source import ENGINE
from teller.ingest.step_table import (
    KERNEL_PERIOD,
    NVTX_PERIOD,
    Flags,
    Ints,
    Steps,
    table_of,
    without_overlap,
)

RANGES_TRUST: Final = 0.8  # what a perfect repetition is worth beside an annotation
KERNELS_TRUST: Final = 0.7
DEEPEST: Final = 4  # levels of ranges that are looked at from the outside
ALONE: Final = 0.8  # of the time of a level in one range: each of them is a step
COVERED: Final = 0.5
MOST: Final = 0.8
BESIDE: Final = r" (?:annotations|syncs|ranges)$|^overhead$"
SHAPED: Final = ("gemm", "attention")  # the library picks another kernel for another batch


def repeated_ranges(spans: pa.Table, work: DeviceWork) -> Steps | None:
    """Give steps from the engine ranges of the lane where they repeat best; None without any."""
    row = _engine_rows(spans)
    if len(row) < LEAST_ROUNDS:
        return None
    code = _operator_codes(spans["name"].chunk(0), row)
    lane = codes_of(spans["lane"].chunk(0))[row]
    start, end = spans["start_ns"].to_numpy()[row], spans["end_ns"].to_numpy()[row]
    best: tuple[float, Rounds, Ints, int] | None = None
    for one in np.unique(lane):
        own = np.flatnonzero(lane == one)
        own = own[np.lexsort((-end[own], start[own]))]
        level = _repeating_level(start, end, code, own)
        if level is None:
            continue
        rounds, at = level
        covered = int((end[at[rounds.last - 1]] - start[at[rounds.first]]).sum())
        if _covers(rounds, start[at], end[at], work) and (best is None or covered > best[0]):
            best = covered, rounds, at, int(one)
    if best is None:
        return None
    _, rounds, at, one = best
    single = (rounds.last - rounds.first == 1).all()
    first, last = start[at[rounds.first]], end[at[rounds.last - 1]]
    table = table_of(
        first,
        without_overlap(first, last),
        lane=pa.repeat(spans["lane"].chunk(0).dictionary[one].as_py(), len(first)),
        place=spans["place"].to_numpy()[row][at[rounds.first]] if single else None,
    )
    return Steps(table, NVTX_PERIOD, RANGES_TRUST * rounds.fit)


def repeated_kernels(
    spans: pa.Table, work: DeviceWork, families: pa.Array | None = None
) -> Steps | None:
    """Give steps from the sequence of work on the busiest stream; None where it does not repeat."""
    if not len(work.row):
        return None
    busy = np.bincount(work.lane, weights=work.end_ns - work.start_ns)
    own = np.flatnonzero(work.lane == np.argmax(busy))
    start, end = work.start_ns[own], work.end_ns[own]
    codes = _kernel_codes(spans, work.name[own], work.row[own], families)
    rounds = find_rounds(codes, _pauses(work, own))
    if rounds is None:
        return None
    first = start[rounds.first]
    bounds = np.column_stack((rounds.first, rounds.last)).ravel()
    reach = np.maximum.reduceat(np.append(end, 0), bounds)[::2]
    return Steps(
        table_of(first, without_overlap(first, reach)), KERNEL_PERIOD, KERNELS_TRUST * rounds.fit
    )


def _engine_rows(spans: pa.Table) -> Ints:
    layer, lane = spans["layer"].chunk(0), spans["lane"].chunk(0)
    engine = pc.index(layer.dictionary, ENGINE).as_py()
    beside = pc.match_substring_regex(lane.dictionary, BESIDE).to_numpy(zero_copy_only=False)
    host = spans["stream"].chunk(0).is_null().to_numpy(zero_copy_only=False)
    lasting = spans["end_ns"].to_numpy() > spans["start_ns"].to_numpy()
    return np.flatnonzero((codes_of(layer) == engine) & host & lasting & ~beside[codes_of(lane)])


def _operator_codes(name: pa.DictionaryArray, row: Ints) -> Ints:
    used, inverse = np.unique(codes_of(name)[row], return_inverse=True)
    operators = classify(name.dictionary.take(pa.array(used)))["operator"].combine_chunks()
    return codes_of(operators.dictionary_encode())[inverse]


def _repeating_level(start: Ints, end: Ints, code: Ints, own: Ints) -> tuple[Rounds, Ints] | None:
    """Give the rounds of the outermost level of one lane that repeats, and the rows of that level."""
    for _ in range(DEEPEST):
        if len(own) < LEAST_ROUNDS:
            return None
        reach = np.maximum.accumulate(end[own])
        outer = np.append(True, end[own][1:] > reach[:-1])
        at = own[outer]
        rounds = _rounds(start[at], end[at], code[at])
        if rounds is not None:
            return rounds, at
        own = own[~outer]
    return None


def _rounds(start: Ints, end: Ints, code: Ints) -> Rounds | None:
    """Give each range of the one operator that fills the level, else the rounds of all."""
    if len(code) < LEAST_ROUNDS:
        return None
    time = np.bincount(code, weights=end - start)
    share = float(time.max() / time.sum())
    main = np.flatnonzero(code == np.argmax(time))
    if share >= ALONE and len(main) >= LEAST_ROUNDS:
        return Rounds(main, main + 1, share)
    _, dense = np.unique(code, return_inverse=True)
    return find_rounds(dense.astype(np.int64), _idle(start, end))


def _covers(rounds: Rounds, start: Ints, end: Ints, work: DeviceWork) -> bool:
    """Tell whether the ranges fill the time of their rounds, and these hold most device work."""
    window = end[rounds.last[-1] - 1] - start[rounds.first[0]]
    inside: Flags = np.zeros(len(start) + 1, np.int64)
    np.add.at(inside, rounds.first, 1)
    np.add.at(inside, rounds.last, -1)
    filled = int((end - start)[np.cumsum(inside)[:-1] > 0].sum())
    if filled < COVERED * window:
        return False
    if not len(work.row):
        return True
    whole = start[rounds.first[:1]], end[rounds.last[-1:] - 1]
    return work.share_inside(*whole) >= COVERED


def _idle(start: Ints, end: Ints) -> Ints:
    reach = np.maximum.accumulate(end)
    return np.append(0, np.maximum(start[1:] - reach[:-1], 0))


def _pauses(work: DeviceWork, own: Ints) -> Ints:
    """Give the pause before each launch, or before each work where launches are not known."""
    if np.mean(work.launched[own]) < MOST:
        return _idle(work.start_ns[own], work.end_ns[own])
    return np.append(0, np.maximum(np.diff(work.launch_ns[own]), 0))


def _kernel_codes(spans: pa.Table, name: Ints, row: Ints, families: pa.Array | None) -> Ints:
    """Give one code an operator, and one a family where the batch size picks the kernel."""
    used, first, inverse = np.unique(name, return_index=True, return_inverse=True)
    if families is None:
        table = classify(spans["name"].chunk(0).dictionary.take(pa.array(used)))
        operator, family = table["operator"].combine_chunks(), table["family"].combine_chunks()
    else:
        family = families.take(pa.array(row[first])).cast(pa.string())
        operator = spans["name"].chunk(0).dictionary.take(pa.array(used)).cast(pa.string())
    shaped = pc.is_in(family, pa.array(SHAPED))
    return codes_of(pc.if_else(shaped, family, operator).dictionary_encode())[inverse]
