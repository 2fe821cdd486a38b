"""A look into files without storing anything: what is read, what is not, and what is missing."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from teller import pipeline
from teller.graph.finding import RunSummary
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.store import Store
from teller.graph.survey import FileSeen, Foreign, Layer, Survey, files_of
from teller.graph.workspace import Workspace
from teller.ingest import foreign
from teller.models.case import Case
from teller.models.diagnose import CAPTURED, CAPTURES, LAYERS
from teller.pipeline import Ingested, Options, Progress

__all__ = ["survey"]

# How each layer of `teller.models.diagnose` is recorded, by the first word of its name.
RECORD: Final = {
    "captures": "a few steps on every rank: nsys profile --trace=cuda,nvtx, then nsys export "
    "--type sqlite; or torch.profiler (vLLM: VLLM_TORCH_PROFILER_DIR, SGLang: "
    "SGLANG_TORCH_PROFILER_DIR)",
    "service": "keep the engine's output with its times: vllm serve … 2>&1 | tee serve.log",
    "communication": "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH "
    "NCCL_DEBUG_FILE=nccl.%h.%p.log; for hangs TORCH_NCCL_TRACE_BUFFER_SIZE=2000 "
    "TORCH_NCCL_DUMP_ON_TIMEOUT=1",
    "device": "nvidia-smi --query-gpu=timestamp,index,clocks.sm,power.draw,temperature.gpu,"
    "clocks_event_reasons.active --format=csv -l 1 > gpu.HOST.csv",
}


def survey(paths: Sequence[Path], options: Options, progress: Progress) -> Survey:
    """Read all that the paths hold into a place that is gone afterwards, and say what it is."""
    with tempfile.TemporaryDirectory(prefix="teller-doctor-") as scratch:
        workspace = Workspace(Path(scratch), project=project, rest=rest)
        got = pipeline.ingest(paths, workspace, options, progress)
        files: list[FileSeen] = []
        missing: list[Layer] = []
        if got.runs:
            with workspace.reader() as store:
                for run in got.runs:
                    files += files_of(store, run)
                    missing += _missing(store, run)
    files += _unused(got)
    others = tuple(Foreign(kind, names) for kind, names in foreign.kinds(paths, got.others).items())
    return Survey(got.runs, tuple(files), got.inputs, got.data_quality, others, tuple(missing))


def _unused(got: Ingested) -> Iterator[FileSeen]:
    """Give the files that a reader takes where there is no run at all."""
    if not got.runs:
        for one in got.inputs:
            yield FileSeen(
                one.file, one.kind, "", one.rank, "", one.events, None, None, 0, "", 0, one.note
            )


def _missing(store: Store, run: RunSummary) -> Iterator[Layer]:
    """Give the layers that a run lacks."""
    case = Case(store, run.id)
    for name, *asked in ((CAPTURES, CAPTURED), *LAYERS):
        if not any(case.rows(text, {}) for text in asked):
            yield Layer(run.name, name, RECORD[name.split()[0]])
