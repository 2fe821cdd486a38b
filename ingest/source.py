"""The seam between readers and everything after them: what one process left in one file, as tables.

A reader looks at one path and gives a `Reading`: a `Source` for each process it found, and remarks
on what was wrong. Times stay on the source's own clock; `Facts.epoch_ns` says how to reach UTC.
Rows of `spans` and `calls` may come in any order; `place` names a row for good.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from teller.ingest.records import Records

WORDS: Final = pa.dictionary(pa.int32(), pa.string())

ENGINE: Final = "engine"
FRAMEWORK: Final = "framework"
RUNTIME: Final = "runtime"
DEVICE: Final = "device"
COMM: Final = "comm"
OS: Final = "os"

PLACE_BITS: Final = 29

# One row a span, host and device. `stream` is set exactly for work that a device executed in stream
# order (kernel, memcpy, memset, graph); such rows have no parent, all others nest by lane.
SPANS: Final = pa.schema(
    [
        pa.field(
            "place", pa.int64(), nullable=False
        ),  # place in the source, 0 to 2**29 - 1, unique
        pa.field("name", WORDS, nullable=False),
        pa.field("layer", WORDS, nullable=False),  # one of the six above
        pa.field(
            "lane", WORDS, nullable=False
        ),  # "thread 4711", "stream 7", "device 1 stream 7", …
        pa.field("stream", pa.int64()),
        pa.field("device_index", pa.int64()),
        pa.field("start_ns", pa.int64(), nullable=False),
        pa.field("end_ns", pa.int64(), nullable=False),  # never before start_ns
        pa.field(
            "open", pa.bool_(), nullable=False
        ),  # the end was not recorded: end_ns is the capture's
        pa.field("correlation", pa.int64()),  # joins an API call (runtime layer) to its device work
        pa.field("size_bytes", pa.int64()),
    ]
)

# One row a span that takes part in a communication: device kernels and host calls alike.
CALLS: Final = pa.schema(
    [
        pa.field("place", pa.int64(), nullable=False),  # of the span
        pa.field("op", pa.string(), nullable=False),  # see OPS
        pa.field(
            "group_name", pa.string()
        ),  # the process group's name; null where nothing tells it
        pa.field("comm", pa.string()),  # communicator id as hex without 0x, where known
        pa.field("seq", pa.int64()),  # sequence number in the group, where the source has one
        pa.field("size_bytes", pa.int64()),  # payload of this rank's input
        pa.field("dtype", pa.string()),
        pa.field("peer", pa.int64()),  # group rank of the other side: send, recv, broadcast's root
    ]
)

OPS: Final = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "barrier",
    "send",
    "recv",
    "send_recv",
    "unknown",
)


@dataclass(frozen=True, slots=True)
class Remark:
    """What was wrong with an input: place in it, what, and what to do. All for people."""

    path: str
    place: str
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as the source describes it; `ranks` are global, empty where not told."""

    name: str
    ranks: tuple[int, ...] = ()
    desc: str = ""
    comm: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device as the source describes it; `index` as the process counts."""

    index: int
    name: str = ""
    uuid: str = ""
    bus: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a source says of itself. None and empty mean: it does not say."""

    path: str
    format: str  # kineto, nsys_sqlite, nsys_dir, nsys_recipe
    pid: int | None = None
    rank: int | None = None  # from the file's header, or from environment and names inside
    rank_source: str = ""  # "header", "environment", "process name", "thread name", …
    host: str = ""
    host_source: str = ""
    world_size: int | None = None
    places: Mapping[str, int] = field(default_factory=dict)  # tp, pp, dp, ep: own coordinate
    epoch_ns: int | None = None  # add to a span's time to get UTC; None: no anchor
    device_index: int | None = None  # the device that this process used most
    groups: tuple[Group, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    product: str = ""  # "Nsight Systems 2025.5.2, schema 3.24.0"
    process_name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)  # "cuda_graph_trace": "graph", …
    event_count: int = 0  # events that were read for this process


@dataclass(frozen=True, slots=True)
class Source:
    """One process in one file."""

    facts: Facts
    spans: pa.Table  # SPANS
    calls: pa.Table  # CALLS


@dataclass(frozen=True, slots=True)
class Reading:
    """All that a reader got out of one path."""

    sources: tuple[Source, ...] = ()
    remarks: tuple[Remark, ...] = ()
    records: tuple["Records", ...] = ()


class Reader(Protocol):
    """A module of `ingest.readers` is one of these.

    `looks_like` sees the first 64 KiB after decompression (b"" for a folder) and the path; it is
    cheap and sure: a file that it accepts is read by no other reader. `read` never raises on bad
    content: what can be used is in `sources` and `records`, what was wrong is in `remarks`; with
    nothing to use it gives neither, and at least one remark. Only an `OSError` of the path itself
    passes through.
    """

    FORMAT: str

    def looks_like(self, head: bytes, path: Path) -> bool:
        """Tell whether this reader is for that content."""

    def read(self, path: Path) -> Reading:
        """Read one path."""
