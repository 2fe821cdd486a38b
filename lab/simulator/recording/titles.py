"""What processes and threads of an engine are called; the place of a rank as engines print it."""

from typing import Final

from teller.lab.simulator.recording.nsys_schema import number
from teller.lab.simulator.scene import Scene

_PLACED: Final = (0, 12)  # vLLM's release that names files by place


def worker_title(scene: Scene, rank: int | None) -> str:
    """Give the title of a worker's process, or of the engine's for no rank."""
    if scene.engine == "trtllm":
        return "trtllm-serve" if rank is None else "mpi4py"
    if rank is None:
        return "VLLM::EngineCore" if scene.engine == "vllm" else "sglang::detokenizer"
    if scene.engine == "sglang":
        return f"sglang::scheduler{sglang_place(scene, rank).replace(' ', '_')}"
    return f"VLLM::{vllm_worker(scene, rank)}"


def thread_title(scene: Scene, rank: int | None) -> str:
    """Give the name of the main thread: the title as far as the system keeps it."""
    return worker_title(scene, rank)[:15]


def vllm_worker(scene: Scene, rank: int) -> str:
    """Give how vLLM calls a worker: Worker_DP0_PP0_TP0_EP0, without what there is one of."""
    place = scene.places[rank]
    parts = [("DP", place.dp, scene.dp), ("PP", place.pp, scene.pp), ("TP", place.tp, scene.tp)]
    said = [f"{axis}{n}" for axis, n, size in parts if size > 1]
    if scene.model.experts:
        said.append(f"EP{place.ep}")
    return "_".join(["Worker", *said])


def sglang_place(scene: Scene, rank: int) -> str:
    """Give the place as SGLang puts it behind the time: " DP1 PP0 TP3"."""
    place = scene.places[rank]
    parts = [("DP", place.dp, scene.dp), ("PP", place.pp, scene.pp), ("TP", place.tp, scene.tp)]
    return "".join(f" {axis}{n}" for axis, n, size in parts if size > 1)


def trace_name(scene: Scene, rank: int, pid: int, end_ns: int, part: str = "") -> str:
    """Give the name of the file of a rank's profile, as the engine's release calls it."""
    place = scene.places[rank]
    if scene.engine == "sglang":
        axes = f"-TP-{place.tp}" + (f"-DP-{place.dp}" if scene.dp > 1 else "")
        return f"{end_ns / 1e9:.6f}{axes}{f'-PP-{place.pp}' if scene.pp > 1 else ''}.trace.json"
    if scene.engine == "trtllm":
        return f"trace-rank-{rank}{part}.json"
    host = scene.hosts[place.host].name
    if number(scene.engine_version) >= _PLACED:
        where = f"dp{place.dp}_pp{place.pp}_tp{place.tp}_ep{place.ep}_rank{rank}"
        return f"{where}.{end_ns}.pt.trace.json"
    return f"{host}_{pid}.{end_ns}.pt.trace.json"
