"""The tables of a slice, out of what was picked."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import queries
from teller.graph.schema import IN_COLLECTIVE
from teller.graph.store import Store
from teller.models.slice_chain import Met
from teller.models.slice_picks import Ints, Picks, Role, across, first_of_each, places
from teller.models.slice_reading import Scene, ints

MOST_LINES: Final = 64  # of a slice: warnings first
_LOUD: Final = ("fatal", "error", "warning")

# An engine gives a column without values no type; these are what the queries' columns hold.
_TEXTS: Final = frozenset({
    "name", "operator", "family", "layer", "lane", "op", "template", "host", "level", "text",
    "tied_by", "phase",
})  # fmt: skip
_REALS: Final = frozenset({"confidence"})


def steps(scene: Scene, whole: Picks, cut: Ints) -> pa.Table:
    """Give the steps asked for, with the size of each and of its slice."""
    size = len(scene.step_id)
    found = scene.steps.take(pa.array(scene.asked)).drop_columns(["run_id"])
    counts = {
        "span_count": np.bincount(scene.slot, minlength=size)[scene.asked],
        "kept": np.bincount(whole.slot, minlength=size)[scene.asked],
        "cut": cut,
    }
    for name, number in counts.items():
        found = found.append_column(name, pa.array(number, pa.int64()))
    return _typed(found.rename_columns({"id": "step_id"}))


def spans(store: Store, scene: Scene, whole: Picks) -> pa.Table:
    """Give the spans of the slices, by slice and time, with why they are in."""
    wanted = np.unique(whole.row)
    found = queries.run(store, "slice_spans", spans=scene.id[wanted].tolist())
    found = found.sort_by("id")
    order = np.lexsort((scene.id[whole.row], scene.begin_ns[whole.row], whole.slot))
    picked = found.take(pa.array(places(wanted, whole.row)[order]))
    reasons, at = np.unique(whole.why[order], return_inverse=True)
    said = pa.array([[str(r.name).lower() for r in Role if r & why] for why in reasons.tolist()],
                    pa.list_(pa.string()))  # fmt: skip
    first = {
        "step_id": pa.array(scene.step_id[whole.slot[order]]),
        "roles": said.take(pa.array(at)),
        "hop": pa.array(whole.hop[order]),
        "own_step_id": pa.array(scene.step_id[scene.slot[whole.row[order]]]),
    }
    return _typed(_led(first, picked))


def edges(scene: Scene, whole: Picks, met: pa.Table) -> pa.Table:
    """Give the relations between spans of one slice, and those to its collectives."""
    keys = whole.slot * len(scene.id) + whole.row  # sorted, as picks are
    parts = []
    for kind, links in scene.links.items():
        src, which = across(links.dst, links.src, whole.row)
        slot = whole.slot[which]
        inside = places(keys, slot * len(scene.id) + src) >= 0
        ends = scene.id[src[inside]], scene.id[whole.row[which[inside]]]
        parts.append(_edges(scene.step_id[slot[inside]], *ends, kind))
    slot = places(scene.step_id, ints(met, "step_id"))
    row = places(scene.id, ints(met, "span_id"))
    inside = (row >= 0) & (places(keys, slot * len(scene.id) + row) >= 0)
    ends = ints(met, "span_id")[inside], ints(met, "collective_id")[inside]
    parts.append(_edges(ints(met, "step_id")[inside], *ends, IN_COLLECTIVE.type))
    return pa.concat_tables(parts)


def _edges(step: Ints, src: Ints, dst: Ints, kind: str) -> pa.Table:
    kinds = pa.repeat(kind, len(src))
    return pa.table({"step_id": step, "src": src, "dst": dst, "kind": kinds})


def collectives(scene: Scene, met: Met) -> pa.Table:
    """Give every rank's arrival at the collectives of the slices; `hop` counts from the step."""
    table = scene.arrivals
    names, number = np.unique(ints(table, "collective_id"), return_inverse=True)
    key = places(scene.step_id, ints(table, "step_id")) * len(names) + number
    order = np.argsort(key, kind="stable")
    wanted = met.by * len(names) + places(names, met.collective)
    at, which = across(key[order], order, wanted)
    first = {
        "step_id": pa.array(scene.step_id[met.slot[which]]),
        "hop": pa.array(met.hop[which]),
    }
    return _typed(_led(first, table.take(pa.array(at)).drop_columns(["step_id"])))


def lines(store: Store, scene: Scene, whole: Picks) -> pa.Table:
    """Give the log lines written during the steps of the slices, by slice and time."""
    pairs = np.unique(np.stack([
        np.r_[whole.slot, scene.asked], np.r_[scene.slot[whole.row], scene.asked]]), axis=1,
    )  # fmt: skip
    during = scene.step_id[np.unique(pairs[1])]
    found = queries.run(store, "slice_lines", steps=during.tolist())
    found = found.rename_columns({"step_id": "own_step_id"})
    own = places(scene.step_id, ints(found, "own_step_id"))
    order = np.argsort(own, kind="stable")
    at, which = across(own[order], order, pairs[1])
    slot = pairs[0][which]
    level = pc.utf8_lower(found["level"].cast(pa.string()))
    loud = pc.is_in(level, pa.array(_LOUD)).to_numpy().astype(np.int64)[at]
    time = ints(found, "time_ns")[at]
    kept = first_of_each([slot], MOST_LINES, loud, -time, -at)
    kept = kept[np.lexsort((at[kept], time[kept], slot[kept]))]
    first = {"step_id": pa.array(scene.step_id[slot[kept]])}
    return _typed(_led(first, found.take(pa.array(at[kept]))))


def _led(first: dict[str, pa.Array], table: pa.Table) -> pa.Table:
    return pa.table(first | dict(zip(table.column_names, table.columns, strict=True)))


def _typed(table: pa.Table) -> pa.Table:
    """Give each column its type, also where the engine had no value to tell it by."""

    def kind(field: pa.Field) -> pa.DataType:
        if field.name in _TEXTS:
            return pa.string()
        return pa.float64() if field.name in _REALS else field.type

    return table.cast(pa.schema([
        pa.field(f.name, pa.int64() if pa.types.is_null(kind(f)) else kind(f)) for f in table.schema
    ]))  # fmt: skip
