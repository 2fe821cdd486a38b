"""Run tasks on the workers of a Dask cluster, who may see other files than this machine does.

A task of a worker that is lost is done again by another. A worker that sees the folder for results
writes into it; any other sends its files back with the result, and they are written here, one task
at a time. A file that a worker does not see is read here.
"""

import logging
import os
import platform
import secrets
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import distributed

import teller
from teller.errors import NoCluster
from teller.ingest import plan
from teller.ingest.source import Remark
from teller.ingest.task import FileResult, Task

CONNECT_S: Final = 10.0
LOOK_S: Final = 5.0  # between looks whether any worker is left
DESERTED: Final = 12  # looks without a worker, then nobody will come
RETRIES: Final = 2  # of a task that fails by itself; lost workers are counted by the scheduler
PROBE: Final = "seen-by-workers"


@dataclass(frozen=True, slots=True)
class Sent:
    """What a worker sends; no result where it does not see the file."""

    result: FileResult | None
    worker: str = ""
    files: tuple[tuple[str, bytes], ...] = ()


def compute(
    tasks: Sequence[Task], folder: Path, address: str, step: Callable[[], None]
) -> plan.Done:
    """Do the tasks on the cluster; raises NoCluster where there is none that can."""
    word = secrets.token_hex(8)
    (folder / PROBE).write_text(word)
    results: dict[int, FileResult] = {}
    blind: dict[int, str] = {}  # tasks that a worker could not do, and which
    with _client(address) as client:
        _must_be_alike(client, address)
        futures = {
            client.submit(
                _on_worker, task, folder, word,
                key=f"read-{word}-{n}", retries=RETRIES, pure=False,
            ): n
            for n, task in enumerate(tasks)
        }  # fmt: skip
        for future in _as_they_end(client, list(futures), address):
            n = futures.pop(future)
            sent = _sent(future, tasks[n], address)
            del future  # lets the worker forget the result
            if sent.result is None:
                blind[n] = sent.worker
                continue
            results[n] = _put_down(sent, folder)
            step()
    order = sorted(blind)
    here = plan.compute([tasks[n] for n in order], folder, "threads", step)
    results |= zip(order, here.results, strict=True)
    return plan.Done([results[n] for n in range(len(tasks))], _unseen(tasks, blind))


def _on_worker(task: Task, folder: Path, word: str) -> Sent:
    """Do one task on a worker. Each try has a folder of its own: a lost worker may live on."""
    name = platform.node()
    if not task.can_be_done():
        return Sent(None, name)
    if _shares(folder, word):
        own = folder / secrets.token_hex(8)
        own.mkdir()
        return Sent(task(own), name)
    with tempfile.TemporaryDirectory(prefix="teller-worker-") as scratch:
        result = task(Path(scratch))
        files = tuple((s.spans.name, s.spans.read_bytes()) for s in result.shaped)
        return Sent(result, name, files)


def _shares(folder: Path, word: str) -> bool:
    """Tell whether this is the caller's folder, and files of ours can be moved by the caller."""
    try:
        mine = (folder / PROBE).stat().st_uid == os.geteuid()
        return mine and (folder / PROBE).read_text() == word
    except OSError:
        return False


def _put_down(sent: Sent, folder: Path) -> FileResult:
    result = sent.result or FileResult()
    if not sent.files:
        return result
    for name, content in sent.files:
        (folder / name).write_bytes(content)
    return result.moved(folder)


def _unseen(tasks: Sequence[Task], blind: dict[int, str]) -> tuple[Remark, ...]:
    """Say once which workers lack which files."""
    if not blind:
        return ()
    first = tasks[min(blind)].candidate
    more = f" and {len(blind) - 1} more files" if len(blind) > 1 else ""
    what = f"is not seen by workers ({', '.join(sorted(set(blind.values())))}); it was read here"
    remedy = f"to share the work, let workers see the files under the same path: {first.path}"
    return (Remark(f"{first.name}{more}", "", what, remedy),)


@contextmanager
def _client(address: str) -> Iterator["distributed.Client"]:
    """Give a connection; whatever goes wrong with it is said in our words."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it repeats what we say
    for name in ("client", "comm", "core", "utils"):
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared by ourselves
            client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as err:
        raise NoCluster(
            f"no Dask scheduler answers at {address}; start one: dask scheduler --port 8786, "
            f"and workers: dask worker {address}"
        ) from err
    try:
        with client.as_current():
            yield client
    finally:
        client.close(timeout=CONNECT_S)


def _versions() -> dict[str, str]:
    python = ".".join(platform.python_version_tuple()[:2])
    # a package that differs is named; what it was made of does not matter
    return {
        "python": python, "distributed": distributed.__version__, "teller": teller.__version__,
    }  # fmt: skip


def _must_be_alike(client: "distributed.Client", address: str) -> None:
    """Refuse a cluster without workers, and workers that would read files otherwise."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
        told: dict[str, Any] = client.run(_versions, on_error="return")
    except (TimeoutError, OSError) as err:
        raise NoCluster(
            f"the Dask scheduler at {address} has no workers; start some: dask worker {address}"
        ) from err
    mine = _versions()
    for worker, theirs in sorted(told.items()):
        if not isinstance(theirs, dict):
            raise NoCluster(
                f"worker {worker} cannot run teller ({theirs}); install the same release there: "
                "pip install 'teller-rca[cluster]'"
            )
        apart = [f"{n} {theirs.get(n)} (here {mine[n]})" for n in mine if theirs.get(n) != mine[n]]
        if apart:
            raise NoCluster(
                f"worker {worker} has other versions: {', '.join(apart)}; install the same ones"
            )


def _as_they_end(
    client: "distributed.Client", futures: list["distributed.Future"], address: str
) -> Iterator["distributed.Future"]:
    """Give each future as it ends, unless all workers have gone and none comes."""
    deserted = 0
    while futures:
        try:
            done = distributed.wait(futures, timeout=LOOK_S, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            deserted = 0 if client.status == "running" and client.nthreads() else deserted + 1
            if deserted >= DESERTED:
                raise NoCluster(
                    f"all workers of {address} are gone; start some and do the same again"
                ) from None
            continue
        deserted = 0
        futures = [f for f in futures if f not in done]
        while done:
            yield done.pop()


def _sent(future: "distributed.Future", task: Task, address: str) -> Sent:
    """Give what a worker sent; a file that ends each worker that reads it is left out."""
    try:
        sent: Sent = future.result(timeout=None)
        return sent
    except distributed.KilledWorker as err:
        tries = getattr(err, "allowed_failures", 0) + 1
        what = f"ended {tries} workers that were reading it, so it is left out"
        remedy = "give workers more memory (dask worker --memory-limit), or ingest it here"
        return Sent(task.lost(what, remedy))
    except (distributed.CancelledError, distributed.comm.CommClosedError) as err:
        raise NoCluster(
            f"the Dask scheduler at {address} went away; start it and do the same again"
        ) from err
