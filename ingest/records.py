"""What readers give beside spans: log lines, side facts, groups, collectives, paths, requests.

One file gives one `Records`. A row says which rank, host and process it is about as far as the file
tells; `ingest.placing` works out the rest over all files of a run. Times are epoch ns as `clock`
says; what a file does not tell is null.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.source import WORDS, Facts

# utc: true epoch. local: civil time of an unknown zone, read as UTC. yearless: the same in the year
# 2000 (a line after New Year is in 2001). boot: ns since the host's start. none: no row has a time.
ClockKind = Literal["utc", "local", "yearless", "boot", "none"]
YEARLESS: Final = 2000

_WHO = [
    ("rank", pa.int64()),  # global rank, where the row or the file tells it
    ("host", pa.string()),
    ("pid", pa.int64()),
    ("line", pa.int64()),  # from 1: the line, or the number of the record or entry
]

# One row a log message; continuation lines belong to it. Secrets are gone from all text.
LINES: Final = pa.schema(
    [
        ("place", pa.int64()),  # 0 to 2**29 - 1, unique in the file, the same when the file grows
        ("time_ns", pa.int64()),  # null: the line has no time
        ("resolution_ns", pa.int64()),  # how fine its time is: 1_000_000_000 for whole seconds
        *_WHO,
        ("process", WORDS),  # as the log labels it: "EngineCore_DP0", "Worker_TP1", "APIServer", ""
        ("level", WORDS),  # debug, info, warning, error, fatal, ""
        ("origin", WORDS),  # who wrote it: vllm, sglang, trtllm, nccl, torch, kernel, ray, …, ""
        ("text", pa.string()),  # the message without its header
        ("template", WORDS),  # the text with its parameters as <*>
        ("params", pa.string()),  # JSON: object of named figures, else list of what <*> stood for
        ("step_index", pa.int64()),  # the engine's own iteration number, where the line has one
        ("request", pa.string()),  # the request it speaks of
    ]
)

# One row a side fact. `name` is one of teller.graph.vocabulary, or "prom:METRIC" as it stands.
SAMPLES: Final = pa.schema(
    [
        ("name", pa.string()),
        ("value", pa.float64()),
        ("text", pa.string()),
        ("time_ns", pa.int64()),
        *_WHO,
        ("process", pa.string()),
        ("device_index", pa.int64()),  # as nvidia-smi counts on that host
    ]
)

# One row a rank's membership of a group. Rows of one group and rank add up: the largest counters.
MEMBERS: Final = pa.schema(
    [
        ("group_name", pa.string()),  # PyTorch's name; "" where only `comm` is known
        ("desc", pa.string()),
        ("comm", pa.string()),  # hex without 0x; null where not known
        ("world_size", pa.int64()),
        ("group_rank", pa.int64()),
        *_WHO,
        ("device_index", pa.int64()),
        ("last_enqueued", pa.int64()),
        ("last_started", pa.int64()),
        ("last_completed", pa.int64()),
    ]
)

# One row a rank's record of a collective.
JOINS: Final = pa.schema(
    [
        ("group_name", pa.string()),
        ("comm", pa.string()),
        ("seq", pa.int64()),  # from 1, as PyTorch counts: NCCL's opCount and its like plus 1
        ("op", pa.string()),  # one of teller.ingest.source.OPS
        ("label", pa.string()),  # as the record names it: nccl:_all_gather_base
        ("size_bytes", pa.int64()),  # of this rank's input
        ("shape", pa.string()),  # of this rank's input, as the record prints it: [[13, 12664]]
        ("dtype", pa.string()),
        ("peer", pa.int64()),  # group rank of the other side: send, recv
        ("state", pa.string()),  # scheduled, started or completed
        ("time_ns", pa.int64()),  # when the rank enqueued it
        ("end_ns", pa.int64()),
        ("algo", pa.string()),
        ("proto", pa.string()),
        *_WHO,
    ]
)

# One row a channel's edge as one process prints it. Ranks are the communicator's.
PATHS: Final = pa.schema(
    [
        ("comm", pa.string()),
        ("channel", pa.int64()),
        ("src_rank", pa.int64()),
        ("dst_rank", pa.int64()),
        ("transport", pa.string()),  # the last word: P2P/CUMEM, SHM/direct, NET/IB/0/GDRDMA
        *_WHO,
    ]
)

# One row what a file says of a request; rows of one name add up.
REQUESTS: Final = pa.schema(
    [
        ("name", pa.string()),
        ("start_ns", pa.int64()),
        ("first_token_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("prompt_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("ttft_ns", pa.int64()),
        ("itl_p50_ns", pa.int64()),
        ("queue_ns", pa.int64()),
        ("preemptions", pa.int64()),
        ("status", pa.string()),  # ok, timeout, aborted, error, running, …
        *_WHO,
    ]
)

TABLES: Final = {
    "lines": LINES,
    "samples": SAMPLES,
    "members": MEMBERS,
    "joins": JOINS,
    "paths": PATHS,
    "requests": REQUESTS,
}
TIME_COLUMNS: Final = {
    "lines": ("time_ns",),
    "samples": ("time_ns",),
    "joins": ("time_ns", "end_ns"),
    "requests": ("start_ns", "first_token_ns", "end_ns"),
}


@dataclass(frozen=True, slots=True)
class Learned:
    """Tables of facts; a part of a file's records."""

    samples: pa.Table = field(default_factory=SAMPLES.empty_table)
    members: pa.Table = field(default_factory=MEMBERS.empty_table)
    joins: pa.Table = field(default_factory=JOINS.empty_table)
    paths: pa.Table = field(default_factory=PATHS.empty_table)
    requests: pa.Table = field(default_factory=REQUESTS.empty_table)


@dataclass(frozen=True, slots=True)
class Records:
    """All that one file says. `facts.event_count` is the number of lines, entries or rows used."""

    facts: Facts
    clock: ClockKind
    lines: pa.Table = field(default_factory=LINES.empty_table)
    samples: pa.Table = field(default_factory=SAMPLES.empty_table)
    members: pa.Table = field(default_factory=MEMBERS.empty_table)
    joins: pa.Table = field(default_factory=JOINS.empty_table)
    paths: pa.Table = field(default_factory=PATHS.empty_table)
    requests: pa.Table = field(default_factory=REQUESTS.empty_table)


def window_of(records: Records) -> tuple[int, int] | None:
    """Give the first and last time of a file's records, on its own clock."""
    times = [
        getattr(records, table)[column]
        for table, columns in TIME_COLUMNS.items()
        for column in columns
    ]
    ends = [pc.min_max(t).as_py() for t in times if t.null_count < len(t)]
    return (min(e["min"] for e in ends), max(e["max"] for e in ends)) if ends else None


def hosts_of(records: Records) -> set[str]:
    """Give the hosts that a file's rows name."""
    tables = (getattr(records, name) for name in TABLES if "host" in TABLES[name].names)
    return {h for table in tables for h in pc.unique(table["host"]).to_pylist() if h}


def comms_of(records: Records) -> set[str]:
    """Give the communicators that a file names."""
    tables = (records.members, records.joins, records.paths)
    return {c for table in tables for c in pc.unique(table["comm"]).to_pylist() if c}
