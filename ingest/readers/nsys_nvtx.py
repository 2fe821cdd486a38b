"""NVTX ranges and marks of an Nsight Systems export as spans; those that communicate as calls."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.nsys_names import CODE, COMM_DOMAINS, Names, call_op, label_layers
from teller.ingest.readers.nsys_raw_calls import RawCalls
from teller.ingest.readers.nsys_rows import (
    Collected,
    Flags,
    Ints,
    ints,
    owners,
    thread_lanes,
)
from teller.ingest.readers.nsys_tables import Tables, enum_ids
from teller.ingest.source import COMM

TABLE: Final = "NVTX_EVENTS"
UNNAMED: Final = "unnamed range"
_COLUMNS: Final = ("start", "end", "eventType", "text", "globalTid", "textId", "domainId")
_PAYLOAD: Final = ("jsonText", "jsonTextId")
_TYPES: Final = {
    "NvtxMark": 34, "NvtxPushPopRange": 59, "NvtxStartEndRange": 60, "NvtxDomainCreate": 75,
}  # fmt: skip


@dataclass(slots=True)
class _Pass:
    """One pass over the table; `late` when a domain was named after rows of it were read."""

    spans: Collected
    calls: RawCalls
    late: bool = False


class Nvtx:
    """Reads the table; `domains` are the (process, domain) pairs that communicate."""

    def __init__(self, tables: Tables, names: Names) -> None:
        self._tables, self._names = tables, names
        self._types = enum_ids(tables, "ENUM_NSYS_EVENT_TYPE", _TYPES)
        with_payload = tables.is_used(TABLE, _PAYLOAD)
        self._columns = _COLUMNS + (_PAYLOAD if with_payload else ())
        self._domains: set[tuple[int, int]] = set()

    def read(self) -> tuple[Collected, RawCalls]:
        """Give all spans and calls. Rows are in no order: a late domain asks for a second pass."""
        done = self._pass()
        if done.late:
            done = self._pass()
        return done.spans, done.calls

    def _pass(self) -> _Pass:
        this = _Pass(Collected(), RawCalls())
        for batch in self._tables.batches(TABLE, self._columns):
            self._batch(batch, this)
        return this

    def _batch(self, batch: pa.RecordBatch, this: _Pass) -> None:
        kind = ints(batch["eventType"], self._types["NvtxPushPopRange"])
        if self._new_domains(batch, kind) and this.spans.place:
            this.late = True
        mark = kind == self._types["NvtxMark"]
        ranges = kind == self._types["NvtxStartEndRange"]
        pushed = kind == self._types["NvtxPushPopRange"]
        batch, place = this.spans.sound(TABLE, batch, mark | ranges | pushed)
        if len(place) < len(kind):
            kept = place - (this.spans.place - len(kind))
            mark, ranges = mark[kept], ranges[kept]
        self._add(batch, place, mark, ranges, this)

    def _add(
        self, batch: pa.RecordBatch, place: Ints, mark: Flags, ranges: Flags, this: _Pass
    ) -> None:
        if not len(place):
            return
        owner = owners(batch["globalTid"])
        name = self._names.labels(batch["text"], batch["textId"], UNNAMED)
        layer = label_layers(name.dictionary)[name.indices.to_numpy()]
        talks = self._talks(owner, batch["domainId"])
        if talks is not None:
            layer[talks] = CODE[COMM]
        lane = _lanes(batch["globalTid"], ranges)
        this.spans.add(TABLE, batch, place, owner, name=name, layer=layer, lane=lane, instant=mark)
        self._add_calls(batch, place, owner, name, np.flatnonzero(layer == CODE[COMM]), lane, this)

    def _add_calls(
        self,
        batch: pa.RecordBatch,
        place: Ints,
        owner: Ints,
        name: pa.DictionaryArray,
        comm: npt.NDArray[np.intp],
        lane: pa.DictionaryArray,
        this: _Pass,
    ) -> None:
        """Keep the ranges whose label names an operation, with what their payload says."""
        if not len(comm):
            return
        rows = pa.array(comm)
        labels = name.take(rows).dictionary_decode().dictionary_encode()
        op = pa.array(map(call_op, labels.dictionary.to_pylist()), pa.string()).take(labels.indices)
        named = op.is_valid()
        rows = rows.filter(named)
        some = batch.take(rows)
        this.calls.add(
            owner[rows.to_numpy()],
            place[rows.to_numpy()],
            op.filter(named),
            lane=lane.take(rows).dictionary_decode(),
            start=some["start"],
            end=some["end"],
            payload=self._payload(some),
        )

    def _payload(self, some: pa.RecordBatch) -> pa.Array:
        """Give the JSON of each row: in the row itself, or a registered string."""
        if len(self._columns) == len(_COLUMNS):
            return pa.repeat("", some.num_rows)
        coded = some["jsonTextId"].dictionary_encode()
        registered = self._names.texts(coded.dictionary).take(coded.indices)
        own = some["jsonText"]
        return pc.if_else(pc.equal(own, ""), pc.fill_null(registered, ""), own)

    def _talks(self, owner: Ints, domain: pa.Array) -> Flags | None:
        if not self._domains:
            return None
        number = ints(domain, -1)
        talks = np.zeros(len(owner), bool)
        for who, which in self._domains:
            talks |= (number == which) & (owner == who)
        return talks

    def _new_domains(self, batch: pa.RecordBatch, kind: Ints) -> bool:
        """Learn which domains communicate; tell whether there was one that was not known."""
        created = kind == self._types["NvtxDomainCreate"]
        if not created.any():
            return False
        rows = batch.filter(pa.array(created))
        name = self._names.labels(rows["text"], rows["textId"], "").to_pylist()
        pairs = zip(owners(rows["globalTid"]).tolist(), ints(rows["domainId"]).tolist(), name,
                    strict=True)  # fmt: skip
        found = {(who, which) for who, which, text in pairs if text.lower() in COMM_DOMAINS}
        fresh = found - self._domains
        self._domains |= fresh
        return bool(fresh)


def _lanes(global_tid: pa.Array, ranges: Flags) -> pa.DictionaryArray:
    """Give the lane of each row; start/end ranges need not nest, so they get their own."""
    lane = thread_lanes(global_tid)
    if not ranges.any():
        return lane
    count = len(lane.dictionary)
    codes = lane.indices.to_numpy() + np.where(ranges, count, 0).astype(np.int32)
    names = lane.dictionary.to_pylist()
    return pa.DictionaryArray.from_arrays(codes, pa.array(names + [f"{n} ranges" for n in names]))
