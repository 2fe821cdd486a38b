"""What each step of each rank did, in quantities that any source gives: times, counts, waits.

Nothing here is trained, and nothing knows of faults.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.replicas import replicas
from teller.models.archived import Archived, Ints, filled, ints

Floats = npt.NDArray[np.float64]

# Families whose time and calls in a step are looked at, each with the names it gathers.
FAMILIES: Final = {
    "gemm": ("gemm", "moe"),
    "attention": ("attention", "kv_cache", "rope"),
    "pointwise": ("norm", "softmax", "activation", "elementwise", "reduce", "triton", "sampling"),
    "copy": ("memcpy_h2d", "memcpy_d2h", "memcpy_d2d", "memcpy_p2p", "memset"),
    "launch": ("launch", "graph_launch", "graph"),
    "api": ("copy_api", "event_api", "api_other"),
    "alloc": ("alloc",),
    "python": ("step", "module", "python"),
    "rest": (),
}
TIMES: Final = ("period", "dur", "own", "wait", "late", "pure", "host", "device")
COUNTS: Final = ("calls", "collectives")
NAMES: Final = (
    *TIMES, *COUNTS, *(f"{f}_ns" for f in FAMILIES), *(f"{f}_calls" for f in FAMILIES),
)  # fmt: skip
TIMED: Final = np.array([n in TIMES or n.endswith("_ns") for n in NAMES])
PHASES: Final = ("unknown", "decode", "mixed", "prefill")


@dataclass(frozen=True, slots=True)
class RankSteps:
    """The steps of all ranks of a run, a row each, by rank and start."""

    id: Ints
    rank: Ints
    replica: Ints  # ranks of one replica step together
    stage: Ints  # pipeline stage, 0 where none is told
    step_index: Ints
    start_ns: Ints
    end_ns: Ints
    phase: Ints  # place in PHASES
    load: Floats  # (rows, 2): batch and tokens, NaN where not known
    excess_ns: Ints
    quantity: Floats  # (rows, len(NAMES)): times in ns, counts as they are

    def __len__(self) -> int:
        """Give the number of rank-steps."""
        return len(self.id)

    def of(self, name: str) -> Floats:
        """Give one quantity."""
        column: Floats = self.quantity[:, NAMES.index(name)]
        return column

    def rows_of(self, rank: Ints, step_index: Ints) -> Ints:
        """Give the row of each pair of rank and step; -1 where there is none."""
        if not len(self):
            return np.full(len(rank), -1)
        width = int(max(self.step_index.max(), step_index.max(initial=0))) + 2
        known = self.rank * width + self.step_index
        wanted = rank * width + np.maximum(step_index, -1)
        order = np.argsort(known, kind="stable")
        at = order[np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)]
        return np.where((known[at] == wanted) & (step_index >= 0), at, -1)


def rank_steps(run: Archived) -> RankSteps:
    """Give the steps of a run with all quantities."""
    steps = run.steps.take(
        pc.sort_indices(run.steps, [("rank", "ascending"), ("start_ns", "ascending")])
    )
    rank = ints(steps["rank"])
    phase = pc.fill_null(pc.index_in(steps["phase"], pa.array(PHASES)), 0)
    replica, stage = _standing(run)
    empty = RankSteps(
        id=ints(steps["id"]), rank=rank,
        replica=np.array([replica.get(r, 0) for r in rank.tolist()], np.int64),
        stage=np.array([stage.get(r, 0) for r in rank.tolist()], np.int64),
        step_index=ints(steps["step_index"]), start_ns=ints(steps["start_ns"]),
        end_ns=ints(steps["end_ns"]), phase=ints(phase),
        load=np.stack([_real(steps[n]) for n in ("batch_size", "token_count")], axis=1),
        excess_ns=filled(steps["excess_ns"], 0),
        quantity=np.zeros((steps.num_rows, len(NAMES))),
    )  # fmt: skip
    _fill_steps(empty, filled(steps["own_ns"], 0))
    _fill_operators(empty, run.expected)
    _fill_collectives(empty, run.members)
    return empty


def _standing(run: Archived) -> tuple[dict[int, int], dict[int, int]]:
    """Give replica and stage of each rank."""
    ranks = run.ranks
    number = ints(ranks["rank"])
    places = [{} if d is None else {"dp": d} for d in ranks["dp"].to_pylist()]
    joined = pa.table(
        {
            "number": run.members["number"],
            "source": pc.fill_null(pc.index_in(run.members["rank"], pa.array(number)), 0),
            "matched_by": run.members["matched_by"],
        }
    )
    together = replicas(places, joined).tolist() if places else []
    stage = filled(ranks["pp"], 0).tolist()
    return (
        dict(zip(number.tolist(), together, strict=True)),
        dict(zip(number.tolist(), stage, strict=True)),
    )


def _real(column: pa.ChunkedArray) -> Floats:
    real: Floats = column.cast(pa.float64()).fill_null(float("nan")).to_numpy()
    return real


def _fill_steps(into: RankSteps, own_ns: Ints) -> None:
    dur = into.end_ns - into.start_ns
    before = np.r_[0, into.end_ns[:-1]]
    follows = np.r_[False, into.rank[1:] == into.rank[:-1]]
    period = np.where(follows, np.maximum(into.end_ns - before, 0), dur)
    for name, values in (("period", period), ("dur", dur), ("own", own_ns)):
        into.quantity[:, NAMES.index(name)] = values


def _fill_operators(into: RankSteps, expected: pa.Table) -> None:
    """Sum own times and calls of operators by family, host and device apart in sum."""
    row = into.rows_of(ints(expected["rank"]), filled(expected["step_index"], -1))
    kept = row >= 0
    family = expected["family"].to_pylist()
    place = {name: at for at, names in enumerate(FAMILIES.values()) for name in names}
    code = np.array([place.get(f, len(FAMILIES) - 1) for f in family], np.int64)[kept]
    own, count = (ints(expected[n])[kept].astype(float) for n in ("own_ns", "count"))
    device = expected["device"].to_numpy()[kept]
    row = row[kept]
    first = NAMES.index(f"{next(iter(FAMILIES))}_ns")
    np.add.at(into.quantity, (row, first + code), own)
    np.add.at(into.quantity, (row, first + len(FAMILIES) + code), count)
    np.add.at(into.of("calls"), row, count)
    np.add.at(into.of("device"), row[device], own[device])
    np.add.at(into.of("host"), row[~device], own[~device])


def _fill_collectives(into: RankSteps, members: pa.Table) -> None:
    row = into.rows_of(ints(members["rank"]), ints(members["step_index"]))
    kept = row >= 0
    exposed = ints(members["wait_ns"]) - filled(members["covered_ns"], 0)
    for name, values in (
        ("wait", np.maximum(exposed, 0)),
        ("late", np.maximum(filled(members["late_ns"], 0), 0)),
        ("pure", filled(members["pure_ns"], 0)),
        ("collectives", np.ones(len(row), np.int64)),
    ):
        np.add.at(into.of(name), row[kept], values[kept].astype(float))
