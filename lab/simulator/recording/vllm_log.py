"""vLLM's log: start, a line of figures every ten seconds, requests, and what notes say."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording.lines import SECOND, Line, host_of, local
from teller.lab.simulator.recording.load import head_rank, load, requests_logged, tokens
from teller.lab.simulator.recording.notes import Said, said
from teller.lab.simulator.recording.nsys_schema import number
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.titles import vllm_worker
from teller.lab.simulator.scene import Scene

INTERVAL_NS: Final = 10 * SECOND
ACCESS: Final = "(access) "
_START_S: Final = 74.0  # before the run's 0
_TRANSFERS: Final = (0, 11)  # the release since which caches that came are summed up
_LABELLED: Final = (0, 10)  # the release since which lines name their process
_MODE: Final = {"eager": "NONE", "graph": "FULL", "piecewise": "FULL_AND_PIECEWISE"}


def lines(happened: Happened, recording: Recording) -> Iterator[Line]:
    """Give all lines but those of notes."""
    yield from _start(happened, recording)
    for replica in range(happened.scene.dp):
        yield from _figures(happened, recording, replica)
    logged = requests_logged(happened, recording)
    for request in happened.requests:
        if logged:
            yield Line(request.queued_ns, 0, "api", "INFO", "async_llm.py:345",
                       f"Added request {request.name}.")  # fmt: skip
        if request.end_ns >= 0:
            text = f'10.0.9.{7 + request.replica}:{40000 + hash_of(request.name)} - "POST '
            yield Line(request.end_ns, 0, "api", "INFO", "",
                       f'{ACCESS}{text}/v1/completions HTTP/1.1" 200 OK')  # fmt: skip


def hash_of(name: str) -> int:
    """Give a port's last digits, drawn from a name."""
    return sum(name.encode()) * 31 % 20000


def _figures(happened: Happened, recording: Recording, replica: int) -> Iterator[Line]:
    phase = recording.seed % 9 * SECOND
    for at in range(phase + SECOND, happened.end_ns, INTERVAL_NS):
        passed = tokens(happened, replica, at - INTERVAL_NS, at)
        now = load(happened, replica, at)
        host = host_of(happened, f"engine {replica}") if happened.scene.prefill else 0
        if moved := _transfers(happened, replica, at):
            yield Line(at, host, "api", moved.level, moved.where, moved.text)
        if not passed.steps and not now.running and not now.waiting:
            continue  # suppressed where nothing goes on
        seconds = INTERVAL_NS / SECOND
        preempted = f"Preemptions: {now.preemptions}, " if now.preemptions else ""
        yield Line(
            at, host, "api", "INFO", "loggers.py:248",
            f"Engine {replica:03d}: Avg prompt throughput: {passed.prompt / seconds:.1f} tokens/s, "
            f"Avg generation throughput: {passed.output / seconds:.1f} tokens/s, "
            f"Running: {now.running} reqs, Waiting: {now.waiting} reqs, {preempted}"
            f"GPU KV cache usage: {now.kv_usage * 100:.1f}%, Prefix cache hit rate: 0.0%",
        )  # fmt: skip


def _transfers(happened: Happened, replica: int, at: int) -> Said | None:
    """Give what is said of the caches that came in an interval, in releases that say it."""
    if number(happened.scene.engine_version) < _TRANSFERS:
        return None
    come = [t for t in happened.transfers if t.target == replica]
    come = [t for t in come if at - INTERVAL_NS <= t.end_ns < at]
    if not come:
        return None
    ms = np.array([t.end_ns - t.start_ns for t in come]) / 1e6
    return said("kv_transfer", "vllm", {
        "count": len(come), "ms": float(ms.mean()), "p90_ms": float(np.percentile(ms, 90)),
        "bytes": float(np.mean([t.size_bytes for t in come])),
    })  # fmt: skip


def _start(happened: Happened, recording: Recording) -> Iterator[Line]:
    scene = happened.scene
    model, api = scene.model.name, "api"
    kv = scene.load.kv_blocks * scene.load.block_tokens
    said = [
        (0.0, api, "INFO", "api_server.py:1351", f"vLLM API server version {scene.engine_version}"),
        (0.1, api, "INFO", "utils.py:253", f"non-default args: {_args(scene)}"),
        (1.5, api, "INFO", "model.py:541", f"Resolved architecture: {_architecture(scene)}"),
        (1.6, api, "INFO", "model.py:1558", "Using max model len 32768"),
        (1.9, api, "INFO", "scheduler.py:226",
         f"Chunked prefill is enabled with max_num_batched_tokens={scene.load.token_limit}."),
        (70.1, api, "INFO", "api_server.py:1425",
         "Starting vLLM API server 0 on http://0.0.0.0:8000"),
        (70.4, api, "INFO", "", f"{ACCESS}Application startup complete."),
    ]  # fmt: skip
    for replica in range(scene.dp):
        engine = f"engine {replica}"
        said += [
            (9.0, engine, "INFO", "core.py:96",
             f"Initializing a V1 LLM engine (v{scene.engine_version}) with config: "
             f"model='{model}', tokenizer='{model}', dtype=torch.bfloat16, max_seq_len=32768, "
             f"tensor_parallel_size={scene.tp}, pipeline_parallel_size={scene.pp}, "
             f"data_parallel_size={scene.dp}, enforce_eager={scene.mode == 'eager'}, "
             "seed=0, enable_prefix_caching=True, chunked_prefill_enabled=True"),
            (9.2, engine, "WARNING", "multiproc_executor.py:720",
             "Reducing Torch parallelism from 112 threads to 1 to avoid unnecessary CPU "
             "contention. Set OMP_NUM_THREADS in the external environment to tune this value as "
             "needed."),
            (58.0, engine, "INFO", "kv_cache_utils.py:1307", f"GPU KV cache size: {kv:,} tokens"),
            (58.1, engine, "INFO", "kv_cache_utils.py:1312",
             f"Maximum concurrency for 32,768 tokens per request: {kv / 32768:.2f}x"),
            (70.0, engine, "INFO", "core.py:272",
             "init engine (profile, create kv cache, warmup model) took 38.42 seconds"),
        ]  # fmt: skip
    for rank in range(len(scene.places)):
        said += _worker(happened, recording, rank)
    for after, source, level, where, text in said:
        at = round((after - _START_S) * SECOND)
        yield Line(at, host_of(happened, source), source, level, where, text)


def _worker(
    happened: Happened, recording: Recording, rank: int
) -> list[tuple[float, str, str, str, str]]:
    scene = happened.scene
    place, who, world = scene.places[rank], f"worker {rank}", len(scene.places)
    late = rank % 7 * 0.03
    expert = f"EP rank {place.ep}" if scene.model.experts else "EP rank 0"
    head = scene.hosts[scene.places[0].host].address
    said = [
        (14.0, "parallel_state.py:1234", f"world_size={world} rank={rank} local_rank="
         f"{place.device} distributed_init_method=tcp://{head}:41909 backend=nccl"),
        (17.0, "pynccl.py:70", f"vLLM is using nccl=={recording.nccl}"),
        (18.0, "parallel_state.py:1445", f"rank {rank} in world size {world} is assigned as "
         f"DP rank {place.dp}, PP rank {place.pp}, TP rank {place.tp}, {expert}"),
        (18.5, "gpu_model_runner.py:4025", f"Starting to load model {scene.model.name}..."),
        (19.0, "cuda.py:364", "Using Flash Attention backend on V1 engine."),
        (31.0, "default_loader.py:291", f"Loading weights took {11.2 + late:.2f} seconds"),
        (32.0, "gpu_model_runner.py:4122",
         f"Model loading took {_gib(scene):.4f} GiB and {13.1 + late:.6f} seconds"),
    ]  # fmt: skip
    if len({p.host for p in scene.places}) > 1 and not scene.prefill:
        said.append((17.5, "custom_all_reduce.py:137", "Custom allreduce is disabled because this "
                     "process group spans across nodes."))  # fmt: skip
    if scene.mode != "eager":
        said += [
            (45.0, "backends.py:865", f"Dynamo bytecode transform time: {7.08 + late:.2f} s"),
            (55.0, "monitor.py:34", f"torch.compile takes {21.4 + late:.2f} s in total"),
            (69.0, "gpu_model_runner.py:5055", "Graph capturing finished in 9 secs, took 0.58 GiB"),
        ]  # fmt: skip
    loud = ("custom_all_reduce.py:137",)
    return [(at + late, who, "WARNING" if where in loud else "INFO", where, text)
            for at, where, text in said]  # fmt: skip


def _gib(scene: Scene) -> float:
    model = scene.model
    layer = 4 * model.hidden * model.hidden + 3 * model.hidden * model.ffn * max(model.experts, 1)
    return (model.layers * layer + 2 * model.vocab * model.hidden) * 2 / len(scene.places) / 2**30


def _architecture(scene: Scene) -> str:
    family = scene.model.name.split("/")[-1].split("-")[0].lower()
    name = {"qwen3": "Qwen3", "llama": "Llama", "meta": "Llama", "mixtral": "Mixtral"}.get(family)
    return f"{name or 'Qwen2'}{'Moe' if scene.model.experts else ''}ForCausalLM"


def _args(scene: Scene) -> str:
    given: dict[str, object] = {
        "model_tag": scene.model.name, "model": scene.model.name, "host": "0.0.0.0",
        "max_model_len": 32768, "tensor_parallel_size": scene.tp,
        "pipeline_parallel_size": scene.pp, "max_num_seqs": scene.load.batch_limit,
    }  # fmt: skip
    own = {k: v for k, v in scene.settings.items() if not k.isupper()}
    return repr(given | own)


def shown(happened: Happened, recording: Recording, line: Line) -> str:
    """Give a line as vLLM prints it; a line of the web server has no time."""
    label = _label(happened, recording, line)
    if line.text.startswith(ACCESS):
        return f"{label}INFO:     {line.text.removeprefix(ACCESS)}"
    when = local(happened, recording, line.host, line.time_ns)
    return f"{label}{line.level} {when:%m-%d %H:%M:%S} [{line.where}] {line.text}"


def _label(happened: Happened, recording: Recording, line: Line) -> str:
    scene = happened.scene
    version = number(scene.engine_version)
    if version < _LABELLED:
        return ""
    pid, name = recording.api_pid(scene), "APIServer"
    if line.kind == "engine":
        pid = recording.engine_pid(scene, scene.places[head_rank(happened, line.number)].host)
        name = f"EngineCore_{line.number}" if version < (0, 11) else f"EngineCore_DP{line.number}"
        name = "EngineCore" if version >= (0, 22) else name
    if line.kind == "worker":
        pid = recording.pid(scene, line.number)
        name = vllm_worker(scene, line.number)
        name = f"Vllm{name.replace('_', ' ', 1)}" if version < (0, 11) else name
    text = f"({name} pid={pid})"
    return f"\x1b[1;36m{text}\x1b[0;0m " if recording.colour else f"{text} "
