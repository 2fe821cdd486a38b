"""Requests of a run, one each: names joined, figures from the most exact source that has them.

Telemetry of the engine is the most exact, then the client's records, then logs; ranges of a capture
show at least when a request was worked on. What no source states is worked out from parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.request_names import joined
from teller.ingest.asked import ASKED
from teller.ingest.parts import Part
from teller.ingest.record_rows import Rows
from teller.ingest.records import REQUESTS
from teller.ingest.request_figures import FIGURES, figures
from teller.ingest.served import Served, serve
from teller.ingest.source import Facts
from teller.ingest.timeline import Axis

Ints = npt.NDArray[np.int64]

SOURCES: Final = ("telemetry", "client", "log", "ranges")  # the most exact first
LOG, RANGES = 2, 3
KINDS: Final[Mapping[str, int]] = {"otlp": 0, "client": 1, "client_results": 1}
FAILED: Final = "failed"  # an end that is neither ok nor still to come
# what several rows of one source add up to
SUMS: Final = [
    ("start_ns", "min"), ("first_token_ns", "min"), ("end_ns", "max"), ("coarse_ns", "max"),
    *((name, "max") for name in FIGURES), (FAILED, "max"), ("ok", "max"), ("running", "max"),
]  # fmt: skip
_PREEMPTED: Final = r"(?i)\bpreempted by\b|\bretracted\b"


@dataclass(frozen=True, slots=True)
class Asking:
    """The requests of a run (columns of the Request label but id), and who served them."""

    table: pa.Table
    served: Served
    lines: pa.Table  # of `Rows.lines`, requests by their joined names


def ranges_of(parts: Sequence[Part], axes: Sequence[Axis], shifts: Sequence[int]) -> pa.Table:
    """Give the requests that ranges name, as `ASKED` on the run's axis and numbers."""
    tables = [ASKED.empty_table()]
    for part, axis, shift in zip(parts, axes, shifts, strict=True):
        table = part.shaped.asked
        if table.num_rows:
            moved = {
                "name": table["name"],
                "step_index": pc.add(table["step_index"], shift),
                "start_ns": pa.array(axis.run_time(table["start_ns"].to_numpy())),
                "end_ns": pa.array(axis.run_time(table["end_ns"].to_numpy())),
            }
            tables.append(pa.table(moved, schema=ASKED))
    return pa.concat_tables(tables)


def settle(rows: Rows, files: Sequence[Facts], ranges: pa.Table, iterations: pa.Table) -> Asking:
    """Make one of all that is said of each request; `files` are those of the rows, in order."""
    said = _said(rows, files, ranges)
    known = pc.unique(said["name"])
    whole = joined(known)
    names = pc.unique(whole).take(pc.sort_indices(pc.unique(whole)))
    said, ranges, lines = (_renamed(t, column, known, whole) for t, column in (
        (said, "name"), (ranges, "name"), (rows.lines, "request"),
    ))  # fmt: skip
    table = figures(
        names,
        _by_source(said, names),
        SOURCES,
        preempted=_counts(lines, names),
        worked_on=_first_work(ranges, names),
    )
    return Asking(
        table.drop_columns(["coarse_ns"]),
        serve(table, ranges, iterations),
        lines,
    )


def _said(rows: Rows, files: Sequence[Facts], ranges: pa.Table) -> pa.Table:
    """Give a row for each thing that is said: what `REQUESTS` has, its source, how coarse."""
    asked = rows.requests
    kind = np.array([KINDS.get(f.format, LOG) for f in files] or [LOG], np.int64)
    source = kind[asked["file"].to_numpy()] if asked.num_rows else np.zeros(0, np.int64)
    stated = {f.name: asked[f.name] for f in REQUESTS} | {
        "name": _named(asked, files),
        "source": pa.array(source),
        "coarse_ns": _coarse(asked, rows.lines),
    }
    spoken = pc.drop_null(pc.unique(rows.lines["request"].cast(pa.string())))
    parts = (
        pa.table(stated),
        pa.table({"name": spoken, "source": np.full(len(spoken), LOG)}),
        ranges.drop_columns(["step_index"]).append_column(
            "source", pa.array(np.full(ranges.num_rows, RANGES))
        ),
    )
    whole = pa.concat_tables(parts, promote_options="permissive")
    whole = whole.filter(pc.is_valid(whole["name"]))
    status = whole["status"]
    none = pa.scalar(None, pa.string())
    alone = {word: pc.if_else(pc.equal(status, word), status, none) for word in ("ok", "running")}
    alone[FAILED] = pc.if_else(pc.is_in(status, pa.array(["ok", "running"])), none, status)
    for word, column in alone.items():
        whole = whole.append_column(word, column)
    return whole


def _named(asked: pa.Table, files: Sequence[Facts]) -> pa.Array:
    """Give names; a request without one is named after its file and line."""
    name = asked["name"].combine_chunks()
    if not name.null_count:
        return name
    paths = pa.array([PurePath(f.path).name for f in files], pa.string())
    path = paths.take(asked["file"].combine_chunks())
    line = asked["line"].combine_chunks().cast(pa.string())
    return pc.coalesce(name, pc.binary_join_element_wise(path, line, ":"))


def _coarse(asked: pa.Table, lines: pa.Table) -> pa.Array:
    """Give how fine the times of each row are, as its line tells."""
    size = asked.num_rows
    if not size or not lines.num_rows:
        return pa.nulls(size, pa.int64())
    wide = 1 << 32
    own, of = (
        t["file"].to_numpy() * wide + pc.fill_null(t["line"], -1).to_numpy() for t in (asked, lines)
    )
    order = np.argsort(of, kind="stable")
    at = order[np.minimum(np.searchsorted(of[order], own), len(of) - 1)]
    fine = lines["resolution_ns"].combine_chunks().take(pa.array(at))
    return pc.if_else(pa.array(of[at] == own), fine, pa.scalar(None, pa.int64()))


def _renamed(table: pa.Table, column: str, known: pa.Array, whole: pa.Array) -> pa.Table:
    """Give a table with the joined names in place of the printed ones."""
    names = whole.take(pc.index_in(table[column].combine_chunks().cast(pa.string()), known))
    return table.set_column(table.schema.get_field_index(column), column, names)


def _by_source(said: pa.Table, names: pa.Array) -> list[dict[str, pa.Array]]:
    """Give for each source the columns over all requests; null where it says nothing."""
    sums = said.group_by(["name", "source"], use_threads=False).aggregate(SUMS)
    found = []
    for source in range(len(SOURCES)):
        own = sums.filter(pc.equal(sums["source"], source))
        at = pc.index_in(names, own["name"].combine_chunks())
        found.append({name: own[f"{name}_{how}"].combine_chunks().take(at) for name, how in SUMS})
    return found


def _counts(lines: pa.Table, names: pa.Array) -> pa.Array:
    """Count the lines that tell of a request that it was put back; null where none does."""
    about = lines.filter(pc.is_valid(lines["request"]))
    told = about.filter(pc.match_substring_regex(about["text"], _PREEMPTED))
    counts = pc.value_counts(told["request"].combine_chunks())
    return counts.field("counts").take(pc.index_in(names, counts.field("values")))


def _first_work(ranges: pa.Table, names: pa.Array) -> pa.Array:
    """Give when a step first worked on each request, as ranges show it."""
    inside = ranges.filter(pc.is_valid(ranges["step_index"]))
    first = inside.group_by("name", use_threads=False).aggregate([("start_ns", "min")])
    at = pc.index_in(names, first["name"].combine_chunks())
    return first["start_ns_min"].combine_chunks().take(at)


def with_lines(rows: Rows, asking: Asking) -> Rows:
    """Give the rows with the joined names of requests in their lines."""
    return replace(rows, lines=asking.lines)
