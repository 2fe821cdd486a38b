"""The story of one request, asked of the graph by named queries: who served it, and what took long.

Of a step only the branches that matter are shown: collectives that others were late to, work that
took longer than it should, and the longest of the rest, each with the calls that led there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.errors import BadUsage, UnknownName
from teller.graph import queries, targets
from teller.graph.request_names import matching
from teller.graph.store import Store
from teller.ui.branches import Branch, branches

Row = dict[str, Any]

MOST_RANKS: Final = 8  # whose steps are shown: the latest first
MOST_LINES: Final = 50
_NEAR: Final = 8


@dataclass(frozen=True, slots=True)
class StepStory:
    """One rank's part of an iteration; `left_out` counts spans that are not in the branches."""

    step: Row
    collectives: tuple[Row, ...]
    branches: tuple[Branch, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Served:
    """An iteration that served the request, and the steps of all ranks in it."""

    iteration: Row
    steps: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """What is known of one request; `missed` names the targets that it was too long for."""

    run: str
    t0_epoch_ns: int  # 0 without a clock
    request: Row
    targets: Mapping[str, int]
    missed: tuple[str, ...]
    iteration_count: int
    iterations: tuple[Served, ...]  # slowest first
    slowest: tuple[StepStory, ...]  # of the first iteration
    rank_count: int
    lines: tuple[Row, ...]  # that speak of it
    line_count: int
    beside: tuple[Row, ...]  # other lines written during the slowest iteration
    beside_count: int


def gather(graph: Store, run: int, wanted: str, limit: int) -> Story:
    """Give the story of the request of that name, or of the one whose name begins so."""
    asked = queries.run(graph, "requests", run=run)
    request = _chosen(asked, wanted)
    known = next(r for r in queries.run(graph, "runs").to_pylist() if r["id"] == run)
    aims = targets.of_run(graph, run)
    served = queries.run(graph, "request_iterations", request=request["id"])
    iterations = tuple(
        Served(row, tuple(queries.run(graph, "iteration_steps", iteration=row["id"]).to_pylist()))
        for row in served.slice(0, limit).to_pylist()
    )
    told = queries.run(graph, "request_lines", run=run, request=request["name"])
    beside, slowest = told.slice(0, 0), list[StepStory]()
    if iterations:
        first = iterations[0].iteration["id"]
        beside = queries.run(graph, "iteration_lines", iteration=first)
        own = pc.is_in(beside["id"], told["id"].combine_chunks())
        beside = beside.filter(pc.invert(own))
        slowest = [_step(graph, row) for row in _latest_first(iterations[0].steps)[:MOST_RANKS]]
    return Story(
        known["name"] or str(run), known["t0_epoch_ns"] or 0, request, aims,
        missed(request, aims), served.num_rows, iterations, tuple(slowest),
        len(iterations[0].steps) if iterations else 0,
        tuple(told.slice(0, MOST_LINES).to_pylist()), told.num_rows,
        tuple(beside.slice(0, MOST_LINES).to_pylist()), beside.num_rows,
    )  # fmt: skip


def missed(request: Row, aims: Mapping[str, int]) -> tuple[str, ...]:
    """Name the targets that a request was too long for."""
    start, end = request["start_ns"], request["end_ns"]
    took = {
        "ttft": request["ttft_ns"],
        "itl": request["itl_p50_ns"],
        "e2e": None if start is None or end is None else end - start,
    }
    return tuple(n for n, aim in aims.items() if (ns := took.get(n)) is not None and ns > aim)


def _chosen(asked: pa.Table, wanted: str) -> Row:
    names = asked["name"].combine_chunks()
    found = matching(names, wanted)
    if len(found) == 1:
        row: Row = asked.filter(pc.equal(asked["name"], found[0])).to_pylist()[0]
        return row
    if found:
        some = ", ".join(found[:_NEAR]) + (", …" if len(found) > _NEAR else "")
        raise BadUsage(f"{len(found)} requests begin with {wanted!r}: {some}; give more of it")
    every = names.to_pylist()
    near = get_close_matches(wanted, every, n=_NEAR, cutoff=0.5)
    raise UnknownName("request", wanted, near or every[:_NEAR])


def _latest_first(steps: Sequence[Row]) -> list[Row]:
    """Put the rank that lost most of its own making first."""
    return sorted(steps, key=lambda s: (-(s["excess_ns"] or 0), -(s["dur_ns"] or 0), s["rank"]))


def _step(graph: Store, step: Row) -> StepStory:
    collectives = queries.run(graph, "step_collectives", step=step["id"]).to_pylist()
    spans = queries.run(graph, "step_tree", step=step["id"])
    found = branches(spans, {c["span_id"]: c for c in collectives})
    return StepStory(step, tuple(collectives), found, spans.num_rows - sum(b.size for b in found))
