"""What starts a service: a launcher with its options, and the program that it starts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

# Options of a launcher whose value is the next word, or the next two.
_MPI: Final = frozenset((
    "-n", "-np", "-c", "-N", "-ppn", "-H", "-f", "--host", "-host", "--hostfile", "-hostfile",
    "-machinefile", "--machinefile", "-x", "-wdir", "--wdir", "-wd", "--map-by", "-map-by",
    "--bind-to", "-bind-to", "--rank-by", "-rank-by", "--npernode", "-npernode", "--prefix",
    "--output-filename", "--timeout", "-genvlist", "-envlist", "--np", "--path", "-hosts",
))  # fmt: skip
_MPI_TWO: Final = frozenset(("--mca", "-mca", "-env", "-genv", "--prtemca", "--pmixmca"))
_SRUN: Final = frozenset((
    "-A", "-c", "-C", "-D", "-e", "-G", "-J", "-m", "-n", "-N", "-o", "-p", "-q", "-t", "-w", "-x",
    "--account", "--chdir", "--container-image", "--container-mounts", "--container-name",
    "--container-workdir", "--cpu-bind", "--cpus-per-task", "--constraint", "--distribution",
    "--error", "--exclude", "--export", "--gpu-bind", "--gpus", "--gpus-per-node",
    "--gpus-per-task", "--gres", "--job-name", "--jobid", "--mem", "--mpi", "--network",
    "--nodelist", "--nodes", "--ntasks", "--ntasks-per-node", "--output", "--partition", "--qos",
    "--reservation", "--time",
))  # fmt: skip
_TORCHRUN_FLAGS: Final = frozenset((
    "--standalone", "--no-python", "--no_python", "--run-path", "--run_path", "-m", "--module",
))  # fmt: skip
_PYTHON: Final = re.compile(r"^(?:python|pypy)[\d.]*$")
_NUMBER: Final = re.compile(r"^\d{1,6}$")


@dataclass(frozen=True, slots=True)
class Launched:
    """A command taken apart: `head` starts `program` once for each rank."""

    kind: str  # torchrun, mpirun, srun; "" where the program starts its workers itself
    head: tuple[str, ...]
    program: tuple[str, ...]
    rank_variable: str = ""  # set in each rank's environment by the launcher
    ranks: int | None = None  # as far as the command says it


def launched(command: Sequence[str]) -> Launched:
    """Take a command apart; one that is no launcher of ours is all program."""
    name = PurePath(command[0]).name if command else ""
    if name in ("mpirun", "mpiexec", "orterun", "prterun"):
        at = _program_at(command, 1, _MPI, _MPI_TWO)
        said = _number(command[1:at], "-n", "-np", "--np", "-c")
        variable = "PMI_RANK" if {"-ppn", "-genv", "-env"} & set(command[:at]) else ""
        return Launched("mpirun", tuple(command[:at]), tuple(command[at:]),
                        variable or "OMPI_COMM_WORLD_RANK", said)  # fmt: skip
    if name == "srun":
        at = _program_at(command, 1, _SRUN)
        said = _number(command[1:at], "-n", "--ntasks")
        return Launched("srun", tuple(command[:at]), tuple(command[at:]), "SLURM_PROCID", said)
    start = _torchrun_at(command)
    return _torchrun(command, start) if start else Launched("", (), tuple(command), "",
                                                            _own_ranks(command))  # fmt: skip


def _torchrun_at(command: Sequence[str]) -> int:
    """Give where the options of torchrun begin, 0 where it is not torchrun."""
    if command and PurePath(command[0]).name == "torchrun":
        return 1
    modules = ("torch.distributed.run", "torch.distributed.launch")
    is_module = len(command) > 2 and command[1] == "-m" and command[2] in modules
    return 3 if is_module and _PYTHON.match(PurePath(command[0]).name) else 0


def _torchrun(command: Sequence[str], start: int) -> Launched:
    """Make torchrun start its program as it stands, so that a profiler can stand before it."""
    at = start
    python: tuple[str, ...] = ("python",)
    while at < len(command) and command[at].startswith("-"):
        word = command[at]
        if word in ("-m", "--module"):
            python = ("python", "-m")
        elif word in ("--no-python", "--no_python"):
            python = ()
        at += 1 if word in _TORCHRUN_FLAGS or "=" in word else 2
    options = [w for w in command[start:at] if w not in ("-m", "--module", "--no_python")]
    head = (*command[:start], *options, *(() if "--no-python" in options else ("--no-python",)))
    nodes = _number(options, "--nnodes") or 1
    each = _number(options, "--nproc-per-node", "--nproc_per_node")
    return Launched("torchrun", head, (*python, *command[at:]), "RANK", each and each * nodes)


def _program_at(
    command: Sequence[str], at: int, one: frozenset[str], two: frozenset[str] = frozenset()
) -> int:
    while at < len(command) and command[at].startswith("-"):
        at += 3 if command[at] in two else 2 if command[at] in one else 1
    return min(at, len(command))


def _number(words: Sequence[str], *options: str) -> int | None:
    """Give the number behind one of the options, as `--x 4` or `--x=4`."""
    for place, word in enumerate(words):
        name, _, value = word.partition("=")
        value = value or (words[place + 1] if place + 1 < len(words) else "")
        if name in options and _NUMBER.match(value):
            return int(value)
    return None


def _own_ranks(command: Sequence[str]) -> int | None:
    """Give the ranks of an engine that starts its workers itself, None where it is none we know."""
    if not engine(command):
        return None
    sizes = (
        _number(command, "--tensor-parallel-size", "-tp", "--tp", "--tp-size", "--tp_size"),
        _number(command, "--pipeline-parallel-size", "-pp", "--pp", "--pp-size", "--pp_size"),
        _number(command, "--data-parallel-size", "-dp") if engine(command) == "vllm" else None,
    )
    ranks = 1
    for size in sizes:
        ranks *= size or 1
    return ranks


def engine(command: Sequence[str]) -> str:
    """Give the engine that a command runs, in lower case; empty where it is none we know."""
    text = " ".join(command[:64]).lower()
    known = {
        "vllm": "vllm",
        "sglang": "sglang",
        "trtllm": "tensorrt-llm",
        "tensorrt_llm": "tensorrt-llm",
    }
    return next((name for word, name in known.items() if word in text), "")
