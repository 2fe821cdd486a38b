"""What the columns of a load generator's table mean, and requests out of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.secrets import redact
from teller.ingest.readers.side_tables import number, rows
from teller.ingest.readers.side_times import SECOND, civil, epoch, ns_of, of_day
from teller.ingest.records import LINES, REQUESTS, ClockKind

# fmt: off
# the meaning of a column, and its words; the first word that a table has is taken
ROLES: Final[dict[str, str]] = {
    "name": "request_id request req_id rid req id requestid x_request_id",
    "start": "sent sent_at send_time start_time start started request_start arrival arrival_time"
             " submitted timestamp request_time time ts",
    "first": "first_token first_token_time first_token_at",
    "end": "finished finished_at finish_time end_time end request_end completed_at completed done",
    "prompt_tokens": "prompt_tokens input_tokens input_len input_length prompt_len prompt_length"
                     " num_prompt_tokens input_sequence_length isl in_tokens",
    "output_tokens": "output_tokens completion_tokens output_len output_length generated_tokens"
                     " num_output_tokens output_sequence_length osl out_tokens n",
    "ttft": "ttft time_to_first_token first_token_latency ttfb",
    "itl": "itl_p50 itl_median median_itl itl_mean itl mean_itl tpot inter_token_latency"
           " time_per_output_token",
    "latency": "e2e e2el latency e2e_latency request_latency total_time duration elapsed",
    "queue": "queue_time queue time_in_queue queued",
    "status": "result status outcome success",
    "error": "error error_message",
}
_UNITS: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "msec": 1e6, "s": 1e9, "sec": 1e9,
                 "secs": 1e9, "seconds": 1e9}
# the first pattern that a status holds is its meaning
STATUS: Final = (
    (r"time[d ]*out|timeout|\b(?:408|504)\b", "timeout"),
    (r"abort|cancel|disconnect", "aborted"),
    (r"reject|overload|\b(?:429|503)\b", "rejected"),
    (r"running|pending|in progress", "running"),
    (r"^(?:ok|success\w*|succeeded|true|1|2\d\d|2\d\d ok)$", "ok"),
    (r"^(?:completed?|done|finished|stop|length)$", "ok"),
)
# fmt: on
_WORDY: Final = re.compile(r"prompt|text|content|messages|generated|body|payload|output|response")
_SECRET: Final = re.compile(
    r"(?:^|_)(?:\w*key|token|\w*secret|passw\w*|credentials?|auth\w*|cookies?|headers?|ur[il]|"
    r"signature|session)(?:_|$)"
)
_COUNTS: Final = ("prompt_tokens", "output_tokens")
# in seconds, half of all requests never take so long: then the figures are ms
_SECONDS_BELOW: Final = {"itl": 1.0, "ttft": 60.0, "latency": 600.0}
_LONGEST: Final = 400  # characters of a line that are kept


@dataclass(frozen=True, slots=True)
class Column:
    """A column's place in the table, and the ns of its unit, if its name tells one."""

    at: str
    unit: float | None


@dataclass(slots=True)
class Meaning:
    """The columns of one table by their meaning; what is settled on its first rows stays."""

    columns: Mapping[str, Column]
    wordy: bool = False  # it has columns of prompts, answers or what lets one in
    clock: ClockKind = "none"
    unit: float | None = field(default=None)  # of durations whose columns tell none

    @property
    def fits(self) -> bool:
        """Tell whether this is surely a table of requests."""
        have = set(self.columns)
        timed = have & {"ttft", "latency", "itl"} or {"start", "end"} <= have
        return len(have) >= 3 and bool(timed) and bool(have & {"name", "start", *_COUNTS})

    def requests(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Give requests, and lines to point at, of rows as text with `line` and `text`."""
        size = table.num_rows
        text = {role: table[c.at].combine_chunks() for role, c in self.columns.items()}
        start, first, end = (self._time(role, text) for role in ("start", "first", "end"))
        self._settle(text)
        span = {
            role: ns_of(number(text[role]), self.columns[role].unit or self.unit or 1e9)
            for role in ("ttft", "itl", "latency", "queue")
            if role in text
        }
        if start is not None and end is not None and self.clock == "yearless":
            end = pc.if_else(pc.less(end, start), pc.add(end, 86_400 * SECOND), end)
        if start is not None and end is None and "latency" in span:
            end = pc.add(start, span["latency"])
        if end is not None and start is None and "latency" in span:
            start = pc.subtract(end, span["latency"])
        if start is not None and first is None and "ttft" in span:
            first = pc.add(start, span["ttft"])
        elif start is not None and first is not None and "ttft" not in span:
            span["ttft"] = pc.subtract(first, start)
        name = pc.utf8_trim_whitespace(text["name"]) if "name" in text else None
        made = rows(REQUESTS, size, {
            "name": name, "start_ns": start, "first_token_ns": first, "end_ns": end,
            "ttft_ns": span.get("ttft"), "itl_p50_ns": span.get("itl"),
            "queue_ns": span.get("queue"), "status": _status(text), "line": table["line"],
        } | {role: _count(text[role]) for role in _COUNTS if role in text})  # fmt: skip
        return made, self._lines(table, name, start)

    def _time(self, role: str, text: Mapping[str, pa.Array]) -> pa.Array | None:
        """Give ns of a column of times, and settle what clock they are of."""
        if role not in text:
            return None
        cells = text[role]
        clean = pc.utf8_trim_whitespace(cells)
        plain = pc.match_substring_regex(clean, r"^\d+(?:\.\d*)?(?:[eE][+-]?\d+)?$")
        since = epoch(number(pc.if_else(plain, clean, None)))
        dated, zoned = civil(cells)
        if pc.any(dated.is_valid()).as_py():
            utc = pc.all(zoned.filter(dated.is_valid())).as_py()
            self.clock = "utc" if utc else "local"
        elif since.null_count < len(since):
            self.clock = "utc"
        elif self.clock in ("none", "yearless"):
            of_a_day = of_day(cells)
            if of_a_day.null_count < len(of_a_day):
                self.clock = "yearless"
                return of_a_day
        made = pc.coalesce(dated, since)
        return made if made.null_count < len(made) else None

    def _settle(self, text: Mapping[str, pa.Array]) -> None:
        """Settle the unit of durations, which the names may not tell, by their size."""
        if self.unit is not None:
            return
        for role, below in _SECONDS_BELOW.items():
            if role in text and self.columns[role].unit is None:
                middle = pc.approximate_median(number(text[role])).as_py()
                if middle is not None:
                    self.unit = 1e9 if middle < below else 1e6
                    return

    def _lines(self, table: pa.Table, name: pa.Array | None, start: pa.Array | None) -> pa.Table:
        text = table["text"].combine_chunks()
        if self.wordy:  # prompts and answers are nobody's business
            cells = {role: pc.fill_null(table[c.at], "") for role, c in self.columns.items()}
            told = [pc.binary_join_element_wise(role, cell, " ") for role, cell in cells.items()]
            text = pc.binary_join_element_wise(*told, ", ").combine_chunks()
        text = pc.utf8_slice_codeunits(redact(text), 0, _LONGEST)
        whole = (
            start is not None
            and pc.all(pc.equal(pc.multiply(pc.divide(start, SECOND), SECOND), start)).as_py()
        )
        return rows(LINES, table.num_rows, {
            "place": table["line"], "line": table["line"], "time_ns": start, "text": text,
            "resolution_ns": None if start is None else SECOND if whole else 1000,
            "process": "", "level": "", "origin": "client", "template": "client record",
            "request": name,
        })  # fmt: skip


def meaning(words: Sequence[str], places: Sequence[str]) -> Meaning:
    """Give what columns mean by their words; `places` are their names in the table."""
    plain = [_plain(word) for word in words]
    columns: dict[str, Column] = {}
    for role, known in ROLES.items():
        for word in known.split():
            at = next((i for i, (name, _) in enumerate(plain) if name == word), None)
            if at is not None and all(c.at != places[at] for c in columns.values()):
                columns[role] = Column(places[at], plain[at][1])
                break
    other = [n for (n, _), p in zip(plain, places, strict=True)
             if all(c.at != p for c in columns.values())]  # fmt: skip
    private = any(_WORDY.search(name) or _SECRET.search(name) for name in other)
    return Meaning(columns, private)


def options(meant: Meaning) -> dict[str, str]:
    """Give what is to be known of a table's times and units."""
    said = {"day": "unknown"} if meant.clock == "yearless" else {}
    if meant.unit == 1e6:
        said["unit"] = "ms, by the size of the figures"
    return said


def _plain(word: str) -> tuple[str, float | None]:
    """Give a column's word without its unit, and that unit."""
    name = re.sub(r"[\s.\-]+", "_", word.strip().lower())
    found = re.fullmatch(r"(.+?)_?[\[(/]?(?<=[_\[(/])(µs|[a-z]+)[\])]?", name)
    if found and found[2] in _UNITS:
        return found[1].rstrip("_"), _UNITS[found[2]]
    return name, None


def _count(text: pa.Array) -> pa.Array:
    value = number(text)
    sane = pc.and_(pc.greater_equal(value, 0.0), pc.less(value, 1e12))
    return pc.cast(pc.floor(pc.if_else(pc.fill_null(sane, False), value, None)), pa.int64())


def _status(text: Mapping[str, pa.Array]) -> pa.Array | None:
    """Give each request's end in a word; what an error says is stronger than a status."""
    error = text.get("error")
    if error is None:
        return ends(text["status"]) if "status" in text else None
    failed = ends(pc.if_else(_no_error(error), None, error))
    return pc.coalesce(failed, ends(text["status"]) if "status" in text else pa.scalar("ok"))


def _no_error(text: pa.Array) -> pa.Array:
    clean = pc.fill_null(pc.utf8_lower(pc.utf8_trim_whitespace(text)), "")
    return pc.is_in(clean, pa.array(["", "none", "null", "{}", "false"]))


def ends(text: pa.Array) -> pa.Array:
    """Give how requests ended: ok, timeout, aborted, rejected, running or error; "" is null."""
    clean = pc.fill_null(pc.utf8_lower(pc.utf8_trim_whitespace(text)), "")
    made = pc.if_else(pc.equal(clean, ""), None, "error")
    for pattern, word in reversed(STATUS):
        made = pc.if_else(pc.match_substring_regex(clean, pattern), word, made)
    return made
