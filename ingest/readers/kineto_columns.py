"""Events into columns: stretches are gathered into blocks, and a block becomes arrays at once."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter, itemgetter
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from teller.ingest.readers.kineto_comm import COMM_ARGS, CommArgs
from teller.ingest.readers.kineto_event import Stretch, found
from teller.ingest.readers.kineto_kinds import LAYER_OF, LAYERS, Kind, Says, kind_of, says
from teller.ingest.readers.kineto_repair import Damage
from teller.ingest.readers.kineto_text import Text
from teller.ingest.readers.kineto_values import (
    JOINT,
    Codes,
    column,
    ending_number,
    lines,
    nanoseconds,
)
from teller.ingest.readers.kineto_work import (
    ASKED,
    NONE,
    Flags,
    Ints,
    Lanes,
    decode,
    filled,
    place,
    text_of,
    work,
)
from teller.ingest.source import COMM

FAR_NS: Final = 50_000_000_000_000  # 14 hours: no capture lasts as long
BLOCK: Final = 1 << 15
CODED: Final = {
    "cat": attrgetter("cat"),
    "name": attrgetter("name"),
    "thread": attrgetter("pid", "tid"),
}
WHOLE, BEGIN, END = map(ord, "XBE")
NARROW: Final = {
    "name": np.int32,
    "lane": np.int32,
    "thread": np.int32,
    "layer": np.int8,
    "phase": np.int8,
}
IS_ASKED: Final = np.array([kind in ASKED for kind in Kind])
LAYER_CODES: Final = np.array([LAYERS.index(LAYER_OF[kind]) for kind in Kind])


@dataclass(frozen=True, slots=True)
class Spot:
    """An event, as the place of its stretch in the text and its number there."""

    at: int
    length: int
    number: int

    def look_up(self, text: Text, key: str) -> tuple[int, str]:
        """Give the byte where a value of the event stands, and the value; this reads again."""
        place, value = found(text.part(self.at, self.length), self.number, key)
        return self.at + place, value


@dataclass(slots=True)
class Block:
    """What waits to become columns. No event stays alive: objects that do slow all others down."""

    codes: dict[str, list[Ints]] = field(default_factory=lambda: defaultdict(list))
    texts: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    masks: dict[str, list[Flags]] = field(default_factory=lambda: defaultdict(list))
    spots: list[tuple[int, int, Ints]] = field(default_factory=list)  # byte, length, rows
    count: int = 0

    def keep(self, key: str, args: list[msgspec.Raw], wanted: Flags) -> None:
        """Keep the arguments of the rows that are wanted."""
        self.texts[key].append(msgspec.json.encode(list(compress(args, wanted.tolist())))[1:-1])
        self.masks[key].append(wanted)

    def kept(self, key: str) -> tuple[bytes, Flags]:
        """Give the arguments that were kept, as a list in JSON, and which rows they are of."""
        text = b",".join(filter(None, self.texts[key]))
        return b"[" + text + b"]", np.concatenate(self.masks[key])

    def code(self, key: str) -> Ints:
        """Give a column of codes."""
        return np.concatenate(self.codes[key])

    def time(self, key: str) -> Ints:
        """Give a column of times, in nanoseconds."""
        return filled(nanoseconds(column(self.texts[key], self.count)))

    def spot(self, row: int) -> Spot:
        """Give the place of a row."""
        for at, length, rows in self.spots:
            if row < len(rows):
                return Spot(at, length, int(rows[row]))
            row -= len(rows)
        raise IndexError(row)


@dataclass(slots=True)
class Columns:
    """All spans of one document, as arrays; `flush` before they are used."""

    text: Text
    damage: Damage
    block_size: int = BLOCK
    known: dict[str, Codes] = field(default_factory=lambda: {key: Codes() for key in CODED})
    lanes: Lanes = field(default_factory=Lanes)
    parts: list[dict[str, Ints]] = field(default_factory=list)
    comm_parts: list[pa.Table] = field(default_factory=list)
    extremes: list[tuple[int, Spot]] = field(default_factory=list)  # the first and the last time
    without_dur: dict[int, int] = field(default_factory=dict)  # by category
    notes: set[int] = field(default_factory=set)  # names of annotations
    devices: dict[int, int] = field(default_factory=dict)  # spans by device
    threads: dict[int, int] = field(default_factory=dict)  # host spans by thread
    events: int = 0
    rows: int = 0
    _kinds: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # by category
    _says: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # by name
    _block: Block = field(default_factory=Block)

    def add(self, stretch: Stretch) -> None:
        """Take the spans among the events of a stretch."""
        wanted = stretch.spans
        events, block = list(compress(stretch.events, wanted)), self._block
        code = {key: self.known[key].of(events, value) for key, value in CODED.items()}
        self._kinds = _grown(self._kinds, self.known["cat"].values, kind_of)
        self._says = _grown(self._says, self.known["name"].values, says)
        kind, said = self._kinds[code["cat"]], self._says[code["name"]]
        args = list(map(attrgetter("args"), events))
        block.keep("work", args, IS_ASKED[kind])
        block.keep("calls", args, kind == Kind.RUNTIME)
        block.keep("comm", args, said & (Says.COMM_CALL | Says.COMM_KERNEL) > 0)
        rows = np.flatnonzero(np.fromiter(wanted, bool, len(wanted)))
        phase = np.full(len(rows), WHOLE)
        if not stretch.kinds.isdisjoint("BE"):
            phase[:] = list(map(ord, map(str, compress(stretch.phases, wanted))))
        code |= {"kind": kind, "says": said, "place": rows + self.events, "phase": phase}
        for key, values in code.items():
            block.codes[key].append(values)
        for key in ("ts", "dur"):
            block.texts[key].append(lines(list(map(attrgetter(key), events))))
        block.spots.append((stretch.at, stretch.length, rows))
        self.events += len(wanted)
        block.count += len(events)
        if block.count >= self.block_size:
            self.flush()

    def flush(self) -> None:
        """Make columns of what waits."""
        block, self._block = self._block, Block()
        if not block.count:
            return
        code = {key: block.code(key) for key in block.codes}
        thread, phase = code["thread"], code["phase"]
        found = work(block.kept("work"), block.kept("calls"), code["kind"], code["says"])
        place(found, *_numbers(self.known["thread"], thread))
        start, dur = block.time("ts"), block.time("dur")
        keep = self._usable(block, start, found.kind)
        end, unended = self._shape(block, keep & (phase == WHOLE), start, dur, code["cat"])
        layer, comm = _layers(found.kind, code["says"])
        rows = {
            "place": code["place"],
            "name": code["name"],
            "layer": layer,
            "lane": self.lanes.of(found, thread),
            "start": start,
            "end": end,
            "open": unended | (phase == BEGIN),
            "correlation": found.correlation,
            "stream": np.where(found.kind == Kind.DEVICE, found.stream, NONE),
            "device": found.device,
            "bytes": found.bytes,
            "phase": phase,
            "thread": thread,
        }
        self._count(found.kind[keep], code["name"][keep], thread[keep], found.device[keep])
        self._say(block, comm & keep & (phase != END), keep)
        self.parts.append(
            {
                key: values[keep].astype(NARROW.get(key, values.dtype), copy=False)
                for key, values in rows.items()
            }
        )
        self.rows += int(keep.sum())

    def category(self, code: int) -> str:
        """Give a category's name."""
        return self.known["cat"].values[code] or "(none)"

    def column(self, key: str, *, last: bool = False) -> Ints:
        """Give a whole column; the `last` time, so that its parts need no room any more."""
        parts = [part.pop(key) if last else part[key] for part in self.parts]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _usable(self, block: Block, start: Ints, kind: Ints) -> Flags:
        """Tell which rows are spans of a known time; keep the extremes, which may prove absurd."""
        books = kind == Kind.BOOKS
        self._note("timeless", (start == NONE) & ~books, "ts", block)
        keep: Flags = (start != NONE) & ~books
        rows = np.flatnonzero(keep)
        for row in (int(rows[f(start[rows])]) for f in (np.argmin, np.argmax) if len(rows)):
            self.extremes.append((int(start[row]), block.spot(row)))
        self.extremes.sort(key=itemgetter(0))
        del self.extremes[1:-1]
        return keep

    def _shape(
        self, block: Block, whole: Flags, start: Ints, dur: Ints, category: Ints
    ) -> tuple[Ints, Flags]:
        """Give the end of each row, and whether it is not known."""
        missing, negative = whole & (dur == NONE), whole & (dur != NONE) & (dur < 0)
        endless = whole & (dur > FAR_NS)
        self._note("no dur", missing, "dur", block)
        self._note("negative", negative, "dur", block)
        self._note("endless", endless, "dur", block)
        counts = np.bincount(category[missing])
        for code in np.flatnonzero(counts).tolist():
            self.without_dur[code] = self.without_dur.get(code, 0) + int(counts[code])
        return start + np.where(whole & (dur >= 0) & ~endless, dur, 0), missing | endless

    def _note(self, kind: str, which: Flags, key: str, block: Block) -> None:
        rows = np.flatnonzero(which)
        if len(rows):
            known = kind in self.damage.places
            at, value = (0, "") if known else block.spot(int(rows[0])).look_up(self.text, key)
            self.damage.note(kind, at, len(rows), value)

    def _count(self, kind: Ints, name: Ints, thread: Ints, device: Ints) -> None:
        self.notes.update(np.unique(name[kind == Kind.NOTE]).tolist())
        host = kind <= Kind.NOTE
        for counts, values in (
            (self.threads, thread[host]),
            (self.devices, device[kind == Kind.DEVICE]),
        ):
            for value, count in map(dict.values, pa.array(values).value_counts().to_pylist()):
                counts[value] = counts.get(value, 0) + count

    def _say(self, block: Block, which: Flags, keep: Flags) -> None:
        """Keep what communication says of itself, as text, with the number of its span."""
        text, named = block.kept("comm")
        args = decode(text, COMM_ARGS)
        wanted = pa.array(which[named])
        said = {key: text_of(args, key).filter(wanted) for key in CommArgs.__struct_fields__}
        row = (np.cumsum(keep) - 1)[which] + self.rows
        self.comm_parts.append(pa.table({"row": row, **said}))


def _grown(table: Ints, values: list[str], meaning: Callable[[str], int]) -> Ints:
    """Give a table of what values mean, longer where there are new values."""
    if len(table) == len(values):
        return table
    return np.append(table, np.array(list(map(meaning, values[len(table) :])), np.int64))


def _numbers(threads: Codes, which: Ints) -> tuple[Ints, Ints]:
    """Give the numbers of the process and of the thread of each row."""
    pairs = [thread.split(JOINT) for thread in threads.values]
    table = np.array([[ending_number(word, NONE) for word in pair] for pair in pairs], np.int64)
    return table[which, 0], table[which, 1]


def _layers(kind: Ints, said: Ints) -> tuple[Ints, Flags]:
    """Give the layer of each row as a code of LAYERS, and whether it communicates."""
    host = np.isin(kind, (Kind.HOST, Kind.NOTE)) & (said & Says.COMM_CALL > 0)
    comm: Flags = host | ((kind == Kind.DEVICE) & (said & Says.COMM_KERNEL > 0))
    steps = (kind == Kind.HOST) & (said & Says.STEP > 0)
    layer = LAYER_CODES[np.where(steps, Kind.NOTE, kind)]
    layer[comm] = LAYERS.index(COMM)
    return layer, comm
