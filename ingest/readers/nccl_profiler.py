"""Reader of what plug-ins of NCCL's profiler write: the example's events, and lines of records."""

import re
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers import profiler_example, profiler_lines
from teller.ingest.readers.json_records import Ints, Lines, records, spread
from teller.ingest.readers.kineto_text import Text
from teller.ingest.readers.profiler_tables import RANKS, joins, members
from teller.ingest.records import Records
from teller.ingest.source import Facts, Reading, Remark

FORMAT: Final = "nccl_profiler"
EXAMPLE: Final = re.compile(  # its arguments and their order are its own
    rb'(?:\xef\xbb\xbf)?\s*\[?\s*\{\s*"name"\s*:\s*"[^"]*"\s*,\s*"cat"\s*:\s*"'
    rb"(?:GROUP|GROUP_API|COLL|COLL_API|P2P|P2P_API|KERNEL_LAUNCH|PROXY|NET|NET_IB|NET_SOCK|GPU|"
    rb'CE_\w+)"\s*,\s*"ph"\s*:\s*"[be]"'
)
LINES: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{[^{}]*"(?:type|recordType)"\s*:\s*"'
    rb'(?:ProfilerLifecycle"|ncclProfile\w+"|(?:event|state)"[^{}]*(?:"ncclProfile|"eventAddr"))'
)
AGAIN: Final = "take the file again from where the plug-in wrote it"


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether the text begins as one of these plug-ins begins it."""
    return bool(EXAMPLE.match(head) or LINES.match(head))


def read(path: Path) -> Reading:
    """Read all events; lines that are none are counted."""
    text = Text(path)
    head = next(text.pieces(), b"")
    example = bool(EXAMPLE.match(head))
    lines, parts, bad = Lines(Text(path)), [], []
    for block, number in lines.blocks():
        found, none = _events(block, number, example)
        parts.append(found)
        bad.append(none)
    form = profiler_example if example else profiler_lines
    every = pa.concat_tables([form.EVENTS.empty_table(), *parts])
    if not every.num_rows:  # written anew by a tool, a field a line
        every, none = _events(spread(text, b"name" if example else b"type"), 0, example)
        bad = [none]
    remarks = _remarks(path, lines.damage, np.concatenate([np.zeros(0, np.int64), *bad]))
    done = form.operations(every)
    ranks = RANKS.empty_table() if example else profiler_lines.ranks(every)
    if not done.num_rows and not ranks.num_rows:
        what = "no event of a collective or of a rank can be read"
        return Reading((), (*remarks, Remark(str(path), "line 1", what, AGAIN)))
    record = Records(
        _facts(path, every, done, example=example),
        "boot",
        members=members(done, ranks),
        joins=joins(done, ranks),
    )
    return Reading((), remarks, (record,))


def _events(lines: pa.Array, first: int, example: bool) -> tuple[pa.Table, Ints]:
    """Give the events of lines, and the lines that are no record."""
    if example:
        found, none = records(profiler_example.valid(lines), first, profiler_example.SCHEMA)
        return profiler_example.events(found), none
    found, none = records(lines, first, profiler_lines.SCHEMA)
    return profiler_lines.events(found), none


def _facts(path: Path, every: pa.Table, done: pa.Table, *, example: bool) -> Facts:
    pids = every["pid"].drop_null().unique().to_pylist()
    proxies = every.filter(pc.equal(every["kind"], "proxy"))
    if example:
        proxies = proxies.filter(proxies["begins"])
    return Facts(
        path=str(path),
        format=FORMAT,
        pid=pids[0] if len(pids) == 1 else None,
        product="NCCL's example plug-in" if example else "NCCL profiler plug-in",
        options={
            "clock": "since the plug-in began" if example else "since the host's start",
            "proxy_events": str(proxies.num_rows),
        },
        event_count=done.num_rows,
    )


def _remarks(path: Path, damage: str, bad: Ints) -> tuple[Remark, ...]:
    remarks = [Remark(str(path), "gzip", damage, AGAIN)] if damage else []
    if len(bad):
        what = f"not every line is an event; {len(bad):,} could not be read"
        remarks.append(Remark(str(path), f"line {bad.min()}", what, AGAIN))
    return tuple(remarks)
