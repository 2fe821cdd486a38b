"""Channels that a communication library names: who talks to whom over what, and links of hosts."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly
from teller.ingest.record_groups import name_of
from teller.ingest.rows import from_dicts, relation_rows
from teller.ingest.traffic import RING

Tables = dict[str, pa.Table]
Row = dict[str, Any]
Pair = tuple[int, int]

CHANNEL: Final = "channel"  # stands for the operation: channels carry all of a group's operations


def tables(run: Assembly, traced: Tables) -> Tables:
    """Give the communication graph of captures and channels together."""
    edges = _edges(run)
    if not edges:
        return {}
    rank_of = dict(zip(run.rank_ids(np.array(sorted(run.cast.persons))).tolist(),
                       sorted(run.cast.persons), strict=True))  # fmt: skip
    carried: dict[Pair, Counter[str]] = defaultdict(Counter)
    for (_, pair), used in edges.items():
        carried[pair] += used
    rows = traced["TALKED_TO.Rank.Rank"].to_pylist()
    for row in rows:
        pair = rank_of.get(row["src"], -1), rank_of.get(row["dst"], -1)
        if row["transport"] == RING and pair in carried:
            row["transport"] = carried[pair].most_common(1)[0][0]
    rows += _talk(run, edges, {(r["src"], r["dst"], r["group_name"]) for r in rows})
    names = [c.name for c in schema.TALKED_TO.columns]
    talked = relation_rows(
        schema.TALKED_TO, [r["src"] for r in rows], [r["dst"] for r in rows],
        {n: [r.get(n) for r in rows] for n in names},
    )  # fmt: skip
    return {"TALKED_TO.Rank.Rank": talked} | _links(run, carried, traced)


def kind_of(transport: str) -> str:
    """Give what carries a channel, without the device's number: NET/IB/GDRDMA, P2P/CUMEM."""
    return re.sub(r"/\d+(\(\d+\))?", "", transport)


def _edges(run: Assembly) -> dict[tuple[str, Pair], Counter[str]]:
    """Count the channels of each communicator and pair of ranks by what carries them."""
    found: dict[tuple[str, Pair], Counter[str]] = defaultdict(Counter)
    columns = ["comm", "channel", "src_rank", "dst_rank", "transport"]
    paths = run.rows.paths.group_by(columns).aggregate([]).to_pylist()
    for row in paths:
        ends = [run.cast.places.get((row["comm"], row[k])) for k in ("src_rank", "dst_rank")]
        if ends[0] is not None and ends[1] is not None:
            found[row["comm"], (ends[0], ends[1])][kind_of(row["transport"])] += 1
    return found


def _talk(
    run: Assembly, edges: Mapping[tuple[str, Pair], Counter[str]], known: set[tuple[int, int, str]]
) -> list[Row]:
    names = {r["comm"]: name_of(r) for r in run.rows.members.to_pylist() if r["comm"]}
    rows = []
    for (comm, pair), used in sorted(edges.items()):
        src, dst = run.rank_ids(np.array(pair)).tolist()
        name = names.get(comm, comm)
        if (src, dst, name) not in known:
            rows.append(
                {"src": src, "dst": dst, "group_name": name, "op": CHANNEL,
                 "count": used.total(), "transport": used.most_common(1)[0][0]}
            )  # fmt: skip
    return rows


def _links(run: Assembly, carried: Mapping[Pair, Counter[str]], traced: Tables) -> Tables:
    """Give a link for each pair of hosts whose ranks share a channel, with what carries it."""
    host = {rank: person.host for rank, person in run.cast.persons.items()}
    between: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for (a, b), used in carried.items():
        if host.get(a) and host.get(b) and host[a] != host[b]:
            between[host[a], host[b]] += used
    rows = {r["id"]: r for r in traced["Link"].to_pylist()}
    for (src, dst), types in sorted(between.items()):
        one = ids.node_id(run.key, "Link", src, dst)
        rows.setdefault(
            one, {"id": one, "name": f"{src} → {dst}", "src_host": src, "dst_host": dst}
        )
        rows[one]["transport"] = types.most_common(1)[0][0]
    own = list(rows.values())
    names = ("id", *(c.name for c in schema.LINK.own))
    return {
        "Link": from_dicts(schema.LINK, run.run_id, [{n: r.get(n) for n in names} for r in own]),
        "HAS_LINK.Host.Link": relation_rows(
            schema.HAS_LINK,
            [ids.node_id(run.key, "Host", r["src_host"]) for r in own],
            [r["id"] for r in own],
        ),
    }
