"""What kind of work an event is, from its category and its name, across all writers' words."""

import re
from enum import IntEnum, IntFlag
from typing import Final

from teller.ingest import source


class Kind(IntEnum):
    """What an event is to us."""

    HOST = 0  # an operator or a Python function
    RUNTIME = 1  # an API call
    NOTE = 2  # an annotation of the program
    DEVICE = 3  # work in stream order
    MARK = 4  # an annotation, shown around device work
    SYNC = 5  # a wait, shown on a device
    OVERHEAD = 6  # the profiler's own
    BOOKS = 7  # the profiler's own bookkeeping: no span
    UNKNOWN = 8  # the arguments and the name decide


class Says(IntFlag):
    """What a name says."""

    NOTHING = 0
    COMM_KERNEL = 1
    COMM_CALL = 2
    STEP = 4
    API = 8
    EVENT_MARK = 16
    WAIT = 32


CATEGORIES: Final = {
    "cpu_op": Kind.HOST,
    "operator": Kind.HOST,
    "python_function": Kind.HOST,
    "hpu_op": Kind.HOST,
    "user_annotation": Kind.NOTE,
    "gpu_user_annotation": Kind.MARK,
    "cuda_profiler_range": Kind.MARK,
    "cuda_sync": Kind.SYNC,
    "cuda_event": Kind.SYNC,
    "kernel": Kind.DEVICE,
    "concurrent_kernel": Kind.DEVICE,
    "gpu_memcpy": Kind.DEVICE,
    "memcpy": Kind.DEVICE,
    "gpu_memset": Kind.DEVICE,
    "memset": Kind.DEVICE,
    "mtia_ccp_events": Kind.DEVICE,
    "overhead": Kind.OVERHEAD,
    "trace": Kind.BOOKS,
    "mtia_workloadd": Kind.RUNTIME,
}
LAYERS: Final = (
    source.ENGINE,
    source.FRAMEWORK,
    source.RUNTIME,
    source.DEVICE,
    source.COMM,
    source.OS,
)
LAYER_OF: Final = {
    Kind.HOST: source.FRAMEWORK,
    Kind.RUNTIME: source.RUNTIME,
    Kind.NOTE: source.ENGINE,
    Kind.DEVICE: source.DEVICE,
    Kind.MARK: source.ENGINE,
    Kind.SYNC: source.RUNTIME,
    Kind.OVERHEAD: source.RUNTIME,
    Kind.BOOKS: source.RUNTIME,
    Kind.UNKNOWN: source.FRAMEWORK,
}
OPS: Final = (
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_reduce", r"all_?reduce|cross_device_reduce"),
    ("all_gather", r"all_?gather"),
    ("all_to_all", r"all_?to_?all|alltoall|\bdispatch\b|\bcombine\b"),
    ("send_recv", r"send_?recv"),
    ("broadcast", r"broadcast"),
    ("barrier", r"barrier"),
    ("send", r"\bi?send(?:\b|_)"),
    ("recv", r"\bi?recv(?:\b|_)"),
    ("gather", r"\bgather|nccl\w*_Gather"),
    ("scatter", r"\bscatter|nccl\w*_Scatter"),
    ("reduce", r"\breduce|nccl\w*_Reduce|\b_reduce"),
)
COMM_KERNEL: Final = re.compile(
    r"nccl\w*kernel|^nccl|^rccl|mscclpp|cross_device_reduce|all_?reduce|all_?gather|"
    r"reduce_?scatter|all_?to_?all|nvshmem|\bdeep_?ep\b|quickreduce",
    re.I,
)
COMM_CALL: Final = re.compile(r"^(?:(?:nccl|gloo|ucc|mpi|hccl|xccl):|record_param_comms$|_?c10d)")
API: Final = re.compile(r"^(?:cuda|cu|hip|zeCommand|ur)[A-Z]\w+$")
ADDRESSED: Final = re.compile(r"\(anonymous namespace\)(?:::)?|^void ")


def kind_of(category: str) -> Kind:
    """Give the kind of a category, in any writer's case and prefix."""
    word = category.strip().lower()
    if word in CATEGORIES:
        return CATEGORIES[word]
    if re.search(r"runtime|driver", word):
        return Kind.RUNTIME
    return Kind.UNKNOWN


def says(name: str) -> Says:
    """Give what a name says, whatever the event's category."""
    found = Says.NOTHING
    if COMM_KERNEL.search(_function(name)):
        found |= Says.COMM_KERNEL
    if COMM_CALL.match(name):
        found |= Says.COMM_CALL
    if re.search(r"wait|finalize", name) and found & Says.COMM_CALL:
        found |= Says.WAIT
    if name.startswith("ProfilerStep#"):
        found |= Says.STEP
    if API.match(name):
        found |= Says.API
    if re.match(r"event_(?:wait|record)$", name):
        found |= Says.EVENT_MARK
    return found


def op_of(words: str) -> str:
    """Give the kind of collective that a name or a collective's name means, one of OPS."""
    bare = re.sub(r"^(?:\w+:|_?c10d\w*::)", "", _function(words)).lstrip("_")
    return next((op for op, form in OPS if re.search(form, bare, re.I)), "unknown")


def _function(name: str) -> str:
    """Take the arguments off a kernel's name, since those name other functions."""
    return re.split(r"[<(]", ADDRESSED.sub("", name), maxsplit=1)[0]
