"""Ranks, hosts and devices of a run, and which stands where: of captures and of records."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly
from teller.ingest.record_nodes import device_names
from teller.ingest.rows import from_dicts, relation_rows
from teller.ingest.who import UNKNOWN_HOST

Row = dict[str, Any]
Ends = list[tuple[int, int]]


def tables(run: Assembly) -> dict[str, pa.Table]:
    """Give ranks, hosts and devices with their relations."""
    ranks = _traced(run) | _told(run)
    hosts = {
        h: ids.node_id(run.key, "Host", h)
        for h in sorted({r["host"] for r in ranks.values()} | _told_hosts(run))
    }
    devices, uses, has = _devices(run, hosts)
    pairs: dict[str, tuple[schema.Relation, Ends]] = {
        "HAS_RANK.Run.Rank": (schema.HAS_RANK, [(run.run_id, r["id"]) for r in ranks.values()]),
        "ON_HOST.Rank.Host": (
            schema.ON_HOST, [(r["id"], hosts[r["host"]]) for r in ranks.values()],
        ),
        "HAS_DEVICE.Host.Device": (schema.HAS_DEVICE, has),
        "USES_DEVICE.Rank.Device": (schema.USES_DEVICE, uses),
    }  # fmt: skip
    return {
        "Rank": from_dicts(schema.RANK_NODE, run.run_id, list(ranks.values())),
        "Host": from_dicts(
            schema.HOST_NODE, run.run_id, [{"id": i, "name": n} for n, i in hosts.items()]
        ),
        "Device": from_dicts(schema.DEVICE, run.run_id, list(devices.values())),
    } | {
        name: relation_rows(rel, [a for a, _ in ends], [b for _, b in ends])
        for name, (rel, ends) in pairs.items()
    }


def _traced(run: Assembly) -> dict[int, Row]:
    """Give the ranks of captures."""
    return {
        part.identity.rank: {
            "id": ids.rank_id(run.key, part.identity.rank),
            "rank": part.identity.rank,
            "host": part.identity.host,
            "pid": part.shaped.facts.pid,
            **{kind: part.shaped.facts.places.get(kind) for kind in ("tp", "pp", "dp", "ep")},
            "clock_offset_ns": axis.clock.offset_ns,
            "clock_drift_ppm": axis.clock.drift_ppm,
            "clock_residual_ns": axis.clock.residual_ns,
            "rank_source": part.identity.rank_source,
        }
        for part, axis in zip(run.parts, run.line.axes, strict=True)
    }


def _told(run: Assembly) -> dict[int, Row]:
    """Give the ranks that only records tell of."""
    known = set(run.ranks.tolist())
    return {
        rank: {
            "id": ids.rank_id(run.key, rank),
            "rank": rank,
            "host": one.host or UNKNOWN_HOST,
            "pid": one.pid,
            "rank_source": one.source,
        }
        for rank, one in sorted(run.cast.persons.items())
        if rank not in known
    }


def _told_hosts(run: Assembly) -> set[str]:
    """Give the hosts that any record names."""
    tables = (run.rows.lines, run.rows.samples, run.rows.requests)
    return {h for t in tables for h in t["host"].unique().to_pylist() if h}


def _devices(run: Assembly, hosts: Mapping[str, int]) -> tuple[dict[int, Row], Ends, Ends]:
    """Give devices, who uses them, and whose they are."""
    devices: dict[int, Row] = {}
    uses: dict[int, int] = {}
    has: dict[int, int] = {}
    for part in run.parts:
        facts, host = part.shaped.facts, part.identity.host
        if facts.device_index is None:
            continue
        one = _device(run, host, facts.device_index, devices)
        uuid = next((g.uuid for g in facts.gpus if g.index == facts.device_index), "")
        devices[one]["uuid"] = devices[one].get("uuid") or uuid or None
        uses[ids.rank_id(run.key, part.identity.rank)] = one
        has[one] = hosts[host]
    for rank, person in run.cast.persons.items():
        own = ids.rank_id(run.key, rank)
        if person.device_index is not None and own not in uses and person.host in hosts:
            uses[own] = _device(run, person.host, person.device_index, devices)
            has[uses[own]] = hosts[person.host]
    for host, index in device_names(run):
        one = _device(run, host, index, devices)
        if host in hosts:
            has[one] = hosts[host]
    _in_order(run, uses, devices)
    return devices, list(uses.items()), [(h, d) for d, h in has.items()]


def _device(run: Assembly, host: str, index: int, devices: dict[int, Row]) -> int:
    name = f"{host}:{index}"
    one = ids.node_id(run.key, "Device", name)
    devices.setdefault(one, {"id": one, "name": name, "device_index": index})
    return one


def _in_order(run: Assembly, uses: dict[int, int], devices: Mapping[int, Row]) -> None:
    """Give the ranks of a host its devices in order, where none is told and their number fits."""
    ranks: dict[str, list[int]] = {}
    for rank, person in sorted(run.cast.persons.items()):
        ranks.setdefault(person.host, []).append(ids.rank_id(run.key, rank))
    for host, own in ranks.items():
        here = sorted(
            (d["device_index"], one)
            for one, d in devices.items()
            if d["name"].rpartition(":")[0] == host
        )
        if len(here) == len(own) and not any(r in uses for r in own):
            uses.update(zip(own, [one for _, one in here], strict=True))
