"""What NCCL says went wrong: completions in error, events of devices, and other failures."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import matched, samples
from teller.ingest.logs.known.nccl_comms import Comms
from teller.ingest.logs.known.nccl_lines import short
from teller.ingest.logs.meaning import integers

COMPLETION: Final = (
    r"Got completion (?:from peer (?P<peer>[^\s<]+)(?:<(?P<port>\d+)>)? )?with "
    r"(?:error |status=)(?:\w+\()?(?P<status>\d{1,9})\b(?P<more>.*)$"
)
MORE: Final = (  # the second GID is glued to its word in most releases
    ("vendor_error", r"vendor[_ ]err(?:or)?[ =](?P<vendor_error>\d+)"),
    ("local_gid", r"\blocalGid ?(?P<local_gid>[0-9a-fA-F:.]+)"),
    ("remote_gid", r"\bremoteGids? ?(?P<remote_gid>[0-9a-fA-F:.]+)"),
    ("device", r"\bhca (?P<device>\S+)"),
)
EVENT: Final = (
    r"(?P<what>.*(?:[Gg]ot async event|async fatal event|async event|GID table changed|"
    r"unknown event type).*)$"
)
UNWINDING: Final = (
    r"^(?:\[-?\d+\] )?(?:NCCL (?:INFO|WARN) )?(?P<where>[\w./+-]+\.(?:cc|cu|c|h|cpp):\d+)"
    r"(?: \([^)]*\))? -> (?P<result>\d{1,3})\b"
)
ENDED: Final = (
    r"^comm (?P<pointer>0x[0-9a-fA-F]+) rank (?P<own>\d{1,7}) n[rR]anks \d+ .*- "
    r"(?P<stage>Destroy|Abort|Revoke) COMPLETE"
)
FAILURE: Final = (
    r"(?P<what>.*(?:Call to \w+ .*(?:returned|failed|timed out)|operation=\w+, ?res=[1-9]|"
    r"[Cc]onnection closed by|closed connection|[Cc]onnection (?:reset|refused|timed out)|"
    r"[Mm]ismatched NCCL version|NCCL version mismatch|Cuda failure|CUDA failure|"
    r"Failed to initialize any NET|\bError:|\berror encountered).*)$"
)
FAILURE_WORDS: Final = (
    "Call to ", "operation=", "onnection ", "closed connection", "ismatch", "uda failure",
    "CUDA failure", "Failed to init", "rror",
)  # fmt: skip
RESULT: Final = r"\bres(?:ult)?[ =:]+(?P<result>\d{1,3})\b"


def failures(rows: pa.Table, taken: pa.Array, comms: Comms) -> list[tuple[pa.Table, pa.Table]]:
    """Give samples of failures, each with its lines; `taken` are places read by others."""
    completions = _completions(rows)
    events = matched(rows, EVENT, "async", "GID table changed", "unknown event type")
    raw = rows.drop_columns("text").rename_columns({"raw": "text"})
    unwound = matched(raw, UNWINDING, " -> ")
    found = [
        completions,
        (samples("nccl.async_event", events, text=_short(events["what"])), events),
        (samples("nccl.error", unwound, value=integers(unwound["result"]),
                 text=_unwinding(unwound)), unwound),
        _aborted(rows, comms),
    ]  # fmt: skip
    read = pa.chunked_array([taken, *(chunk for _, t in found for chunk in t["place"].chunks)])
    rest = rows.filter(pc.invert(pc.is_in(rows["place"], read)))
    return [*found, _others(rest)]


def _completions(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Give a sample for each failed network operation; its text says `word=what` where told."""
    told = matched(rows, COMPLETION, "Got completion ")
    more = told["more"].combine_chunks()
    values = {"peer": told["peer"].combine_chunks(), "port": told["port"].combine_chunks()}
    for name, form in MORE:
        values[name] = pc.struct_field(pc.extract_regex(more, form), name)
    said = [_said(name, values[name]) for name in (*(n for n, _ in MORE), "peer", "port")]
    order = (said[3], said[1], said[2], said[4], said[5], said[0])
    text = pc.utf8_trim_whitespace(pc.binary_join_element_wise(*order, ""))
    status = integers(told["status"])
    return samples("nccl.completion_error", told, value=status, text=text), told


def _said(name: str, value: pa.Array) -> pa.Array:
    told = pc.and_(pc.is_valid(value), pc.not_equal(value, ""))
    words = pc.binary_join_element_wise(f" {name}=", pc.fill_null(value, ""), "")
    return pc.if_else(pc.fill_null(told, False), words, "")


def _unwinding(rows: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(rows["where"], rows["result"], " -> ")


def _aborted(rows: pa.Table, comms: Comms) -> tuple[pa.Table, pa.Table]:
    """Give a sample for each communicator that was given up; an orderly end is none."""
    ended = matched(rows, ENDED, " COMPLETE")
    bad = ended.filter(pc.not_equal(ended["stage"], "Destroy"))
    comm = pc.fill_null(comms.column("comm", comms.by_pointer(bad)), "")
    text = pc.binary_join_element_wise(bad["stage"], " of communicator ", comm, " rank ",
                                       bad["own"], "")  # fmt: skip
    return samples("nccl.error", bad, text=text), ended


def _others(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Give a sample for each warning and each line with the words of a failure."""
    known = matched(rows, FAILURE, *FAILURE_WORDS).drop_columns("what")
    level = pc.fill_null(rows["level"].combine_chunks().cast(pa.string()), "")
    loud = pc.or_(
        pc.is_in(level, pa.array(["warning", "error", "fatal"])),
        pc.match_substring(rows["raw"].combine_chunks(), "NCCL WARN "),
    )
    loud = pc.and_(loud, pc.invert(pc.is_in(rows["place"], known["place"])).combine_chunks())
    told = pa.concat_tables([known, rows.filter(loud)]).sort_by("place")
    text = told["text"].combine_chunks()
    result = integers(pc.struct_field(pc.extract_regex(text, RESULT), "result"))
    return samples("nccl.error", told, value=result, text=short(text)), told


def _short(text: pa.ChunkedArray) -> pa.Array:
    return short(text.combine_chunks())
