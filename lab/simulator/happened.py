"""What happened in a run, before any tool recorded it: the seam between engine and writers.

All times are int64 ns of one true clock since the run's 0 (`Scene.t0_epoch_ns` is its UTC). Clocks
of hosts, windows, lost events and formats are the business of `lab.simulator.recording`. Columns of
one table have one length; rows of a rank are in order of `start_ns` unless a comment says else.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from teller.lab.simulator.scene import Scene

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Tiny = npt.NDArray[np.uint8]

NEVER: Final = -1  # end of a span that did not end; no collective, no graph


class HostKind(IntEnum):
    """What a host span is."""

    ENGINE = 0  # a range of the engine's own process or thread: schedule, process outputs, …
    STEP = 1  # the annotation of one step on one rank
    PHASE = 2  # a range of the worker inside a step: preprocess, forward, sample, …
    MODULE = 3  # a module of the model
    OPERATOR = 4  # aten::…, c10d::…, vllm::…
    RUNTIME = 5  # a call of the CUDA runtime or driver
    NCCL = 6  # a range that NCCL itself annotates
    PYTHON = 7  # garbage collection and other ranges of the interpreter
    OS = 8


class DeviceKind(IntEnum):
    """What device work is."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2


class CopyKind(IntEnum):
    """From where to where a copy goes; as CUPTI counts, and 0 for none."""

    NONE = 0
    H2D = 1
    D2H = 2
    D2D = 8


@dataclass(frozen=True, slots=True)
class HostSpans:
    """Host spans of one rank. `process` 0 is the worker, 1 the engine; they nest by thread."""

    name: Small  # place in `Happened.names`
    kind: Tiny
    process: Tiny
    thread: Tiny  # number of the thread in its process; 0 is the main one
    start_ns: Ints
    end_ns: Ints  # NEVER: still open when the process ended
    correlation: Ints  # of a RUNTIME call that launched, copied or waited; else 0
    step: Small  # step_index, NEVER outside of steps
    collective: Small  # row of the rank's `Joins`; NEVER for none
    size_bytes: Ints  # of what is copied, allocated or sent; else 0


@dataclass(frozen=True, slots=True)
class DeviceSpans:
    """Device spans of one rank."""

    name: Small
    kind: Tiny
    stream: Small
    start_ns: Ints
    end_ns: Ints  # NEVER: never ended (hang)
    correlation: Ints  # of the call that launched it; one graph launch has many
    step: Small
    graph: Small  # id of the CUDA graph, 0 outside of graphs
    node: Ints  # number of the node in its graph, 0 outside
    collective: Small
    size_bytes: Ints
    copy: Tiny  # CopyKind
    pageable: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Joins:
    """How one rank took part in collectives: one row a call, in order of the call."""

    group: Small  # place in `Scene.groups`
    seq: Ints  # of this group, from 0
    op: Small  # place in OPS
    size_bytes: Ints
    elements: Ints
    peer: Small  # rank in the group of the other side; NEVER for none
    host_ns: Ints  # start of the host's call
    arrival_ns: Ints  # start of device work; NEVER: never started
    end_ns: Ints  # NEVER: never ended
    step: Small


OPS: Final = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "send",
    "recv",
)


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of one rank."""

    index: Small
    contexts: Small  # requests in prefill
    generations: Small  # requests in decode
    context_tokens: Small  # new tokens of prefills
    generation_tokens: Small
    attended: Ints  # tokens in the KV cache of all requests of the step
    start_ns: Ints
    end_ns: Ints  # NEVER: still open
    graph: npt.NDArray[np.bool_]  # ran from a CUDA graph


@dataclass(frozen=True, slots=True)
class Request:
    """One request; times are NEVER where it did not get that far."""

    name: str
    replica: int
    arrival_ns: int
    queued_ns: int  # when the scheduler heard of it (after the tokenizer)
    scheduled_ns: int
    first_token_ns: int
    end_ns: int
    prompt_tokens: int
    output_tokens: int
    preemptions: int
    steps: tuple[int, ...]  # step_index of the steps that served it, ascending


@dataclass(frozen=True, slots=True)
class Transfer:
    """The cache of one request on its way from the replica that prefilled it to another.

    It is `ready_ns` when the prefill ends, and waits until the one before it has passed.
    """

    request: str
    source: int
    target: int
    ready_ns: int
    start_ns: int
    end_ns: int
    size_bytes: int
    late_ns: int  # later than without the cause that acts on transfers


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a program would write to its log: `kind` names the form, `values` fill it.

    `source` is "api", "engine 0" (replica), "worker 3" (rank), "nccl 3" (rank), "kernel 1" (host).
    """

    time_ns: int
    source: str
    kind: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gauges:
    """Samples at equal times; a column is "gpu 3 sm_clock_mhz" (by rank) or "engine 0 running"."""

    time_ns: Ints
    columns: dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Happened:
    """One run. Tables that are tuples have one entry a rank, in order of rank."""

    scene: Scene
    names: tuple[str, ...]
    host: tuple[HostSpans, ...]
    device: tuple[DeviceSpans, ...]
    joins: tuple[Joins, ...]
    steps: tuple[Steps, ...]
    requests: tuple[Request, ...]
    notes: tuple[Note, ...]  # in order of time
    gauges: Gauges
    end_ns: int  # when the recording ends
    dead: tuple[int, ...] = ()  # ranks whose process ended before
    # what NCCL says at start: `network`, `channels`, and `transports` by pair of ranks ("0-1")
    facts: dict[str, Any] = field(default_factory=dict)
    transfers: tuple[Transfer, ...] = ()  # in order of start
