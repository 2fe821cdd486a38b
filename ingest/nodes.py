"""The small tables of a run's graph: every label and relation that is not one row a span."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import ids, schema
from teller.ingest import places
from teller.ingest.assembly import Assembly, InputRow
from teller.ingest.records import window_of
from teller.ingest.rows import from_dicts, node_rows, relation_rows

Tables = dict[str, pa.Table]
Row = dict[str, Any]


def tables(run: Assembly) -> Tables:
    """Give all small tables by name: `Label`, or `TYPE.Src.Dst`."""
    made: Tables = {}
    made |= _run_and_inputs(run)
    made |= places.tables(run)
    made |= _steps(run)
    made |= _samples(run)
    return made


def _run_and_inputs(run: Assembly) -> Tables:
    inputs = [
        {
            "id": run.input_id(i.digest, i.of_host), "path": i.path, "format": i.format,
            "rank": i.rank, "host": i.host, "event_count": i.event_count, "used": i.used,
            "note": i.note,
        }
        for i in _once(run)
    ]  # fmt: skip
    of_path = {i.path: run.input_id(i.digest, i.of_host) for i in run.inputs}
    remarks = [
        {
            "id": ids.node_id(run.key, "Remark", r.path, r.place, r.what), "path": r.path,
            "place": r.place, "text": r.what, "remedy": r.remedy,
        }
        for r in dict.fromkeys(run.remarks)
    ]  # fmt: skip
    on = [(m["id"], of_path[str(m["path"])]) for m in remarks if m["path"] in of_path]
    return {
        "Run": from_dicts(schema.RUN, run.run_id, [_run(run)]),
        "Input": from_dicts(schema.INPUT, run.run_id, inputs),
        "Remark": from_dicts(schema.REMARK, run.run_id, remarks),
        "PART_OF.Input.Run": relation_rows(
            schema.PART_OF, [i["id"] for i in inputs], [run.run_id] * len(inputs)
        ),
        "ON_INPUT.Remark.Input": relation_rows(
            schema.ON_INPUT, [a for a, _ in on], [b for _, b in on]
        ),
    }


def _run(run: Assembly) -> Row:
    sizes = [p.shaped.facts.world_size or 0 for p in run.parts]
    sizes += [r.records.facts.world_size or 0 for r in run.records]
    start, end = _window(run)
    return {
        "id": run.run_id,
        "name": run.name,
        "deployment": run.deployment,
        "t0_epoch_ns": run.line.t0_epoch_ns if run.anchored else 0,
        "start_ns": start,
        "end_ns": end,
        "world_size": max([*sizes, len({*run.ranks.tolist(), *run.cast.persons})]),
        "engine": run.engine or _said(run, "engine.name"),
        "model": _said(run, "engine.model"),
        "baseline": run.baseline,
    }


def _window(run: Assembly) -> tuple[int, int]:
    """Give the window of the captures; of the records where there are none."""
    pairs = list(zip(run.line.axes, run.parts, strict=True))
    if pairs:
        return (
            min(axis.moment(part.shaped.first_ns) for axis, part in pairs),
            max(axis.moment(part.shaped.last_ns) for axis, part in pairs),
        )
    times = [
        (w[0] + r.shift_ns, w[1] + r.shift_ns)
        for r in run.dated
        if r.shift_ns is not None and (w := window_of(r.part.records)) is not None
    ]
    t0 = run.line.t0_epoch_ns
    return min((t[0] - t0 for t in times), default=0), max((t[1] - t0 for t in times), default=0)


def _said(run: Assembly, name: str) -> str:
    """Give the first word that samples of a name say, of whichever file."""
    said = run.rows.samples.filter(pc.equal(run.rows.samples["name"], name))["text"].to_pylist()
    return min((s for s in said if s), default="")


def _once(run: Assembly) -> Iterable[InputRow]:
    """Give each input once: a file with several processes is one input, its events are summed."""
    merged: dict[tuple[str, str], InputRow] = {}
    for one in run.inputs:
        key = one.digest, one.of_host
        known = merged.get(key)
        merged[key] = (
            one
            if known is None
            else replace(
                known,
                event_count=known.event_count + one.event_count,
                rank=None,
                used=known.used or one.used,
            )
        )
    return merged.values()


def _steps(run: Assembly) -> Tables:
    steps, iterations = run.stepped.steps, run.stepped.iterations
    rank, index = steps["rank"].to_numpy(), steps["step_index"].to_numpy()
    step_id = run.step_ids(rank, index)
    names = [c.name for c in schema.STEP.own if c.name in steps.column_names]
    order = np.lexsort((index, rank))
    follows = order[1:][rank[order[1:]] == rank[order[:-1]]]
    leads = order[:-1][rank[order[1:]] == rank[order[:-1]]]
    iteration = ids.node_ids(run.key, "Iteration", index)
    own = ids.node_ids(run.key, "Iteration", iterations["step_index"].to_numpy())
    return {
        "Step": node_rows(
            schema.STEP, run.run_id, len(index), {"id": step_id} | {n: steps[n] for n in names}
        ),
        "Iteration": node_rows(
            schema.ITERATION,
            run.run_id,
            iterations.num_rows,
            {"id": own} | {n: iterations[n] for n in iterations.column_names},
        ),
        "RAN.Rank.Step": relation_rows(schema.RAN, run.rank_ids(rank), step_id),
        "FOLLOWED_BY.Step.Step": relation_rows(
            schema.FOLLOWED_BY, step_id[leads], step_id[follows]
        ),
        "ON_RANK.Iteration.Step": relation_rows(schema.ON_RANK, iteration, step_id),
    }


def _samples(run: Assembly) -> Tables:
    rows, about, met = [], [], Counter[tuple[str, int]]()
    for fact in run.facts:
        part = run.parts[fact.source]
        text = fact.text
        if fact.place is not None:
            text = str(run.base(part) + fact.place)  # the span it was seen at
        rank = part.identity.rank
        number = met[fact.name, rank]  # of its kind on its rank: ranks that come change no id
        met[fact.name, rank] += 1
        sample_id = ids.node_id(run.key, "Sample", "trace", fact.name, rank, number)
        rows.append(
            {
                "id": sample_id,
                "name": fact.name,
                "value": float(fact.value),
                "text": text,
                "time_ns": fact.time_ns,
                "rank": rank,
                "host": part.identity.host,
                "device_index": part.shaped.facts.device_index,
                "input_id": run.input_id(part.digest),
            }
        )
        about.append((sample_id, rank))
    ranks = run.rank_ids(np.array([r for _, r in about], np.int64))
    return {
        "Sample": from_dicts(schema.SAMPLE, run.run_id, rows),
        "ABOUT.Sample.Rank": relation_rows(schema.ABOUT, [s for s, _ in about], ranks),
    }
