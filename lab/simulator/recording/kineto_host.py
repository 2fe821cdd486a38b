"""The host's events of a Kineto trace: operators, annotations, calls, and what NCCL was told."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from teller.lab.simulator.happened import NEVER, Happened, HostKind, HostSpans, Ints, Joins
from teller.lab.simulator.recording import looks
from teller.lab.simulator.recording.columns import distinct, joined, number, picked
from teller.lab.simulator.recording.kineto_args import comm, kernel_of, quoted
from teller.lab.simulator.recording.kineto_times import Times
from teller.lab.simulator.recording.nesting import parents
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.seen import Flags, Seen, column

CATEGORIES: Final = {HostKind.OPERATOR: "cpu_op", HostKind.PYTHON: "python_function"}
_OLD: Final = {"cpu_op": "Operator", "cuda_runtime": "Runtime", "cuda_driver": "Runtime",
               "kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}  # fmt: skip
_FIRST_ID: Final = 1025
_LOT: Final = 16_384  # rows


@dataclass(frozen=True)
class Trace:
    """One rank in one window, and how its file is written."""

    happened: Happened
    recording: Recording
    seen: Seen
    times: Times
    generation: str

    @property
    def host(self) -> HostSpans:
        """Give the rank's host spans."""
        return self.happened.host[self.seen.rank]

    @property
    def joins(self) -> Joins:
        """Give the rank's part in collectives."""
        return self.happened.joins[self.seen.rank]

    @property
    def pid(self) -> int:
        """Give the pid of the worker, whose file it is."""
        return self.recording.pid(self.happened.scene, self.seen.rank)

    @property
    def old(self) -> bool:
        """Tell whether categories and keys are those of the first releases."""
        return self.generation == "2021"

    def category(self, name: str) -> str:
        """Give a category's name in this generation."""
        return _OLD.get(name, name) if self.old else name

    @property
    def external(self) -> str:
        """Give the key of an operator's number."""
        return "external id" if self.old else "External id"

    def thread(self, number_: int) -> str:
        """Give a thread of the worker as its events have it."""
        tid = self.pid + (60 + number_ if number_ else 0)
        return f'"{tid}"' if self.old else str(tid)

    @cached_property
    def written(self) -> Flags:
        """Tell which host spans are operators or annotations of this file."""
        told = self.recording.told and not self.old
        kinds = [HostKind.ENGINE, HostKind.STEP, HostKind.PHASE, HostKind.MODULE, HostKind.OPERATOR]
        kinds += [HostKind.NCCL] * told + [HostKind.PYTHON] * self.recording.python
        flags = np.zeros(len(self.host.kind), bool)
        flags[self.seen.host] = True
        written: Flags = flags & np.isin(self.host.kind, kinds)
        return written

    @cached_property
    def calls(self) -> Flags:
        """Tell which of the seen host rows are calls."""
        flags: Flags = self.host.kind[self.seen.host] == HostKind.RUNTIME
        return flags

    @cached_property
    def launches(self) -> tuple[Ints, Ints]:
        """Give the numbers of all seen calls, ascending, and their host rows."""
        rows = self.seen.host[self.calls]
        known = column(self.host, "correlation", rows)
        order = np.argsort(known, kind="stable")
        return known[order], rows[order]

    @cached_property
    def around(self) -> Ints:
        """Give for each host span the number of the operator around it, NEVER for none."""
        parent = parents(self.host)
        for _ in range(2):  # what is not written stands for what is around it
            skip = (parent >= 0) & ~self.written[parent.clip(min=0)]
            parent = np.where(skip, parent[parent.clip(min=0)], parent)
        hidden = (parent < 0) | ~self.written[parent.clip(min=0)]
        return np.where(hidden, NEVER, _FIRST_ID + 2 * parent)


def host_events(trace: Trace) -> Iterator[pa.Array]:
    """Give the events of the host as texts."""
    kept, kind = trace.written[trace.seen.host], trace.host.kind[trace.seen.host]
    nccl = kind == HostKind.NCCL
    for some in chunks(kept & ~nccl):
        yield _ranges(trace, some)
    for some in chunks(kept & nccl):
        yield from _told(trace, some)
    for some in chunks(trace.calls):
        yield _calls(trace, some)


def chunks(some: Flags) -> Iterator[Flags]:
    """Part the rows that are meant into lots whose texts fit a processor's cache."""
    rows = np.flatnonzero(some)
    for first in range(0, len(rows), _LOT):
        lot = np.zeros(len(some), bool)
        lot[rows[first : first + _LOT]] = True
        yield lot


def spans_text(trace: Trace, some: Flags) -> tuple[pa.Array, pa.Array]:
    """Give start and duration of host rows; what was open lasts as long as the window."""
    start = trace.seen.host_start[some]
    end = trace.seen.host_end[some]
    end = np.where(end == NEVER, trace.seen.end_ns, end)
    if trace.times.whole:  # so that spans still nest
        start, end = start // 1000 * 1000, end // 1000 * 1000
    return trace.times.text(start), trace.times.lasting(end - start)


def opened(
    trace: Trace, rows: Ints, category: str | None = None, name: str | None = None
) -> pa.Array:
    """Give how the events of host rows begin, up to their times."""
    kind, thread = column(trace.host, "kind", rows), column(trace.host, "thread", rows)
    each, which = distinct(column(trace.host, "name", rows), kind, thread)
    begins = []
    for number_, kind_, thread_ in each:
        text = name or quoted(trace.happened.names[number_])
        word = category or CATEGORIES.get(HostKind(kind_), "user_annotation")
        begins.append(
            f'  {{\n    "ph": "X", "cat": "{trace.category(word)}", "name": "{text}", '
            f'"pid": {trace.pid}, "tid": {trace.thread(thread_)},\n    "ts": '
        )
    return picked(begins, which)


def _ranges(trace: Trace, some: Flags) -> pa.Array:
    rows = trace.seen.host[some]
    start, lasting = spans_text(trace, some)
    return joined(
        opened(trace, rows), start, ', "dur": ', lasting,
        f',\n    "args": {{\n      "{trace.external}": ', number(_FIRST_ID + 2 * rows),
        ',"Record function id": 0, "Ev Idx": ', number(rows), "\n    }\n  },\n",
    )  # fmt: skip


def _told(trace: Trace, some: Flags) -> Iterator[pa.Array]:
    """Give what PyTorch records of each collective, and the annotation inside of it."""
    rows = trace.seen.host[some]
    start, lasting = spans_text(trace, some)
    number_ = number(_FIRST_ID + 2 * rows)
    yield joined(
        opened(trace, rows, "cpu_op", "record_param_comms"), start, ', "dur": ', lasting,
        ',\n    "args": {\n      "External id": ', number_, ',"Record function id": 0, ',
        comm_text(trace, column(trace.host, "collective", rows)), "\n    }\n  },\n",
    )  # fmt: skip
    ops = column(trace.joins, "op", column(trace.host, "collective", rows))
    each, which = distinct(ops)
    names = picked([kernel_of(op) for (op,) in each], which)
    head = f'  {{\n    "ph": "X", "cat": "user_annotation", "pid": {trace.pid}, "tid": '
    threads = [trace.thread(n) for n in range(256)]
    yield joined(
        head, picked(threads, column(trace.host, "thread", rows)), ', "name": "', names,
        '",\n    "ts": ', start, ', "dur": ', lasting, ',\n    "args": {\n      "External id": ',
        number(_FIRST_ID + 2 * rows + 1), ',"Record function id": 0\n    }\n  },\n',
    )  # fmt: skip


def comm_text(trace: Trace, joined_rows: Ints) -> pa.Array:
    """Give what is told of collectives as arguments of an event."""
    joins, groups = trace.joins, trace.happened.scene.groups
    names = ("group", "op", "elements", "peer")
    each, which = distinct(*(column(joins, name, joined_rows) for name in names))
    generation = trace.generation
    mine = [g for g, group in enumerate(groups) if trace.seen.rank in group.ranks]
    texts = [
        comm(groups[g], op, n, groups[g].ranks[peer] if peer >= 0 else -1,
             generation=generation, number=mine.index(g))
        for g, op, n, peer in each
    ]  # fmt: skip
    said = picked(texts, which)
    if generation < "2026":
        return said
    return joined(said, ', "Seq": ', number(column(joins, "seq", joined_rows) + 1))


def _calls(trace: Trace, some: Flags) -> pa.Array:
    rows = trace.seen.host[some]
    start, lasting = spans_text(trace, some)
    name = column(trace.host, "name", rows)
    each, which = distinct(name)
    calls = [trace.happened.names[n] for (n,) in each]
    category = [trace.category("cuda_driver" if looks.is_driver(c) else "cuda_runtime")
                for c in calls]  # fmt: skip
    heads = [f'  {{\n    "ph": "X", "cat": "{k}", "name": "{c}", "pid": {trace.pid}, "tid": '
             for k, c in zip(category, calls, strict=True)]  # fmt: skip
    cbids = [f',\n    "args": {{\n      "cbid": {looks.cbid(c)}, "correlation": ' for c in calls]
    threads = [trace.thread(n) for n in range(256)]
    return joined(
        picked(heads, which), picked(threads, column(trace.host, "thread", rows)), ',\n    "ts": ',
        start, ', "dur": ', lasting, picked(cbids, which), number(correlations(trace, rows)),
        external(trace, trace.around[rows]), "\n    }\n  },\n",
    )  # fmt: skip


def correlations(trace: Trace, rows: Ints) -> Ints:
    """Give the number of each call; calls that launch nothing have one too."""
    given = column(trace.host, "correlation", rows)
    work = trace.happened.device[trace.seen.rank].correlation
    above = int(max(trace.host.correlation.max(initial=0), work.max(initial=0))) + 1
    numbers: Ints = np.where(given > 0, given, above + rows)
    return numbers


def external(trace: Trace, numbers: Ints) -> pa.Array:
    """Give the argument that names the operator around, "" for none."""
    said = joined(f', "{trace.external}": ', number(numbers))
    empty = pa.scalar("")
    return pa.compute.if_else(pa.array(numbers == NEVER), empty, said)
