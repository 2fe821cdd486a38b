"""Reader of what the NCCL Inspector writes: a JSON record for each operation that ended."""

import re
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers import inspector_tables as tables
from teller.ingest.readers.json_records import Ints, Lines, records, spread
from teller.ingest.readers.kineto_text import Text
from teller.ingest.records import Records
from teller.ingest.source import Facts, Reading, Remark

FORMAT: Final = "nccl_inspector"
OPENING: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\[\s]*\{")
OWN: Final = re.compile(rb'"(?:inspector_output_format_version|(?:coll|p2p)_msg_size_bytes)"\s*:')
BARE_ID: Final = r'("id"\s*:\s*)(\d+)'
AGAIN: Final = "take the file again from where the Inspector wrote it"


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether the text begins with a record of the Inspector, or of one that passes it on."""
    return bool(OPENING.match(head) and OWN.search(head)) and b'"traceEvents"' not in head


def read(path: Path) -> Reading:
    """Read all records; lines that are none are counted."""
    lines, parts, bad = Lines(Text(path)), [], []
    for block, number in lines.blocks():
        done, none = _operations(block, number)
        parts.append(done)
        bad.append(none)
    done = pa.concat_tables([tables.OPERATIONS.empty_table(), *parts])
    if not done.num_rows:  # written by a person or a tool, a field a line
        done, none = _operations(spread(Text(path), b"header"), 0)
        bad = [none]
    remarks = _remarks(path, lines.damage, np.concatenate([np.zeros(0, np.int64), *bad]))
    if not done.num_rows:
        what = "no record of an operation can be read"
        return Reading((), (*remarks, Remark(str(path), "line 1", what, AGAIN)))
    record = Records(
        _facts(path, done),
        "utc",
        samples=tables.bandwidths(done),
        members=tables.members(done),
        joins=tables.joins(done),
    )
    return Reading((), remarks, (record,))


def _operations(lines: pa.Array, first: int) -> tuple[pa.Table, Ints]:
    """Give the operations of lines, and the lines that are no record of one."""
    marked = pc.replace_substring_regex(lines, BARE_ID, r'\1"d\2"')
    found, none = records(marked, first, tables.SCHEMA)
    done = tables.operations(found)
    other = pc.invert(pc.is_in(found["line"], done["line"].combine_chunks()))
    return done, np.concatenate([none, found["line"].filter(other).to_numpy()])


def _facts(path: Path, done: pa.Table) -> Facts:
    hosts, pids = done["host"].unique().to_pylist(), done["pid"].unique().to_pylist()
    version = done["version"].drop_null().unique().to_pylist()
    return Facts(
        path=str(path),
        format=FORMAT,
        pid=pids[0] if len(pids) == 1 else None,
        host=(hosts[0] or "") if len(hosts) == 1 else "",
        host_source="record" if len(hosts) == 1 and hosts[0] else "",
        product=" ".join(["NCCL Inspector", *version[:1]]),
        event_count=done.num_rows,
    )


def _remarks(path: Path, damage: str, bad: Ints) -> tuple[Remark, ...]:
    remarks = [Remark(str(path), "gzip", damage, AGAIN)] if damage else []
    if len(bad):
        what = f"not every line is a record of an operation; {len(bad):,} could not be read"
        remarks.append(Remark(str(path), f"line {bad.min()}", what, AGAIN))
    return tuple(remarks)
