"""What the pictures of a run are drawn from, asked of the graph by named queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import queries, recall
from teller.graph.finding import Diagnosis, Finding
from teller.graph.store import Store
from teller.graph.tables import table_of

_RUNS: Final = 6  # runs that get pictures: those with findings first


@dataclass(frozen=True, slots=True)
class StepSight:
    """The spans of one step that is worth looking at."""

    rank: int
    step_index: int
    spans: pa.Table


@dataclass(frozen=True, slots=True)
class RunSight:
    """The tables of one run; a table without rows gives no picture."""

    hosts: Mapping[int, str]  # of each rank
    heat: pa.Table
    edges: pa.Table
    step: StepSight | None = None


def gather(graph: Store, diagnosis: Diagnosis) -> dict[int, RunSight]:
    """Give by run id what its pictures need; of many runs, the ones with findings first."""
    blamed = {finding.run for finding in diagnosis.findings}
    runs = sorted((run.id for run in diagnosis.runs), key=lambda run: run not in blamed)
    return {
        run: _sight(graph, run, [f for f in diagnosis.findings if f.run == run])
        for run in runs[:_RUNS]
    }


def _sight(graph: Store, run: int, findings: Sequence[Finding]) -> RunSight:
    heat = queries.run(graph, "rank_iteration_heat", run=run)
    ranks = recall.table(graph, table_of("Rank"), run)
    hosts = dict(zip(ranks["rank"].to_pylist(), ranks["host"].to_pylist(), strict=True))
    return RunSight(
        {rank: host or "" for rank, host in hosts.items() if rank is not None},
        heat.filter(pc.is_valid(heat["rank"])),
        queries.run(graph, "communication_edges", run=run),
        _step(graph, heat, findings),
    )


def _step(graph: Store, heat: pa.Table, findings: Sequence[Finding]) -> StepSight | None:
    if not heat.num_rows:
        return None
    places = [_within(heat, finding) for finding in findings] or [heat]
    rows = next((part for part in places if part.num_rows), heat)
    worst = rows.take(pc.sort_indices(rows, _WORST_FIRST).slice(0, 1)).to_pylist()[0]
    spans = queries.run(graph, "step_tree", step=worst["id"])
    return StepSight(worst["rank"], worst["step_index"], spans)


_WORST_FIRST: Final = [("excess_ns", "descending"), ("dur_ns", "descending")]


def _within(heat: pa.Table, finding: Finding) -> pa.Table:
    """Give the cells that a finding is about."""
    wanted = pc.scalar(True)
    if finding.culprit.ranks:
        wanted = wanted & pc.field("rank").isin(finding.culprit.ranks)
    if finding.first_step is not None:
        wanted = wanted & (pc.field("step_index") >= finding.first_step)
    if finding.last_step is not None:
        wanted = wanted & (pc.field("step_index") <= finding.last_step)
    return heat.filter(wanted)
