"""SGLang's log: start, a line a prefill, one every forty decode steps, and what notes say."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from teller.lab.simulator.happened import Happened, Steps
from teller.lab.simulator.recording.lines import SECOND, Line, host_of, local
from teller.lab.simulator.recording.load import head_rank, load, requests_logged
from teller.lab.simulator.recording.nsys_schema import number
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.titles import sglang_place
from teller.lab.simulator.scene import Scene

EVERY: Final = 40  # decode steps
_START_S: Final = 91.0
_NEWER: Final = (0, 5, 6)


def lines(happened: Happened, recording: Recording) -> Iterator[Line]:
    """Give all lines but those of notes."""
    yield from _start(happened)
    for replica in range(happened.scene.dp):
        yield from _batches(happened, replica)
    for request in happened.requests if requests_logged(happened, recording) else ():
        yield Line(request.queued_ns, 0, "api", "INFO", "",
                   f"Receive: obj=GenerateReqInput(rid='{request.name}', stream=True)")  # fmt: skip
        if request.end_ns >= 0:
            yield Line(request.end_ns, 0, "api", "INFO", "",
                       f"Finish: obj=GenerateReqInput(rid='{request.name}'), out={{'meta_info': "
                       f"{{'id': '{request.name}', 'finish_reason': {{'type': 'length'}}, "
                       f"'prompt_tokens': {request.prompt_tokens}, "
                       f"'completion_tokens': {request.output_tokens}}}}}")  # fmt: skip


def _batches(happened: Happened, replica: int) -> Iterator[Line]:
    rank = head_rank(happened, replica)
    steps, host = happened.steps[rank], happened.scene.places[rank].host
    decodes = np.flatnonzero((steps.contexts == 0) & (steps.generations > 0))
    own = {int(row): i for i, row in enumerate(decodes) if i % EVERY == EVERY - 1}
    last_ns = 0
    for row in range(len(steps.index)):
        prefill = bool(steps.contexts[row])
        if not prefill and row not in own:
            continue
        at = int(steps.end_ns[row] if steps.end_ns[row] >= 0 else steps.start_ns[row])
        if prefill:
            text = _prefill(happened, replica, steps, row)
        else:
            first = decodes[own[row] - EVERY + 1]
            made = int(steps.generation_tokens[first : row + 1].sum())
            text = _decode(happened, replica, steps, row, made / max(at - last_ns, 1) * SECOND)
        last_ns = last_ns if prefill else at
        yield Line(at, host, f"worker {rank}", "INFO", "", text)


def _prefill(happened: Happened, replica: int, steps: Steps, row: int) -> str:
    now = load(happened, replica, int(steps.start_ns[row]))
    text = (
        f"Prefill batch, #new-seq: {steps.contexts[row]}, #new-token: "
        f"{steps.context_tokens[row]}, #cached-token: 0, token usage: {now.kv_usage:.2f}, "
        f"#running-req: {now.running}, #queue-req: {now.waiting}, "
    )
    text += _inflight(happened, replica, int(steps.end_ns[row]))
    if not _new(happened):
        return text
    seconds = max(int(steps.end_ns[row] - steps.start_ns[row]), 1) / SECOND
    rate = steps.context_tokens[row] / seconds
    return f"{text}#pending-token: 0, cuda graph: {bool(steps.graph[row])}, " + (
        f"input throughput (token/s): {rate:.2f}"
    )


def _decode(happened: Happened, replica: int, steps: Steps, row: int, rate: float) -> str:
    now = load(happened, replica, int(steps.start_ns[row]))
    moving = _incoming(happened, replica, int(steps.start_ns[row]))
    text = (
        f"Decode batch, #running-req: {steps.generations[row]}, #token: {steps.attended[row]}, "
        f"token usage: {now.kv_usage:.2f}, {moving}cuda graph: {bool(steps.graph[row])}, "
        f"gen throughput (token/s): {rate:.2f}, #queue-req: {now.waiting}"
    )
    return text if _new(happened) else f"{text}, "


def _inflight(happened: Happened, replica: int, at: int) -> str:
    """Give what an instance that prefills says of the caches that it still holds for others."""
    if replica >= happened.scene.prefill or not _new(happened):
        return ""
    held = sum(t.source == replica and t.ready_ns <= at < t.end_ns for t in happened.transfers)
    return f"#prealloc-req: 0, #inflight-req: {held}, "


def _incoming(happened: Happened, replica: int, at: int) -> str:
    """Give what an instance that decodes says of the caches that are on their way to it."""
    if not happened.scene.prefill:
        return ""
    flying = sum(t.target == replica and t.ready_ns <= at < t.end_ns for t in happened.transfers)
    return (
        f"pre-allocated usage: 0.00, #prealloc-req: 0, #transfer-req: {flying}, #retracted-req: 0, "
    )


def _new(happened: Happened) -> bool:
    return number(happened.scene.engine_version) >= _NEWER


def _start(happened: Happened) -> Iterator[Line]:
    scene = happened.scene
    kv = scene.load.kv_blocks * scene.load.block_tokens
    eager = scene.mode == "eager"
    said = [
        (0.0, "api", _args(scene)),
        (2.0, "api", "Attention backend not specified. Use fa3 backend by default."),
        (89.0, "api", "The server is fired up and ready to roll!"),
    ]
    for rank in range(len(scene.places)):
        who, late = f"worker {rank}", rank % 7 * 0.11
        said += [
            (9.0 + late, who, "Init torch distributed begin."),
            (11.0 + late, who, f"Init torch distributed ends. elapsed={1.83 + late:.2f} s, "
             "mem usage=0.42 GB"),
            (12.0 + late, who, "Load weight begin. avail mem=77.41 GB"),
            (41.0 + late, who, f"Load weight end. elapsed={28.6 + late:.2f} s, type=Model, "
             "dtype=torch.bfloat16, avail mem=41.74 GB, mem usage=34.80 GB."),
            (42.0 + late, who, f"KV Cache is allocated. #tokens: {kv}, K size: 12.21 GB, "
             "V size: 12.21 GB"),
        ]  # fmt: skip
        if not eager:
            said += [
                (43.0 + late, who, "Capture cuda graph begin. This can take up to several minutes."
                 " avail mem=12.31 GB"),
                (84.0 + late, who, f"Capture cuda graph end. Time elapsed: {40.7 + late:.2f} s. "
                 "mem usage=1.24 GB. avail mem=11.07 GB."),
            ]  # fmt: skip
        if len(scene.hosts) > 1 and not scene.prefill:
            said.append((12.5 + late, who, "Custom allreduce is disabled because this process group"
                         " spans across nodes."))  # fmt: skip
    for replica in range(scene.dp):
        head = f"worker {head_rank(happened, replica)}"
        said.append((85.5, head, f"max_total_num_tokens={kv}, chunked_prefill_size="
                     f"{scene.load.token_limit}, max_prefill_tokens=16384, max_running_requests="
                     f"{scene.load.batch_limit}, context_len=32768, "
                     "available_gpu_mem=11.07 GB"))  # fmt: skip
    for after, source, text in said:
        at = round((after - _START_S) * SECOND)
        yield Line(at, host_of(happened, source), source, "INFO", "", text)


def _args(scene: Scene) -> str:
    return (
        f"server_args=ServerArgs(model_path='{scene.model.name}', tokenizer_path="
        f"'{scene.model.name}', host='0.0.0.0', port=30000, context_length=32768, dtype='auto', "
        f"max_running_requests={scene.load.batch_limit}, chunked_prefill_size="
        f"{scene.load.token_limit}, tp_size={scene.tp}, pp_size={scene.pp}, dp_size={scene.dp}, "
        f"nnodes={len(scene.hosts)}, disable_cuda_graph={scene.mode == 'eager'}, "
        "enable_dp_attention=False)"
    )


def shown(happened: Happened, recording: Recording, line: Line) -> str:
    """Give a line as SGLang prints it: the place of a rank stands behind the time."""
    scene = happened.scene
    when = local(happened, recording, line.host, line.time_ns)
    rank = line.number if line.kind == "worker" else head_rank(happened, line.number)
    place = "" if line.kind == "api" else sglang_place(scene, rank)
    return f"[{when:%Y-%m-%d %H:%M:%S}{place}] {line.text}"
