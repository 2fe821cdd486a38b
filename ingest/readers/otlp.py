"""Traces of OpenTelemetry in files: OTLP as JSON, a message a line or one; or as protobuf."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from teller.ingest.readers.otlp_spans import Export, latencies, requests, stages, told
from teller.ingest.readers.side_json import LARGEST, documents, opening
from teller.ingest.readers.side_lines import Lines
from teller.ingest.readers.side_tables import Unread, joined, reading
from teller.ingest.records import SAMPLES, Records
from teller.ingest.source import Facts, Reading

FORMAT: Final = "otlp"

_WORDS: Final = (b"service.name", b"telemetry.sdk", b"gen_ai.", b"llm_request")
_FIELD: Final = b"\x0a"  # the first field, with a length: all that an export has


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins as an export of spans, in JSON or in protobuf."""
    return _is_json(head) or (_frame(head) is not None and any(word in head for word in _WORDS))


def read(path: Path) -> Reading:
    """Read one file: requests, and what they spent where."""
    lines, unread = Lines(path), Unread()
    if _is_json(next(lines.text.pieces(), b"")):
        exports = documents(lines, Export, unread)
    else:
        exports = list(_decoded(lines, unread))
    spans = list(told(exports))
    samples = joined(SAMPLES, [*latencies(spans), *stages(spans)])
    hosts = {one.process.get("host.name", "") for one in spans}
    host = hosts.pop() if len(hosts) == 1 else ""
    facts = Facts(str(path), FORMAT, host=host, host_source="resource" if host else "",
                  event_count=len(spans))  # fmt: skip
    return reading(
        lines, Records(facts, "utc", samples=samples, requests=requests(spans)), unread, "request"
    )


def _is_json(head: bytes) -> bool:
    # by both: a message of protobuf may begin with a line end and a brace
    return opening(head) == b"{" and b'"resourceSpans"' in head[:4096]


def _frame(head: bytes) -> str | None:
    """Give how messages stand in a file: one alone, or each after its length."""
    if len(head) > 5 and head[4:5] == _FIELD and 0 < int.from_bytes(head[:4], "big") < LARGEST:
        return "after four bytes"
    length, at = _varint(head, 0)
    if length and head[:1] != _FIELD and head[at : at + 1] == _FIELD:
        return "after a varint"
    if head[:1] == _FIELD:
        length, at = _varint(head, 1)
        # a resource or a scope must follow; else its own length is 10 and this is a first message
        if length and head[at : at + 1] in (b"\x0a", b"\x12"):
            return "alone"
        if head[1:2] == _FIELD:
            return "after a varint"
    return None


def _decoded(lines: Lines, unread: Unread) -> Iterator[Export]:
    """Give the messages of a protobuf file."""
    # protobuf takes a moment to import, and few files need it
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    raw = _whole(lines)
    for number, part in enumerate(_messages(raw), 1):
        try:
            message = ExportTraceServiceRequest.FromString(part)
            yield msgspec.convert(MessageToDict(message), Export, strict=False)
        except (DecodeError, msgspec.ValidationError):
            unread.add([number])


def _whole(lines: Lines) -> bytes:
    parts, size = list[bytes](), 0
    for piece in lines.text.pieces():
        size += len(piece)
        if size > LARGEST:
            lines.left_out = True
            break
        parts.append(piece)
    return b"".join(parts)


def _messages(raw: bytes) -> Iterator[bytes]:
    """Cut a file into messages; the last may be cut off."""
    frame, at = _frame(raw), 0
    if frame == "alone":
        yield raw
        return
    while at < len(raw):
        if frame == "after four bytes":
            length, start = int.from_bytes(raw[at : at + 4], "big"), at + 4
        else:
            length, start = _varint(raw, at)
        if length <= 0:
            return
        yield raw[start : start + length]
        at = start + length


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Give a number of seven bits a byte, and where the next thing begins; 0 if it is none."""
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(raw):
            return 0, at
        byte = raw[at]
        value, at = value | (byte & 0x7F) << shift, at + 1
        if byte < 0x80:
            return value, at
    return 0, at
