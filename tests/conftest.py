"""What tests share: the folder of public trace files that lies beside the checkout, and Neo4j."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from teller.graph import migrate
from teller.graph.neo4j import Neo4jStore, connect
from teller.graph.neo4j_address import Address, address

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER = ROOT / "tools" / "neo4j" / "server.py"
URI = "TELLER_NEO4J_URI"
# a server for an hour: its own compiler and collector would cost more than they save
SMALL = ("--heap=768m", "--pages=128m", "--jvm=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
WIPE = "MATCH (n) WHERE NOT n:__Neo4jMigration CALL (n) { DETACH DELETE n } IN TRANSACTIONS"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Give the folder of reference traces, or skip: a clone alone does not have it."""
    folder = Path(os.environ.get("TELLER_SHARED", ROOT.parent / "shared")).resolve()
    if not (folder / "traces").is_dir():
        pytest.skip(f"no reference traces in {folder}; TELLER_SHARED names another folder")
    return folder


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Give what starts a scheduler with workers, one for each text of Python that it runs first."""
    started: list[subprocess.Popen[str]] = []

    def start(*hooks: str) -> str:
        words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
        started.append(_dask(words, tmp_path))
        assert started[0].stderr
        said = (re.search(r"Scheduler at:\s+(tcp://\S+)", line) for line in started[0].stderr)
        at = next(found[1] for found in said if found)
        for number, hook in enumerate(hooks):
            file = tmp_path / f"hook{number}.py"
            file.write_text(hook)
            words = ["worker", at, "--host", "127.0.0.1", "--no-dashboard", "--no-nanny",
                     "--nthreads", "1", "--preload", str(file), "--local-directory", str(tmp_path),
                     "--name", str(number)]  # fmt: skip
            started.append(_dask(words, tmp_path, errors=subprocess.DEVNULL))
        import distributed

        with distributed.Client(at, set_as_default=False) as client:
            client.wait_for_workers(len(hooks), timeout=60)
        return at

    yield start
    for one in started:
        one.kill()
        one.communicate()


def _dask(words: list[str], folder: Path, errors: int = subprocess.PIPE) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=errors, text=True,
    )  # fmt: skip


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Give a migrated server: TELLER_NEO4J_URI's, else one of our own, else one in Docker."""
    place = _common(tmp_path_factory)
    with _turn(place):
        if given := os.environ.get(URI):
            at = address(given)
        elif shutil.which("java"):
            at = _own(place)
        else:
            at = _docker()
        with connect(at) as driver:
            migrate.migrate(driver, at)
            found = driver.execute_query(
                "MATCH (n) WHERE NOT n:__Neo4jMigration RETURN count(n) AS n",
                database_=at.database,
            )
            if found.records[0]["n"] and given:
                pytest.fail(f"{given} is not empty, and tests empty it; name another server")
    yield at
    if not given and "PYTEST_XDIST_WORKER" not in os.environ:
        _stop(place / "neo4j")


@pytest.fixture
def neo4j_store(
    neo4j_server: Address, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Neo4jStore]:
    """Give an empty store on the server, to one test at a time."""
    with _turn(_common(tmp_path_factory)), Neo4jStore(neo4j_server) as store:
        yield store
        with connect(neo4j_server) as driver, driver.session(database=neo4j_server.database) as s:
            s.run(WIPE).consume()


@pytest.fixture
def neo4j_home(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], Address]]]:
    """Give the home of a new server, and what starts it, or stops it and starts it again."""
    if not shutil.which("java"):
        _none("Java is needed to start and stop a server")
    home = tmp_path / "neo4j-home"
    _launcher("home", str(home))

    def start() -> Address:
        _stop(home)
        at = _started(home, "--while", str(os.getpid()))
        with connect(at) as driver:
            migrate.migrate(driver, at)
        return at

    yield home, start
    _stop(home)


def _stop(home: Path) -> None:
    _launcher("stop", str(home))


def _launcher(*words: str) -> str:
    done = subprocess.run([sys.executable, str(LAUNCHER), *words], capture_output=True, text=True)
    if done.returncode:
        _none(done.stderr.strip())
    return done.stdout


def _common(factory: pytest.TempPathFactory) -> Path:
    """Give the folder that all workers of a test run have in common."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def _turn(place: Path) -> Iterator[None]:
    with (place / "neo4j.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _own(place: Path) -> Address:
    """Start a server, or find the one that another worker started; it ends with the test run."""
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return _started(place / "neo4j", "--while", str(run))


def _started(home: Path, *options: str) -> Address:
    """Start the server of a home, or find it running."""
    told = json.loads(_launcher("start", str(home), "--json", *SMALL, *options))
    return Address(told["uri"], told["user"], Path(told["password_file"]).read_text())


def _docker() -> Address:
    try:
        from testcontainers.neo4j import (
            Neo4jContainer,
        )
    except ImportError:
        _none(f"no server: set {URI}, or install Java and Maven, or Docker and testcontainers")
    container = Neo4jContainer("neo4j:5.26-community").start()  # its own helper ends it
    return Address(container.get_connection_url(), container.username, container.password)


def _none(why: str) -> None:
    """Skip where there is no server; where all must be tested, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
