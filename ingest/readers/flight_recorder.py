"""Reader of dumps of PyTorch's flight recorder: pickle or JSON, a file a rank."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from teller.ingest.plausible import MOST_RANKS
from teller.ingest.readers import recorder_json, recorder_pickle
from teller.ingest.readers.kineto_text import Text
from teller.ingest.readers.recorder_tables import Dump, dump_of, joins, members, names_of
from teller.ingest.records import SAMPLES, Records
from teller.ingest.source import Facts, Reading, Remark

FORMAT: Final = "flight_recorder"
PICKLE: Final = re.compile(rb"\x80[\x02-\x05]")
NUMBER: Final = re.compile(r"\d+")
SUFFIX: Final = re.compile(r"(?i)(?:\.(?:json|pkl|pickle|bin|dump|dmp|txt|log|gz|zst|bak))+$")
AGAIN: Final = "have the rank dump again, or take the file from where the rank wrote it"
WORDS: Final = (b"pg_config", b"pg_status"), (b"collective_seq_id", b"profiling_name")
BEGINS: Final = re.compile(  # the ranks of large jobs fill the head
    rb'\s*\{\s*(?:"(?:nccl_version|comm_lib_version|version)"\s*:\s*"[^"]*",\s*)*"pg_config"\s*:\s*\{'
    rb"|\x80.{0,100}pg_config",
    re.DOTALL,
)


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether this is a dump: its own words in a pickle or in JSON that is no trace."""
    opening = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not PICKLE.match(head) and (opening != b"{" or b'"traceEvents"' in head):
        return False
    return bool(BEGINS.match(head)) or any(all(w in head for w in words) for words in WORDS)


def read(path: Path) -> Reading:
    """Read one dump; what more than data a pickle holds is refused and never run."""
    content, remarks = _content(path)
    try:
        load = recorder_pickle.load if PICKLE.match(content) else recorder_json.load
        document, broken = load(content)
    except recorder_pickle.RefusedError as error:
        what = f"the pickle holds more than data ({error}) and was not read"
        return Reading((), (*remarks, Remark(str(path), "pickle", what, AGAIN)))
    dump = dump_of(document) if isinstance(document, Mapping) else None
    if dump is None or not (dump.groups or dump.status or dump.entries):
        what = f"nothing of it can be read: {broken or 'it holds no dump'}"
        return Reading((), (*remarks, Remark(str(path), "byte 0", what, AGAIN)))
    rank, source, doubts = _rank(path, dump)
    remarks += [*_damage(path, dump, broken), *doubts]
    facts = Facts(
        path=str(path),
        format=FORMAT,
        rank=rank,
        rank_source=source,
        world_size=_world_size(dump),
        groups=dump.groups,
        product=f"flight recorder {dump.version}".strip(),
        event_count=len(dump.entries),
    )
    record = Records(
        facts,
        "utc",
        samples=_version(dump, rank),
        members=members(dump, rank),
        joins=joins(dump, rank),
    )
    return Reading((), tuple(remarks), (record,))


def _content(path: Path) -> tuple[bytes, list[Remark]]:
    text, parts, size = Text(path), [], 0
    for piece in text.pieces():
        parts.append(piece)
        size += len(piece)
        if size > recorder_pickle.LONGEST:
            break
    damage = [Remark(str(path), "gzip", text.damage, AGAIN)] if text.damage else []
    return b"".join(parts)[: recorder_pickle.LONGEST], damage


def _rank(path: Path, dump: Dump) -> tuple[int | None, str, list[Remark]]:
    """Give the rank by the last number of the file's name, where the groups do not deny it."""
    known = {rank for group in dump.groups for rank in group.ranks}
    own = set(known).intersection(*(group.ranks for group in dump.groups))
    numbers = NUMBER.findall(SUFFIX.sub("", path.name))
    if numbers and len(numbers[-1]) < 8 and int(numbers[-1]) < MOST_RANKS:
        rank = int(numbers[-1])
        if rank in known or not known:
            return rank, "file name", []
    if len(own) == 1:
        return own.pop(), "process groups", []
    what = "does not say its rank, and its name ends in no rank of its groups"
    remedy = "name the file as the recorder does, PREFIX and rank, or use --rank-regex"
    return None, "", [Remark(str(path), "file name", what, remedy)]


def _damage(path: Path, dump: Dump, broken: str) -> list[Remark]:
    remarks = []
    if broken:
        what = f"the dump is not whole ({broken}); {len(dump.entries):,} entries could be read"
        remarks.append(Remark(str(path), f"entry {len(dump.entries) + 1}", what, AGAIN))
    if dump.odd:
        what = f"{dump.odd:,} entries are none: name or state is missing"
        remarks.append(Remark(str(path), "entries", what, AGAIN))
    _, unnamed = names_of(dump)
    if unnamed:
        what = f"counters of {unnamed} groups say no name, so they are left out"
        remedy = "nothing to do; entries of these groups would tell it"
        remarks.append(Remark(str(path), "pg_status", what, remedy))
    return remarks


def _world_size(dump: Dump) -> int | None:
    default = [
        g.size for g in dump.groups if g.desc == "default_pg" or g.name in ("0", "default_pg")
    ]
    return max(default, default=0) or None


def _version(dump: Dump, rank: int | None) -> pa.Table:
    row = {"name": "nccl.version", "text": dump.library, "rank": rank}
    return pa.Table.from_pylist([row] if dump.library else [], SAMPLES)
