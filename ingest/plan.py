"""Run independent tasks here, in threads or in processes, on Dask."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

SCHEDULERS = ("here", "threads", "processes")


def compute(tasks: Sequence[Callable[[], T]], scheduler: str, step: Callable[[], None]) -> list[T]:
    """Give the results in order; `step` is called as each task ends."""
    if scheduler == "here" or len(tasks) < 2:
        return [_stepped(task, step) for task in tasks]
    import dask
    from dask.callbacks import Callback

    class Told(Callback):  # type: ignore[misc] # its types are partial
        def _posttask(self, *_: object) -> None:
            step()

    with Told():
        results = dask.compute(
            *[dask.delayed(_call)(task) for task in tasks],
            scheduler=scheduler,
            optimize_graph=False,
        )
    return list(results)


def _stepped(task: Callable[[], T], step: Callable[[], None]) -> T:
    result = task()
    step()
    return result


def _call(task: Callable[[], T]) -> T:
    return task()
