"""PyTorch: the watchdog of process groups in all its grammars, and the elastic launcher."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs import phrases
from teller.ingest.logs.knowledge import Meant, matched, number, samples
from teller.ingest.logs.meaning import (
    filled,
    having,
    integers,
    labelled,
    meant,
    parted,
    told,
    whole,
    with_text,
)
from teller.ingest.logs.phrases import LINE, Phrase
from teller.ingest.records import MEMBERS

_TIMEOUT: Final = "SeqNum="
_STATUS: Final = ("ast enqueued", "ast completed")
_SUMMARY: Final = "exitcode  :"
_SECOND: Final = 1e9
_GARBAGE: Final = 2**40  # no group counts that far: a counter that nothing had set

# "[PG ID 2 PG GUID 3(tp) Rank 1]", "[PG 1 Rank 1]", "[Rank 1]": the rank is the group's own.
_GROUP: Final = (
    r"\[(?:PG (?:ID \d+ PG GUID )?(?P<guid>[^\s()\]]+) ?(?:\((?P<desc>[^)]*)\))? ?)?"
    r"Rank (?P<member>\d+)\]"
)

_PHRASES: Final = (
    Phrase(
        "watchdog.stuck",
        "watchdog got stuck",
        r"watchdog got stuck for (?P<value>\d+) ?seconds",
        "process group",
        _SECOND,
    ),
    Phrase("watchdog.stuck", "Heartbeat monitor timed out", "", "heartbeat"),
    Phrase(
        "process.died",
        "failed (exitcode:",
        r"(?P<text>failed \(exitcode: (?P<value>-?\d+)\) local_rank: \d+ \(pid: (?P<pid>\d+)\))",
    ),
    Phrase(
        "process.died",
        "closing signal",
        r"(?P<text>Sending process (?P<pid>\d+) closing signal \w+)",
    ),
    Phrase("process.died", "got signal", r"(?P<text>Process (?P<pid>\d+) got signal: \d+)"),
    Phrase("process.died", "Fatal Python error", r"(?P<text>Fatal Python error: .*)"),
    Phrase("process.died", "terminate called after", "", LINE),
    Phrase("process.died", "taking the entire process down", "", LINE),
    Phrase("process.died", "watchdog thread terminated with exception", "", LINE),
)
_FAILURE: Final = Phrase(
    "process.died",
    _SUMMARY,
    r"(?s)\bhost +: (?P<host>\S+).*?\brank +: (?P<rank>\d+) \(local_rank: \d+\).*?"
    r"\bexitcode +: (?P<value>-?\d+) +\(pid: (?P<pid>\d+)\)(?:.*?\btraceback : (?P<text>[^\n]*))?",
)

MARKS: tuple[str, ...] = (_TIMEOUT, *_STATUS, _SUMMARY, *phrases.marks(_PHRASES))


class _Knowing:
    """What one file's lines of PyTorch mean."""

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines."""
        made, known = phrases.read(lines, _PHRASES)
        failed, also = phrases.read(_failures(having(lines, _SUMMARY)), [_FAILURE])
        watched = _placed(parted(lines, _TIMEOUT, *_STATUS)[0])
        counters, timeouts = _counters(watched), _timeouts(watched)
        known += [*also, *(told(rows, rank=rows["rank"]) for rows in (counters, *timeouts))]
        late = [sample for rows in timeouts for sample in _late(rows)]
        return meant([*made, *failed, *late, *_said(counters)], known, members=[_members(counters)])


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()


def _failures(lines: pa.Table) -> pa.Table:
    """Give one row a failed process: a summary of the launcher lists several."""
    parts = whole(pc.split_pattern_regex(lines["text"], r"\n\s*\[\d+\]:\s*\n"))
    rows = lines.take(pc.list_parent_indices(parts))
    return with_text(rows, parts.flatten())


def _placed(lines: pa.Table) -> pa.Table:
    """Add group, its description, and the rank in it; undo the wrapping of a terminal.

    The rank of the line stays where a header told it. The rank in the group is it only for the
    default group; the oldest grammar names no group and mostly means that one.
    """
    text = pc.replace_substring_regex(lines["text"], r"\s*\n\s*", "")
    lines = with_text(lines, text)
    found = pc.extract_regex(whole(lines["text"]), _GROUP)
    guid, desc, member = (pc.struct_field(found, name) for name in ("guid", "desc", "member"))
    default = pc.or_(pc.is_in(guid, pa.array(["", "0"])), pc.equal(desc, "default_pg"))
    rank = integers(member)
    own = pc.if_else(default, rank, pa.scalar(None, pa.int64()))
    lines = lines.set_column(
        lines.schema.get_field_index("rank"), "rank", pc.coalesce(whole(lines["rank"]), own)
    )
    for name, column in (("guid", filled(guid)), ("desc", filled(desc)), ("member", rank)):
        lines = lines.append_column(name, column)
    return lines


def _timeouts(lines: pa.Table) -> list[pa.Table]:
    """Read collectives that did not end in time: with their sizes, and by number alone."""
    sized = matched(
        lines,
        r"Work\w*\(SeqNum=(?P<seq>\d+), *OpType=(?P<op>\w+), *NumelIn=(?P<input>\d+), *"
        r"NumelOut=(?P<output>\d+)(?:, *Timeout\(ms\)=(?P<limit>\d+))?\)"
        r"(?: *ran *for *(?P<ran>\d+) *milliseconds)?",
    )
    numbered = matched(
        lines,
        r"(?:Timeout at NCCL work|detected by watchdog at work(?: *sequence id)?): *(?P<seq>\d+)",
    )
    return [rows for rows in (sized, numbered) if rows.num_rows]


def _late(rows: pa.Table) -> list[pa.Table]:
    """Say collectives that did not end in time."""
    group = pc.coalesce(labelled("group {}", rows["guid"]), pa.scalar(""))
    if "op" not in rows.column_names:
        return [samples("watchdog.timeout", rows, value=number(rows["seq"]), text=group)]
    text = labelled("{} NumelIn={} NumelOut={}", rows["op"], rows["input"], rows["output"])
    for form, column in ((" Timeout(ms)={}", rows["limit"]), (" ran for {} ms", rows["ran"])):
        more = pc.coalesce(labelled(form, filled(column)), pa.scalar(""))
        text = pc.binary_join_element_wise(text, more, "")
    text = pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(text, group, " "))
    return [
        samples("watchdog.timeout", rows, value=number(rows["seq"]), text=text),
        samples("watchdog.elements", rows, value=number(rows["input"]), text=rows["op"]),
    ]


def _counters(lines: pa.Table) -> pa.Table:
    """Read how far a group is on a rank; -1 is none yet."""
    rows = matched(
        lines,
        r"[Ll]ast *enqueued *(?:NCCL *)?work: *(?P<enqueued>-?\d+)"
        r"(?:, *last *started *(?:NCCL *)?work: *(?P<started>-?\d+)(?: *\([^)]*\))?)?"
        r"(?:, *last *completed *(?:NCCL *)?work: *(?P<completed>-?\d+))?",
    )
    for name in ("enqueued", "started", "completed"):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, integers(rows[name]))
    return rows


def _said(rows: pa.Table) -> list[pa.Table]:
    """Give the counters as samples, and say which are none."""
    text = pc.coalesce(labelled("group {}", rows["guid"]), pa.scalar(""))
    made = []
    for name in ("enqueued", "completed"):
        odd = _garbage(rows, name)
        good = pc.and_(rows[name].is_valid(), pc.invert(odd))
        sample = f"watchdog.last_{name}"
        kept = rows.filter(good)
        made.append(samples(sample, kept, value=kept[name], text=text.filter(good)))
        lost = rows.filter(odd)
        words = labelled(f"last {name} work {{}} was never set", lost[name].cast(pa.string()))
        made.append(samples("log.unread", lost, value=1, text=words))
    return made


def _garbage(rows: pa.Table, name: str) -> pa.Array:
    """Tell which counters cannot be: too far, or beyond what was enqueued."""
    value, enqueued = whole(rows[name]), whole(rows["enqueued"])
    beyond = pc.and_(pc.greater(value, enqueued), pc.greater_equal(enqueued, -1))
    wrong = pc.or_(pc.greater(pc.abs(value), _GARBAGE), beyond)
    return pc.coalesce(wrong, pa.scalar(False))


def _members(rows: pa.Table) -> pa.Table:
    """Give the counters as rows of the group's members."""
    rows = rows.filter(rows["member"].is_valid())
    made = {
        "group_name": pc.coalesce(rows["guid"], pa.scalar("")),
        "desc": pc.coalesce(rows["desc"], pa.scalar("")),
        "group_rank": rows["member"],
    } | {field: rows[field] for field in ("rank", "host", "pid", "line")}
    none = pa.scalar(None, pa.int64())
    for name in ("enqueued", "started", "completed"):
        made[f"last_{name}"] = pc.if_else(_garbage(rows, name), none, whole(rows[name]))
    empty = pa.nulls(rows.num_rows)
    columns = [whole(made.get(f.name, empty)).cast(f.type) for f in MEMBERS]
    named = pa.table(columns, schema=MEMBERS)
    return named.filter(pc.not_equal(named["group_name"], ""))
