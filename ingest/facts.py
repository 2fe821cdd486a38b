"""Side facts of a run that its own traces tell: samples that rules and people can ask for.

Each is one number about one rank, named `capture.…`, `pace.…`, `compare.…` or `silence`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.medians import leave_one_out_median
from teller.ingest.scores import WAITING
from teller.ingest.shape import Shaped
from teller.ingest.source import COMM
from teller.ingest.timeline import Timeline

Ints = npt.NDArray[np.int64]

SLOWER: Final = 1.08  # a family counts as slower than its peers from here on


@dataclass(frozen=True, slots=True)
class Fact:
    """One number about one source; `place` is a span it was seen at."""

    name: str
    value: float
    source: int
    text: str = ""
    time_ns: int | None = None
    place: int | None = None
    step_index: int | None = None


def facts_of(
    sources: Sequence[Shaped], line: Timeline, sums: Sequence[pa.Table], shifts: Sequence[int]
) -> list[Fact]:
    """Give all facts of a run."""
    found: list[Fact] = []
    for i, one in enumerate(sources):
        found += _capture(i, one)
        found += _pace(i, one)
        found += _silences(i, one, line, shifts[i])
        found += _stalls(i, one)
    if sources:
        found += _comparison(sums, len(sources))
        found += _communication(sources, line)
    return found


def _capture(i: int, one: Shaped) -> Iterator[Fact]:
    yield Fact("capture.spans", one.span_count, i)
    yield Fact("capture.device_rows", one.device_count, i)
    yield Fact("capture.steps", one.steps.num_rows, i, one.found_by)
    yield Fact("capture.window_ns", one.last_ns - one.first_ns, i)
    if one.device_count:
        yield Fact("capture.launched_ratio", one.launched_count / one.device_count, i)
    mode = one.facts.options.get("cuda_graph_trace", "")
    if mode:
        yield Fact("capture.graph_mode", 1.0 if mode == "graph" else 0.0, i, mode)


def _pace(i: int, one: Shaped) -> Iterator[Fact]:
    whole = one.paces.slice(0, 1).to_pylist()[0]
    inside = one.paces.slice(1)
    if not whole["device_rows"]:
        return
    span = whole["last_ns"] - whole["first_ns"]
    yield Fact("pace.busy_ratio", whole["busy_ns"] / max(span, 1), i)
    yield Fact("pace.kernel_busy_ratio", whole["kernel_busy_ns"] / max(span, 1), i)
    for name in ("device_rows", "graph_rows", "launches", "driver_launches", "graph_launches"):
        yield Fact(f"pace.{name}", whole[name], i)
    if whole["launches"]:
        yield Fact("pace.prompt_ratio", whole["prompt_rows"] / whole["device_rows"], i)
    lasts = one.steps["end_ns"].to_numpy() - one.steps["start_ns"].to_numpy()
    window = int(lasts.sum())
    if inside.num_rows and window:
        busy, idle = inside["busy_ns"].to_numpy(), inside["host_idle_ns"].to_numpy()
        yield Fact("pace.step_busy_ratio", int(busy.sum()) / window, i)
        # The idle time that a step's first kernel ends began before the step: not all is the step's
        idle = np.minimum(idle, np.maximum(lasts - busy, 0))
        yield Fact("pace.step_host_idle_ratio", int(idle.sum()) / window, i)


def _silences(i: int, one: Shaped, line: Timeline, shift: int) -> Iterator[Fact]:
    for row in one.silences.to_pylist():  # at most 64
        step = row["step_index"]
        yield Fact(
            "silence",
            row["end_ns"] - row["start_ns"],
            i,
            time_ns=line.axes[i].moment(row["start_ns"]),
            place=row["place"],
            step_index=None if step is None else step + shift,
        )


def _stalls(i: int, one: Shaped) -> Iterator[Fact]:
    for row in one.stalls.to_pylist():  # at most 8
        name = f"pace.{row['kind']}_stall"
        yield Fact(f"{name}_ns", row["held_ns"], i, row["operator"])
        yield Fact(f"{name}_calls", row["stalls"], i, row["operator"])
        yield Fact(f"{name}_steps", row["steps"], i, row["operator"])


def _comparison(sums: Sequence[pa.Table], sources: int) -> Iterator[Fact]:
    """Compare each rank's device and host work with its peers', operator by operator."""
    table = pa.concat_tables(
        [t.append_column("source", pa.array(np.full(t.num_rows, i))) for i, t in enumerate(sums)]
    )
    waits = pc.is_in(table["family"].cast(pa.string()), pa.array(WAITING))
    comm = pc.equal(table["layer"].cast(pa.string()), COMM)
    own = table.filter(pc.invert(pc.or_(waits, comm)))
    for name, device in (("device", True), ("host", False)):
        part = own.filter(pc.equal(own["device"], device))
        yield from _compare(name, part, sources)


def _compare(name: str, part: pa.Table, sources: int) -> Iterator[Fact]:
    if not part.num_rows:
        return
    part = part.set_column(
        part.column_names.index("operator"), "operator", part["operator"].cast(pa.string())
    )
    total = part.group_by(["source", "operator"]).aggregate([("own_ns", "sum"), ("count", "sum")])
    source, own = total["source"].to_numpy(), total["own_ns_sum"].to_numpy()
    each = own / np.maximum(total["count_sum"].to_numpy(), 1)
    word = pc.index_in(total["operator"], pc.unique(total["operator"])).to_numpy()
    peers, number = leave_one_out_median(word.astype(np.int64), each)
    for i in range(sources):
        mine = source == i
        yield Fact(f"compare.{name}_own_ns", int(own[mine].sum()), i)
        known = mine & (number > 1) & (peers > 0)
        weight = own[known].astype(float)
        if not weight.sum():
            continue
        ratio = each[known] / peers[known]
        order = np.argsort(ratio)
        middle = ratio[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)]
        yield Fact(f"compare.{name}_ratio", float(middle), i)
        slower = weight[ratio > SLOWER].sum() / weight.sum()
        yield Fact(f"compare.{name}_slower_share", float(slower), i)


def _communication(sources: Sequence[Shaped], line: Timeline) -> Iterator[Fact]:
    members = line.timed.members
    if not members.num_rows:
        return
    source = members["source"].to_numpy()
    dur = members["end_ns"].to_numpy() - members["start_ns"].to_numpy()
    matched = pc.not_equal(members["matched_by"], "single").to_numpy()
    for i in range(len(sources)):
        own = source == i
        if own.any():
            yield Fact("capture.collectives", int(own.sum()), i)
            yield Fact("capture.matched_ratio", float(matched[own].mean()), i)
            yield Fact("compare.comm_ns", int(dur[own].sum()), i)
