"""What is run for a command: the profiler in its place, an environment, and names of each rank."""

import shlex
import stat
from pathlib import Path

import pytest

from teller.errors import BadUsage
from teller.lab.collect.command import Plan, Wanted, as_kubernetes, as_shell, compose
from teller.lab.collect.launchers import launched

OUT = Path("/runs/a")
NSYS = (
    "nsys profile --trace=cuda,nvtx,osrt --cuda-graph-trace=graph --sample=none --cpuctxsw=none "
    "--trace-fork-before-exec=true --force-overwrite=true"
)


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with Nsight Systems, as far as PATH tells."""
    made = tmp_path / "nsys"
    made.write_text("#!/bin/sh\n")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))


def planned(command: str, **said: object) -> Plan:
    """Give the plan of a command line."""
    return compose(Wanted(OUT, tuple(shlex.split(command)), **said))  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("vllm serve M -tp 4", f"{NSYS} --output=/runs/a/%h vllm serve M -tp 4"),
        ("torchrun --nproc-per-node 4 --nnodes=2 serve.py --port 1",
         "torchrun --nproc-per-node 4 --nnodes=2 --no-python "
         f"{NSYS} '--output=/runs/a/rank%q{{RANK}}' python serve.py --port 1"),
        ("torchrun --standalone --nproc_per_node=2 -m pkg.serve x",
         "torchrun --standalone --nproc_per_node=2 --no-python "
         f"{NSYS} '--output=/runs/a/rank%q{{RANK}}' python -m pkg.serve x"),
        ("python3 -m torch.distributed.run --nproc-per-node=2 --no-python serve",
         "python3 -m torch.distributed.run --nproc-per-node=2 --no-python "
         f"{NSYS} '--output=/runs/a/rank%q{{RANK}}' serve"),
        ("mpirun -np 8 --mca btl self,tcp -x PATH -H a:4,b:4 ./serve -n 3",
         "mpirun -np 8 --mca btl self,tcp -x PATH -H a:4,b:4 "
         f"{NSYS} '--output=/runs/a/rank%q{{OMPI_COMM_WORLD_RANK}}' ./serve -n 3"),
        ("srun -N 2 --ntasks=16 --gres gpu:8 --exclusive trtllm-serve M",
         "srun -N 2 --ntasks=16 --gres gpu:8 --exclusive "
         f"{NSYS} '--output=/runs/a/rank%q{{SLURM_PROCID}}' trtllm-serve M"),
    ],
)  # fmt: skip
def test_nsys_stands_before_the_program_that_runs_on_each_rank(
    nsys: None, command: str, expected: str
) -> None:
    assert shlex.join(planned(command).words) == expected


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("vllm serve M --tensor-parallel-size 4 --pipeline-parallel-size=2 -dp 2", 16),
        ("python -m sglang.launch_server --tp 8 --dp 8", 8),  # attention over the same ranks
        ("torchrun --nnodes 2 --nproc-per-node 8 x.py", 16),
        ("mpiexec -n 4 x", 4), ("srun --ntasks 3 x", 3), ("python x.py --tp 8", None),
    ],
)  # fmt: skip
def test_the_ranks_that_there_will_be_are_read_off_the_command(
    command: str, ranks: int | None
) -> None:
    assert launched(shlex.split(command)).ranks == ranks


def test_logs_and_dumps_of_communication_are_asked_for_by_environment(nsys: None) -> None:
    said = planned("vllm serve M", nccl_log=True, flight_recorder=True).environment
    assert said["NCCL_DEBUG_FILE"] == "/runs/a/nccl.%h.%p.log"
    assert said["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] == said["TORCH_FR_DUMP_TEMP_FILE"]
    assert said["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
    assert said["VLLM_NVTX_SCOPES_FOR_PROFILING"] == "1"
    assert (
        "VLLM_NVTX_SCOPES_FOR_PROFILING" not in planned("vllm serve M", annotate=False).environment
    )
    assert not planned("./own-server").environment


def test_a_window_lets_the_service_go_on(nsys: None) -> None:
    words = planned("vllm serve M", delay_s=60, seconds=5).words
    assert {"--delay=60", "--duration=5", "--kill=none"} <= set(words)


def test_a_dry_run_is_a_script_that_a_shell_takes(nsys: None) -> None:
    plan = planned("srun -n 2 serve 'a b'", nccl_log=True)
    lines = as_shell(plan, OUT).splitlines()
    assert "export NCCL_DEBUG=INFO" in lines
    assert any(shlex.split(line, comments=True) == list(plan.words) for line in lines)
    assert any("nsys export --type=sqlite" in line for line in lines)
    assert lines[-1] == "teller collect finish /runs/a"
    assert '  - name: NCCL_DEBUG\n    value: "INFO"\n' in as_kubernetes(plan)


def test_without_nsys_it_is_said_what_is_used_instead(
    recorder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    plan = planned("serve")
    assert plan.tool == "nvtx"
    assert "nsys is not on PATH" in plan.notes[0]
    assert plan.environment["NVTX_INJECTION64_PATH"] == str(recorder)
    assert plan.words == ("serve",)
    with pytest.raises(BadUsage, match="nsys is not on PATH: install"):
        planned("serve", tool="nsys")
    with pytest.raises(BadUsage, match="no program behind its options"):
        planned("mpirun -n 4")


def test_without_a_compiler_it_is_said_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert planned("serve").tool == "kineto"
    with pytest.raises(BadUsage, match="apt-get install gcc"):
        planned("serve", tool="nvtx")
