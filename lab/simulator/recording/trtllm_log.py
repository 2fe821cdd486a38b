"""TensorRT-LLM's log: start, a line an iteration of each replica's first rank, and notes."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from teller.lab.simulator.happened import Happened, Ints
from teller.lab.simulator.recording.lines import SECOND, Line, host_of, local
from teller.lab.simulator.recording.load import head_rank
from teller.lab.simulator.recording.plan import Recording

_START_S: Final = 118.0


def lines(happened: Happened, recording: Recording) -> Iterator[Line]:
    """Give all lines but those of notes."""
    yield from _start(happened)
    for replica in range(happened.scene.dp):
        yield from _iterations(happened, recording, replica)


def device_ns(happened: Happened, rank: int) -> Ints:
    """Give for each step of a rank how long its device work took; 0 for none."""
    device, steps = happened.device[rank], happened.steps[rank]
    size = int(steps.index.max(initial=-1)) + 1
    start, end = np.full(size, np.iinfo(np.int64).max), np.zeros(size, np.int64)
    inside = (device.step >= 0) & (device.step < size) & (device.end_ns >= 0)
    np.minimum.at(start, device.step[inside], device.start_ns[inside])
    np.maximum.at(end, device.step[inside], device.end_ns[inside])
    lasting: Ints = np.where(end > 0, end - np.minimum(start, end), 0)
    return lasting[steps.index]


def _iterations(happened: Happened, recording: Recording, replica: int) -> Iterator[Line]:
    rank = head_rank(happened, replica)
    steps, place = happened.steps[rank], happened.scene.places[rank]
    device = device_ns(happened, rank)
    for row in range(len(steps.index)):
        if steps.end_ns[row] < 0:
            continue
        at = int(steps.end_ns[row])
        before = f"{device[row - 1] / 1e6}ms" if row else "N/A"
        when = local(happened, recording, place.host, at)
        batch = steps.contexts[row] + steps.generations[row]
        yield Line(
            at, place.host, f"worker {rank}", "I", "",
            f"iter = {steps.index[row]}, global_rank = {rank}, rank = {rank}, "
            f"currank_total_requests = {batch}/0, host_step_time = "
            f"{(at - steps.start_ns[row]) / 1e6}ms, prev_device_step_time = {before}, "
            f"timestamp = {when:%Y-%m-%d %H:%M:%S}, num_scheduled_requests: {batch}, states = "
            f"{{'num_ctx_requests': {steps.contexts[row]}, 'num_ctx_tokens': "
            f"{steps.context_tokens[row]}, 'num_generation_tokens': "
            f"{steps.generation_tokens[row]}}}",
        )  # fmt: skip


def _start(happened: Happened) -> Iterator[Line]:
    scene = happened.scene
    kv = scene.load.kv_blocks * scene.load.block_tokens
    said = [(0.0, "worker 0", f"TensorRT-LLM version: {scene.engine_version}")]
    for rank in range(len(scene.places)):
        who, late = f"worker {rank}", rank % 7 * 0.07
        said += [
            (20.0 + late, who, f"Rank {rank} uses {scene.gpu.name}"),
            (71.0 + late, who, f"Model init total -- {48.31 + late:.2f}s"),
            (84.0 + late, who, f"Allocated 24.42 GiB for max tokens in paged KV cache ({kv})."),
            (85.0 + late, who, f"max_seq_len=32768, max_num_requests={scene.load.batch_limit}, "
             f"max_num_tokens={scene.load.token_limit}, max_batch_size={scene.load.batch_limit}"),
        ]  # fmt: skip
    said.append((116.0, "worker 0", "Engine loaded and ready to serve..."))
    for after, source, text in said:
        at = round((after - _START_S) * SECOND)
        yield Line(at, host_of(happened, source), source, "I", "", text)


def shown(happened: Happened, recording: Recording, line: Line) -> str:
    """Give a line as TensorRT-LLM prints it."""
    when = local(happened, recording, line.host, line.time_ns)
    rank = line.number if line.kind == "worker" else head_rank(happened, line.number)
    return f"[{when:%m/%d/%Y-%H:%M:%S}] [TRT-LLM] [RANK {rank}] [{line.level}] {line.text}"
