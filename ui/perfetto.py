"""A run as a Chrome trace, which Perfetto opens: a process a rank, and one for the findings.

Rows become JSON inside Arrow, batch by batch, so that no span is ever a Python object.
"""

import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.graph.finding import Diagnosis, Finding
from teller.ui import phrase

FINDINGS_PID: Final = 1 << 30  # ranks have their own numbers

_ROWS: Final = 1 << 16
_MARKS: Final = 2_000  # steps that are marked for one finding
_FIGURES: Final = ("step_index", "self_ns", "excess_ns", "size_bytes")
_COLUMNS: Final = (
    "id", "rank", "name", "operator", "family", "layer", "lane", "stream", "start_ns", "dur_ns",
    *_FIGURES,
)  # fmt: skip


_Sink = gzip.GzipFile | io.BufferedWriter


@dataclass(frozen=True, slots=True)
class Cut:
    """What of a run is wanted; None and empty leave nothing out."""

    first_step: int | None = None
    last_step: int | None = None
    ranks: tuple[int, ...] = ()
    flows: bool = True


def write(
    tables: Mapping[str, Sequence[Path]], found: Diagnosis, cut: Cut, file: Path, *, packed: bool
) -> int:
    """Write the trace of a run's Parquet tables and give the number of spans in it.

    The n-th file of LAUNCHED is about the n-th file of Span.
    """
    sources = list(tables.get("Span", ()))
    launches: list[Path | None] = list(tables.get("LAUNCHED.Span.Span", ())) if cut.flows else []
    launches += [None] * (len(sources) - len(launches))
    shift = _shift(sources)
    count = 0
    with gzip.open(file, "wb", compresslevel=4) if packed else file.open("wb") as out:
        out.write(b'{"displayTimeUnit":"ms","traceEvents":[\n')
        lanes = _Lanes()
        for source, launched in zip(sources, launches, strict=True):
            spans = _placed(_cut_out(source, cut), lanes, shift)
            count += spans.num_rows
            for batch in spans.to_batches(_ROWS):
                _put(out, _slices(batch))
            if launched is not None and spans.num_rows:
                for batch in _arrows(spans, pq.read_table(launched, columns=["src", "dst"])):
                    _put(out, batch)
        _put_objects(out, lanes.named())
        _put_objects(out, overlay(found.findings, _steps(tables), shift))
        about = {"tool": "teller", "t0_shift_ns": shift, "runs": [r.name for r in found.runs]}
        # every event before ended in a comma, which a list may not
        out.write(msgspec.json.encode(_meta(FINDINGS_PID, 0, "process_sort_index", sort_index=-1)))
        out.write(b'\n],"otherData":' + msgspec.json.encode(about) + b"}\n")
    return count


def _shift(sources: Iterable[Path]) -> int:
    """Give what makes all times positive: Perfetto drops what is before zero."""
    starts = (pc.min(pq.read_table(s, columns=["start_ns"])["start_ns"]).as_py() for s in sources)
    return max((-start for start in starts if start is not None and start < 0), default=0)


def _cut_out(source: Path, cut: Cut) -> pa.Table:
    wanted = pc.scalar(True)
    if cut.ranks:
        wanted = wanted & pc.field("rank").isin(cut.ranks)
    if cut.first_step is not None:
        wanted = wanted & (pc.field("step_index") >= cut.first_step)
    if cut.last_step is not None:
        wanted = wanted & (pc.field("step_index") <= cut.last_step)
    return pq.read_table(source, columns=list(_COLUMNS), filters=wanted)


class _Lanes:
    """Numbers for the lanes of each rank, in the order in which they are first met."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str, bool], int] = {}

    def number(self, rank: int, lane: str, *, on_device: bool) -> int:
        return self._numbers.setdefault((rank, lane, on_device), len(self._numbers) + 1)

    def named(self) -> Iterator[dict[str, object]]:
        """Give what names the processes and threads, and puts threads above streams."""
        for rank in sorted({rank for rank, _, _ in self._numbers}):
            yield _meta(rank, 0, "process_name", name=f"rank {rank}")
            yield _meta(rank, 0, "process_sort_index", sort_index=rank)
        for (rank, lane, on_device), number in self._numbers.items():
            yield _meta(rank, number, "thread_name", name=lane)
            order = number + on_device * (1 << 20)
            yield _meta(rank, number, "thread_sort_index", sort_index=order)


def _meta(pid: int, tid: int, what: str, **args: object) -> dict[str, object]:
    return {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": what, "args": args}


def _placed(spans: pa.Table, lanes: _Lanes, shift: int) -> pa.Table:
    """Give spans as texts: `pid, tid, ts, dur, name …`, each one a piece of JSON, and their ids."""
    keys = pa.table({
        "rank": spans["rank"], "lane": spans["lane"].cast(pa.string()),
        "on_device": pc.is_valid(spans["stream"]),
    })  # fmt: skip
    kinds = keys.group_by(["rank", "lane", "on_device"]).aggregate([])
    numbers = [
        lanes.number(rank, lane, on_device=on_device)
        for rank, lane, on_device in zip(*(c.to_pylist() for c in kinds.columns), strict=True)
    ]
    joined = [_joined(table) for table in (keys, kinds)]
    at = pc.index_in(joined[0], joined[1])
    return pa.table({
        "id": spans["id"],
        "pid": spans["rank"].cast(pa.string()),
        "tid": pa.array(numbers, pa.int64()).cast(pa.string()).take(at),
        "ts": _micros(pc.add(spans["start_ns"], shift)),
        "dur": _micros(spans["dur_ns"]),
        **{name: _quoted(spans[name]) for name in ("name", "layer", "family", "operator")},
        **{name: pc.fill_null(spans[name].cast(pa.string()), "null") for name in _FIGURES},
    })  # fmt: skip


def _joined(keys: pa.Table) -> pa.Array:
    texts = (keys[name].cast(pa.string()) for name in ("rank", "on_device", "lane"))
    joined = pc.binary_join_element_wise(*texts, "|")
    return pa.array([], pa.string()) if joined.length() == 0 else pa.concat_arrays(joined.chunks)


def _micros(time: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give ns as µs to the last digit."""
    whole = pc.divide(time, 1000)
    rest = pc.subtract(time, pc.multiply(whole, 1000))
    digits = pc.utf8_lpad(rest.cast(pa.string()), 3, "0")
    return pc.binary_join_element_wise(whole.cast(pa.string()), digits, ".")


def _quoted(words: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give words as JSON; each distinct one is escaped once."""
    coded = words.combine_chunks().cast(pa.string()).dictionary_encode()
    known = [msgspec.json.encode(word).decode() for word in coded.dictionary.to_pylist()]
    texts = pa.array(known, pa.string()).take(coded.indices)
    return pa.chunked_array([pc.fill_null(texts, "null")])


def _slices(spans: pa.RecordBatch) -> pa.Array:
    """Give one event a span."""
    args = [text for name in _FIGURES for text in (f',"{name}":', spans[name])]
    return pc.binary_join_element_wise(
        '{"ph":"X","pid":', spans["pid"], ',"tid":', spans["tid"], ',"ts":', spans["ts"],
        ',"dur":', spans["dur"], ',"name":', spans["name"], ',"cat":', spans["layer"],
        ',"args":{"id":"', spans["id"].cast(pa.string()), '","operator":', spans["operator"],
        ',"family":', spans["family"], *args, "}},\n", "",
    )  # fmt: skip


def _arrows(spans: pa.Table, launched: pa.Table) -> Iterator[pa.Array]:
    """Give two events for each launch whose both ends are there."""
    known = spans["id"].combine_chunks()
    ends = [pc.index_in(launched[end], known) for end in ("src", "dst")]
    both = pc.and_(*(pc.is_valid(end) for end in ends))
    source, target = (end.filter(both) for end in ends)
    for first in range(0, len(source), _ROWS):
        yield _pair(*(spans.take(end.slice(first, _ROWS)) for end in (source, target)))


def _pair(source: pa.Table, target: pa.Table) -> pa.Array:
    # the launched span's id is free as the arrow's: it is launched once
    name = pc.binary_join_element_wise(
        ',"cat":"launch","name":"launch","id":"', target["id"].cast(pa.string()), '"', ""
    )
    starts, arrives = (
        pc.binary_join_element_wise(
            f'{{"ph":"{kind},"pid":', at["pid"], ',"tid":', at["tid"], ',"ts":', at["ts"],
            name, "},\n", "",
        )
        for kind, at in (('s"', source), ('f","bp":"e"', target))
    )  # fmt: skip
    return pc.binary_join_element_wise(starts, arrives, "").combine_chunks()


def _put(out: _Sink, texts: pa.Array) -> None:
    """Write all texts one after another: they lie so in Arrow's own buffer."""
    if len(texts):
        joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "")
        out.write(joined[0].as_buffer())


def _put_objects(out: _Sink, found: Iterable[Mapping[str, object]]) -> None:
    out.writelines(msgspec.json.encode(each) + b",\n" for each in found)


def _steps(tables: Mapping[str, Sequence[Path]]) -> pa.Table:
    names = ["rank", "step_index", "start_ns", "dur_ns"]
    files = [pq.read_table(file, columns=names) for file in tables.get("Step", ())]
    return pa.concat_tables(files) if files else pa.table({name: [] for name in names})


def overlay(
    findings: Sequence[Finding], steps: pa.Table, shift: int
) -> Iterator[dict[str, object]]:
    """Give the findings as a process of its own: a lane each, with the steps it is about."""
    yield _meta(FINDINGS_PID, 0, "process_name", name="TELLER findings")
    for number, finding in enumerate(findings, 1):
        title = f"{number} {finding.severity}: {phrase.visible(finding.title)}"
        yield _meta(FINDINGS_PID, number, "thread_name", name=title)
        yield _meta(FINDINGS_PID, number, "thread_sort_index", sort_index=number)
        inside = _steps_of(finding, steps)
        start, end = finding.start_ns, finding.end_ns
        if inside and (start is None or end is None):
            start = min(step["start_ns"] for step in inside)
            end = max(step["start_ns"] + step["dur_ns"] for step in inside)
        if start is None or end is None:
            continue
        yield _mark(number, title, start + shift, end - start, {
            "who": phrase.who(finding.culprit), "why": finding.text, "next": finding.next_step,
            "cost": phrase.cost(finding), "confidence": finding.confidence, "id": str(finding.id),
            "evidence": [f"{e.role}: {e.text} ({e.source})" for e in finding.evidence],
        })  # fmt: skip
        for step in inside:
            label = f"step {step['step_index']} of rank {step['rank']}"
            yield _mark(number, label, step["start_ns"] + shift, step["dur_ns"], {})


def _mark(
    lane: int, name: str, start: int, length: int, args: dict[str, object]
) -> dict[str, object]:
    return {
        "ph": "X", "pid": FINDINGS_PID, "tid": lane, "ts": start / 1000, "dur": length / 1000,
        "name": name, "cat": "finding", "args": args,
    }  # fmt: skip


def _steps_of(finding: Finding, steps: pa.Table) -> list[dict[str, int]]:
    """Give the steps of the first rank that is blamed; those of several would overlap."""
    first, last, ranks = finding.first_step, finding.last_step, finding.culprit.ranks
    if first is None or last is None or not ranks or not steps.num_rows:
        return []
    wanted = (pc.field("rank") == ranks[0]) & (pc.field("step_index") >= first)
    found = steps.filter(wanted & (pc.field("step_index") <= last)).slice(0, _MARKS)
    rows: list[dict[str, int]] = found.to_pylist()
    return rows
