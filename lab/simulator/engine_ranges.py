"""What the engine's own process does around steps, and its connector beside them."""

from typing import TYPE_CHECKING

import numpy as np

from teller.lab.simulator.cells import Cell
from teller.lab.simulator.collecting import Columns
from teller.lab.simulator.dialect import Dialect
from teller.lab.simulator.happened import NEVER, HostKind, Transfer
from teller.lab.simulator.motion import NEVER_NS
from teller.lab.simulator.scene import Scene
from teller.lab.simulator.tape import Names

if TYPE_CHECKING:
    from teller.lab.simulator.play import Done

_RANGES = {
    "vllm": ("schedule: allocate_slots", "llm_engine step: get_output",
             "llm_engine step: process_outputs"),
    "sglang": ("scheduler.get_next_batch_to_run", "scheduler.run_batch",
               "scheduler.process_batch_result"),
    "trtllm": ("_schedule", "_fetch_new_requests", "_handle_responses"),
}  # fmt: skip
# What fetches a cache in the worker, by its function's name; TensorRT-LLM annotates it by itself.
_CONNECTORS = {
    "vllm": "NixlConnectorWorker._read_blocks", "sglang": "MooncakeKVReceiver.poll",
    "trtllm": "recvBufferFun",
}  # fmt: skip
_FIRST_THREAD = 4  # of a connector: it has one for each replica that it reads from


class Engine:
    """Writes the engine's ranges onto the first rank of each replica."""

    def __init__(self, scene: Scene, names: Dialect, numbers: Names, columns: Columns) -> None:
        """Take where to write."""
        self._scene, self._on, self._columns = scene, names.scopes, columns
        self._numbers = numbers
        self._names = [numbers.number(n) for n in _RANGES[scene.engine]]

    def record(self, cell: Cell, done: "Done") -> None:
        """Write scheduling before a step, and waiting for its tokens."""
        if not self._on:
            return
        scheduled = done.planned_ns + (done.begin_ns - done.planned_ns) * 0.8
        end = NEVER if done.end_ns > NEVER_NS / 2 else done.end_ns
        rows = {
            "name": np.array(self._names[:2]), "kind": np.full(2, HostKind.ENGINE),
            "process": np.ones(2), "thread": np.zeros(2),
            "start_ns": np.array([done.planned_ns, done.begin_ns]).astype(np.int64),
            "end_ns": np.array([scheduled, end]).astype(np.int64), "correlation": np.zeros(2),
            "step": np.full(2, NEVER), "collective": np.full(2, NEVER), "size_bytes": np.zeros(2),
        }  # fmt: skip
        for replica in cell.replicas:
            rank = next(p.rank for p in self._scene.places if p.dp == replica)
            self._columns.extra(rank, rows)

    def receive(self, transfer: Transfer) -> None:
        """Write a transfer onto all ranks of the replica that gets it."""
        if not self._on:
            return
        rows = {
            "name": np.array([self._numbers.number(_CONNECTORS[self._scene.engine])]),
            "kind": np.array([HostKind.PHASE]), "process": np.zeros(1),
            "thread": np.array([_FIRST_THREAD + transfer.source]),
            "start_ns": np.array([transfer.start_ns]), "end_ns": np.array([transfer.end_ns]),
            "correlation": np.zeros(1), "step": np.array([NEVER]), "collective": np.array([NEVER]),
            "size_bytes": np.array([transfer.size_bytes]),
        }  # fmt: skip
        for place in self._scene.places:
            if place.dp == transfer.target:
                self._columns.extra(place.rank, rows)
