"""The small tables of a run's graph: every label and relation that is not one row a span."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly, InputRow
from teller.ingest.rows import from_dicts, node_rows, relation_rows

Tables = dict[str, pa.Table]


def tables(run: Assembly) -> Tables:
    """Give all small tables by name: `Label`, or `TYPE.Src.Dst`."""
    made: Tables = {}
    made |= _run_and_inputs(run)
    made |= _places(run)
    made |= _steps(run)
    made |= _samples(run)
    return made


def _run_and_inputs(run: Assembly) -> Tables:
    sizes = [p.shaped.facts.world_size or 0 for p in run.parts]
    first = [a.moment(p.shaped.first_ns) for a, p in zip(run.line.axes, run.parts, strict=True)]
    last = [a.moment(p.shaped.last_ns) for a, p in zip(run.line.axes, run.parts, strict=True)]
    row = {
        "id": run.run_id, "name": run.name, "deployment": run.deployment,
        "t0_epoch_ns": run.line.t0_epoch_ns if run.line.anchored else 0,
        "start_ns": min(first), "end_ns": max(last),
        "world_size": max([*sizes, len(set(run.ranks.tolist()))]), "engine": run.engine,
        "baseline": False,
    }
    inputs = [{
        "id": run.input_id(i.digest), "path": i.path, "format": i.format, "rank": i.rank,
        "host": i.host, "event_count": i.event_count, "used": i.used, "note": i.note,
    } for i in _once(run)]
    of_path = {i.path: run.input_id(i.digest) for i in run.inputs}
    remarks = [{
        "id": ids.node_id(run.key, "Remark", r.path, r.place, r.what), "path": r.path,
        "place": r.place, "text": r.what, "remedy": r.remedy,
    } for r in dict.fromkeys(run.remarks)]
    on = [(m["id"], of_path[str(m["path"])]) for m in remarks if m["path"] in of_path]
    return {
        "Run": from_dicts(schema.RUN, run.run_id, [row]),
        "Input": from_dicts(schema.INPUT, run.run_id, inputs),
        "Remark": from_dicts(schema.REMARK, run.run_id, remarks),
        "PART_OF.Input.Run": relation_rows(
            schema.PART_OF, [i["id"] for i in inputs], [run.run_id] * len(inputs)),
        "ON_INPUT.Remark.Input": relation_rows(
            schema.ON_INPUT, [a for a, _ in on], [b for _, b in on]),
    }


def _once(run: Assembly) -> Iterable[InputRow]:
    """Give each input once: a file with several processes is one input, its events are summed."""
    merged: dict[str, InputRow] = {}
    for one in run.inputs:
        known = merged.get(one.digest)
        merged[one.digest] = one if known is None else replace(
            known, event_count=known.event_count + one.event_count, rank=None,
            used=known.used or one.used,
        )
    return merged.values()


def _places(run: Assembly) -> Tables:
    """Ranks, hosts, devices."""
    ranks, hosts, devices = [], {}, {}
    uses, on_host = [], []
    for part, axis in zip(run.parts, run.line.axes, strict=True):
        facts, who = part.shaped.facts, part.identity
        rank_id = int(run.rank_ids(np.array([who.rank]))[0])
        ranks.append({
            "id": rank_id, "rank": who.rank, "host": who.host, "pid": facts.pid,
            **{k: facts.places.get(k) for k in ("tp", "pp", "dp", "ep")},
            "clock_offset_ns": axis.clock.offset_ns, "clock_drift_ppm": axis.clock.drift_ppm,
            "clock_residual_ns": axis.clock.residual_ns, "rank_source": who.rank_source,
        })
        host_id = ids.node_id(run.key, "Host", who.host)
        hosts[who.host] = {"id": host_id, "name": who.host}
        on_host.append((rank_id, host_id))
        if facts.device_index is not None:
            name = f"{who.host}:{facts.device_index}"
            device_id = ids.node_id(run.key, "Device", name)
            uuid = next((g.uuid for g in facts.gpus if g.index == facts.device_index), "")
            devices[name] = {"id": device_id, "name": name, "device_index": facts.device_index,
                             "uuid": uuid or None, "host": host_id}
            uses.append((rank_id, device_id))
    has_device = [(d.pop("host"), d["id"]) for d in devices.values()]
    made = {
        "Rank": from_dicts(schema.RANK_NODE, run.run_id, ranks),
        "Host": from_dicts(schema.HOST_NODE, run.run_id, list(hosts.values())),
        "Device": from_dicts(schema.DEVICE, run.run_id, list(devices.values())),
    }
    pairs = {
        "HAS_RANK.Run.Rank": (schema.HAS_RANK, [(run.run_id, r["id"]) for r in ranks]),
        "ON_HOST.Rank.Host": (schema.ON_HOST, on_host),
        "HAS_DEVICE.Host.Device": (schema.HAS_DEVICE, has_device),
        "USES_DEVICE.Rank.Device": (schema.USES_DEVICE, uses),
    }
    return made | {
        name: relation_rows(rel, [a for a, _ in ends], [b for _, b in ends])
        for name, (rel, ends) in pairs.items()
    }


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
        "Step": node_rows(schema.STEP, run.run_id, len(index),
                          {"id": step_id} | {n: steps[n] for n in names}),
        "Iteration": node_rows(
            schema.ITERATION, run.run_id, iterations.num_rows,
            {"id": own} | {n: iterations[n] for n in iterations.column_names}),
        "RAN.Rank.Step": relation_rows(schema.RAN, run.rank_ids(rank), step_id),
        "FOLLOWED_BY.Step.Step": relation_rows(
            schema.FOLLOWED_BY, step_id[leads], step_id[follows]),
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
        rows.append({
            "id": sample_id, "name": fact.name, "value": float(fact.value), "text": text,
            "time_ns": fact.time_ns, "rank": rank, "host": part.identity.host,
            "device_index": part.shaped.facts.device_index, "input_id": run.input_id(part.digest),
        })
        about.append((sample_id, rank))
    ranks = run.rank_ids(np.array([r for _, r in about], np.int64))
    return {
        "Sample": from_dicts(schema.SAMPLE, run.run_id, rows),
        "ABOUT.Sample.Rank": relation_rows(schema.ABOUT, [s for s, _ in about], ranks),
    }

