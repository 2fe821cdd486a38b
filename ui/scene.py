"""The step that a page is about, with what lies around it."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from teller.errors import NothingUsable
from teller.graph import recall
from teller.graph.finding import Finding
from teller.graph.store import Store
from teller.graph.tables import table_of
from teller.ui.desk import Place

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """A step of a rank: all steps of the rank, its iteration, and the steps of all ranks in it.

    `finding` is the one that led here, where there is one.
    """

    place: Place
    run: int
    rank: int
    step: Row
    steps: pa.Table
    around: Row  # the iteration; without one, the step itself
    others: tuple[Row, ...]
    finding: Finding | None

    @property
    def has_iteration(self) -> bool:
        """Tell whether the step is known to be part of an iteration."""
        return self.around is not self.step

    @property
    def start_ns(self) -> int:
        """Give when the iteration and the step have begun."""
        return min(int(self.around["start_ns"]), int(self.step["start_ns"]))

    @property
    def end_ns(self) -> int:
        """Give when both have ended."""
        return max(int(self.around["end_ns"]), int(self.step["end_ns"]))

    def lines(self) -> pa.Table | None:
        """Give the log lines of the iteration."""
        if not self.has_iteration:
            return None
        return self.place.ask("iteration_lines", iteration=self.around["id"])

    def address(self) -> dict[str, int | None]:
        """Give what a link to another step of the same run keeps."""
        return {"run": self.run, "finding": self.finding.id if self.finding else None}


def scene(
    place: Place, run: int, rank: int | None, index: int | None, finding: int | None
) -> Scene:
    """Give the scene of a step; of what is not said, the step that lost most.

    Raises `NothingUsable` where the run has no such step.
    """
    rank, index = _chosen(place, run, rank, index)
    steps = place.ask("rank_steps", run=run, rank=rank)
    step = next((row for row in steps.to_pylist() if row["step_index"] == index), None)
    if step is None:
        raise NothingUsable(f"rank {rank} has no step {index}: leave out the step in the address")
    found = place.ask("iteration_of_step", step=step["id"]).to_pylist()
    around = found[0] if found else step
    others = (
        place.ask("iteration_steps", iteration=around["id"]).to_pylist()
        if found
        else [step | {"rank": rank}]
    )
    said = place.diagnosis(run).findings
    why = next((one for one in said if one.id == finding), None)
    return Scene(place, run, rank, step, steps, around, tuple(others), why)


def hosts(place: Place, run: int) -> dict[int, str]:
    """Give the host of each rank; "" where it is not known."""
    found: dict[int, str] = place.kept(("hosts", run), lambda graph: _hosts(graph, run))
    return found


def _hosts(graph: Store, run: int) -> dict[int, str]:
    rows = recall.table(graph, table_of("Rank"), run).select(["rank", "host"]).to_pylist()
    return {row["rank"]: row["host"] or "" for row in rows if row["rank"] is not None}


def _chosen(place: Place, run: int, rank: int | None, index: int | None) -> tuple[int, int]:
    heat = place.ask("rank_iteration_heat", run=run)
    heat = heat.filter(pc.is_valid(heat["rank"]))
    if not heat.num_rows:
        raise NothingUsable(
            "this run has no steps, as no spans were recorded; teller doctor says what to record"
        )
    mine = heat if rank is None else heat.filter(pc.equal(heat["rank"], rank))
    if not mine.num_rows:
        raise NothingUsable(f"this run has no rank {rank} with steps")
    if rank is not None and index is not None:
        return rank, index
    if index is not None:
        mine = mine.filter(pc.equal(mine["step_index"], index))
        if not mine.num_rows:
            raise NothingUsable(f"this run has no step {index}")
    worst = pc.sort_indices(mine, [("excess_ns", "descending"), ("dur_ns", "descending")])
    row = mine.take(worst.slice(0, 1)).to_pylist()[0]
    return int(row["rank"]), int(row["step_index"])
