"""What the graph keeps of a run, as the objects that every surface renders."""

import json

import pyarrow as pa

from teller.graph import judgement, queries, targets
from teller.graph.finding import (
    Diagnosis,
    Finding,
    InputSummary,
    Quality,
    RunSummary,
)
from teller.graph.schema import Node
from teller.graph.store import Store
from teller.graph.tables import GraphTable, table_of


def diagnosis(graph: Store, run_id: int) -> Diagnosis:
    """Give the diagnosis of a run as it was when its findings were made."""
    said = queries.run(graph, "findings", run=run_id)["detail"].to_pylist()
    findings = judgement.ordered(Finding.from_json(json.loads(one)) for one in said if one)
    run = summary(graph, run_id)
    return Diagnosis(
        judgement.verdict(findings, answered=answered(graph, run_id)), (run,), findings,
        quality(graph, run_id), inputs(graph, run_id),
    )  # fmt: skip


def answered(graph: Store, run_id: int) -> bool:
    """Tell whether the run holds what a healthy state would show in: steps, or an engine's record.

    Whoever counts requests, iterations or collectives would count a fault as well.
    """
    return any(
        graph.query(text.replace("$run", str(run_id))).num_rows
        for text in (_STEPS, _COUNTED, _KEPT)
    )


_STEPS = "MATCH (t:Step) WHERE t.run_id = $run RETURN t.id AS id LIMIT 1"
_COUNTED = (
    "MATCH (q:Sample) WHERE q.run_id = $run AND "
    "q.name IN ['engine.running', 'engine.batch_size', 'step.host_ns'] RETURN q.id AS id LIMIT 1"
)
_KEPT = (
    "MATCH (r:Rank)-[j:JOINED]->(c:Collective) WHERE r.run_id = $run AND j.state IS NOT NULL "
    "RETURN c.id AS id LIMIT 1"
)


def quality(graph: Store, run_id: int) -> tuple[Quality, ...]:
    """Give what was wrong with the inputs of a run."""
    rows = queries.run(graph, "remarks", run=run_id).to_pylist()
    return tuple(
        Quality(r["path"], r["place"] or "", r["text"] or "", r["remedy"] or "") for r in rows
    )


def inputs(graph: Store, run_id: int) -> tuple[InputSummary, ...]:
    """Give the inputs of a run."""
    return tuple(
        InputSummary(r["path"], r["format"], r["rank"], r["event_count"] or 0, r["note"] or "")
        for r in queries.run(graph, "inputs", run=run_id).to_pylist()
    )


def summary(graph: Store, run_id: int) -> RunSummary:
    """Give what is to be said of a run in one line."""
    runs = queries.run(graph, "runs")
    row = next(r for r in runs.to_pylist() if r["id"] == run_id)
    ranks = table(graph, table_of("Rank"), run_id).to_pylist()
    aims = targets.of_run(graph, run_id)
    left = [r["clock_residual_ns"] for r in ranks if r["clock_residual_ns"] is not None]
    return RunSummary(
        run_id, row["name"] or str(run_id), row["t0_epoch_ns"] or 0,
        tuple(sorted(r["rank"] for r in ranks if r["rank"] is not None)),
        tuple(sorted({r["host"] for r in ranks if r["host"]})),
        table(graph, table_of("Iteration"), run_id).num_rows, max(left, default=None),
        graph.query(_REQUESTS, {"run": run_id})["count"][0].as_py(),
        targets.missed(graph, run_id, aims).num_rows if aims else None, aims,
    )  # fmt: skip


_REQUESTS = "MATCH (q:Request) WHERE q.run_id = $run RETURN count(*) AS count"


def table(graph: Store, wanted: GraphTable, run_id: int) -> pa.Table:
    """Give one table of the graph for a run, with what all runs share."""
    names = [column.name for column in wanted.kind.columns]
    if isinstance(wanted.kind, Node):
        start = f"MATCH (n:{wanted.kind.label})"
        given = [f"n.{name} AS {name}" for name in names]
    else:
        start = f"MATCH (n:{wanted.src})-[r:{wanted.kind.type}]->(m:{wanted.dst})"
        given = ["n.id AS src", "m.id AS dst", *(f"r.{name} AS {name}" for name in names)]
    text = f"{start} WHERE n.run_id IN [$run, 0] RETURN {', '.join(given)}"
    return graph.query(text, {"run": run_id})
