"""A cluster gives what this machine gives, also where workers are lost or see other files."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from teller import pipeline
from teller.errors import BadUsage, NoCluster
from teller.graph.archive import Archive
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent

Cluster = Callable[..., str]
TELLER = [sys.executable, "-c", "from teller.cli import run; run()"]

# reads nothing: says that it has begun, and waits for what never comes
STUCK = """
import os
from teller.ingest.task import Task
def stuck(self, folder):
    with open({begun!r}, "w") as file:
        file.write(str(os.getpid()))
    open({never!r}).read()
Task.__call__ = stuck
"""
ELSEWHERE = "from teller.ingest import cluster\ncluster._shares = lambda folder, word: False\n"
BLIND = "from teller.ingest.task import Task\nTask.can_be_done = lambda self: False\n"
FATAL = "import os\nfrom teller.ingest.task import Task\nTask.__call__ = lambda *_: os._exit(9)\n"
OLD = "import teller\nteller.__version__ = '0.0.1'\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo run."""
    folder = tmp_path_factory.mktemp("run") / "run"
    with as_file(files("teller").joinpath("demo/run")) as demo:
        shutil.copytree(demo, folder)
    return folder


def kept(folder: Path) -> dict[str, pa.Table | bytes]:
    """Give every file of the archived run, tables as tables."""
    archive = Archive(folder / "archive")
    [entry] = archive.runs()
    top = archive.folder_of(entry.run_id)
    paths = sorted(p for p in top.rglob("*") if p.is_file())
    assert len(paths) > 20
    return {
        str(p.relative_to(top)): pq.read_table(p) if p.suffix == ".parquet" else p.read_bytes()
        for p in paths
    }


def ingest(run: Path, folder: Path, scheduler: str) -> pipeline.Ingested:
    workspace = Workspace(folder, project=project, rest=rest)
    return pipeline.ingest([run], workspace, Options(scheduler=scheduler), Silent())


@pytest.fixture(scope="module")
def here(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table | bytes]:
    folder = tmp_path_factory.mktemp("here")
    ingest(run, folder, "here")
    return kept(folder)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_run_is_the_same_wherever_it_is_read(
    run: Path, here: dict[str, pa.Table | bytes], tmp_path: Path, scheduler: str
) -> None:
    ingest(run, tmp_path, scheduler)
    assert kept(tmp_path) == here


def test_a_killed_worker_changes_nothing(
    run: Path, here: dict[str, pa.Table | bytes], tmp_path: Path, cluster: Cluster
) -> None:
    begun, never = tmp_path / "begun", tmp_path / "never"
    os.mkfifo(begun)
    os.mkfifo(never)
    at = cluster(STUCK.format(begun=str(begun), never=str(never)), "")
    words = ["ingest", run.name, "--workspace", str(tmp_path / "w"), "--scheduler", at, "--quiet"]
    with subprocess.Popen(
        [*TELLER, *words], cwd=run.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as teller:
        os.kill(int(begun.read_text()), signal.SIGKILL)  # in the middle of a file
        errors = teller.communicate()[1]
    assert (teller.returncode, errors) == (0, b"")
    assert kept(tmp_path / "w") == here
    assert not list((tmp_path / "w" / "archive" / "staging").iterdir())


def test_workers_without_the_folder_send_their_files(
    run: Path, here: dict[str, pa.Table | bytes], tmp_path: Path, cluster: Cluster
) -> None:
    ingest(run, tmp_path / "w", cluster(ELSEWHERE, ""))
    assert kept(tmp_path / "w") == here


def test_what_workers_do_not_see_is_read_here_and_said_once(
    run: Path, here: dict[str, pa.Table | bytes], tmp_path: Path, cluster: Cluster
) -> None:
    got = ingest(run, tmp_path / "w", cluster(BLIND))
    assert kept(tmp_path / "w") == here
    [said] = [q for q in got.data_quality if "not seen" in q.what]
    assert said.file == "client.jsonl.gz and 7 more files"
    assert str(run) in said.do


def test_a_file_that_ends_every_worker_is_named_and_left_out(
    run: Path, tmp_path: Path, cluster: Cluster
) -> None:
    one = tmp_path / "one"
    one.mkdir()
    shutil.copy(run / "rank0.nsys.sqlite.gz", one)
    got = ingest(one, tmp_path / "w", cluster(*[FATAL] * 4))
    assert not got.runs
    [said] = got.data_quality
    assert (said.file, said.what) == (
        "rank0.nsys.sqlite.gz",
        "ended 4 workers that were reading it, so it is left out",
    )


def test_a_cluster_that_cannot_be_used_is_named(
    run: Path, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from teller.ingest import cluster as ours

    with pytest.raises(NoCluster, match=r"worker tcp://.* has other versions: teller 0\.0\.1"):
        ingest(run, tmp_path / "w", cluster(OLD))
    monkeypatch.setattr(ours, "CONNECT_S", 0.2)
    with pytest.raises(NoCluster, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        ingest(run, tmp_path / "w", "tcp://127.0.0.1:1")
    with pytest.raises(BadUsage, match="--scheduler slurm: no such scheduler; give threads"):
        ingest(run, tmp_path / "w", "slurm")
    assert not Archive(tmp_path / "w" / "archive").runs()
