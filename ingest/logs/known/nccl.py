"""NCCL's debug lines, of all releases: communicators, paths, calls, surroundings and failures."""

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import Knowing, Meant, samples
from teller.ingest.logs.known import nccl_facts, nccl_failures
from teller.ingest.logs.known.nccl_calls import calls, choices
from teller.ingest.logs.known.nccl_comms import Comms
from teller.ingest.logs.known.nccl_lines import own, short, with_word
from teller.ingest.logs.known.nccl_paths import network_edges, paths, sizes
from teller.ingest.records import MEMBERS, SAMPLES, Learned

MARKS: Final[tuple[str, ...]] = (
    "comm 0x", "opCount ", " via ", " Bytes -> Algo", " coll channels", "Init timings",
    "Using network", "Assigned NET", ": Using ", " set by environment to ", " set to ",
    "GPU Direct RDMA",
    "use ring PXN", "NCCL ", "Got completion", "ibv_", "open device", "async ", "GID table",
    "P2P ", "eer access", "ACS", "IOMMU", "iommu", "RAS ", " -> ", "Call to ", "operation=",
    "onnection ", "ismatch", "ailed", "ailure", "rror", "imeout", "timed out", "isabled",
    "NET/", "unknown", "nvalid", "unable", "nable to", "not found", "closed",
)  # fmt: skip
RECORDS: Final = (  # what looks like a record, so must be read
    ("opCount ", r"opCount [0-9a-fA-F]+ sendbuff"),
    ("- Init ", r"- Init (?:START|COMPLETE)"),
    (" via ", r"(?:Channel|Ring) \d+.* via (?:P2P|SHM|NET|direct)"),
    ("Got completion", r"Got completion .*(?:error|status)"),
    ("Bytes -> Algo", r"Bytes -> Algo"),
    ("Init timings", r"^Init timings"),
)


def knowing() -> Knowing:
    """Begin a file."""
    return _Nccl()


@dataclass(slots=True)
class _Nccl:
    """The lines of one file; what is remembered is its communicators and its release."""

    _comms: Comms = field(default_factory=Comms)
    _released: bool = False

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines in order."""
        rows = own(lines)
        if not rows.num_rows:
            return Meant()
        of_calls, rest = with_word(rows, ": opCount ")
        of_choices, rest = with_word(rest, " Bytes -> Algo ")
        if not self._released and (release := nccl_facts.release(rest)):
            self._comms.version, self._released = release, True
        members, begins = self._comms.learn(rest)
        joins, called = calls(of_calls, self._comms)
        edges, channels = paths(rest, self._comms)
        said = [choices(of_choices), *sizes(rest, self._comms), *nccl_facts.facts(rest)]
        taken = _places([begins, channels, *(told for _, told in said)])
        said += nccl_failures.failures(rest, taken, self._comms)
        read = _places([begins, called, channels, *(told for _, told in said)])
        found = [*(table for table, _ in said), network_edges(channels), *_unread(rows, read)]
        learned = Learned(
            samples=pa.concat_tables([SAMPLES.empty_table(), *found]),
            members=pa.concat_tables([MEMBERS.empty_table(), members]),
            joins=joins,
            paths=edges,
        )
        return Meant(learned, pa.table({"place": read}))


def _places(tables: list[pa.Table]) -> pa.Array:
    chunks = [chunk for table in tables for chunk in table["place"].chunks]
    return pc.unique(pa.chunked_array(chunks, pa.int64()))


def _unread(rows: pa.Table, read: pa.Array) -> list[pa.Table]:
    """Count what looks like a record and was not read: cut, or garbled by another writer."""
    left = rows.filter(pc.invert(pc.is_in(rows["place"], read)))
    found = []
    for word, form in RECORDS:
        some, _ = with_word(left, word)
        bad = some.filter(pc.match_substring_regex(some["text"], form))
        if bad.num_rows:
            first = bad.slice(0, 1)
            text = short(first["text"].combine_chunks())
            found.append(samples("log.unread", first, value=bad.num_rows, text=text))
    return found
