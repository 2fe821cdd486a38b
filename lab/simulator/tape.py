"""Writes programs: ranges are opened, calls are made and kernels are launched, in order."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from teller.lab.simulator import catalog
from teller.lab.simulator.happened import CopyKind, DeviceKind, HostKind
from teller.lab.simulator.program import (
    CLASSES,
    CollectivePart,
    DevicePart,
    Floats,
    HostPart,
    Program,
    Wait,
)  # fmt: skip

Six = tuple[float, float, float, float, float, float]
NOTHING: Six = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class Names:
    """Gives each distinct name a number, for all programs of a run."""

    def __init__(self) -> None:
        """Begin with none."""
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Give the number of a name."""
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def all(self) -> tuple[str, ...]:
        """Give the names in order of their numbers."""
        return tuple(self._numbers)


@dataclass(frozen=True, slots=True)
class Work:
    """The cost of one kernel: what bounds it, and flops and bytes as columns of `work`."""

    role: str
    bound: str = "stream"
    flops: Six = NOTHING
    bytes: Six = NOTHING
    fixed_ns: float = 0.0


@dataclass(slots=True)
class _Rows:
    host: list[dict[str, Any]] = field(default_factory=list)
    ticks: list[tuple[float, int, int]] = field(default_factory=list)
    device: list[dict[str, Any]] = field(default_factory=list)
    collectives: list[dict[str, Any]] = field(default_factory=list)
    waits: list[tuple[Wait, int, int]] = field(default_factory=list)


class Tape:
    """One program in the making."""

    def __init__(self, names: Names) -> None:
        """Begin an empty one."""
        self._names = names
        self._rows = _Rows()
        self._open: list[int] = []
        self._calls = 0
        self._graph: tuple[int, int, int] | None = None  # correlation, tick, id
        self._graphs = 0
        self._nodes = 0
        self._roles: dict[str, int] = {}
        self._tags: dict[str, int] = {"": 0}
        self._tag = 0

    def spend(self, ns: float) -> None:
        """Let host time go by in the innermost open range."""
        owner = self._open[-1] if self._open else -1
        self._rows.ticks.append((ns, owner, self._tag))

    @contextmanager
    def span(
        self, name: str, kind: HostKind, before: float = 0.0, after: float = 0.0
    ) -> Iterator[int]:
        """Open a range, and close it at the end; it spends time itself before and after."""
        self.spend(0.0)
        row = len(self._rows.host)
        self._rows.host.append({
            "name": self._names.number(name), "kind": kind, "thread": 0, "correlation": 0,
            "opened": len(self._rows.ticks) - 1, "closed": 0, "collective": -1, "size": NOTHING,
            "tag": self._tag,
        })  # fmt: skip
        self._open.append(row)
        if before:
            self.spend(before)
        yield row
        self.spend(after)
        self._rows.host[row]["closed"] = len(self._rows.ticks) - 1
        self._open.pop()

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """Mark all that is done meanwhile as there only where the tag is asked for."""
        self._tag = self._tags.setdefault(tag, len(self._tags))
        yield
        self._tag = 0

    def call(self, name: str, ns: float, size: Six = NOTHING) -> int:
        """Make a call of the runtime; give its correlation."""
        self._calls += 1
        with self.span(name, HostKind.RUNTIME) as row:
            self.spend(ns)
        self._rows.host[row] |= {"correlation": self._calls, "size": size}
        return self._calls

    def kernel(self, name: str, work: Work, call: str = "cudaLaunchKernel", **more: Any) -> None:
        """Launch a kernel, or put it into the graph that is being recorded."""
        if self._graph is None:
            ns = catalog.host(
                "launch_driver" if call.startswith("cu") and call[2] == "L" else "launch"
            )
            correlation = self.call(call, ns)
            self._device(name, work, correlation, len(self._rows.ticks) - 1, **more)
        else:
            correlation, tick, graph = self._graph
            self._nodes += 1
            self._device(name, work, correlation, tick, graph=graph, node=self._nodes, **more)

    def copy(
        self, name: str, kind: CopyKind, size: Six, call: str = "cudaMemcpyAsync", **more: Any
    ) -> None:
        """Copy by a call."""
        if self._graph is None:
            self.call(call, catalog.host("memcpy"), size)
        work = Work("copy", "copy", bytes=size)
        correlation, tick = self._calls, len(self._rows.ticks) - 1
        self._device(
            name, work, correlation, tick, size=size, copy=kind, kind=DeviceKind.MEMCPY, **more
        )

    def collective(
        self, kernel: str, group: str, op: str, size: Six, *, own: bool, api: str = "", **more: Any
    ) -> None:
        """Take part in a collective, by a kernel of its own."""
        number = len(self._rows.collectives)
        call = "cudaLaunchKernel" if own else "cudaLaunchKernelExC"
        host = -1
        if api and self._graph is None:
            with self.span(api, HostKind.NCCL, 900.0, 400.0) as host:
                self._rows.host[host] |= {"collective": number, "size": size}
                self.kernel(kernel, Work(op), call, collective=number, **more)
        else:
            self.kernel(kernel, Work(op), call, collective=number, **more)
            host = self._open[-1] if self._open and self._graph is None else -1
        device = len(self._rows.device) - 1
        self._rows.collectives.append({
            "group": group, "op": op, "size": size, "own": own, "device": device, "host": host,
        })  # fmt: skip
        self._rows.waits.append((Wait.COLLECTIVE, device, len(self._rows.ticks) - 1))

    @property
    def recording(self) -> bool:
        """Tell whether kernels go into a graph."""
        return self._graph is not None

    def memset(self) -> None:
        """Clear a small workspace."""
        correlation = self.call("cudaMemsetAsync", catalog.host("memset"))
        work = Work("memset", "stream")
        tick = len(self._rows.ticks) - 1
        self._device("Memset (Device)", work, correlation, tick, kind=DeviceKind.MEMSET)

    def read_back(self, size_bytes: float) -> None:
        """Bring a little to the host, and wait for it."""
        size: Six = (size_bytes, 0.0, 0.0, 0.0, 0.0, 0.0)
        self.copy("Memcpy DtoH (Device -> Pinned)", CopyKind.D2H, size)
        self.sync()

    def pageable(self, size_bytes: float) -> None:
        """Copy memory that is not pinned: the call comes back when the copy is done."""
        size: Six = (size_bytes, 0.0, 0.0, 0.0, 0.0, 0.0)
        name = "Memcpy HtoD (Pageable -> Device)"
        self.copy(name, CopyKind.H2D, size, pageable=True)
        last = len(self._rows.ticks) - 1  # the tick at which the call ends
        self._rows.device[-1]["launched"] = last - 1
        self._rows.waits.append((Wait.HOST, len(self._rows.device) - 1, last))

    @contextmanager
    def replay(self, call: str, ns: float) -> Iterator[None]:
        """Launch a graph of all kernels that are named meanwhile."""
        self._graphs += 1
        self._calls += 1
        with self.span(call, HostKind.RUNTIME) as row:
            self.spend(ns * 0.35)  # a launch hands over its first nodes before it returns
            tick = len(self._rows.ticks) - 1
            self.spend(ns * 0.65)
        self._rows.host[row]["correlation"] = self._calls
        self._graph = (self._calls, tick, self._graphs)
        yield
        self._graph = None

    def sync(self, name: str = "cudaStreamSynchronize") -> None:
        """Wait until the device has done all."""
        self.call(name, catalog.host("sync"))
        if self._rows.device:
            closed = len(self._rows.ticks) - 1
            self._rows.waits.append((Wait.HOST, len(self._rows.device) - 1, closed))

    def _device(self, name: str, work: Work, correlation: int, tick: int, **more: Any) -> None:
        row = {
            "name": self._names.number(name), "kind": DeviceKind.KERNEL, "stream": 7,
            "copy": CopyKind.NONE, "pageable": False, "correlation": correlation, "launched": tick,
            "graph": 0, "node": 0, "collective": -1, "bound": CLASSES.index(work.bound),
            "role": self._roles.setdefault(work.role, len(self._roles)), "fixed_ns": work.fixed_ns,
            "flops": work.flops, "bytes": work.bytes, "size": NOTHING, "tag": self._tag,
        }  # fmt: skip
        self._rows.device.append(row | more)

    def done(self) -> Program:
        """Give the program."""
        rows = self._rows
        host = HostPart(
            **_columns(rows.host, HostPart, ("tick_ns", "tick_owner", "tick_tag")),
            tick_ns=np.array([t[0] for t in rows.ticks], float),
            tick_owner=np.array([t[1] for t in rows.ticks], np.int32),
            tick_tag=np.array([t[2] for t in rows.ticks], np.int32),
        )
        c = rows.collectives
        return Program(
            host, DevicePart(**_columns(rows.device, DevicePart)),
            CollectivePart(
                tuple(r["group"] for r in c), tuple(r["op"] for r in c),
                np.array([r["size"] for r in c], float).reshape(-1, 6),
                np.array([r["own"] for r in c], np.bool_),
                np.array([r["device"] for r in c], np.int32),
                np.array([r["host"] for r in c], np.int32),
            ),
            tuple(rows.waits), tuple(self._roles), tuple(self._tags), self._graphs > 0,
        )  # fmt: skip


_WIDE = {"flops", "bytes", "size"}
_BYTES = {"kind", "thread", "copy", "bound"}


def _columns(rows: list[dict[str, Any]], part: type, without: Sequence[str] = ()) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in part.__dataclass_fields__:  # type: ignore[attr-defined] # a dataclass
        if name in without:
            continue
        values = [r[name] for r in rows]
        if name in _WIDE:
            wide: Floats = np.array(values, float).reshape(-1, 6)
            columns[name] = wide
        elif name == "fixed_ns":
            columns[name] = np.array(values, float)
        elif name == "pageable":
            columns[name] = np.array(values, np.bool_)
        else:
            columns[name] = np.array(values, np.uint8 if name in _BYTES else np.int32)
    return columns
