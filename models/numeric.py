"""The numeric voice: how abnormal each step of each rank is, from its excess alone.

No training: a step's excess over its peers (or over like steps of its own rank) is set against the
spread of the rank's quiet steps. A step is called abnormal only if the excess is also worth it.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from teller.graph.store import Store
from teller.models.episodes import FLOOR_NS, noise_of

Floats = npt.NDArray[np.float64]

WORTH: Final = 0.03  # share of the step from which an excess counts
MIDDLE: Final = 6.0  # spreads above zero at which a step is as likely abnormal as not

_STEPS: Final = """
MATCH (t:Step) WHERE t.run_id = $run
RETURN t.id AS id, t.rank AS rank, t.step_index AS step_index, t.start_ns AS start_ns,
       t.end_ns AS end_ns, t.phase AS phase, t.dur_ns AS dur_ns, t.own_ns AS own_ns,
       t.excess_ns AS excess_ns
ORDER BY rank, step_index
"""


def score(store: Store, run: int) -> pa.Table:
    """Give all steps of a run with `own_excess_ns` and `p_abnormal`, by rank and step."""
    steps = store.query(_STEPS, {"run": run})
    rank = steps["rank"].to_numpy()
    excess = steps["excess_ns"].to_numpy().astype(np.int64)
    own = steps["own_ns"].to_numpy()
    chance = np.zeros(len(rank))
    for one in np.unique(rank):
        mine = rank == one
        spread = max(noise_of(excess[mine]), FLOOR_NS)
        chance[mine] = _chance(excess[mine] / spread, excess[mine] / np.maximum(own[mine], 1))
    return steps.append_column("p_abnormal", pa.array(chance))


def _chance(spreads: Floats, share: Floats) -> Floats:
    clear = 1 / (1 + np.exp(-np.clip(spreads - MIDDLE, -50, 50)))
    return clear * np.clip(share / WORTH, 0, 1)
