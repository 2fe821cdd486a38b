"""What Docker would start is right as far as a file tells, and does its work without Docker."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import typer
import yaml
from distributed.cli import dask_scheduler, dask_worker

from teller import cli
from teller.graph.neo4j import Neo4jStore
from teller.graph.neo4j_address import Address

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docker-compose.yml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
COMMANDS: dict[str, list[str]] = {n: s["command"] for n, s in SERVICES.items() if "command" in s}
TELLER = typer.main.get_command(cli.app)
PATIENT_S = 600
SERVES = "".join(
    f"INFO 05-25 10:00:{n:02} [loggers.py:127] Engine 000: Running: 4 reqs, Waiting: 0 reqs\n"
    for n in range(20)
)
FAILS = (
    "May 25 10:00:03 node-b kernel: [ 1234.561] NVRM: Xid (PCI:0000:9b:00): 48, pid=77, "
    "name=python, DBE (double bit error) at 0x1\n"
)
Start = Callable[..., "subprocess.Popen[str]"]


def test_every_image_is_pinned_to_a_patch() -> None:
    made = (ROOT / "Dockerfile").read_text()
    images = {s["image"] for s in SERVICES.values()}
    images |= set(re.findall(r"^FROM (\S+)", made, flags=re.MULTILINE))
    assert len(images) == 3
    assert all(re.search(r":\d+\.\d+\.\d+", image) for image in images), images
    assert re.search(r"^USER (?!root)", made, flags=re.MULTILINE)


def test_no_password_is_written_down() -> None:
    said = re.findall(r"(?:PASSWORD|AUTH)\w*:\s*(.+)", TEXT)
    assert said
    assert all(re.fullmatch(r"(neo4j/)?\$\{TELLER_NEO4J_PASSWORD:\?[^}]+\}", s) for s in said)
    for name in ("scheduler", "worker"):  # who runs what others send gets none
        assert SERVICES[name]["environment"] == {}


def test_the_graph_server_is_watched_kept_and_reads_no_files() -> None:
    server = SERVICES["neo4j"]
    assert server["image"].startswith("neo4j:5.26.")
    setting = "NEO4J_dbms_security_allow__csv__import__from__file__urls"
    assert server["environment"][setting] == "false"
    assert "spider" in server["healthcheck"]["test"][1]
    assert server["volumes"] == ["graph:/data"]
    everyone = [port for s in SERVICES.values() for port in s.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in everyone)
    waits = {n: s["depends_on"] for n, s in SERVICES.items() if "depends_on" in s}
    assert waits["migrate"] == {"neo4j": {"condition": "service_healthy"}}
    assert waits["ingest"]["migrate"] == {"condition": "service_completed_successfully"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_line_is_one_that_is_understood(name: str, tmp_path: Path) -> None:
    program, command, *words = [str(tmp_path) if w == "/data" else w for w in COMMANDS[name]]
    if program == "dask":
        main = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}[command]
        main.make_context(command, words)
        return
    found = getattr(TELLER, "commands", {}).get(command)
    if found is None:
        assert SERVICES[name]["profiles"] == [command]  # not started until it is there
        return
    found.make_context(command, words)


@pytest.fixture
def start(tmp_path: Path, neo4j_server: Address) -> Iterator[Start]:
    """Give what starts a service's command here: other hosts and ports, the same words."""
    (tmp_path / "data").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = {
        "neo4j://neo4j:7687": neo4j_server.uri, "tcp://scheduler:8786": f"tcp://127.0.0.1:{port}",
        "0.0.0.0": "127.0.0.1", "8786": str(port), "/data": str(tmp_path / "data"),
        "/tmp": str(tmp_path),
    }  # fmt: skip
    env = os.environ | {
        "TELLER_NEO4J_USER": neo4j_server.user, "TELLER_NEO4J_PASSWORD": neo4j_server.password,
        "TELLER_WORKSPACE": str(tmp_path / "w"),
    }  # fmt: skip
    programs = {
        "teller": [sys.executable, "-c", "from teller.cli import run; run()"],
        "dask": [sys.executable, "-m", "dask"],
    }
    started: list[subprocess.Popen[str]] = []
    timers = []

    def run(name: str, errors: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        program, *words = COMMANDS[name]
        one = subprocess.Popen(
            [*programs[program], *(here.get(w, w) for w in words)],
            env=env, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        started.append(one)
        timers.append(Timer(PATIENT_S, one.kill))  # ends a wait for what never comes
        timers[-1].start()
        return one

    yield run
    for one, timer in zip(started, timers, strict=True):
        one.terminate()
        one.communicate()
        timer.cancel()


@pytest.mark.neo4j
def test_the_services_do_their_work_without_docker(
    start: Start, neo4j_store: Neo4jStore, tmp_path: Path
) -> None:
    assert start("migrate").wait() == 0
    scheduler = start("scheduler", subprocess.PIPE)
    assert any("Scheduler at" in line for line in scheduler.stderr or ())
    for _ in range(SERVICES["worker"]["deploy"]["replicas"]):
        start("worker")
    watching = start("ingest").stdout
    assert watching
    seen = [json.loads(next(watching))]
    (tmp_path / "data" / "serve.log").write_text(SERVES)
    (tmp_path / "data" / "node-b.kern.log").write_text(FAILS)
    for line in watching:
        seen.append(json.loads(line))
        if seen[-1]["event"] == "finding":
            break
    assert seen[-1]["event"] == "finding", seen
    assert not [e for e in seen if e["event"] == "problem" and "not seen by workers" in e["what"]]
    finding = seen[-1]["finding"]
    assert (finding["class"], finding["culprit"]["hosts"]) == ("gpu_memory_fault", ["node-b"])
    told = neo4j_store.query("MATCH (f:Finding) RETURN f.id AS id, f.class AS class").to_pylist()
    assert {"id": int(finding["id"]), "class": "gpu_memory_fault"} in told
