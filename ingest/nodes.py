"""The small tables of a run's graph: every label and relation that is not one row a span."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly, InputRow
from teller.ingest.rows import from_dicts, node_rows, relation_rows

Tables = dict[str, pa.Table]
Row = dict[str, Any]
Ends = list[tuple[int, int]]


def tables(run: Assembly) -> Tables:
    """Give all small tables by name: `Label`, or `TYPE.Src.Dst`."""
    made: Tables = {}
    made |= _run_and_inputs(run)
    made |= _places(run)
    made |= _steps(run)
    made |= _samples(run)
    return made


def _run_and_inputs(run: Assembly) -> Tables:
    inputs = [
        {
            "id": run.input_id(i.digest), "path": i.path, "format": i.format, "rank": i.rank,
            "host": i.host, "event_count": i.event_count, "used": i.used, "note": i.note,
        }
        for i in _once(run)
    ]  # fmt: skip
    of_path = {i.path: run.input_id(i.digest) for i in run.inputs}
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
    pairs = list(zip(run.line.axes, run.parts, strict=True))
    return {
        "id": run.run_id,
        "name": run.name,
        "deployment": run.deployment,
        "t0_epoch_ns": run.line.t0_epoch_ns if run.line.anchored else 0,
        "start_ns": min(axis.moment(part.shaped.first_ns) for axis, part in pairs),
        "end_ns": max(axis.moment(part.shaped.last_ns) for axis, part in pairs),
        "world_size": max([*sizes, len(set(run.ranks.tolist()))]),
        "engine": run.engine,
        "baseline": False,
    }


def _once(run: Assembly) -> Iterable[InputRow]:
    """Give each input once: a file with several processes is one input, its events are summed."""
    merged: dict[str, InputRow] = {}
    for one in run.inputs:
        known = merged.get(one.digest)
        merged[one.digest] = (
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


def _places(run: Assembly) -> Tables:
    """Give ranks, hosts and devices."""
    hosts = {p.identity.host: ids.node_id(run.key, "Host", p.identity.host) for p in run.parts}
    rank_ids = run.rank_ids(run.ranks).tolist()
    on_host = [(r, hosts[p.identity.host]) for r, p in zip(rank_ids, run.parts, strict=True)]
    devices, uses, has = _devices(run, hosts, rank_ids)
    pairs = {
        "HAS_RANK.Run.Rank": (schema.HAS_RANK, [(run.run_id, r) for r in rank_ids]),
        "ON_HOST.Rank.Host": (schema.ON_HOST, on_host),
        "HAS_DEVICE.Host.Device": (schema.HAS_DEVICE, has),
        "USES_DEVICE.Rank.Device": (schema.USES_DEVICE, uses),
    }
    return {
        "Rank": from_dicts(schema.RANK_NODE, run.run_id, _ranks(run)),
        "Host": from_dicts(
            schema.HOST_NODE, run.run_id, [{"id": i, "name": n} for n, i in hosts.items()]
        ),
        "Device": from_dicts(schema.DEVICE, run.run_id, devices),
    } | {
        name: relation_rows(rel, [a for a, _ in ends], [b for _, b in ends])
        for name, (rel, ends) in pairs.items()
    }


def _ranks(run: Assembly) -> list[Row]:
    return [
        {
            "id": ids.rank_id(run.key, part.identity.rank),
            "rank": part.identity.rank,
            "host": part.identity.host,
            "pid": part.shaped.facts.pid,
            **{k: part.shaped.facts.places.get(k) for k in ("tp", "pp", "dp", "ep")},
            "clock_offset_ns": axis.clock.offset_ns,
            "clock_drift_ppm": axis.clock.drift_ppm,
            "clock_residual_ns": axis.clock.residual_ns,
            "rank_source": part.identity.rank_source,
        }
        for part, axis in zip(run.parts, run.line.axes, strict=True)
    ]


def _devices(
    run: Assembly, hosts: Mapping[str, int], rank_ids: Sequence[int]
) -> tuple[list[Row], Ends, Ends]:
    """Give the devices in use, who uses them, and whose they are."""
    devices: dict[int, Row] = {}
    uses, has = [], {}
    for part, rank_id in zip(run.parts, rank_ids, strict=True):
        facts, host = part.shaped.facts, part.identity.host
        if facts.device_index is None:
            continue
        name = f"{host}:{facts.device_index}"
        one = ids.node_id(run.key, "Device", name)
        uuid = next((g.uuid for g in facts.gpus if g.index == facts.device_index), "")
        devices[one] = {
            "id": one, "name": name, "device_index": facts.device_index, "uuid": uuid or None
        }  # fmt: skip
        uses.append((rank_id, one))
        has[one] = hosts[host]
    return list(devices.values()), uses, [(h, d) for d, h in has.items()]


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
    rows, about = [], []
    for number, fact in enumerate(run.facts):
        part = run.parts[fact.source]
        text = fact.text
        if fact.place is not None:
            text = str(run.base(part) + fact.place)  # the span it was seen at
        rank = part.identity.rank
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
