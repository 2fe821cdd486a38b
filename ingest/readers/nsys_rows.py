"""Rows on their way from an export's table to SPANS, kept apart by process."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.nsys_names import LAYERS
from teller.ingest.source import PLACE_BITS, SPANS

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp] | slice

NOBODY: Final = -1  # owner of rows that name no process
THREAD_BITS: Final = 24  # of a global id: machine and process stand above, the thread below
PID_MASK: Final = (1 << 24) - 1
_HALF: Final = 32


class Collected:
    """Spans so far, by owner, with what had to be mended on the way."""

    def __init__(self) -> None:
        self.parts: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        self.rows: dict[str, Counter[int]] = defaultdict(Counter)  # by table and owner
        self.mended: dict[str, Counter[str]] = defaultdict(Counter)
        self.first_ns: int | None = None
        self.last_ns = 0
        self.place = 0  # of the next row

    def sound(
        self, table: str, batch: pa.RecordBatch, keep: Flags | None = None
    ) -> tuple[pa.RecordBatch, Ints]:
        """Give the rows that can be spans, with their places; the others only count."""
        place = np.arange(self.place, self.place + batch.num_rows)
        self.place += batch.num_rows
        if batch["start"].null_count:
            timed = batch["start"].is_valid().to_numpy(zero_copy_only=False)
            self.mended[table]["without a start"] += int((~timed).sum())
            keep = timed if keep is None else keep & timed
        room = max((1 << PLACE_BITS) - int(place[0]), 0) if len(place) else 0
        if room < len(place):
            self.mended[table]["beyond the largest place"] += len(place) - room
            keep = (np.ones(len(place), bool) if keep is None else keep) & (place < place[0] + room)
        if keep is None or keep.all():
            return batch, place
        return batch.filter(pa.array(keep)), place[keep]

    def add(
        self,
        table: str,
        batch: pa.RecordBatch,
        place: Ints,
        owner: Ints,
        *,
        name: pa.DictionaryArray,
        layer: npt.NDArray[np.int32],
        lane: pa.DictionaryArray,
        instant: Flags | None = None,
        **optional: pa.Array,
    ) -> None:
        """Add rows that are sound; `instant` marks those that have no end by nature."""
        size = len(place)
        if not size:
            return
        start, end, still_open = self._times(table, batch, instant)
        lane_codes = lane.indices.to_numpy()
        name_codes = name.indices.to_numpy()
        for who, rows in split(owner):
            columns = {
                "place": place[rows],
                "name": pa.DictionaryArray.from_arrays(name_codes[rows], name.dictionary),
                "layer": pa.DictionaryArray.from_arrays(layer[rows], LAYERS),
                "lane": pa.DictionaryArray.from_arrays(lane_codes[rows], lane.dictionary),
                "start_ns": start[rows],
                "end_ns": end[rows],
                "open": still_open[rows],
            } | {key: picked(values, rows) for key, values in optional.items()}
            count = len(columns["place"])
            self.parts[who].append(_batch(columns, count))
            self.rows[table][who] += count

    def _times(
        self, table: str, batch: pa.RecordBatch, instant: Flags | None
    ) -> tuple[Ints, Ints, Flags]:
        start = ints(batch["start"])
        ended = batch["end"].is_valid().to_numpy(zero_copy_only=False)
        end = np.where(ended, ints(batch["end"]), start)
        early = end < start
        if early.any():
            self.mended[table]["with an end before the start"] += int(early.sum())
            end = np.maximum(end, start)
        still_open = ~ended if instant is None else ~ended & ~instant
        if table != "NVTX_EVENTS" and still_open.any():
            self.mended[table]["without an end"] += int(still_open.sum())
        first = int(start.min())
        self.first_ns = first if self.first_ns is None else min(self.first_ns, first)
        self.last_ns = max(self.last_ns, int(end.max()))
        return start, end, still_open

    def spans(self, owner: int) -> pa.Table:
        """Give all spans of a process; open ones end with the capture."""
        return pa.Table.from_batches(map(self._closed, self.parts[owner]), SPANS)

    def _closed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if not pc.any(rows["open"]).as_py():
            return rows
        end = pc.if_else(rows["open"], self.last_ns, rows["end_ns"])
        return rows.set_column(SPANS.get_field_index("end_ns"), SPANS.field("end_ns"), end)


def _batch(columns: Mapping[str, Any], count: int) -> pa.RecordBatch:
    arrays = [
        pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type)
        for f in SPANS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SPANS)


def split(owner: Ints) -> Iterator[tuple[int, Rows]]:
    """Give each process and its rows; all of them at no cost where there is one process."""
    if len(owner) and (owner == owner[0]).all():
        yield int(owner[0]), slice(None)
        return
    for who in pc.unique(pa.array(owner)).to_pylist():
        yield who, np.flatnonzero(owner == who)


def picked(values: pa.Array | pa.RecordBatch, rows: Rows) -> pa.Array | pa.RecordBatch:
    """Give some rows of an array or a batch."""
    return values if isinstance(rows, slice) else values.take(pa.array(rows))


def owners(global_ids: pa.Array) -> Ints:
    """Give machine and process of each global id of a thread or process."""
    ids = ints(global_ids).view(np.uint64)
    owner = (ids >> np.uint64(THREAD_BITS)).astype(np.int64)
    if global_ids.null_count:
        owner[~global_ids.is_valid().to_numpy(zero_copy_only=False)] = NOBODY
    return owner


def ints(values: pa.Array, null: int = 0) -> Ints:
    """Give plain numbers; `null` stands for what is not there."""
    plain = pc.fill_null(values, null) if values.null_count else values
    numbers: Ints = plain.to_numpy()
    return numbers


def thread_lanes(global_ids: pa.Array, pattern: str = "thread {}") -> pa.DictionaryArray:
    """Give the lane of each row's thread."""
    return _lanes(ints(global_ids) & PID_MASK, pattern.format)


def device_lanes(device: pa.Array, stream: pa.Array, tail: str = "") -> pa.DictionaryArray:
    """Give the lane of each row's stream."""
    key = (ints(device, -1) << _HALF) | (ints(stream, -1) & 0xFFFFFFFF)

    def name(one: int) -> str:
        index, number = one >> _HALF, one & 0xFFFFFFFF
        words = [f"device {index}"] if index >= 0 else []
        words += [f"stream {number}"] if number < 0xFFFFFFFF else []
        return " ".join(words) + tail if words else f"device{tail}"

    return _lanes(key, name)


def _lanes(keys: Ints, name: Callable[[int], str]) -> pa.DictionaryArray:
    coded = pa.array(keys).dictionary_encode()
    names = pa.array(map(name, coded.dictionary.to_pylist()), pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices, names)


def pair_names(one: pa.Array, two: pa.Array, pattern: str) -> pa.DictionaryArray:
    """Give a name of two small numbers to each row."""
    key = (ints(one, -1) << _HALF) | (ints(two, -1) & 0xFFFFFFFF)
    return _lanes(key, lambda k: pattern.format(k >> _HALF, k & 0xFFFFFFFF))
