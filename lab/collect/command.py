"""What to run so that a command is recorded: its words, its environment, and why just these."""

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from teller.errors import BadUsage
from teller.lab.collect import build
from teller.lab.collect.launchers import Launched, engine, launched

Tool = Literal["auto", "nsys", "kineto", "nvtx"]

# Device activity alone: sampling and context switches are what makes nsys slow, and are not read.
_NSYS: Final = (
    "--sample=none", "--cpuctxsw=none", "--trace-fork-before-exec=true", "--force-overwrite=true",
)  # fmt: skip
EXPORT: Final = ("export", "--type=sqlite", "--include-json=true", "--force-overwrite=true")
# What engines need so that they annotate their steps.
_ANNOTATES: Final[Mapping[str, Mapping[str, str]]] = {
    "vllm": {"VLLM_NVTX_SCOPES_FOR_PROFILING": "1"},
    "sglang": {"SGLANG_ENABLE_NVTX_SCHEDULER": "1", "SGLANG_ENABLE_NVTX_OPERATIONS": "1"},
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asks for."""

    out: Path
    command: tuple[str, ...]
    tool: Tool = "auto"
    nccl_log: bool = False
    flight_recorder: bool = False
    annotate: bool = True
    graph_nodes: bool = False  # kernels inside CUDA graphs, at a price
    delay_s: float = 0
    seconds: float | None = None
    ranks: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run, for a shell or for `teller.lab.collect.launch`."""

    tool: Literal["nsys", "kineto", "nvtx"]
    words: tuple[str, ...]
    environment: Mapping[str, str]  # to be added
    after: tuple[tuple[str, ...], ...] = ()  # commands that make the files readable
    notes: tuple[str, ...] = ()
    engine: str = ""
    ranks: int | None = None
    window: tuple[float, float] = field(default=(0, 0))  # of Kineto: delay and length in s


def compose(wanted: Wanted) -> Plan:
    """Give what records a command here.

    Raises `BadUsage` where the tool that was asked for is not there.
    """
    if not wanted.command:
        raise BadUsage("what is to be recorded? teller collect --out DIR -- COMMAND…")
    apart = launched(wanted.command)
    if not apart.program:
        raise BadUsage(f"{wanted.command[0]}: no program behind its options; is one misspelt?")
    tool, notes = _tool(wanted.tool)
    name = engine(wanted.command)
    environment = dict(_environment(wanted, name))
    if name in _ANNOTATES and wanted.annotate and tool != "kineto":
        environment |= _ANNOTATES[name]
        notes = (*notes, f"{name} is asked to annotate its steps (--no-annotate leaves that out)")
    words: tuple[str, ...] = wanted.command
    after: tuple[tuple[str, ...], ...] = ()
    if tool == "nsys":
        words = (*apart.head, *_nsys(wanted, apart), *apart.program)
        report = f"{wanted.out}/{_report(apart)}"
        after = (("nsys", *EXPORT, f"--output={report}.sqlite", f"{report}.nsys-rep"),)
    elif tool == "nvtx":
        environment |= {"NVTX_INJECTION64_PATH": str(build.recorder()),
                        "TELLER_NVTX_DIR": str(wanted.out)}  # fmt: skip
    else:
        environment["KINETO_USE_DAEMON"] = "1"
    return Plan(
        tool, words, environment, after, notes, name, wanted.ranks or apart.ranks,
        (wanted.delay_s, wanted.seconds or 0),
    )  # fmt: skip


def _tool(asked: Tool) -> tuple[Literal["nsys", "kineto", "nvtx"], tuple[str, ...]]:
    """Give the tool, and why it is this one."""
    has_nsys = shutil.which("nsys") is not None
    if asked == "nsys" and not has_nsys:
        raise BadUsage(
            "nsys is not on PATH: install Nsight Systems (apt-get install nsight-systems-cli from "
            "NVIDIA's repository), or record with --tool nvtx or kineto"
        )
    if asked != "auto":
        return asked, ()
    if has_nsys:
        return "nsys", ("nsys is here: CUDA and NVTX are recorded by Nsight Systems",)
    if not (reason := build.why_not()):
        return "nvtx", (
            "nsys is not on PATH: NVTX ranges are recorded by TELLER's own recorder; work of GPUs "
            "is not, for that install Nsight Systems or use --tool kineto",
        )
    return "kineto", (
        f"nsys is not on PATH, and {reason}: windows of Kineto are asked of PyTorch processes",
    )


def _nsys(wanted: Wanted, apart: Launched) -> Iterator[str]:
    yield from ("nsys", "profile", "--trace=cuda,nvtx,osrt")
    yield f"--cuda-graph-trace={'node' if wanted.graph_nodes else 'graph'}"
    yield from _NSYS
    if wanted.delay_s:
        yield f"--delay={wanted.delay_s:g}"
    if wanted.seconds:
        yield f"--duration={wanted.seconds:g}"
        yield "--kill=none"  # the service goes on when the window is over
    yield f"--output={wanted.out}/{_report(apart)}"


def _report(apart: Launched) -> str:
    """Give the name of a report: of a rank where a launcher starts each, else of a host."""
    return f"rank%q{{{apart.rank_variable}}}" if apart.rank_variable else "%h"


def _environment(wanted: Wanted, name: str) -> Iterator[tuple[str, str]]:
    out = wanted.out
    if wanted.nccl_log:
        yield "NCCL_DEBUG", "INFO"
        yield "NCCL_DEBUG_SUBSYS", "INIT,NET,GRAPH,ENV,TUNING"
        yield "NCCL_DEBUG_FILE", f"{out}/nccl.%h.%p.log"
        yield "NCCL_DEBUG_TIMESTAMP_LEVELS", "WARN,INFO"  # NCCL 2.26; earlier ones ignore it
    if wanted.flight_recorder:
        dump = f"{out}/nccl_trace_rank_"
        for before, now, value in (
            ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE", "2000"),
            ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE", dump),
        ):
            yield before, value
            yield now, value
        yield "TORCH_NCCL_DUMP_ON_TIMEOUT", "1"
    if name == "vllm":
        yield "VLLM_TORCH_PROFILER_DIR", str(out)  # before 0.13; later ones: --profiler-config
    if name == "sglang":
        yield "SGLANG_TORCH_PROFILER_DIR", str(out)


def as_shell(plan: Plan, out: Path) -> str:
    """Give a plan as lines for a shell, a Slurm script or a container's entry."""
    lines = [f"# {note}" for note in plan.notes]
    lines.append(f"mkdir -p {shlex.quote(str(out))}")
    lines += [f"export {k}={shlex.quote(v)}" for k, v in plan.environment.items()]
    lines.append(shlex.join(plan.words))
    lines += [shlex.join(words) for words in _each_report(plan, out)]
    if plan.tool == "kineto":
        lines.insert(
            -1, "# and beside it, on each node: teller collect --attach daemon --seconds 1"
        )
    lines.append(f"teller collect finish {shlex.quote(str(out))}")
    return "\n".join(lines) + "\n"


def _each_report(plan: Plan, out: Path) -> Iterator[Sequence[str]]:
    """Give the commands for afterwards, in a form that needs no name of a report."""
    if plan.after:
        export = f'nsys {" ".join(EXPORT)} --output="${{r%.nsys-rep}}.sqlite" "$r"'
        yield ("sh", "-c", f"for r in {shlex.quote(str(out))}/*.nsys-rep; do {export}; done")


def as_kubernetes(plan: Plan) -> str:
    """Give a plan as the part of a container in a manifest: command and environment."""
    import json

    lines = ["command: " + json.dumps(list(plan.words)), "env:"]
    for name, value in plan.environment.items():
        lines += [f"  - name: {name}", f"    value: {json.dumps(value)}"]
    return "\n".join(lines) + "\n"
