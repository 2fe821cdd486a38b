"""Groups and collectives that records tell of, beside those that captures show."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly
from teller.ingest.rows import from_dicts, node_rows, relation_rows

Ints = npt.NDArray[np.int64]
Tables = dict[str, pa.Table]
Row = dict[str, Any]

NEAR_NS: Final = 10_000_000_000  # a record and a span of one collective are not further apart
PEER: Final = ("send", "recv")
MEGATRON: Final = {
    "tensor model parallel group": "tp",
    "pipeline model parallel group": "pp",
    "data parallel group": "dp",
    "data parallel group with cp": "dp",
    "expert model parallel group": "ep",
}


def group_tables(run: Assembly, traced: Tables) -> Tables:
    """Give groups and memberships of captures and records together."""
    rows = {r["id"]: r for r in traced["ProcessGroup"].to_pylist()}
    known = _traced_names(traced)
    members: dict[tuple[int, int], Row] = {
        (r["src"], r["dst"]): r for r in traced["MEMBER_OF.Rank.ProcessGroup"].to_pylist()
    }
    ranks = run.rank_ids(pc.fill_null(run.rows.members["rank"], 0).combine_chunks().to_numpy())
    for rank_id, row in zip(ranks.tolist(), run.rows.members.to_pylist(), strict=True):
        group = known.get(name_of(row)) or group_id(run, name_of(row))
        known.setdefault(name_of(row), group)
        _describe(rows.setdefault(group, {"id": group, "name": name_of(row)}), row)
        if row["rank"] is not None:
            _count(members.setdefault((rank_id, group), {"src": rank_id, "dst": group}), row)
    told = list(members.values())
    columns = [c.name for c in schema.MEMBER_OF.columns]
    return {
        "ProcessGroup": from_dicts(
            schema.GROUP, run.run_id, [{k: r.get(k) for k in _GROUP} for r in rows.values()]
        ),
        "MEMBER_OF.Rank.ProcessGroup": relation_rows(
            schema.MEMBER_OF,
            [m["src"] for m in told],
            [m["dst"] for m in told],
            {c: [m.get(c) for m in told] for c in columns},
        ),
    }


_GROUP: Final = ("id", *(c.name for c in schema.GROUP.own))


def group_id(run: Assembly, name: str) -> int:
    """Give the id of a process group."""
    return ids.node_id(run.key, "ProcessGroup", name or "unnamed")


def name_of(row: Row) -> str:
    """Give the name of a record's group: its own, else its communicator."""
    return str(row["group_name"] or row["comm"] or "")


def _traced_names(traced: Tables) -> dict[str, int]:
    """Give the groups of captures by name and by communicator."""
    known: dict[str, int] = {}
    for row in traced["ProcessGroup"].to_pylist():
        known[row["name"]] = row["id"]
        if row["comm"]:
            known.setdefault(row["comm"], row["id"])
    return known


def _describe(group: Row, row: Row) -> None:
    group["comm"] = group.get("comm") or row["comm"]
    group["world_size"] = max(group.get("world_size") or 0, row["world_size"] or 0) or None
    if not group.get("parallelism"):
        group["parallelism"] = parallelism(f"{row['group_name'] or ''} {row['desc'] or ''}")


def parallelism(text: str) -> str | None:
    """Give what a group's name or description says it is for."""
    words = text.lower().replace("_", " ").replace(":", " ").split()
    if "default pg" in text.lower().replace("_", " "):
        return "world"
    if (known := MEGATRON.get(" ".join(w for w in words if not w.isdigit()))) is not None:
        return known
    return next((p for p in ("tp", "pp", "dp", "ep", "world") if p in words), None)


def _count(member: Row, row: Row) -> None:
    """Take the largest counters that any record gives."""
    if member.get("group_rank") is None:
        member["group_rank"] = row["group_rank"]
    for name in ("last_enqueued", "last_started", "last_completed"):
        given = [v for v in (member.get(name), row[name]) if v is not None]
        member[name] = max(given, default=None)
    counted = row["last_enqueued"] is not None
    if member.get("input_id") is None or (counted and not member.get("told")):
        member["input_id"], member["line"], member["told"] = row["input_id"], row["line"], counted


def collective_tables(run: Assembly, traced: Tables) -> Tables:
    """Give collectives and who joined them, of captures and records together."""
    rows = run.rows.joins.filter(pc.is_valid(run.rows.joins["rank"]))
    if not rows.num_rows:
        return {}
    group = _group_ids(run, rows, traced)
    number, keys = _numbered(run, rows, group)
    own = _collective_ids(run, rows, number, keys, group, traced)
    rank = run.rank_ids(rows["rank"].combine_chunks().to_numpy())
    pair = np.unique(np.stack([rank, own]), axis=1, return_index=True)[1]
    rows, own, rank, group = rows.take(pair), own[pair], rank[pair], group[pair]
    fresh = ~np.isin(own, traced["Collective"]["id"].to_numpy())
    joined = _joined(rows, rank, own)
    return {
        "Collective": pa.concat_tables(
            [traced["Collective"], _collectives(run, rows.filter(pa.array(fresh)), own[fresh])]
        ),
        "IN_GROUP.Collective.ProcessGroup": pa.concat_tables(
            [traced["IN_GROUP.Collective.ProcessGroup"], _in_group(own[fresh], group[fresh])]
        ),
        "JOINED.Rank.Collective": _merged(traced["JOINED.Rank.Collective"], joined),
    }


def _group_ids(run: Assembly, rows: pa.Table, traced: Tables) -> Ints:
    known = _traced_names(traced)
    name = pc.if_else(pc.equal(pc.fill_null(rows["group_name"], ""), ""), rows["comm"],
                      rows["group_name"]).combine_chunks().dictionary_encode()  # fmt: skip
    found = [known.get(n) or group_id(run, n) for n in name.dictionary.to_pylist()]
    named: Ints = np.array(found or [0], np.int64)[pc.fill_null(name.indices, 0).to_numpy()]
    return named


def _numbered(run: Assembly, rows: pa.Table, group: Ints) -> tuple[Ints, Ints]:
    """Give each row its collective: one a group and sequence; a pair of peers has its own."""
    seq = pc.fill_null(rows["seq"], -1).combine_chunks().to_numpy()
    op = rows["op"].combine_chunks().cast(pa.string())
    between = pc.is_in(op, pa.array(PEER)).to_numpy(zero_copy_only=False)
    own, peer = _places(run, rows, group), pc.fill_null(rows["peer"], -1).to_numpy()
    sends = pc.equal(op, "send").to_numpy(zero_copy_only=False)
    src = np.where(between, np.where(sends, own, peer), -1)
    dst = np.where(between, np.where(sends, peer, own), -1)
    keys, number = np.unique(np.stack([group, seq, src, dst]), axis=1, return_inverse=True)
    return number.reshape(-1), keys


def _places(run: Assembly, rows: pa.Table, group: Ints) -> Ints:
    """Give the group rank of the rank of each row; the rank itself where no record tells it."""
    place = {
        (m["rank"], name_of(m)): m["group_rank"]
        for m in run.rows.members.to_pylist()
        if m["rank"] is not None and m["group_rank"] is not None
    }
    names = pc.if_else(pc.equal(pc.fill_null(rows["group_name"], ""), ""), rows["comm"],
                       rows["group_name"]).to_pylist()  # fmt: skip
    ranks = rows["rank"].to_pylist()
    return np.array(
        [place.get((r, n or ""), r) for r, n in zip(ranks, names, strict=True)], np.int64
    )


def _collective_ids(
    run: Assembly, rows: pa.Table, number: Ints, keys: Ints, group: Ints, traced: Tables
) -> Ints:
    """Name collectives by group and sequence; one that a capture shows keeps that one's id."""
    own = ids.node_ids(run.key, "Collective", *keys)
    known = _seen(traced)
    times = pc.fill_null(rows["time_ns"], 0).combine_chunks().to_numpy()
    first = np.full(keys.shape[1], np.iinfo(np.int64).max)
    np.minimum.at(first, number, times)
    for at in range(keys.shape[1]) if known else ():
        for one, start in known.get((int(keys[0, at]), int(keys[1, at])), ()):
            if not first[at] or abs(start - first[at]) <= NEAR_NS:
                own[at] = one
    named: Ints = own[number]
    return named


def _seen(traced: Tables) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Give the numbered collectives of captures by group and sequence number."""
    in_group = traced["IN_GROUP.Collective.ProcessGroup"]
    group = dict(zip(in_group["src"].to_pylist(), in_group["dst"].to_pylist(), strict=True))
    known: dict[tuple[int, int], list[tuple[int, int]]] = {}
    table = traced["Collective"]
    numbered = table.filter(pc.and_(pc.is_valid(table["seq"]), pc.greater(table["ranks_seen"], 0)))
    for row in numbered.select(["id", "seq", "start_ns"]).to_pylist():
        if row["id"] in group:
            key = (group[row["id"]], row["seq"])
            known.setdefault(key, []).append((row["id"], row["start_ns"] or 0))
    return known


def _collectives(run: Assembly, rows: pa.Table, own: Ints) -> pa.Table:
    table = rows.append_column("id", pa.array(own, pa.int64()))
    first = table.group_by("id", use_threads=False).aggregate(
        [
            ("op", "first"), ("seq", "first"), ("size_bytes", "max"), ("dtype", "first"),
            ("algo", "first"), ("proto", "first"), ("rank", "count_distinct"),
            ("time_ns", "min"), ("time_ns", "max"), ("end_ns", "max"),
        ]
    )  # fmt: skip
    last = table.sort_by("time_ns").group_by("id", use_threads=False).aggregate([("rank", "last")])
    latest = dict(zip(last["id"].to_pylist(), last["rank_last"].to_pylist(), strict=True))
    several = pc.greater(first["rank_count_distinct"], 1)
    skew = pc.subtract(first["time_ns_max"], first["time_ns_min"])
    nothing = pa.scalar(None, pa.int64())
    columns = {
        "id": first["id"], "op": first["op_first"], "seq": first["seq_first"],
        "size_bytes": first["size_bytes_max"], "dtype": first["dtype_first"],
        "algo": first["algo_first"], "proto": first["proto_first"],
        "ranks_seen": first["rank_count_distinct"], "start_ns": first["time_ns_min"],
        "end_ns": first["end_ns_max"], "skew_ns": pc.if_else(several, skew, nothing),
        "last_rank": pa.array([latest[i] for i in first["id"].to_pylist()], pa.int64()),
        "matched_by": pa.repeat("seq", first.num_rows),
    }  # fmt: skip
    return node_rows(schema.COLLECTIVE, run.run_id, first.num_rows, columns)


def _in_group(own: Ints, group: Ints) -> pa.Table:
    pairs = np.unique(np.stack([own, group]), axis=1)
    return relation_rows(schema.IN_GROUP, pairs[0], pairs[1])


def _joined(rows: pa.Table, rank: Ints, own: Ints) -> pa.Table:
    names = ("seq", "op", "size_bytes", "dtype", "state", "shape", "input_id", "line")
    columns = {n: rows[n] for n in names} | {"arrival_ns": rows["time_ns"]}
    return relation_rows(schema.JOINED, rank, own, columns)


def _merged(traced: pa.Table, told: pa.Table) -> pa.Table:
    """Give one row a rank and collective: a capture's, completed by the record's."""
    keys = ["src", "dst"]
    both = traced.join(told, keys, join_type="full outer", right_suffix="_told")
    columns = [
        both[f.name] if f.name in keys else pc.coalesce(both[f.name], both[f"{f.name}_told"])
        for f in schema.JOINED.arrow
    ]
    return pa.table(columns, schema=schema.JOINED.arrow)
