"""Whose lines they are: ranks of processes by what lines and labels tell, and hosts."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

Process = tuple[str, int | None]
DIMENSIONS: Final = re.compile(r"(?:^|[ _])(DP|PP|TP|PCP|DCP|CP|ATTN_TP)_?(\d{1,6})(?!\d)")
WORKER: Final = re.compile(r"^(?:VllmWorker|Worker|(?:DP|PP|TP|EP|ATTN_TP|MOE_EP)\d)")
NUMBERED: Final = re.compile(r"\brank=(\d{1,6})(?!\d)")
ADDRESS: Final = re.compile(r"^(?:\d+\.){3}\d+$|^[0-9a-fA-F]*:[0-9a-fA-F:]*$")
MOST_RANKS: Final = 1 << 24
KNOWN_AXES: Final = {"DP", "PP", "TP"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A process of a file: where its lines are, and the ranks and hosts that they tell."""

    process: str
    pid: int | None
    first: int
    last: int
    rank: int | None
    hosts: frozenset[str]


def seen(lines: pa.Table) -> list[Seen]:
    """Give the processes of a file; a process whose lines tell several ranks has none."""
    rows = lines.select(["process", "pid", "line", "rank", "host"])
    grouped = rows.group_by(["process", "pid", "rank", "host"], use_threads=False)
    found = grouped.aggregate([("line", "min"), ("line", "max")]).to_pylist()
    parts: dict[Process, list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        parts[row["process"], row["pid"]].append(row)
    return [_seen(process, pid, rows) for (process, pid), rows in parts.items()]


def _seen(process: str, pid: int | None, rows: list[dict[str, Any]]) -> Seen:
    ranks = {row["rank"] for row in rows} - {None}
    hosts = frozenset(row["host"] for row in rows if row["host"])
    first, last = min(r["line_min"] for r in rows), max(r["line_max"] for r in rows)
    return Seen(process, pid, first, last, ranks.pop() if len(ranks) == 1 else None, hosts)


def ranks(every: list[Seen], told: Mapping[Process, int]) -> dict[Process, int]:
    """Give ranks of processes: as knowledge tells, as their lines tell, as their labels say."""
    found = _by_labels(every)
    found |= {(s.process, s.pid): s.rank for s in every if s.rank is not None and s.process}
    for one in every:
        rank = told.get((one.process, one.pid), told.get((one.process, None)))
        if rank is not None:
            found[one.process, one.pid] = rank
    return {process: rank for process, rank in found.items() if 0 <= rank < MOST_RANKS}


def ranks_of_pids(every: list[Seen], by_process: Mapping[Process, int]) -> dict[int, int]:
    """Give ranks of process ids that stand for one process on one host."""
    hosts: dict[int, set[str]] = defaultdict(set)
    found: dict[int, set[int]] = defaultdict(set)
    for one in every:
        if one.pid is None:
            continue
        hosts[one.pid] |= one.hosts
        rank = by_process.get((one.process, one.pid), one.rank)
        if rank is not None:
            found[one.pid].add(rank)
    return {p: min(r) for p, r in found.items() if len(r) == 1 and len(hosts[p]) <= 1}


def _by_labels(every: list[Seen]) -> dict[Process, int]:
    """Work out ranks of workers from their labels, where these can mean only one thing."""
    workers = [s for s in every if WORKER.match(s.process)]
    numbered = {
        (s.process, s.pid): int(found[1])
        for s in workers
        if (found := NUMBERED.search(s.process))
    }  # fmt: skip
    axes = {s.process: {a: int(n) for a, n in DIMENSIONS.findall(s.process)} for s in workers}
    places = [s for s in workers if axes[s.process]]
    if len(frozenset().union(*(s.hosts for s in places))) > 1 or _overlap(places):
        return numbered
    if any(set(axes[s.process]) - KNOWN_AXES for s in places):
        return numbered
    numbers = _numbers([axes[s.process] for s in places])
    if len(set(numbers)) < len({tuple(sorted(axes[s.process].items())) for s in places}):
        return numbered
    return numbered | {(s.process, s.pid): n for s, n in zip(places, numbers, strict=True)}


def _numbers(axes: list[dict[str, int]]) -> list[int]:
    """Give ranks of places: data, then pipeline, then tensor parallel, the last one fastest."""
    size = {a: max((one.get(a, 0) for one in axes), default=0) + 1 for a in KNOWN_AXES}
    # where attention is data parallel, the tensor ranks already count over all
    owners: dict[tuple[int, int], set[int]] = defaultdict(set)
    for one in axes:
        owners[one.get("PP", 0), one.get("TP", 0)].add(one.get("DP", 0))
    inside = size["DP"] > 1 and size["TP"] > 1 and all(len(dps) == 1 for dps in owners.values())
    dp = [0 if inside else one.get("DP", 0) for one in axes]
    return [
        (d * size["PP"] + one.get("PP", 0)) * size["TP"] + one.get("TP", 0)
        for d, one in zip(dp, axes, strict=True)
    ]


def _overlap(places: list[Seen]) -> bool:
    """Tell whether two processes of one label write at the same time."""
    by_label: dict[str, list[Seen]] = defaultdict(list)
    for one in sorted(places, key=lambda s: s.first):
        by_label[one.process].append(one)
    return any(
        one.last > later.first for group in by_label.values() for one, later in pairwise(group)
    )


def with_ranks(
    table: pa.Table, by_process: Mapping[Process, int], by_pid: Mapping[int, int]
) -> pa.Table:
    """Fill the ranks that are null, by process where the table has one, then by process id."""
    if not len(table) or table["rank"].null_count == 0:
        return table
    rank = table["rank"]
    if "process" in table.column_names:
        keys = [f"{process}\x1f{'' if pid is None else pid}" for process, pid in by_process]
        pid = pc.fill_null(pc.cast(table["pid"], pa.string()), "")
        key = pc.binary_join_element_wise(pc.cast(table["process"], pa.string()), pid, "\x1f")
        rank = pc.coalesce(rank, _looked_up(key, keys, by_process.values()))
    rank = pc.coalesce(rank, _looked_up(table["pid"], list(by_pid), by_pid.values()))
    return table.set_column(table.schema.get_field_index("rank"), "rank", rank)


def _looked_up(key: Any, keys: list[Any], values: Iterable[int]) -> Any:
    if not keys:
        return pa.nulls(len(key), pa.int64())
    at = pc.index_in(key, pa.array(keys, key.type))
    return pa.array(list(values), pa.int64()).take(at)


def only_host(every: list[Seen]) -> str:
    """Give the host of a file that names just one by name: Ray gives addresses, of others only."""
    hosts = {host for one in every for host in one.hosts}
    return hosts.pop() if len(hosts) == 1 and not any(map(ADDRESS.match, hosts)) else ""


def with_host(table: pa.Table, host: str) -> pa.Table:
    """Fill the hosts that are null."""
    if not host or not len(table):
        return table
    filled = pc.fill_null(table["host"], host)
    return table.set_column(table.schema.get_field_index("host"), "host", filled)
