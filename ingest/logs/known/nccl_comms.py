"""Communicators in NCCL's lines: who is in which, and which one a later line is about.

Lines carry a communicator's id only where it begins; later ones its pointer, or nothing but host
and process. So what began is remembered for the file, and asked for the latest before a line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import WHO, matched
from teller.ingest.logs.known.nccl_lines import process_of
from teller.ingest.logs.meaning import integers
from teller.ingest.nccl_hash import split_id
from teller.ingest.nccl_words import comm_of
from teller.ingest.records import MEMBERS

INIT: Final = (
    r"comm (?P<pointer>0x[0-9a-fA-F]+) rank (?P<own>\d{1,7}) nranks (?P<of>\d{1,7}) "
    r"cudaDev (?P<cuda>\d{1,5})(?: nvmlDev (?P<nvml>\d{1,5}))?(?: busId [0-9a-fA-F]+)?"
    r"(?: parent (?P<parent>0x[0-9a-fA-F]+)(?: (?:split|child)Count (?P<count>\d{1,9}))?"
    r" color (?P<color>-?\d{1,10}) key -?\d{1,10})?(?: commId (?P<comm>0x[0-9a-fA-F]+))?"
    r" ?- Init (?P<stage>START|COMPLETE)"
)
PLACE_BITS: Final = 30  # places are below 2**29
NEWEST: Final = (2, 30)


@dataclass(frozen=True, slots=True)
class Comm:
    """One rank of a communicator in one process; `comm` is None where no line tells its id."""

    process: str
    host: str
    comm: str | None
    own: int  # its rank in it
    of: int  # ranks in it


@dataclass(slots=True)
class Latest:
    """What was said last of something, before a place."""

    _numbers: dict[str, int] = field(default_factory=dict)
    _said: list[tuple[int, int]] = field(default_factory=list)  # key and place as one, what

    def say(self, key: str, place: int, what: int) -> None:
        """Keep that this holds of a key from a place on."""
        number = self._numbers.setdefault(key, len(self._numbers))
        self._said.append(((number << PLACE_BITS) + place, what))

    def of(self, keys: pa.Array, places: pa.Array) -> pa.Int64Array:
        """Give for each row what holds of its key at its place; null where nothing does."""
        coded = keys.dictionary_encode()
        numbers = [self._numbers.get(key, -1) for key in coded.dictionary.to_pylist()]
        number = np.array(numbers or [0], np.int64)[coded.indices.to_numpy(zero_copy_only=False)]
        said = np.array(sorted(self._said) or [(-1, -1)], np.int64)
        at = np.searchsorted(
            said[:, 0], (number << PLACE_BITS) + places.to_numpy(zero_copy_only=False), "right"
        )
        before = said[(at - 1).clip(min=0)]
        holds = (at > 0) & (number >= 0) & (before[:, 0] >> PLACE_BITS == number)
        return pa.array(before[:, 1], mask=~holds)


@dataclass(slots=True)
class Comms:
    """The communicators of a file, as far as its lines are read."""

    version: tuple[int, int] = NEWEST
    known: list[Comm] = field(default_factory=list)
    _of_pointer: Latest = field(default_factory=Latest)
    _of_rank: Latest = field(default_factory=Latest)
    _of_process: Latest = field(default_factory=Latest)
    _open: set[str] = field(default_factory=set)  # process and pointer
    _ranks: dict[tuple[str, str | None], set[int]] = field(default_factory=dict)

    def learn(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Read the lines in which communicators begin; give memberships, and the lines read."""
        begins = matched(rows, INIT, "- Init ")
        processes = process_of(begins).to_pylist()
        told = zip(processes, begins.to_pylist(), strict=True)
        new = pa.array([self._begin(process, row) for process, row in told], pa.int64())
        first = pc.is_valid(self.column("comm", new))
        return self._members(begins.filter(first), new.filter(first)), begins

    def _begin(self, process: str, row: Mapping[str, str]) -> int | None:
        """Remember a communicator from its first line on; give it where that is this line."""
        pointer, place = f"{process} {row['pointer']}", int(row["place"])
        if row["stage"] == "COMPLETE" and pointer in self._open:
            self._open.remove(pointer)
            return None
        comm = comm_of(row["comm"]) or self._split(process, row)
        one = Comm(process, row["host"] or "", comm, int(row["own"]), int(row["of"]))
        number = len(self.known)
        self.known.append(one)
        self._of_pointer.say(pointer, place, number)
        self._of_pointer.say(f"{row['pid']} {row['pointer']}", place, number)
        self._of_rank.say(f"{process} {one.own}", place, number)
        self._of_process.say(process, place, number)
        self._ranks.setdefault((process, comm), set()).add(one.own)
        if row["stage"] == "START":
            self._open.add(pointer)
        return number

    def _split(self, process: str, row: Mapping[str, str]) -> str | None:
        if not row["parent"]:
            return None
        key, place = pa.array([f"{process} {row['parent']}"]), pa.array([int(row["place"])])
        parent = self.column("comm", self._of_pointer.of(key, place))[0].as_py()
        count = int(row["count"]) if row["count"] else None
        return split_id(parent, count, int(row["color"]), self.version) if parent else None

    def _members(self, rows: pa.Table, comms: pa.Int64Array) -> pa.Table:
        device = pc.if_else(pc.equal(rows["nvml"], ""), rows["cuda"], rows["nvml"])
        made = {who: rows[who] for who in WHO} | {
            "group_name": pa.array([""] * len(comms), pa.string()),
            "comm": self.column("comm", comms),
            "world_size": self.column("of", comms),
            "group_rank": self.column("own", comms),
            "device_index": integers(device),
            "rank": self.ranks(rows, comms),
        }
        columns = [made.get(f.name, pa.nulls(len(comms))).cast(f.type) for f in MEMBERS]
        return pa.table(columns, schema=MEMBERS)

    def column(self, name: str, comms: pa.Int64Array) -> pa.Array:
        """Give a fact of each communicator; null where there is none."""
        kind = pa.int64() if name in ("own", "of") else pa.string()
        return pa.array([getattr(one, name) for one in self.known], kind).take(comms)

    def ranks(self, rows: pa.Table, comms: pa.Int64Array) -> pa.Array:
        """Give the rank of each row: the line's own, else, where one process has several, theirs.

        A process that runs several devices makes its communicators for all of them together, so
        the communicator's ranks are the run's; for one device a process this need not be so.
        """
        several = [
            one.own if len(self._ranks[one.process, one.comm]) > 1 else None for one in self.known
        ]
        theirs = pa.array(several, pa.int64()).take(comms)
        return pc.coalesce(rows["rank"].combine_chunks(), theirs)

    def by_pointer(self, rows: pa.Table) -> pa.Int64Array:
        """Give the communicator that the pointer of each row means.

        What another writer left in front of a line is read as a part of the host's name, so where
        host, pid and pointer are not known together, pid and pointer decide.
        """
        pointer, places = rows["pointer"].combine_chunks(), rows["place"].combine_chunks()
        pid = pc.fill_null(rows["pid"].combine_chunks().cast(pa.string()), "")
        whole, part = (
            self._of_pointer.of(pc.binary_join_element_wise(who, pointer, " "), places)
            for who in (process_of(rows), pid)
        )
        return pc.coalesce(whole, part)

    def by_rank(self, rows: pa.Table, own: pa.Array) -> pa.Int64Array:
        """Give the latest communicator in which the process of each row has that rank."""
        keys = pc.binary_join_element_wise(process_of(rows), own, " ")
        return self._of_rank.of(keys, rows["place"].combine_chunks())

    def by_process(self, rows: pa.Table) -> pa.Int64Array:
        """Give the latest communicator of the process of each row."""
        return self._of_process.of(process_of(rows), rows["place"].combine_chunks())
