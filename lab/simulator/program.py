"""The program of a step on one rank: what the host does in which order, and the device work of it.

A program knows no times, only costs: how host time and device work depend on tokens, samples and
context. It is made once for each kind of step and shared by all steps and ranks of that kind.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.lab.simulator.happened import Ints, Small, Tiny

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# What a kernel is bound by, and by which of the reached shares it is measured.
CLASSES: Final = ("gemm", "attention", "stream", "copy")

# Columns of `Device.work`: constant, by new token, by sampled token, by token in the cache, by pair
# of new token and token in the cache, by active expert.
CONSTANT, TOKEN, SAMPLE, CACHED, PAIR, EXPERT = range(6)


class Wait(IntEnum):
    """What makes one thing wait for another: ranks for each other, or the host for the device."""

    COLLECTIVE = 0
    HOST = 1


@dataclass(frozen=True, slots=True)
class HostPart:
    """Host spans; one row a span, in order of opening. Ticks are moments in order of host time."""

    name: Small
    kind: Tiny
    thread: Tiny
    opened: Small  # tick
    closed: Small
    correlation: Small  # number of the call in the step, from 1; 0 for none
    collective: Small  # row of `CollectivePart`, -1 for none
    size: Floats  # bytes, columns as of `work`
    tag: Small  # place in `Program.tags`; 0 is always there
    tick_ns: Floats  # host time that goes by before each tick, on a host of speed 1
    tick_owner: Small  # span that this time is spent in, -1 outside of all
    tick_tag: Small


@dataclass(frozen=True, slots=True)
class DevicePart:
    """Device work in order of the stream."""

    name: Small
    kind: Tiny
    stream: Small
    copy: Tiny
    pageable: Bools
    correlation: Small
    launched: Small  # tick at which the launching call has done its work
    graph: Small
    node: Small
    collective: Small
    role: Small  # place in `Program.roles`
    bound: Tiny  # place in CLASSES
    fixed_ns: Floats
    flops: Floats  # (n, 6)
    bytes: Floats  # (n, 6)
    size: Floats  # (n, 6) what a copy says that it moved
    tag: Small


@dataclass(frozen=True, slots=True)
class CollectivePart:
    """Collectives in order of the stream."""

    group: tuple[str, ...]  # tp, pp, dp, ep, world
    op: tuple[str, ...]
    size: Floats  # (n, 6) bytes of this rank's input
    own: Bools  # the engine's all-reduce, not the library's
    device: Small
    host: Small  # span of the host's call


@dataclass(frozen=True, slots=True)
class Program:
    """All of it. `waits` are (kind, device row, tick), in order of the host."""

    host: HostPart
    device: DevicePart
    collectives: CollectivePart
    waits: tuple[tuple[Wait, int, int], ...]
    roles: tuple[str, ...]
    tags: tuple[str, ...]
    graph: bool


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much work a step is, one entry a rank."""

    tokens: Floats
    samples: Floats
    cached: Floats
    pairs: Floats
    experts: Floats

    @property
    def columns(self) -> Floats:
        """Give one row a rank with the columns of `work`."""
        one = np.ones(len(self.tokens))
        return np.column_stack(
            [one, self.tokens, self.samples, self.cached, self.pairs, self.experts]
        )


__all__ = [
    "CACHED", "CLASSES", "CONSTANT", "EXPERT", "PAIR", "SAMPLE", "TOKEN", "Amounts", "Bools",
    "CollectivePart", "DevicePart", "Floats", "HostPart", "Ints", "Program", "Wait",
]  # fmt: skip
