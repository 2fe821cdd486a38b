"""What slices are cut from: the steps asked for and those behind them, read by columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import queries
from teller.graph.schema import CHILD, LAUNCHED, NEXT, WAITED_FOR
from teller.graph.store import Store
from teller.models.slice_picks import Ints, places, starts

WORTH: Final = 0.005  # share of its step from which excess, lateness or waiting counts
HOPS: Final = 4  # collectives that are gone backwards

_LINKS: Final[Mapping[str, str]] = {
    CHILD.type: "slice_children", LAUNCHED.type: "slice_launches",
    NEXT.type: "slice_next", WAITED_FOR.type: "slice_waited_for",
}  # fmt: skip
_BY_STEP: Final = (*_LINKS.values(), "slice_steps", "slice_rows", "slice_meetings")


@dataclass(frozen=True, slots=True)
class Links:
    """Relations of one type as pairs of rows, sorted by where they lead to."""

    src: Ints
    dst: Ints


@dataclass(frozen=True, slots=True)
class Scene:
    """All steps that were read, by id; all their spans, by id; and how they hang together.

    `slot` is the place of a span's step among the steps, `asked` the places of those asked for.
    Times are ns since the run's t0.
    """

    steps: pa.Table
    asked: Ints
    step_id: Ints
    dur_ns: Ints
    start_ns: Ints
    id: Ints
    slot: Ints
    operator: pa.DictionaryArray
    device: npt.NDArray[np.bool_]
    begin_ns: Ints
    own_ns: Ints
    gap_ns: Ints
    excess_ns: Ints
    late_ns: Ints
    parent: Ints  # row of the caller or launcher in the same step; -1 at the tops
    links: Mapping[str, Links]
    meetings: pa.Table  # slice_meetings, by step and arrival
    arrivals: pa.Table  # slice_arrivals, all ranks


def steps_of(store: Store, ids: Ints) -> pa.Table:
    """Give those of the steps that exist."""
    return queries.run(store, "slice_steps", steps=ids.tolist())


def read(store: Store, asked: Ints) -> Scene:
    """Read the steps asked for, and then those of the ranks that came last to their collectives."""
    parts: dict[str, list[pa.Table]] = {name: [] for name in (*_BY_STEP, "slice_arrivals")}
    known, new = asked, asked
    for _ in range(HOPS + 1):
        ids = new.tolist()
        for name in _BY_STEP:
            parts[name].append(queries.run(store, name, steps=ids))
        met = queries.run(store, "slice_arrivals", steps=ids, share=WORTH)
        parts["slice_arrivals"].append(met)
        new = np.setdiff1d(ints(met.take(last_of(met)), "own_step_id", -1), np.r_[known, -1])
        if not len(new):
            break
        known = np.r_[known, new]
    return _scene({name: _concat(tables) for name, tables in parts.items()}, asked)


def _scene(found: Mapping[str, pa.Table], asked: Ints) -> Scene:
    steps = found["slice_steps"].sort_by("id")
    step_id = ints(steps, "id")
    rows = found["slice_rows"]
    order = np.argsort(ints(rows, "id"), kind="stable")
    own = {name: ints(rows, name)[order] for name in rows.column_names if name.endswith("_ns")}
    own_id = ints(rows, "id")[order]
    slot = np.searchsorted(step_id, ints(rows, "step_id")[order])
    links = {kind: _links(found[name], own_id) for kind, name in _LINKS.items()}
    operator = rows["operator"].cast(pa.string()).combine_chunks()
    return Scene(
        steps, np.searchsorted(step_id, asked), step_id, ints(steps, "dur_ns"),
        ints(steps, "start_ns"), own_id, slot,
        pc.dictionary_encode(pc.fill_null(operator, "").take(pa.array(order))),
        rows["stream"].is_valid().to_numpy()[order], own["start_ns"],
        own["own_ns"], own["gap_ns"], own["excess_ns"], _late(own_id, found["slice_meetings"]),
        _parents(slot, links), links, found["slice_meetings"], found["slice_arrivals"],
    )  # fmt: skip


def last_of(met: pa.Table) -> Ints:
    """Give the rows of those who came last to each collective, by step and collective."""
    step, collective, arrival, span = (
        ints(met, name) for name in ("step_id", "collective_id", "arrival_ns", "span_id")
    )
    order = np.lexsort((span, arrival, collective, step))
    new = np.flatnonzero(starts(step[order], collective[order]))
    last: Ints = order[np.r_[new[1:], len(order)][: len(new)] - 1]
    return last


def _late(own_id: Ints, meetings: pa.Table) -> Ints:
    late = np.zeros(len(own_id), np.int64)
    late[places(own_id, ints(meetings, "span_id"))] = ints(meetings, "late_ns")
    return late


def _links(pairs: pa.Table, own_id: Ints) -> Links:
    src, dst = (places(own_id, ints(pairs, end)) for end in ("src", "dst"))
    here = np.flatnonzero((src >= 0) & (dst >= 0))
    here = here[np.lexsort((src[here], dst[here]))]
    return Links(src[here], dst[here])


def _parents(slot: Ints, links: Mapping[str, Links]) -> Ints:
    parent = np.full(len(slot), -1)
    for kind in (CHILD.type, LAUNCHED.type):
        pairs = links[kind]
        same = slot[pairs.src] == slot[pairs.dst]
        parent[pairs.dst[same]] = pairs.src[same]
    return parent


def ints(table: pa.Table, name: str, missing: int = 0) -> Ints:
    """Give a column as an array without nulls; an engine gives one without rows no type."""
    numbers: Ints = pc.fill_null(table[name].cast(pa.int64()), missing).to_numpy()
    return numbers


def _concat(tables: list[pa.Table]) -> pa.Table:
    """Join answers to one question; those without rows may have no types."""
    return pa.concat_tables([t for t in tables if t.num_rows] or tables[:1])
