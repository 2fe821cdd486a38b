"""Run independent tasks: here, in threads or processes, or on the workers of a Dask cluster."""

from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from teller.errors import BadUsage, NoCluster
from teller.ingest.source import Remark
from teller.ingest.task import FileResult, Task

LOCAL: Final = ("threads", "processes", "here")
CLUSTER: Final = ("tcp://", "tls://", "ws://", "wss://")


@dataclass(frozen=True, slots=True)
class Done:
    """The results in the order of the tasks, and what is to be said of where they were made."""

    results: list[FileResult]
    remarks: tuple[Remark, ...] = ()


def check(scheduler: str) -> None:
    """Refuse what is no scheduler."""
    if scheduler not in LOCAL and not scheduler.startswith(CLUSTER):
        raise BadUsage(
            f"--scheduler {scheduler}: no such scheduler; give {', '.join(LOCAL)}, or the address "
            "of a Dask scheduler: tcp://HOST:8786"
        )


def compute(tasks: Sequence[Task], folder: Path, scheduler: str, step: Callable[[], None]) -> Done:
    """Do the tasks, which put files into the folder; `step` is called as each one ends."""
    check(scheduler)
    if tasks and scheduler.startswith(CLUSTER):
        try:
            from teller.ingest import cluster
        except ModuleNotFoundError as err:
            raise BadUsage(
                f"--scheduler {scheduler}: {err.name} is not installed; "
                "pip install 'teller-rca[cluster]'"
            ) from err
        return cluster.compute(tasks, folder, scheduler, step)
    if scheduler == "here" or len(tasks) < 2:
        return Done([_stepped(task, folder, step) for task in tasks])
    return Done(_dask(tasks, folder, scheduler, step))


def _dask(
    tasks: Sequence[Task], folder: Path, scheduler: str, step: Callable[[], None]
) -> list[FileResult]:
    import dask
    from dask.callbacks import Callback

    class Told(Callback):  # type: ignore[misc] # its types are partial
        def _posttask(self, *_: object) -> None:
            step()

    calls = [dask.delayed(_call)(task, folder) for task in tasks]
    try:
        with Told():
            return list(dask.compute(*calls, scheduler=scheduler, optimize_graph=False))
    except BrokenProcessPool as err:
        raise NoCluster(
            "a process that read a file was killed, mostly for want of memory; "
            "--scheduler here reads one file after another"
        ) from err


def _stepped(task: Task, folder: Path, step: Callable[[], None]) -> FileResult:
    result = task(folder)
    step()
    return result


def _call(task: Task, folder: Path) -> FileResult:
    return task(folder)
