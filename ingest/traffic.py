"""Communication as graph rows: groups, collectives, who took part, and who talked to whom."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly
from teller.ingest.rows import from_dicts, node_rows, relation_rows
from teller.ingest.source import Group
from teller.ingest.who import UNKNOWN_HOST

Ints = npt.NDArray[np.int64]
Tables = dict[str, pa.Table]

RING: Final = "assumed ring"
NAMELESS: Final = "unnamed"
PARALLELISM: Final = ("tp", "pp", "dp", "ep", "world")


def tables(run: Assembly) -> Tables:
    """Give all tables of communication by name."""
    groups = _groups(run)
    return _group_tables(run, groups) | _collective_tables(run) | _talk(run, groups)


def group_id(run: Assembly, name: str) -> int:
    """Give the id of a process group."""
    return ids.node_id(run.key, "ProcessGroup", name or NAMELESS)


def _groups(run: Assembly) -> dict[str, Group]:
    """Give groups by name: as the sources describe them, else the ranks seen in them."""
    found: dict[str, Group] = {}
    for part in run.parts:
        for group in part.shaped.facts.groups:
            known = found.get(group.name)
            if known is None or len(group.ranks) > len(known.ranks):
                found[group.name] = group
    members = run.line.timed.members
    seen: dict[str, set[int]] = defaultdict(set)
    if members.num_rows:
        pairs = members.group_by(["group", "rank"]).aggregate([])
        for name, rank in zip(pairs["group"].to_pylist(), pairs["rank"].to_pylist(), strict=True):
            seen[name].add(rank)
    present = set(run.ranks.tolist())
    for name, ranks in seen.items():
        known = found.get(name)
        # A group of one name may be another one on each rank; the ranks seen say what it is here.
        if known is None or not known.ranks:
            found[name] = Group(
                name,
                tuple(sorted(ranks)),
                known.desc if known else "",
                known.comm if known else "",
                len(ranks),
            )
    return {n: g for n, g in found.items() if n in seen or present & set(g.ranks)}


def _group_tables(run: Assembly, groups: dict[str, Group]) -> Tables:
    rows, member_of = [], []
    present = set(run.ranks.tolist())
    for name, group in sorted(groups.items()):
        one = group_id(run, name)
        rows.append(
            {
                "id": one,
                "name": name or NAMELESS,
                "comm": group.comm or None,
                "world_size": group.size or len(group.ranks) or None,
                "parallelism": _parallelism(group),
            }
        )
        member_of += [
            (rank, one, place) for place, rank in enumerate(group.ranks) if rank in present
        ]
    ranks = run.rank_ids(np.array([m[0] for m in member_of], np.int64))
    return {
        "ProcessGroup": from_dicts(schema.GROUP, run.run_id, rows),
        "MEMBER_OF.Rank.ProcessGroup": relation_rows(
            schema.MEMBER_OF,
            ranks,
            [m[1] for m in member_of],
            {"group_rank": [m[2] for m in member_of]},
        ),
    }


def _parallelism(group: Group) -> str | None:
    text = f"{group.name} {group.desc}".lower()
    if "default_pg" in text:
        return "world"
    return next((p for p in PARALLELISM if p in text.replace("_", " ").split()), None)


def _collective_tables(run: Assembly) -> Tables:
    timed = run.line.timed
    table, members = timed.collectives, timed.members
    number = table["number"].to_numpy()
    own = _collective_ids(run)
    row = np.searchsorted(number, members["number"].to_numpy())
    source = members["source"].to_numpy()
    bases = run.bases()
    span = (bases[source] if len(source) else source) + members["place"].to_numpy()
    rank = run.rank_ids(members["rank"].to_numpy())
    groups = {g: group_id(run, g) for g in pc.unique(table["group"]).to_pylist()}
    names = [c.name for c in schema.COLLECTIVE.own if c.name in table.column_names]
    joined = {
        "seq": members["seq"],
        "op": members["op"],
        "size_bytes": members["size_bytes"],
        "dtype": members["dtype"],
        "arrival_ns": members["arrival_ns"],
    }
    return {
        "Collective": node_rows(
            schema.COLLECTIVE, run.run_id, len(number), {"id": own} | {n: table[n] for n in names}
        ),
        "IN_COLLECTIVE.Span.Collective": relation_rows(
            schema.IN_COLLECTIVE,
            span,
            own[row],
            {
                "arrival_ns": members["arrival_ns"],
                "host_arrival_ns": members["host_start_ns"],
                "wait_ns": members["wait_ns"],
                "pure_ns": members["pure_ns"],
                "arrival_order": members["arrival_order"],
            },
        ),
        "IN_GROUP.Collective.ProcessGroup": relation_rows(
            schema.IN_GROUP, own, [groups[g] for g in table["group"].to_pylist()]
        ),
        "JOINED.Rank.Collective": relation_rows(schema.JOINED, rank, own[row], joined),
    }


def _collective_ids(run: Assembly) -> Ints:
    """Name each collective by the lowest rank's span in it."""
    members = run.line.timed.members
    number, rank = members["number"].to_numpy(), members["rank"].to_numpy()
    place = members["place"].to_numpy()
    order = np.lexsort((place, rank, number))
    first = order[np.r_[True, number[order][1:] != number[order][:-1]]] if len(order) else order
    return ids.node_ids(run.key, "Collective", rank[first], place[first])


def _talk(run: Assembly, groups: dict[str, Group]) -> Tables:
    """Neighbours in group order exchange the data of a group's collectives: an assumed ring."""
    timed = run.line.timed
    host = {p.identity.rank: p.identity.host for p in run.parts}
    edges: list[dict[str, object]] = []
    table = timed.collectives
    matched = table.filter(pc.greater(table["ranks_seen"], 1))
    pairs = matched.group_by(["group", "op"]).aggregate([("number", "count")]).to_pylist()
    for pair in sorted(pairs, key=lambda p: (p["group"], p["op"])):
        some = matched.filter(
            pc.and_(pc.equal(matched["group"], pair["group"]), pc.equal(matched["op"], pair["op"]))
        )
        pure = some["pure_ns"].drop_null().to_numpy()
        group = groups.get(pair["group"])
        ranks = [r for r in (group.ranks if group else ()) if r in host]
        edges += [
            {
                "src": a,
                "dst": b,
                "group_name": pair["group"] or NAMELESS,
                "op": pair["op"],
                "count": some.num_rows,
                "size_bytes": pc.sum(some["size_bytes"]).as_py(),
                "pure_p50_ns": int(np.median(pure)) if len(pure) else None,
                "pure_p99_ns": int(np.quantile(pure, 0.99)) if len(pure) else None,
                "transport": RING,
            }
            for a, b in _ring(ranks)
        ]
    columns = {c.name: [e[c.name] for e in edges] for c in schema.TALKED_TO.columns}
    src, dst = (run.rank_ids(np.array([e[k] for e in edges], np.int64)) for k in ("src", "dst"))
    made = {"TALKED_TO.Rank.Rank": relation_rows(schema.TALKED_TO, src, dst, columns)}
    return made | _links(run, edges, host)


def _ring(ranks: Sequence[int]) -> list[tuple[int, int]]:
    return [(a, ranks[(i + 1) % len(ranks)]) for i, a in enumerate(ranks) if len(ranks) > 1]


def _links(run: Assembly, edges: list[dict[str, object]], host: dict[int, str]) -> Tables:
    """Give a link for each pair of hosts whose ranks exchange data."""
    pairs = sorted({(host[int(str(e["src"]))], host[int(str(e["dst"]))]) for e in edges})
    rows = [
        {
            "id": ids.node_id(run.key, "Link", a, b),
            "name": f"{a} → {b}",
            "src_host": a,
            "dst_host": b,
        }
        for a, b in pairs
        if a != b and UNKNOWN_HOST not in (a, b)
    ]
    starts = [ids.node_id(run.key, "Host", r["src_host"]) for r in rows]
    return {
        "Link": from_dicts(schema.LINK, run.run_id, rows),
        "HAS_LINK.Host.Link": relation_rows(schema.HAS_LINK, starts, [r["id"] for r in rows]),
    }
