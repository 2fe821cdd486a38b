"""What ingest keeps of a run beside its graph tables, so that later sources can join it.

`parts.json` holds what is known of each source, its inputs and remarks; `parts/N.TABLE.parquet` the
small tables that shaping left, and records' tables as `parts/rN.TABLE.parquet`; the spans stand in
`spans/` already.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from teller.graph.archive import Archive, RunEntry
from teller.ingest.assembly import Assembly, InputRow
from teller.ingest.parts import Part, RecordPart
from teller.ingest.records import TABLES, ClockKind, Records, comms_of, window_of
from teller.ingest.shape import Shaped
from teller.ingest.source import Facts, Remark
from teller.ingest.who import Identity

FILE: Final = "parts.json"
FOLDER: Final = "parts"
SMALL: Final = ("steps", "operators", "calls", "paces", "silences", "asked", "stalls")


class StoredPart(msgspec.Struct, frozen=True):
    """A source without its tables."""

    facts: Facts
    identity: Identity
    head: str
    digest: str
    spans: str  # below the generation folder
    span_count: int
    device_count: int
    launched_count: int
    correlated: bool
    first_ns: int
    last_ns: int
    found_by: str
    confidence: float


class StoredRecords(msgspec.Struct, frozen=True):
    """A file's records without their tables; `window` is on the file's own clock."""

    facts: Facts
    clock: ClockKind
    host: str
    host_source: str
    head: str
    digest: str
    modified_ns: int
    size: int
    baseline: bool
    window: tuple[int, int] | None
    comms: tuple[str, ...]
    lasting: bool  # a state of the host, or a log of days: its times say nothing of the run


class Stored(msgspec.Struct, frozen=True):
    """A run as ingest left it."""

    key: str
    manifest: str
    t0_epoch_ns: int  # zero of the axis, also where no clock is anchored
    parts: tuple[StoredPart, ...]
    inputs: tuple[InputRow, ...]
    remarks: tuple[Remark, ...]
    records: tuple[StoredRecords, ...] = ()
    baseline: bool = False


def save(run: Assembly, manifest: str, files: list[str], folder: Path) -> None:
    """Write what `load` and `parts` read back; `files` are the spans of each part."""
    (folder / FOLDER).mkdir()
    kept = []
    for number, (part, file) in enumerate(zip(run.parts, files, strict=True)):
        one = part.shaped
        for name in SMALL:
            path = folder / FOLDER / f"{number:05d}.{name}.parquet"
            pq.write_table(getattr(one, name), path, compression="lz4")
        kept.append(
            StoredPart(
                one.facts,
                part.identity,
                part.head,
                part.digest,
                file,
                one.span_count,
                one.device_count,
                one.launched_count,
                one.correlated,
                one.first_ns,
                one.last_ns,
                one.found_by,
                one.confidence,
            )
        )
    records = tuple(_save_records(n, one, folder) for n, one in enumerate(run.records))
    stored = Stored(
        run.key, manifest, run.line.t0_epoch_ns, tuple(kept), run.inputs, run.remarks, records,
        run.baseline,
    )  # fmt: skip
    (folder / FILE).write_bytes(msgspec.json.encode(stored))


def _save_records(number: int, part: RecordPart, folder: Path) -> StoredRecords:
    for name in TABLES:
        table = getattr(part.records, name)
        if table.num_rows:
            pq.write_table(table, _record_file(folder, number, name), compression="zstd")
    return about(part)


def _record_file(folder: Path, number: int, name: str) -> Path:
    return folder / FOLDER / f"r{number:05d}.{name}.parquet"


LASTING: Final = ("host_facts", "nccl_topology", "note")
OF_A_RUN: Final = ("vllm", "sglang", "trtllm", "triton", "nccl", "torch")


def _lasting(records: Records) -> bool:
    """Tell whether a file is about the host and not about a run, as a kernel's log is."""
    if records.facts.format != "log":
        return records.facts.format in LASTING
    return not set(records.lines["origin"].cast(pa.string()).unique().to_pylist()) & {*OF_A_RUN}


def about(part: RecordPart) -> StoredRecords:
    """Give what is known of a file's records beside its tables."""
    return StoredRecords(
        part.records.facts, part.records.clock, part.host, part.host_source, part.head,
        part.digest, part.modified_ns, part.size, part.baseline, window_of(part.records),
        tuple(sorted(comms_of(part.records))), _lasting(part.records),
    )  # fmt: skip


def records_of(archive: Archive, entry: RunEntry, stored: Stored, number: int) -> RecordPart:
    """Give a file's records with their tables."""
    folder = archive.folder_of(entry.run_id)
    kept = stored.records[number]
    tables = {
        name: pq.read_table(path, schema=TABLES[name])
        for name in TABLES
        if (path := _record_file(folder, number, name)).exists()
    }
    return RecordPart(
        Records(kept.facts, kept.clock, **tables),
        kept.host, kept.host_source, kept.head, kept.digest, kept.modified_ns, kept.size,
        kept.baseline,
    )  # fmt: skip


def load(archive: Archive, entry: RunEntry) -> Stored | None:
    """Give what is known of a stored run; None where another release wrote it otherwise."""
    try:
        text = (archive.folder_of(entry.run_id) / FILE).read_bytes()
        return msgspec.json.decode(text, type=Stored)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def part_of(archive: Archive, entry: RunEntry, stored: Stored, number: int, copy: Path) -> Part:
    """Give a part with its tables; its spans are linked or copied to `copy`."""
    folder = archive.folder_of(entry.run_id)
    kept = stored.parts[number]
    tables = {
        name: pq.read_table(path)
        for name in SMALL
        if (path := folder / FOLDER / f"{number:05d}.{name}.parquet").exists()  # some came later
    }
    _link(folder / kept.spans, copy)
    shaped = Shaped(
        facts=kept.facts,
        spans=copy,
        span_count=kept.span_count,
        device_count=kept.device_count,
        launched_count=kept.launched_count,
        correlated=kept.correlated,
        first_ns=kept.first_ns,
        last_ns=kept.last_ns,
        found_by=kept.found_by,
        confidence=kept.confidence,
        **tables,
    )
    return Part(shaped, replace(kept.identity), kept.head, kept.digest)


def _link(source: Path, to: Path) -> None:
    """Files of a generation never change, so that two generations may share one."""
    try:
        to.hardlink_to(source)
    except OSError:
        to.write_bytes(source.read_bytes())
