"""The causal-context slice of a step: its call tree, cut to what can explain it.

The graph is asked by a few named queries (`slice_*.cypher`), each for many steps at once; what is
cut out of the answers is cut by columns. See `docs/adr/016-slices-by-cypher.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.errors import BadUsage
from teller.graph.store import Store
from teller.models import slice_chain, slice_counts, slice_reading, slice_seeds, slice_tables
from teller.models.slice_picks import Ints, Picks

__all__ = ["Slice", "slice_of"]


@dataclass(frozen=True, slots=True)
class Slice:
    """The slices of some steps of one run. Column `step_id` of each table says whose slice it is.

    * `steps`: one row a step asked for, with `span_count` of the whole step, `kept` spans of the
      slice on all ranks, and `cut`, the spans left out because the slice was too large.
    * `spans`: why each is in (`roles`, see `slice_picks.Role`), in how many collectives backwards
      (`hop`, 0 in the step itself), the step it ran in (`own_step_id`), and its columns. By time.
    * `edges`: `src`, `dst` and `kind`, a relation type of the schema; both ends are in `spans`,
      but for IN_COLLECTIVE, which leads to `collectives`.
    * `collectives`: those that cost time, a row for each rank: arrival, wait, pure time, order.
    * `lines`: log lines written during any of the steps, with template and span.
    * `counts`: operators that ran more or less often than in the same step of the other ranks.
    """

    run_id: int
    steps: pa.Table
    spans: pa.Table
    edges: pa.Table
    collectives: pa.Table
    lines: pa.Table
    counts: pa.Table


def slice_of(store: Store, run_id: int, step_ids: Sequence[int]) -> Slice:
    """Cut the slices of these steps of one run out of the graph.

    Raises `BadUsage` for an id that is no step of the run.
    """
    asked = np.unique(np.array(step_ids, np.int64))
    _check(slice_reading.steps_of(store, asked), run_id, asked)
    scene = slice_reading.read(store, asked)
    counts = slice_counts.counts_apart(store, scene)
    seeds = slice_seeds.seeds(scene, counts)
    chain, met = slice_chain.backwards(scene)
    near = slice_seeds.around(scene, seeds)
    kept, cut = slice_seeds.cut_to_size(scene, Picks.joined([seeds, chain, near]))
    whole = slice_seeds.with_ancestors(scene, kept)
    collectives = slice_tables.collectives(scene, met)
    return Slice(
        run_id,
        slice_tables.steps(scene, whole, cut),
        slice_tables.spans(store, scene, whole),
        slice_tables.edges(scene, whole, collectives),
        collectives,
        slice_tables.lines(store, scene, whole),
        counts,
    )


def _check(steps: pa.Table, run_id: int, asked: Ints) -> None:
    listed = "teller query 'MATCH (t:Step) RETURN t.id, t.rank, t.step_index' lists the steps"
    if not len(asked):
        raise BadUsage(f"a slice is of one step at least; {listed}")
    own = steps.filter(pc.equal(steps["run_id"], run_id)) if steps.num_rows else steps
    lost = np.setdiff1d(asked, slice_reading.ints(own, "id"))
    if len(lost):
        more = f", nor are {len(lost) - 1:,} more" if len(lost) > 1 else ""
        raise BadUsage(f"{lost[0]} is no step of run {run_id}{more}; {listed}")
