"""Operators that run more or less often in a step than beside it."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import queries
from teller.graph.store import Store
from teller.models.slice_picks import Ints, first_of_each, places, starts
from teller.models.slice_reading import Scene, ints

APART: Final = 0.15  # of the peers' number of calls, and two calls at least
MOST_PEERS: Final = 8  # ranks that calls are counted by


def counts_apart(store: Store, scene: Scene) -> pa.Table:
    """Give the operators of each step asked for whose number of calls is not that of its peers.

    Peers are the same step on other ranks, at most `MOST_PEERS`; for a rank that is alone, the
    steps beside it of the same phase.
    Columns: step_id, operator, span_count, peer_count (their median).
    """
    step, peer = _peers(store, scene.step_id[scene.asked])
    ids = np.union1d(step, peer)
    names, table = _counted(store, scene, ids)
    begin = np.flatnonzero(starts(step))
    number = np.diff(np.r_[begin, len(step)])
    theirs = np.full((len(begin), int(number.max(initial=1)), len(names)), np.nan)
    which = np.repeat(np.arange(len(begin)), number)
    theirs[which, np.arange(len(step)) - begin[which]] = table[places(ids, peer)]
    middle = np.nanmedian(theirs, axis=1)
    own = table[places(ids, step[begin])]
    apart = np.abs(own - middle) >= np.maximum(2, APART * middle)
    at, kind = np.nonzero(apart)
    return pa.table({
        "step_id": step[begin][at], "operator": names.take(pa.array(kind)),
        "span_count": own[at, kind], "peer_count": middle[at, kind],
    })  # fmt: skip


def _counted(store: Store, scene: Scene, ids: Ints) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Give the operators, and their calls in each of the steps; only what is not read is asked."""
    unread = np.setdiff1d(ids, scene.step_id)
    parts = [_of_scene(scene)]
    if len(unread):
        found = queries.run(store, "slice_counts", steps=unread.tolist())
        operator = pc.fill_null(found["operator"].cast(pa.string()), "").combine_chunks()
        parts.append((ints(found, "step_id"), operator, ints(found, "span_count")))
    names = pc.unique(pa.chunked_array([part[1] for part in parts]))
    names = names.take(pc.sort_indices(names))  # engines give rows in orders of their own
    table = np.zeros((len(ids), len(names)), np.int64)
    for step, operator, count in parts:
        at = places(ids, step)
        code = pc.index_in(operator, names).to_numpy()
        table[at[at >= 0], code[at >= 0]] = count[at >= 0]
    return names, table


def _of_scene(scene: Scene) -> tuple[Ints, pa.Array, Ints]:
    kinds = max(len(scene.operator.dictionary), 1)
    counts = np.bincount(scene.slot * kinds + scene.operator.indices.to_numpy())
    cell = np.flatnonzero(counts)
    operator = scene.operator.dictionary.take(pa.array(cell % kinds))
    return scene.step_id[cell // kinds], operator, counts[cell]


def _peers(store: Store, asked: Ints) -> tuple[Ints, Ints]:
    """Give pairs of a step and a step to count by, sorted."""
    found = queries.run(store, "slice_peers", steps=asked.tolist())
    step, peer = ints(found, "step_id"), ints(found, "peer_id")
    step, peer = step[step != peer], peer[step != peer]
    if len(alone := np.setdiff1d(asked, step)):
        found = queries.run(store, "slice_followers", steps=alone.tolist())
        step = np.r_[step, ints(found, "step_id")]
        peer = np.r_[peer, ints(found, "peer_id")]
    chosen = first_of_each([step], MOST_PEERS, -peer)  # the same whatever else is asked for
    step, peer = step[chosen], peer[chosen]
    order = np.lexsort((peer, step))
    return step[order], peer[order]
