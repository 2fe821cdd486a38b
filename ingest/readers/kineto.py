"""Reader of PyTorch's Kineto traces and of other Chrome traces, as JSON, gzipped or not.

The text is read in stretches of a few hundred KiB, so memory is bounded by the tables. A file that
is damaged gives what is whole, and remarks that name byte and line in the decompressed text.
"""

import re
from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from teller.ingest.readers import kineto_remarks, kineto_tables
from teller.ingest.readers.kineto_columns import BLOCK, Columns
from teller.ingest.readers.kineto_event import EVENTS_KEY, Event
from teller.ingest.readers.kineto_header import Header
from teller.ingest.readers.kineto_repair import Damage, TwoWritersError
from teller.ingest.readers.kineto_stream import STRETCH, Stream
from teller.ingest.readers.kineto_text import Feed, Text
from teller.ingest.readers.kineto_values import said
from teller.ingest.source import Reading, Source

FORMAT: Final = "kineto"
HEAD: Final = 1 << 16
ASYNCHRONOUS: Final = frozenset("beSF")
DOUBTED: Final = 1 << 14  # bytes of text before the first oddity of a garbled stream
DEEP: Final = 1 << 24  # environments in front of the events may be long
OPENING: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*\{)")
LIST_OF_EVENTS: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\[\s*\{[^{}]*?"ph"\s*:\s*"[XBEMCsftiIPNOD]"'
)
OWN_KEYS: Final = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|traceName|baseTimeNanoseconds|'
    rb'displayTimeUnit|metadata|trace_id)"\s*:'
)


class _Named(msgspec.Struct):
    name: str = ""


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether the text holds `traceEvents`, or is a list of trace events itself."""
    if not OPENING.match(head):
        return False
    if LIST_OF_EVENTS.match(head) or EVENTS_KEY.search(head):
        return True
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[" or not OWN_KEYS.search(head):
        return False
    if len(head) < HEAD:  # a header that is cut
        return b'"schemaVersion"' in head
    feed = Feed(Text(path))
    feed.fill(DEEP)
    return EVENTS_KEY.search(feed.buffer) is not None


def read(path: Path) -> Reading:
    """Give a source for each trace in the file: one, or none, or several written one by one."""
    return read_in_steps(path, stretch=STRETCH, block=BLOCK)


def read_in_steps(path: Path, *, stretch: int, block: int) -> Reading:
    """Read with other sizes of steps than the best; the result is the same."""
    text = Text(path)
    try:
        stream, documents = _documents(text, stretch, block)
        if text.corrupt and (stream.cut or stream.damage.first is not None):
            # a garbled stream may go on for long: what stands behind the first oddity is nothing
            end = stream.feed.at + len(stream.feed.buffer)
            text.limit = max(0, min(end, stream.damage.first or end) - DOUBTED)
            stream, documents = _documents(text, stretch, block)
    except TwoWritersError:
        return Reading((), (kineto_remarks.two_writers(text),))
    sources: list[Source] = []
    for document in documents:
        source = kineto_tables.source(
            str(path), document.columns, document.header, document.processes
        )
        if source is not None:
            sources.append(source)
    used, twins = _one_of_each_rank(sources)
    columns = [document.columns for document in documents]
    remarks = kineto_remarks.all_of(text, stream, columns, used, twins)
    return Reading(tuple(used), tuple(remarks))


def _documents(text: Text, stretch: int, block: int) -> tuple[Stream, list["Document"]]:
    stream, documents = Stream(Feed(text), Damage(), stretch), []
    while (header := stream.begin()) is not None:
        documents.append(_document(stream, header, block))
    return stream, documents


@dataclass(slots=True)
class Document:
    """What was read of one trace."""

    header: Header
    columns: Columns
    processes: dict[str, str] = field(default_factory=dict)  # names by process id


def _document(stream: Stream, header: Header, block: int) -> Document:
    document = Document(header, Columns(stream.feed.text, stream.damage, block))
    for stretch in stream.stretches():
        if "M" in stretch.kinds:
            marks = compress(stretch.events, map("M".__eq__, stretch.phases))
            document.processes.update(_process_names(list(marks)))
        lost = stretch.kinds & ASYNCHRONOUS
        if lost:
            stream.damage.note("async", stretch.at, sum(map(stretch.phases.count, lost)))
        document.columns.add(stretch)
    document.columns.flush()
    document.header = header.joined(stream.finish())
    return document


def _process_names(events: list[Event]) -> dict[str, str]:
    """Give the names of processes that metadata events tell."""
    named = compress(events, map("process_name".__eq__, map(attrgetter("name"), events)))
    told = {str(e.pid): (said(e.args, _Named) or _Named()).name for e in named}
    return {pid: name for pid, name in told.items() if name}


def _one_of_each_rank(sources: list[Source]) -> tuple[list[Source], int]:
    """Give the first source of each rank, and how many are left out."""
    seen: dict[int | None, Source] = {}
    for source in sources:
        seen.setdefault(source.facts.rank, source)
    return list(seen.values()), len(sources) - len(seen)
