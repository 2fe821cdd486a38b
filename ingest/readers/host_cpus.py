"""CPUs that processes may use, and how long they waited: numactl, taskset, /proc, cgroups."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_lines import Block, found
from teller.ingest.readers.side_tables import Unread, number, samples

NUMACTL: Final = r"^physcpubind:\s*\d"
TASKSET: Final = r"^pid \d+'s (?:current |new )?affinity (?:mask|list): "
STATUS: Final = r"^Cpus_allowed(?:_list)?:\s"
SCHED: Final = r"^.+ \(\d{1,9}, #threads: \d{1,9}\)\s*$"
# a dump of several files has each one's path before its line
_PATH: Final = r"^(?:(?P<path>\S*)cpu\.(?:stat|max):\s*)?"
CPU_STAT: Final = r"^(?:\S*cpu\.stat:\s*)?nr_throttled \d+\s*$"
CPU_MAX: Final = r"^(?:\S*cpu\.max:\s*)?(?:max|\d{4,8}) (?:100000|\d{4,7})\s*$"
_MS: Final = 1e6
_US: Final = 1e3
# fmt: off
_SCHED: Final = {
    "se.sum_exec_runtime": ("process.cpu_ns", _MS),
    "se.statistics.wait_sum": ("process.wait_ns", _MS),
    "wait_sum": ("process.wait_ns", _MS),
    "nr_involuntary_switches": ("process.involuntary_switches", 1.0),
}
_STATUS: Final = {
    "nonvoluntary_ctxt_switches": ("process.involuntary_switches", 1.0),
    "Threads": ("process.threads", 1.0),
}
_CPU_STAT: Final = {
    "nr_periods": ("host.periods", 1.0),
    "nr_throttled": ("host.throttled_periods", 1.0),
    "throttled_usec": ("host.throttled_ns", _US),
    "throttled_time": ("host.throttled_ns", 1.0),
}
# fmt: on


def numactl(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give the CPUs and the nodes that a process may use."""
    cpus = found(block, r"^physcpubind:\s*(?P<list>[\d ]+)$")
    lists = [[int(word) for word in one.split()] for one in cpus["list"].to_pylist()]
    yield samples("host.affinity", len(lists), text=[ranges(one) for one in lists],
                  line=cpus["line"])  # fmt: skip
    yield samples("host.cpus", len(lists), value=[float(len(one)) for one in lists],
                  line=cpus["line"])  # fmt: skip
    node = found(block, r"^nodebind:\s*(?P<node>\d+)\s*$")
    yield samples("host.numa_node", node.num_rows, value=number(node["node"]), line=node["line"])


def taskset(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give the CPUs that each process may use."""
    rows = found(
        block,
        r"^pid (?P<pid>\d{1,9})'s (?:current |new )?affinity (?P<how>mask|list): (?P<cpus>\S+)\s*$",
    )
    told = zip(rows["how"].to_pylist(), rows["cpus"].to_pylist(), strict=True)
    text = [of_mask(cpus) if how == "mask" else cpus for how, cpus in told]
    pid = pc.cast(rows["pid"], pa.int64())
    yield samples("host.affinity", rows.num_rows, text=text, line=rows["line"], pid=pid)
    yield samples("host.cpus", rows.num_rows, value=[size(one) for one in text], line=rows["line"],
                  pid=pid)  # fmt: skip


def status(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give what /proc/PID/status says of CPUs, threads and switches."""
    rows, who = _process(found(block, r"^(?P<key>\w+):\s+(?P<value>.*?)\s*$"), r"^Name$", r"^Pid$")
    mine = rows.filter(pc.equal(rows["key"], "Cpus_allowed_list"))
    yield samples("host.affinity", mine.num_rows, text=mine["value"], line=mine["line"], **who)
    cpus = [size(one) for one in mine["value"].to_pylist()]
    yield samples("host.cpus", mine.num_rows, value=cpus, line=mine["line"], **who)
    yield from _figures(rows, _STATUS, who)


def sched(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give what /proc/PID/sched says of run and waiting times."""
    head = found(block, r"^(?P<name>.+) \((?P<pid>\d{1,9}), #threads: (?P<threads>\d{1,9})\)\s*$")
    name, pid = head["name"][0].as_py(), int(head["pid"][0].as_py())
    rows = found(block, r"^(?P<key>[\w.]+)\s*:\s+(?P<value>-?[\d.]+)\s*$")
    who: dict[str, object] = {"process": name, "pid": pid}
    yield samples("process.threads", 1, value=float(head["threads"][0].as_py()),
                  line=head["line"].slice(0, 1), **who)  # fmt: skip
    yield from _figures(rows, _SCHED, who)


def cpu_stat(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give how long a cgroup's quota held its tasks back; text: the cgroup, where it is told."""
    rows = found(block, _PATH + r"(?P<key>\w+) (?P<value>\d+)\s*$")
    yield from _figures(rows, _CPU_STAT, {})


def cpu_max(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give the CPUs that a cgroup's quota allows; "max" is no quota."""
    rows = found(block, _PATH + r"(?P<quota>\d{4,8}) (?P<period>\d{4,7})\s*$")
    cpus = pc.divide(number(rows["quota"]), number(rows["period"]))
    yield samples("host.cpu_quota", rows.num_rows, value=cpus, text=rows["path"],
                  line=rows["line"])  # fmt: skip
    none = found(block, _PATH + r"max (?P<period>\d{4,7})\s*$")
    yield samples("host.cpu_quota", none.num_rows, text="no quota", line=none["line"])


def ranges(cpus: Iterable[int]) -> str:
    """Give numbers as people write sets of CPUs: "0-3,8"."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def size(cpus: str) -> float | None:
    """Count the CPUs of a set such as "0-3,8"; None for what is none."""
    parts = [re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part) for part in cpus.split(",")]
    if not all(parts):
        return None
    return float(sum(int(p[2] or p[1]) - int(p[1]) + 1 for p in parts if p))


def of_mask(mask: str) -> str:
    """Give the CPUs of a hexadecimal mask, which may have commas."""
    digits = mask.replace(",", "")
    if not re.fullmatch(r"(?:0x)?[0-9a-fA-F]{1,1024}", digits):
        return mask
    bits = int(digits, 16)
    return ranges(at for at in range(bits.bit_length()) if bits >> at & 1)


def _process(rows: pa.Table, name: str, pid: str) -> tuple[pa.Table, dict[str, object]]:
    """Give the rows and whom they are about."""
    who: dict[str, object] = {}
    names = rows.filter(pc.match_substring_regex(rows["key"], name))["value"]
    pids = rows.filter(pc.match_substring_regex(rows["key"], pid))["value"]
    if len(names):
        who["process"] = names[0].as_py()
    if len(pids) and re.fullmatch(r"\d{1,9}", pids[0].as_py()):
        who["pid"] = int(pids[0].as_py())
    return rows, who


def _figures(
    rows: pa.Table, meanings: dict[str, tuple[str, float]], who: dict[str, object]
) -> Iterator[pa.Table]:
    for key, (sample, factor) in meanings.items():
        mine = rows.filter(pc.equal(rows["key"], key))
        about = who | ({"text": mine["path"]} if "path" in mine.column_names else {})
        yield samples(sample, mine.num_rows, value=pc.multiply(number(mine["value"]), factor),
                      line=mine["line"], **about)  # fmt: skip
