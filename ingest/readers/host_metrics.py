"""Monitors that write a JSON object a moment: of ranks and their hosts, or of a node's devices."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_json import Whole, first_object, objects
from teller.ingest.readers.side_lines import Lines
from teller.ingest.readers.side_tables import Unread, joined, reading, samples
from teller.ingest.readers.side_times import civil
from teller.ingest.records import SAMPLES, ClockKind, Records
from teller.ingest.source import Facts, Reading

FORMAT: Final = "host_metrics"

_DEVICE: Final = re.compile(r"(gpu_\w+):(\d{1,4})")
# fmt: off
DEVICE_FIGURES: Final = {  # a node monitor's figure, its sample, what to multiply by, its text
    "gpu_usage": ("gpu.utilisation_ratio", 0.01, ""),
    "gpu_temperature": ("gpu.temperature_c", 1.0, ""),
    "gpu_power": ("gpu.power_w", 1.0, ""),
    "gpu_power_limit": ("gpu.power_limit_w", 1.0, ""),
    "gpu_mem_used": ("gpu.memory_used_bytes", 1.0, ""),
    "gpu_corrected_ecc": ("gpu.ecc_errors", 1.0, "corrected"),
    "gpu_uncorrected_ecc": ("gpu.ecc_errors", 1.0, "uncorrected"),
}
# fmt: on


class Peer(msgspec.Struct):
    """TCP connections of a rank to one host: counters since they began."""

    retrans: float | None = None
    tx: float | None = None
    rx: float | None = None
    rtt_us: float | None = None


class Node(msgspec.Struct):
    """One rank's process at one moment."""

    rank: Whole
    host: str = ""
    oncpu_ns: float | None = None
    runq_ns: float | None = None
    tcp: dict[str, Peer] = {}


class Moment(msgspec.Struct):
    """All ranks at one moment, in epoch ns; `cpu` has ticks of each CPU as /proc/stat counts."""

    t: Whole
    nodes: list[Node]
    cpu: list[list[Whole]] = []


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether the first line is a moment of a monitor."""
    one = first_object(head)
    ranks = isinstance(one.get("t"), int) and isinstance(one.get("nodes"), list)
    return ranks or ("time" in one and any(_DEVICE.fullmatch(key) for key in one))


def read(path: Path) -> Reading:
    """Read one monitor's file: samples of ranks, hosts and devices."""
    lines, unread = Lines(path), Unread()
    head = next(lines.raw_blocks(1 << 16), (1, b""))[1]
    clock: ClockKind = "utc"
    if "nodes" in first_object(head):
        ranks = _Ranks()
        parts = [made for got in objects(lines, Moment, unread) for made in ranks.samples(*got)]
    else:
        clock = "local"
        parts = [made for got in objects(lines, dict, unread) for made in _node(*got)]
    made = joined(SAMPLES, parts)
    facts = Facts(str(path), FORMAT, event_count=made.num_rows)
    return reading(lines, Records(facts, clock, samples=made), unread, "moment of a monitor")


@dataclass(slots=True)
class _Ranks:
    """Gives samples block after block; ticks of CPUs are compared with the moment before."""

    _before: tuple[int, ...] = field(default=())

    def samples(self, moments: list[Moment], numbers: list[int]) -> Iterator[pa.Table]:
        """Give the samples of some moments."""
        told = [(m, n, at) for m, at in zip(moments, numbers, strict=True) for n in m.nodes]
        who = {
            "time_ns": pa.array([m.t for m, _, _ in told], pa.int64()),
            "rank": pa.array([n.rank for _, n, _ in told], pa.int64()),
            "host": pa.array([n.host or None for _, n, _ in told], pa.string()),
            "line": pa.array([at for _, _, at in told], pa.int64()),
        }
        for name, values in (
            ("process.cpu_ns", [n.oncpu_ns for _, n, _ in told]),
            ("process.wait_ns", [n.runq_ns for _, n, _ in told]),
        ):
            yield samples(name, len(told), value=pa.array(values, pa.float64()), **who)
        yield from _peers(told)
        yield from self._ticks(moments, numbers)

    def _ticks(self, moments: list[Moment], numbers: list[int]) -> Iterator[pa.Table]:
        """Give shares of CPU time since the moment before, over all CPUs of the machine."""
        sums = [_sum(moment.cpu) for moment in moments]
        pairs = list(zip([self._before, *sums], sums, moments, numbers, strict=False))
        self._before = sums[-1] if sums else self._before
        grown = [
            ([b - a for a, b in zip(old, new, strict=True)], moment, at)
            for old, new, moment, at in pairs
            if old and len(old) == len(new) == 8 and sum(new) > sum(old)
        ]
        # one machine may play several hosts; then it has no name of theirs
        hosts = {n.host for m in moments for n in m.nodes}
        who = {
            "time_ns": pa.array([m.t for _, m, _ in grown], pa.int64()),
            "line": pa.array([at for _, _, at in grown], pa.int64()),
            "host": hosts.pop() or None if len(hosts) == 1 else None,
        }
        for name, parts in (
            ("host.cpu_usage_ratio", (0, 1, 2, 5, 6, 7)),
            ("host.io_wait_ratio", (4,)),
            ("host.steal_ratio", (7,)),
        ):
            share = [sum(d[i] for i in parts) / sum(d) for d, _, _ in grown]
            yield samples(name, len(grown), value=pa.array(share, pa.float64()), **who)


def _sum(cpus: list[list[int]]) -> tuple[int, ...]:
    """Give user, nice, system, idle, iowait, irq, softirq and steal of all CPUs together."""
    whole = [cpu[:8] for cpu in cpus if len(cpu) >= 8]
    return tuple(map(sum, zip(*whole, strict=True))) if whole else ()


def _peers(told: Sequence[tuple[Moment, Node, int]]) -> Iterator[pa.Table]:
    """Give retransmissions, round trips and rates of each rank towards each host."""
    flat = [(m, n, at, host, peer) for m, n, at in told for host, peer in n.tcp.items()]
    time = pa.array([m.t for m, *_ in flat], pa.int64())
    who = {
        "time_ns": time,
        "rank": pa.array([n.rank for _, n, *_ in flat], pa.int64()),
        "host": pa.array([n.host or None for _, n, *_ in flat], pa.string()),
        "line": pa.array([at for _, _, at, *_ in flat], pa.int64()),
        "text": pa.array([host for *_, host, _ in flat], pa.string()),
    }
    for name, values in (
        ("net.retransmits", [peer.retrans for *_, peer in flat]),
        ("prom:tcp_rtt_us", [peer.rtt_us for *_, peer in flat]),
    ):
        made = samples(name, len(flat), value=pa.array(values, pa.float64()), **who)
        yield made.filter(made["value"].is_valid())
    for name, counts in (
        ("net.sent_bytes_per_s", [peer.tx for *_, peer in flat]),
        ("net.received_bytes_per_s", [peer.rx for *_, peer in flat]),
    ):
        yield _rates(name, counts, who)


def _rates(name: str, counts: Sequence[float | None], who: dict[str, pa.Array]) -> pa.Table:
    """Give bytes a second since the moment before; none where a counter began again."""
    order = pc.sort_indices(
        pa.table({k: who[k] for k in ("rank", "text", "time_ns")}),
        sort_keys=[("rank", "ascending"), ("text", "ascending"), ("time_ns", "ascending")],
    )
    sorted_ = {key: column.take(order) for key, column in who.items()}
    count = pa.array(counts, pa.float64()).take(order)
    same = pc.and_(*(pc.equal(sorted_[k].slice(1), sorted_[k].slice(0, max(0, len(order) - 1)))
                     for k in ("rank", "text")))  # fmt: skip
    more = pc.pairwise_diff(count).slice(1)
    past = pc.pairwise_diff(sorted_["time_ns"]).slice(1)
    good = pc.and_(same, pc.and_(pc.greater_equal(more, 0.0), pc.greater(past, 0)))
    good = pc.fill_null(good, False)
    rate = pc.divide(
        pc.multiply(more.filter(good), 1e9), past.filter(good).cast(pa.float64(), safe=False)
    )
    kept = {key: column.slice(1).filter(good) for key, column in sorted_.items()}
    return samples(name, len(rate), value=rate, **kept)


def _node(moments: list[dict[str, Any]], numbers: list[int]) -> Iterator[pa.Table]:
    """Give the samples of a node monitor; what has no name of ours stands as it is."""
    time = civil(pa.array([_text(m.get("time")) for m in moments], pa.string()))[0]
    who = {"time_ns": time, "line": pa.array(numbers, pa.int64())}
    for key in dict.fromkeys(key for moment in moments for key in moment):
        if key == "time":
            continue
        value = pa.array([_float(moment.get(key)) for moment in moments], pa.float64())
        device = _DEVICE.fullmatch(key)
        if device and device[1] in DEVICE_FIGURES:
            name, factor, text = DEVICE_FIGURES[device[1]]
            made = samples(name, len(value), value=pc.multiply(value, factor), text=text,
                           device_index=int(device[2]), **who)  # fmt: skip
        else:
            index = int(device[2]) if device else None
            made = samples(f"prom:{device[1] if device else key}", len(value), value=value,
                           device_index=index, **who)  # fmt: skip
        yield made.filter(made["value"].is_valid())


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
