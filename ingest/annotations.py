"""Steps that the engine itself, or the profiler, wrote into the trace as annotations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.device_work import codes_of, device_work
from teller.ingest.step_names import (
    HINT,
    ITERATION,
    PROFILER,
    SGLANG,
    UNKNOWN,
    VLLM,
    StepName,
    parse,
)
from teller.ingest.step_table import Flags, Ints, Steps, table_of, without_overlap

NUMBERED: Final = 1.0
UNNUMBERED: Final = 0.9
COVERED: Final = 0.5  # of the device time: an engine's annotation that covers less is not its step
MANY: Final = 3
DEVICE_COPIES: Final = r" (?:annotations|syncs)$"  # lanes that repeat what the host lanes have


@dataclass(frozen=True, slots=True)
class _Rows:
    """Spans with a step's name; `code` points into `said`."""

    code: Ints
    start: Ints
    end: Ints
    lane: Ints
    place: Ints

    def take(self, which: Ints | Flags) -> "_Rows":
        return _Rows(
            self.code[which],
            self.start[which],
            self.end[which],
            self.lane[which],
            self.place[which],
        )


def annotated_steps(spans: pa.Table) -> Steps | None:
    """Give the annotated steps of a table with one chunk a column; None without annotations."""
    said = _step_names(spans["name"].chunk(0).dictionary)
    if not said:
        return None
    rows = _rows(spans, said)
    if not len(rows.code):
        return None
    engines = np.array([said[code].engine for code in rows.code.tolist()])
    found = {str(e): _outermost(rows.take(engines == e)) for e in np.unique(engines)}
    best = _preferred(found, spans)
    # SGLang may write vLLM's form around its own; vLLM never writes SGLang's
    writer = SGLANG if best == VLLM and SGLANG in found else best
    return _steps(writer, found[best], rows.take(engines == best), said, spans["lane"].chunk(0))


def _step_names(names: pa.StringArray) -> dict[int, StepName]:
    """Give what the names that are a step's say, by their index."""
    likely = np.flatnonzero(pc.match_substring_regex(names, HINT).to_numpy(zero_copy_only=False))
    parsed = zip(likely.tolist(), map(parse, names.take(pa.array(likely)).to_pylist()), strict=True)
    return {code: name for code, name in parsed if name is not None}


def _rows(spans: pa.Table, said: dict[int, StepName]) -> _Rows:
    name, lane = spans["name"].chunk(0), spans["lane"].chunk(0)
    is_step = np.zeros(len(name.dictionary), np.bool_)
    is_step[list(said)] = True
    start, end = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
    on_host = spans["stream"].chunk(0).is_null().to_numpy(zero_copy_only=False)
    wanted = is_step[codes_of(name)] & on_host & (end > start)
    copies = pc.match_substring_regex(lane.dictionary, DEVICE_COPIES)
    first_hand = wanted & ~copies.to_numpy(zero_copy_only=False)[codes_of(lane)]
    row = np.flatnonzero(first_hand if first_hand.any() else wanted)
    return _Rows(
        codes_of(name)[row],
        start[row],
        end[row],
        codes_of(lane)[row],
        spans["place"].to_numpy()[row],
    )


def _outermost(rows: _Rows) -> _Rows:
    """Give the spans inside no other, in start order; a busier lane hides those beside it."""
    lanes, which = np.unique(rows.lane, return_inverse=True)
    busy = np.bincount(which, weights=rows.end - rows.start, minlength=len(lanes))
    kept = np.zeros(0, np.int64)
    for lane in np.argsort(-busy, kind="stable"):
        own = np.flatnonzero(which == lane)
        own = own[np.lexsort((-rows.end[own], rows.start[own]))]
        reach = np.maximum.accumulate(rows.end[own])
        own = own[np.append(True, rows.end[own][1:] > reach[:-1])]
        kept = np.concatenate((kept, own[_apart(rows, own, kept)]))
    return rows.take(kept[np.argsort(rows.start[kept], kind="stable")])


def _apart(rows: _Rows, own: Ints, kept: Ints) -> Flags:
    """Tell which of `own` overlap none of `kept`."""
    if not len(kept):
        return np.ones(len(own), np.bool_)
    order = kept[np.argsort(rows.start[kept], kind="stable")]
    before = np.searchsorted(rows.start[order], rows.end[own], side="left") - 1
    reach = np.maximum.accumulate(rows.end[order])
    free: Flags = (before < 0) | (reach[np.maximum(before, 0)] <= rows.start[own])
    return free


def _preferred(found: dict[str, _Rows], spans: pa.Table) -> str:
    """Give the engine's own word before the profiler's, unless it covers little of the work."""
    general = [name for name in (PROFILER, ITERATION) if name in found]
    own = [name for name in found if name not in general]
    if not own:
        return general[0]
    best = max(own, key=lambda name: int((found[name].end - found[name].start).sum()))
    if not general:
        return best
    mine, other = found[best], found[general[0]]
    if len(mine.code) == 1 and len(other.code) >= MANY:
        return general[0]
    work = device_work(spans)
    covered = work.share_inside(mine.start, mine.end)
    if covered < COVERED and work.share_inside(other.start, other.end) > covered:
        return general[0]
    return best


def _steps(
    found_by: str, rows: _Rows, every: _Rows, said: dict[int, StepName], lane: pa.DictionaryArray
) -> Steps:
    names = _filled([said[code] for code in rows.code.tolist()], rows, every, said)
    numbers = [name.index for name in names]
    known = [number for number in numbers if number is not None]
    own = len(known) == len(numbers) == len(set(known))
    table = table_of(
        rows.start,
        without_overlap(rows.start, rows.end),
        step_index=numbers if own else np.arange(len(names)),
        phase=[name.phase for name in names],
        token_count=[name.token_count for name in names],
        batch_size=[name.batch_size for name in names],
        context_tokens=[name.context_tokens for name in names],
        lane=lane.dictionary.take(pa.array(rows.lane)),
        place=rows.place,
    )
    if known and not own:
        return Steps(table, f"{found_by}, renumbered", UNNUMBERED)
    return Steps(table, found_by, NUMBERED if own else UNNUMBERED)


def _filled(
    names: list[StepName], rows: _Rows, every: _Rows, said: dict[int, StepName]
) -> Sequence[StepName]:
    """Complete a name that tells no phase or number with what the annotation inside it tells."""
    if all(n.phase != UNKNOWN and n.index is not None for n in names) or len(every.code) == len(
        names
    ):
        return names
    inside = every.take(~np.isin(every.place, rows.place))
    owner = np.searchsorted(rows.start, inside.start, side="right") - 1
    fits = (owner >= 0) & (inside.end <= rows.end[np.maximum(owner, 0)])
    owners, first = np.unique(owner[fits], return_index=True)
    codes = inside.code[fits][first]
    for step, code in zip(owners.tolist(), codes.tolist(), strict=True):
        names[step] = _joined(names[step], said[code])
    return names


def _joined(outer: StepName, inner: StepName) -> StepName:
    told = inner if outer.phase == UNKNOWN else outer
    return StepName(
        outer.engine,
        outer.operator,
        outer.index if outer.index is not None else inner.index,
        told.phase,
        told.batch_size,
        told.token_count,
        told.context_tokens,
    )
