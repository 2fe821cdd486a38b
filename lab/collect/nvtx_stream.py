"""What a process annotated, out of its stream file: one row for each range and mark."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from teller.errors import NothingUsable
from teller.lab.collect import nvtx_chunks as chunks
from teller.lab.collect.nvtx_chunks import Chunks, Ints, Schema, Slots
from teller.lab.collect.nvtx_payload import as_json

SUFFIX: Final = ".nvtx"
EVENTS: Final = pa.schema([
    ("kind", pa.int8()),  # PUSH_POP, START_END or MARK
    ("start_ns", pa.int64()),  # UTC
    ("end_ns", pa.int64()),  # null: still open when the recording ended, or a mark
    ("tid", pa.int32()),
    ("end_tid", pa.int32()),  # where a start/end range ended
    ("domain", pa.int32()),
    ("name", pa.dictionary(pa.int32(), pa.string())),  # null: without a message
    ("registered", pa.bool_()),  # the name is a registered string
    ("depth", pa.int32()),  # of push/pop ranges in their thread and domain, 0 outermost
    ("range_id", pa.int64()),  # of start/end ranges
    ("category", pa.int32()),
    ("payload_type", pa.int8()),  # of NVTX: 1 u64, 2 i64, 3 f64, 4 u32, 5 i32, 6 f32, 7 a schema
    ("payload", pa.int64()),  # its bits; null where there is none or a schema describes it
    ("json", pa.string()),  # a payload that a schema describes
])  # fmt: skip
PUSH_POP, START_END, MARK = 0, 1, 2

_FOUR_BYTES: Final = 4  # payload types from here on
_JUMP_NS: Final = 1_000_000
_SLEW: Final = 0.0006  # at most 500 ppm are slewed; more is a jump


@dataclass(frozen=True, slots=True)
class Jump:
    """A moment at which the wall clock moved against the steady one."""

    at_ns: int  # UTC, before the jump
    by_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class Stream:
    """One process. Times are UTC epoch ns, by the clock as it was at the start."""

    path: Path
    host: str
    pid: int
    process: str
    environment: Mapping[str, str]  # variables that tell a rank, no others
    pid_space: str
    threads: Mapping[int, str]
    domains: Mapping[int, str]  # 0, the default one, is not named
    categories: Mapping[tuple[int, int], str]
    schemas: Mapping[tuple[int, int], Schema]
    start_ns: int
    end_ns: int  # the last moment that was seen
    boot_minus_utc_ns: int
    ended: bool  # False: the process was killed, or still runs
    lost: int  # records that could not be kept
    damaged: int  # bytes of the file that are no record
    jumps: tuple[Jump, ...]
    events: pa.Table  # EVENTS, by start

    @property
    def rank(self) -> int | None:
        """The rank that a launcher gave in the environment, if any."""
        names = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
        said = (self.environment.get(name, "") for name in names)
        return next((int(text) for text in said if text.isdecimal()), None)


def read(path: Path) -> Stream:
    """Give what a stream file holds, also if its process was killed while writing.

    Raises `NothingUsable` where not even the beginning of a session is there.
    """
    found = chunks.read_chunks(path.read_bytes())
    if not found.session or not found.anchors:
        raise NothingUsable(f"{path}: no stream of NVTX ranges, or cut in its first bytes")
    utc, monotonic, boot = found.anchors[0]
    events = _events(found, utc - monotonic)
    last = [at + utc - monotonic for _, at, _ in found.anchors[-1:]]
    last += [events[name][-1].as_py() for name in ("start_ns",) if events.num_rows]
    ends = events["end_ns"].drop_null()
    last += [int(ends.to_numpy().max())] if len(ends) else []
    own = {k.removeprefix("env."): v for k, v in found.session.items() if k.startswith("env.")}
    return Stream(
        path=path, host=found.session.get("host", ""), pid=int(found.session.get("pid", 0)),
        process=found.process, environment=own, pid_space=found.session.get("pid_space", ""),
        threads=found.threads, domains=found.domains, categories=found.categories,
        schemas=found.schemas, start_ns=utc, end_ns=max(last), boot_minus_utc_ns=boot - utc,
        ended=found.ended, lost=found.lost, damaged=found.damaged,
        jumps=_jumps(found.anchors), events=events,
    )  # fmt: skip


def _jumps(anchors: list[tuple[int, int, int]]) -> tuple[Jump, ...]:
    """Give the moments at which the clocks of two anchors moved apart."""
    found = []
    for (utc, steady, boot), (utc_after, steady_after, boot_after) in pairwise(anchors):
        passed = steady_after - steady
        slept = boot_after - boot - passed
        moved = utc_after - utc - passed - max(slept, 0)
        if abs(moved) > max(_JUMP_NS, _SLEW * passed):
            found.append(Jump(utc, moved, "the clock was set"))
        if slept > _JUMP_NS:
            found.append(Jump(utc, slept, "the machine slept"))
    return tuple(found)


def _events(found: Chunks, to_utc: int) -> pa.Table:
    slots = np.concatenate([part for _, part in found.parts] or [np.empty(0, chunks.SLOT)])
    tids = np.repeat(
        np.array([tid for tid, _ in found.parts], np.int64),
        np.array([len(part) for _, part in found.parts], np.intp),
    )
    heads = np.flatnonzero(slots["kind"] != chunks.MORE)
    blobs = _blobs(slots, heads)
    slots, tids = slots[heads], tids[heads]
    names, code = _names(found, slots, blobs)
    pushed = _pushed(slots, tids)
    started = _started(slots)
    marked = np.flatnonzero(slots["kind"] == chunks.MARK)
    row = np.concatenate([pushed[0], started[0], marked])
    end = np.concatenate([pushed[1], started[1], np.full(len(marked), -1)])
    kind = np.repeat([PUSH_POP, START_END, MARK], [len(pushed[0]), len(started[0]), len(marked)])
    order = np.lexsort((row, slots["time"][row]))
    return _table(found, slots, tids, blobs, (names, code), (row[order], end[order], kind[order]),
                  to_utc)  # fmt: skip


def _blobs(slots: Slots, heads: npt.NDArray[np.intp]) -> pa.Array:
    """Give the bytes that follow each head, as far as they are there."""
    more = slots[slots["kind"] == chunks.MORE]
    raw = np.frombuffer(more.tobytes(), np.uint8).reshape(len(more), chunks.SLOT.itemsize)
    count = np.minimum(raw[:, -1], chunks.MORE_BYTES).astype(np.int64)
    flat = raw[:, : chunks.MORE_BYTES][np.arange(chunks.MORE_BYTES) < count[:, None]]
    ends = np.concatenate([[0], np.cumsum(count)])
    before = heads - np.arange(len(heads))  # slots of bytes ahead of each head
    offsets = ends[np.concatenate([before, [len(more)]])]
    if len(heads):
        offsets[0] = 0
    buffers = [
        None,
        pa.py_buffer(offsets.astype(np.int64)),
        pa.py_buffer(np.ascontiguousarray(flat)),
    ]
    return pa.Array.from_buffers(pa.large_binary(), len(heads), buffers)


def _names(found: Chunks, slots: Slots, blobs: pa.Array) -> tuple[pa.Array, Ints]:
    """Give all texts, and for each row the number of its own, -1 for none."""
    rows = np.flatnonzero(slots["kind"] == chunks.TEXT)
    texts = [b.decode("utf-8", "replace") for b in blobs.take(pa.array(rows)).to_pylist()]
    known = dict(zip(slots["text"][rows].tolist(), texts, strict=True)) | found.strings
    ids = np.array(sorted(known), np.int64)
    values = pa.array([known[i] for i in ids.tolist()], pa.string())
    once = values.dictionary_encode()
    if not len(ids):
        return once.dictionary, np.full(len(slots), -1)
    wanted = slots["text"].astype(np.int64)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return once.dictionary, np.where(ids[at] == wanted, once.indices.to_numpy()[at], -1)


def _pushed(slots: Slots, tids: Ints) -> tuple[Ints, Ints]:
    """Give the rows of pushes and of their pops, -1 where the range was still open.

    In one thread, domain and depth, pushes and pops take turns.
    """
    kind = slots["kind"]
    rows = np.flatnonzero((kind == chunks.PUSH) | (kind == chunks.POP))
    _, thread = np.unique(tids[rows], return_inverse=True)
    lane = thread * (1 << 16) + slots["domain"][rows]
    order = np.lexsort((rows, slots["extra"][rows], lane))
    rows, lane = rows[order], lane[order]
    after = np.append(rows[1:], rows[:1])
    same = np.append((lane[1:] == lane[:-1]), False) & (
        slots["extra"][rows] == slots["extra"][after]
    )
    closed = same & (kind[after] == chunks.POP)
    push = kind[rows] == chunks.PUSH
    return rows[push], np.where(closed, after, -1)[push]


def _started(slots: Slots) -> tuple[Ints, Ints]:
    """Give the rows of starts and of their ends, by the id of the range."""
    starts = np.flatnonzero(slots["kind"] == chunks.START)
    ends = np.flatnonzero(slots["kind"] == chunks.END)
    if not len(ends):
        return starts, np.full(len(starts), -1, np.int64)
    ends = ends[np.argsort(slots["extra"][ends], kind="stable")]
    wanted, have = slots["extra"][starts], slots["extra"][ends]
    at = np.minimum(np.searchsorted(have, wanted), len(ends) - 1)
    return starts, np.where(have[at] == wanted, ends[at], -1)


def _table(
    found: Chunks,
    slots: Slots,
    tids: Ints,
    blobs: pa.Array,
    named: tuple[pa.Array, Ints],
    chosen: tuple[Ints, Ints, Ints],
    to_utc: int,
) -> pa.Table:
    row, end, kind = chosen
    here = slots[row]
    names, code = named[0], named[1][row]
    payload = here["payload"]
    plain = (payload > 0) & (payload < chunks.EXTENDED)
    said = as_json(found, here, blobs.take(pa.array(row)))
    at = np.where(end < 0, row, end)
    bits = np.where(payload >= _FOUR_BYTES, here["value"] & np.uint64(0xFFFFFFFF), here["value"])
    name_codes = pa.array(code.astype(np.int32), mask=code < 0)
    columns = {
        "kind": kind.astype(np.int8),
        "start_ns": here["time"] + to_utc,
        "end_ns": pa.array(slots["time"][at] + to_utc, mask=end < 0),
        "tid": tids[row].astype(np.int32),
        "end_tid": pa.array(tids[at].astype(np.int32), mask=(kind != START_END) | (end < 0)),
        "domain": here["domain"].astype(np.int32),
        "name": pa.DictionaryArray.from_arrays(name_codes, names),
        "registered": pa.array(here["text"] >= 1 << 31),
        "depth": pa.array(here["extra"].astype(np.int32), mask=kind != PUSH_POP),
        "range_id": pa.array(here["extra"].astype(np.int64), mask=kind != START_END),
        "category": here["category"].astype(np.int32),
        "payload_type": pa.array(payload.astype(np.int8), mask=payload == 0),
        "payload": pa.array(bits.view(np.int64), mask=~plain),
        "json": said,
    }
    return pa.table(columns, schema=EVENTS)
