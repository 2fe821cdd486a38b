"""What the arguments of events say, and the kind, the device and the lane that follow from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.kineto_event import NO_ARGS
from teller.ingest.readers.kineto_kinds import Kind, Says
from teller.ingest.readers.kineto_values import JOINT, MISSING, column, integers, lines

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
T = TypeVar("T")
NONE: Final = np.iinfo(np.int64).min
NO_STREAM: Final = 0xFFFF_FFFF  # minus one, as some writers print it
BESIDE: Final = {Kind.MARK: " annotations", Kind.SYNC: " syncs"}
ON_DEVICE: Final = (Kind.DEVICE, Kind.MARK, Kind.SYNC)
LANE_BITS: Final = 24  # for distinct threads or streams of a block


class DeviceArgs(msgspec.Struct, gc=False):
    """Arguments of device work."""

    correlation: msgspec.Raw = MISSING
    stream: msgspec.Raw = MISSING
    device: msgspec.Raw = MISSING
    bytes: msgspec.Raw = MISSING


class CallArgs(msgspec.Struct, gc=False):
    """Arguments of API calls, which have more that nobody asks for."""

    correlation: msgspec.Raw = MISSING


DEVICE_ARGS: Final = msgspec.json.Decoder(list[DeviceArgs])
CALL_ARGS: Final = msgspec.json.Decoder(list[CallArgs])
ASKED: Final = (Kind.DEVICE, Kind.SYNC, Kind.UNKNOWN)


@dataclass(slots=True)
class Work:
    """The kind of each row, and what its arguments say; NONE where they do not."""

    kind: Ints
    correlation: Ints
    stream: Ints
    device: Ints
    bytes: Ints


def work(
    device_args: tuple[bytes, Flags], call_args: tuple[bytes, Flags], kind: Ints, said: Ints
) -> Work:
    """Read the arguments of the rows that have them, and settle what their kinds left open."""
    found = Work(kind, *(np.full(len(kind), NONE) for _ in DeviceArgs.__struct_fields__))
    device, calls = decode(device_args[0], DEVICE_ARGS), decode(call_args[0], CALL_ARGS)
    for key in DeviceArgs.__struct_fields__:
        getattr(found, key)[device_args[1]] = filled(integers(text_of(device, key)))
    found.correlation[call_args[1]] = filled(integers(text_of(calls, "correlation")))
    unknown = kind == Kind.UNKNOWN
    found.kind = np.select(
        [unknown & (found.stream != NONE), unknown & (said & Says.API > 0), unknown],
        [Kind.DEVICE, Kind.RUNTIME, Kind.HOST],
        kind,
    )
    found.kind[(found.kind == Kind.DEVICE) & (said & Says.EVENT_MARK > 0)] = Kind.SYNC
    linked = np.isin(found.kind, (Kind.RUNTIME, Kind.DEVICE)) & (found.correlation > 0)
    found.correlation[~linked] = NONE
    return found


def place(found: Work, pid: Ints, tid: Ints) -> None:
    """Settle the device and the stream of what a device did; process and thread may tell them."""
    on_device = np.isin(found.kind, ON_DEVICE)
    for key, otherwise in (("stream", tid), ("device", pid)):
        own = getattr(found, key)
        given = (own >= 0) & (own < NO_STREAM)
        setattr(found, key, np.where(on_device, np.where(given, own, otherwise), NONE))
    # work is always in a stream, told or not
    found.stream[(found.kind == Kind.DEVICE) & (found.stream == NONE)] = 0


@dataclass(slots=True)
class Lanes:
    """Numbers for lanes: threads by process and thread, device lanes by device and stream."""

    numbers: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def of(self, found: Work, thread: Ints) -> Ints:
        """Give the lane of each row; host rows by the code of their thread."""
        on_device = np.isin(found.kind, ON_DEVICE)
        own = on_device | np.isin(found.kind, (Kind.OVERHEAD, Kind.BOOKS))
        group = np.where(own, found.kind, Kind.HOST)
        first = np.where(on_device, np.clip(found.device, -1, NO_STREAM) + 1, 0)
        second = pa.array(np.where(on_device, found.stream, thread)).dictionary_encode()
        codes = second.indices.to_numpy().astype(np.int64)
        key = pa.array((first << LANE_BITS | codes) << 4 | group).dictionary_encode()
        values = second.dictionary.to_pylist()
        table = np.array([self._number(k, values) for k in key.dictionary.to_pylist()], np.int64)
        lanes: Ints = table[key.indices.to_numpy()]
        return lanes

    def _number(self, key: int, values: list[int]) -> int:
        code = key >> 4 & (1 << LANE_BITS) - 1
        lane = (key & 15, key >> 4 + LANE_BITS, values[code])
        return self.numbers.setdefault(lane, len(self.numbers))

    def names(self, threads: Sequence[str]) -> list[str]:
        """Give the names of all lanes; the process is named where there are several."""
        pairs = [thread.split(JOINT) for thread in threads]
        hosts = {pairs[code][0] for group, _, code in self.numbers if group == Kind.HOST}
        return [_lane_name(lane, pairs, len(hosts) > 1) for lane in self.numbers]


def _lane_name(lane: tuple[int, int, int], pairs: Sequence[Sequence[str]], several: bool) -> str:
    group, first, second = lane
    if group in (Kind.OVERHEAD, Kind.BOOKS):
        return "overhead"
    if group == Kind.HOST:
        process, thread = pairs[second]
        return f"process {process} thread {thread}" if several else f"thread {thread}"
    device = f"device {max(0, first - 1)}"
    return (device if second == NONE else f"{device} stream {second}") + BESIDE.get(Kind(group), "")


def filled(values: pa.Int64Array) -> Ints:
    """Give integers with NONE for null, in an array that may be written to."""
    return np.array(pc.fill_null(values, NONE).to_numpy(zero_copy_only=False))


def decode(args: bytes, decoder: msgspec.json.Decoder[list[T]]) -> list[T]:
    """Read a list of arguments; those that are no object say nothing."""
    try:
        return decoder.decode(args)
    except msgspec.ValidationError:
        values = msgspec.json.decode(args, type=list[msgspec.Raw])
        objects = [v if bytes(v)[:1] == b"{" else NO_ARGS for v in values]
        return decoder.decode(msgspec.json.encode(objects))


def text_of(rows: Sequence[object], key: str) -> pa.BinaryArray:
    """Give one attribute of all rows as text."""
    values: list[msgspec.Raw] = list(map(attrgetter(key), rows))
    return column([lines(values)], len(values))
