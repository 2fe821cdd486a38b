"""A small service that annotates as vLLM and torch do, for the tests: one process a rank."""

import os
import sys
import time

import numpy as np
import nvtx

CALL = np.dtype(
    [("Process Group Name", "U4"), ("Seq", "u8"), ("Message size [bytes]", "u8"),
     ("Process Group Ranks", "i4", (2,)), ("Rank", "i4"), ("No. of ranks", "i4")]
)  # fmt: skip
BYTES = 4096

rank, steps = int(os.environ["RANK"]), int(sys.argv[1])
runner, model, c10d = (nvtx.get_domain(name) for name in ("runner", "model", "c10d"))


def spin(seconds: float) -> None:
    """Use the processor: what a layer does."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


for step in range(steps):
    runner.push_range(runner.get_event_attributes(
        message=f"step={step} execute_context_0(0)_generation_4(4)"
    ))  # fmt: skip
    for layer in range(2):
        model.push_range(model.get_event_attributes(message=f"layers.{layer}.mlp"))
        spin(0.0005)
        call = np.array(("0", 2 * step + layer, BYTES, (0, 1), rank, 2), CALL)
        c10d.push_range(c10d.get_event_attributes(message="all_reduce", payload=call))
        c10d.pop_range()
        model.pop_range()
    runner.pop_range()
