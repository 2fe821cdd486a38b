"""All spans of an Nsight Systems export, process by process, out of its tables of events.

`place` is the row number over the tables NVTX_EVENTS, CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY,
_MEMSET, _GRAPH_TRACE, _RUNTIME, _SYNCHRONIZATION, _OVERHEAD, PROFILER_OVERHEAD and OSRT_API, in
this order and in stored order inside a table; rows of no use are counted too.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.nsys_device import DEVICE_TABLES, GRAPH, read_device
from teller.ingest.readers.nsys_names import CODE, Names, words
from teller.ingest.readers.nsys_nvtx import Nvtx
from teller.ingest.readers.nsys_raw_calls import RawCalls
from teller.ingest.readers.nsys_rows import (
    NOBODY,
    Collected,
    Ints,
    device_lanes,
    ints,
    owners,
    picked,
    split,
    thread_lanes,
)
from teller.ingest.readers.nsys_tables import CUPTI, Tables
from teller.ingest.source import OS, RUNTIME

API: Final = CUPTI + "RUNTIME"
OSRT: Final = "OSRT_API"
OVERHEADS: Final = (CUPTI + "OVERHEAD", "PROFILER_OVERHEAD")
SYNC: Final = CUPTI + "SYNCHRONIZATION"

_SYNC_KINDS: Final = {
    1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync",
}  # fmt: skip
_NO_STREAM: Final = (1 << 32) - 1
_NOT_READY: Final = 600  # a query that found work still running: no failure


@dataclass(slots=True)
class Failures:
    """API calls of a process that failed: how many, and the first."""

    count: int
    name: str
    code: int
    start_ns: int


@dataclass(slots=True)
class Events:
    """All events of an export, by owner."""

    names: Names
    spans: Collected
    calls: RawCalls
    failures: dict[int, Failures] = field(default_factory=dict)

    @property
    def processes(self) -> list[int]:
        """Give the owners with rows of NVTX, CUDA or the OS runtime: overhead alone is no trace."""
        rows = (owner for table, count in self.spans.rows.items() if table not in OVERHEADS
                for owner in count)  # fmt: skip
        return sorted(set(rows))

    def has_device_rows(self, owner: int) -> bool:
        """Tell whether any device work of the process was recorded."""
        return any(self.spans.rows[table][owner] for table in DEVICE_TABLES)

    def graph_launches(self, owner: int) -> int:
        """Give the number of whole graphs that were traced as one row."""
        return self.spans.rows[GRAPH][owner]


def read_events(tables: Tables) -> Events:
    """Read all tables of events. Device rows that name no process go to the one that launches."""
    names = Names(tables)
    spans, calls = Nvtx(tables, names).read()
    events = Events(names, spans, calls)
    read_device(tables, names, spans, calls)
    _read_api(tables, events)
    _read_syncs(tables, spans)
    for table in OVERHEADS:
        _read_host(tables, table, events, RUNTIME, "overhead thread {}")
    _read_host(tables, OSRT, events, OS)
    _adopt(events)
    return events


def _read_api(tables: Tables, events: Events) -> None:
    named = ("name",) if "name" in tables.columns(API) else ()
    columns = ("start", "end", "globalTid", "correlationId", "nameId", "returnValue", *named)
    for batch in tables.batches(API, columns):
        batch, place = events.spans.sound(API, batch)
        texts = batch["name"] if named else None
        name = events.names.labels(texts, batch["nameId"], "unnamed call")
        owner = owners(batch["globalTid"])
        events.spans.add(
            API, batch, place, owner, name=name,
            layer=np.full(len(place), CODE[RUNTIME], np.int32),
            lane=thread_lanes(batch["globalTid"]), correlation=batch["correlationId"],
        )  # fmt: skip
        code = ints(batch["returnValue"])
        failed = np.flatnonzero((code != 0) & (code != _NOT_READY))
        if len(failed):
            _note_failures(events, batch, name, owner, failed)


def _note_failures(
    events: Events, batch: pa.RecordBatch, name: pa.DictionaryArray, owner: Ints, failed: Ints
) -> None:
    some = batch.take(pa.array(failed))
    some = some.append_column("called", name.take(pa.array(failed)))
    for who, which in split(owner[failed]):
        rows = picked(some, which)
        first = rows.take(pc.sort_indices(rows["start"])[:1])
        here = Failures(
            rows.num_rows, first["called"][0].as_py(), first["returnValue"][0].as_py(),
            first["start"][0].as_py(),
        )  # fmt: skip
        before = events.failures.get(who)
        if before is not None:
            here.count += before.count
            if before.start_ns <= here.start_ns:
                here.name, here.code, here.start_ns = before.name, before.code, before.start_ns
        events.failures[who] = here


def _read_syncs(tables: Tables, spans: Collected) -> None:
    """Add what waited for the device; the call that waits is an API row of its own."""
    for batch in tables.batches(
        SYNC, ("start", "end", "deviceId", "streamId", "syncType", "globalPid")
    ):
        batch, place = spans.sound(SYNC, batch)
        coded = batch["syncType"].dictionary_encode()
        told = [_SYNC_KINDS.get(kind, "Sync") for kind in coded.dictionary.to_pylist()]
        stream = pc.if_else(pc.equal(batch["streamId"], _NO_STREAM), None, batch["streamId"])
        spans.add(
            SYNC, batch, place, owners(batch["globalPid"]),
            name=words(coded.indices, pa.array(told, pa.string()), "Sync"),
            layer=np.full(len(place), CODE[RUNTIME], np.int32),
            lane=device_lanes(batch["deviceId"], stream, " syncs"), device_index=batch["deviceId"],
        )  # fmt: skip


def _read_host(
    tables: Tables, table: str, events: Events, layer: str, lane: str = "thread {}"
) -> None:
    for batch in tables.batches(table, ("start", "end", "globalTid", "nameId")):
        batch, place = events.spans.sound(table, batch)
        events.spans.add(
            table, batch, place, owners(batch["globalTid"]),
            name=events.names.labels(None, batch["nameId"], "unnamed call"),
            layer=np.full(len(place), CODE[layer], np.int32),
            lane=thread_lanes(batch["globalTid"], lane),
        )  # fmt: skip


def _adopt(events: Events) -> None:
    """Give rows that name no process to the process with most API calls, or to the only one."""
    spans, calls = events.spans, events.calls
    if NOBODY not in spans.parts:
        return
    launching = [who for who, _ in spans.rows[API].most_common() if who != NOBODY]
    known = [who for who in events.processes if who != NOBODY]
    heir = next(iter(launching), known[0] if len(known) == 1 else NOBODY)
    if heir == NOBODY:
        return
    spans.parts[heir] += spans.parts.pop(NOBODY)
    calls.parts[heir] += calls.parts.pop(NOBODY, [])
    for count in spans.rows.values():
        if NOBODY in count:
            count[heir] += count.pop(NOBODY)
