"""What ingest keeps of a run beside its graph tables, so that later sources can join it.

`parts.json` holds what is known of each source, its inputs and remarks; `parts/N.TABLE.parquet` the
small tables that shaping left; the spans stand in `spans/` already.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pyarrow.parquet as pq

from teller.graph.archive import Archive, RunEntry
from teller.ingest.assembly import Assembly, InputRow, Part
from teller.ingest.shape import Shaped
from teller.ingest.source import Facts, Remark
from teller.ingest.who import Identity

FILE: Final = "parts.json"
FOLDER: Final = "parts"
SMALL: Final = ("steps", "operators", "calls", "paces", "silences")


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


class Stored(msgspec.Struct, frozen=True):
    """A run as ingest left it."""

    key: str
    manifest: str
    t0_epoch_ns: int  # zero of the axis, also where no clock is anchored
    parts: tuple[StoredPart, ...]
    inputs: tuple[InputRow, ...]
    remarks: tuple[Remark, ...]


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
    stored = Stored(run.key, manifest, run.line.t0_epoch_ns, tuple(kept), run.inputs, run.remarks)
    (folder / FILE).write_bytes(msgspec.json.encode(stored))


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
        name: pq.read_table(folder / FOLDER / f"{number:05d}.{name}.parquet") for name in SMALL
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
