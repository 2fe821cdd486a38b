"""What was wrong with a trace file, in words: place, what, and what to do."""

import re
from collections.abc import Sequence
from typing import Final

from teller.ingest.readers.kineto_columns import Columns
from teller.ingest.readers.kineto_event import EVENTS_KEY
from teller.ingest.readers.kineto_repair import Damage
from teller.ingest.readers.kineto_stream import Stream
from teller.ingest.readers.kineto_text import Feed, Text
from teller.ingest.source import Remark, Source

HEAD: Final = 1 << 16
LOOK_FOR_RANKS: Final = 1 << 24
RANK: Final = re.compile(rb'"rank"\s*:\s*"?(\d{1,9})')
# what was found, and what to do; {n} is how often, {word} what stood at the first place
SAID: Final = {
    "control": (
        "control characters inside strings: {n}, the first is control character {word}",
        "Used, with '?' for each; a newer PyTorch does not write them.",
    ),
    "not finite": (
        "values that are not finite (bare inf or nan): {n}, the first is {word}",
        "Used, without these values; a newer PyTorch does not write them.",
    ),
    "broken": (
        "events that are no valid JSON (unescaped quotes, foreign bytes): {n}, left out",
        "The other events are used; a newer PyTorch escapes quotes in names.",
    ),
    "header": (
        "the header before traceEvents is no valid JSON",
        "The events are used; name rank and host if they are not found otherwise.",
    ),
    "timeless": (
        "events without a usable ts: {n}, left out (first: {word!r})",
        "Record again if these matter; the other events are used.",
    ),
    "negative": (
        "events with a negative dur: {n} (first: {word}), used with no length",
        "Their starts are right, their lengths are not; a newer profiler may do better.",
    ),
    "endless": (
        "events with an impossible dur of over 14 hours: {n} (first: {word}), used as open",
        "Their starts are used; their lengths are not.",
    ),
    "far": (
        "events more than 14 hours off all others: {n}, left out",
        "These records are broken; the other events are used.",
    ),
    "unbegun": (
        "events that end what never began (ph E without B): {n}, left out",
        "Start the capture earlier if these matter.",
    ),
    "unlinked": (
        "device work: {n} events, none with args.correlation, so none can be tied to its launch",
        "Record again with a profiler that writes correlation ids.",
    ),
    "async": (
        "events of asynchronous spans (ph b, e, S, F): {n}, not used, since they have no thread",
        "Nothing to do, unless the writer can give complete events (ph X).",
    ),
}


def two_writers(text: Text) -> Remark:
    """Say that two processes wrote one file, and which ranks they were."""
    feed = Feed(text)
    feed.fill(LOOK_FOR_RANKS)
    ranks = sorted({int(rank) for rank in RANK.findall(feed.buffer)})
    second = list(EVENTS_KEY.finditer(feed.buffer))[1:2]
    who = f"two ranks, {ranks[0]} and {ranks[1]}," if len(ranks) > 1 else "two traces"
    return Remark(
        str(text.path),
        text.place(second[0].start() if second else 0),
        f"holds {who} interleaved: two writers shared one path, so no event can be trusted",
        "Have every process write its own file, one file per rank, and record again.",
    )


def all_of(
    text: Text,
    stream: Stream,
    documents: Sequence[Columns],
    used: Sequence[Source],
    twins: int,
) -> list[Remark]:
    """Give all remarks on a file."""
    path, damage = str(text.path), stream.damage
    if not used:
        other = _lookalike(text)
        if stream.bare and not any(columns.events for columns in documents):
            other = other or NO_EVENTS
        if other:
            return [Remark(path, "byte 0", other, NOT_OURS)]
    made = [_of_kind(text, damage, kind) for kind in damage.counts if kind in SAID]
    for columns in documents:
        made += _without_dur(text, damage, columns)
    made += _ending(text, stream, documents)
    if twins:
        made.append(
            Remark(
                path,
                "byte 0",
                f"holds {twins + len(used)} traces of which {twins} repeat a rank",
                "The first of each rank is used; write one trace to a file.",
            )
        )
    if not used:
        made.append(Remark(path, "byte 0", *_nothing(documents)))
    return made


def _ending(text: Text, stream: Stream, documents: Sequence[Columns]) -> list[Remark]:
    """Say how the text ends, if not as it should."""
    if stream.cut or text.damage:
        return [_cut(text, stream, documents)]
    if not documents or not stream.feed.buffer.strip(b" \t\r\n"):
        return []
    what = "text that is no trace follows the trace"
    remedy = "It is not used; write one trace to a file."
    return [Remark(str(text.path), text.place(stream.feed.at), what, remedy)]


def _of_kind(text: Text, damage: Damage, kind: str) -> Remark:
    what, remedy = SAID[kind]
    place = text.place(damage.places[kind])
    said = what.format(n=damage.counts[kind], word=damage.words[kind])
    if kind in ("control", "not finite"):
        said += f" at {place}"
    return Remark(str(text.path), place, said, remedy)


def _without_dur(text: Text, damage: Damage, columns: Columns) -> list[Remark]:
    return [
        Remark(
            str(text.path),
            text.place(damage.places["no dur"]),
            f"{count} events of category {columns.category(code)} have no "
            "dur: their times cannot be used; their starts are kept",
            "Record again; the profiler was stopped before the durations were known.",
        )
        for code, count in columns.without_dur.items()
    ]


def _cut(text: Text, stream: Stream, documents: Sequence[Columns]) -> Remark:
    events = sum(columns.events for columns in documents)
    end = stream.feed.at + len(stream.feed.buffer)
    why = f" ({text.damage})" if text.damage else ""
    what = "is damaged" if text.corrupt else "is cut: the text ends early"
    where = "inside traceEvents" if stream.cut else "after the events"
    return Remark(
        str(text.path),
        text.place(end),
        f"the file {what}, {where} at byte {end}{why}",
        f"The {events} events before it are used. {COPY_AGAIN if text.corrupt else STOP_FIRST}",
    )


def _lookalike(text: Text) -> str:
    """Say what a file is that only looks like a trace; empty for what may be one."""
    feed = Feed(text)
    feed.fill(HEAD)
    head = feed.buffer.lstrip(b"\xef\xbb\xbf \t\r\n")
    return next((what for form, what in LOOKALIKES if re.match(form, head)), "")


def _nothing(documents: Sequence[Columns]) -> tuple[str, str]:
    if documents:
        return (
            "holds no events that last: traceEvents is empty or has only marks",
            "Record while the model runs, and stop the profiler after the steps.",
        )
    return NO_EVENTS, NOT_OURS


STOP_FIRST: Final = (
    "The process was probably killed while it wrote: record again and let the profiler stop first."
)
COPY_AGAIN: Final = "Copy the file again from where it was recorded, and compare checksums."
NO_EVENTS: Final = "no traceEvents: not a trace"
NOT_OURS: Final = "Give the profiler's trace file instead, or take this file away."
LOOKALIKES: Final = (
    (rb"\Z", "the file is empty"),
    (rb"(?i)<(?:!doctype|html|\?xml)", "an HTML or XML page, not a trace: a download that failed"),
    (rb"\[\s*\[", "a memory timeline (a list of lists), not a trace"),
    (rb'\{\s*"schema"\s*:[\s\S]*"nodes"\s*:', "an execution trace (nodes without durations)"),
    (rb'\{\s*"rocprofiler-sdk-tool"', "a rocprofv3 result, not a Kineto trace"),
    (rb'\[\s*\{[^{}]*"cat"\s*:\s*"(?:GROUP|KERNEL|COLL|P2P|PROXY|NET)', "an NCCL profiler trace"),
)
