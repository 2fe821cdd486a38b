"""The daemon that PyTorch asks: the handshake as libkineto 2.13 was seen to speak it."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from teller.errors import BadUsage
from teller.lab.collect import on_demand
from teller.lab.collect.on_demand import Daemon

PID, JOB = 4711, 0
# As they came over the socket: head {bytes, kind}, then the structures of libkineto.
REGISTER = struct.pack("<Q32s", 16, b"ctxt") + struct.pack("<iiq", 0, PID, JOB)
REQUEST = struct.pack("<Q32s", 20, b"req") + struct.pack("<iiqi", 2, 1, JOB, PID)
STEPS = """
import os, torch
m = torch.nn.Linear(64, 64)
x = torch.ones(4, 64)
print("ready", flush=True)
with torch.inference_mode():
    while True:
        m(x)
"""


@pytest.fixture
def address(request: pytest.FixtureRequest) -> bytes:
    """A socket of this test's own."""
    return b"\0teller-test-" + f"{os.getpid()}-{time.monotonic_ns()}".encode()


@pytest.fixture
def daemon(address: bytes) -> Iterator[Daemon]:
    """A daemon whose socket is given back however the test ends."""
    with closing(Daemon(address)) as mine:
        yield mine


@pytest.fixture
def client(address: bytes) -> Iterator[Callable[[bytes], bytes]]:
    """Give what sends a message to the daemon and gives its answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mine:
        mine.bind(address + b"-client")
        mine.settimeout(30)

        def ask(message: bytes) -> bytes:
            mine.sendto(message, address)
            return mine.recv(1 << 16)

        yield ask


def test_a_process_registers_and_is_given_one_window(
    daemon: Daemon, client: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    written = tmp_path / f"kineto_{PID}.json"
    over = threading.Event()
    server = threading.Thread(
        target=on_demand.window, args=(daemon, tmp_path, 0.5),
        kwargs={"over": over.is_set, "ahead_s": 3},
    )  # fmt: skip
    before_ms = int(time.time() * 1000)  # the daemon tells whole ms
    server.start()
    count = client(REGISTER)
    assert struct.unpack("<Q32si", count)[::2] == (4, 1)
    told = client(REQUEST)
    size, kind = struct.unpack_from("<Q32s", told)
    assert (size, kind.rstrip(b"\0")) == (len(told) - 40, b"req")
    said = dict(line.split("=", 1) for line in told[40:].decode().splitlines())
    assert said["ACTIVITIES_LOG_FILE"] == str(tmp_path / "kineto.json")
    assert said["ACTIVITIES_DURATION_MSECS"] == "500"
    assert int(said["PROFILE_START_TIME"]) >= before_ms + 3000
    assert client(REQUEST)[40:] == b""  # once is enough
    written.write_text('{"traceEvents": [{"ph": "X", "name": "aten::mm"}]}')
    server.join(30)
    assert not server.is_alive()


def test_an_empty_window_is_asked_for_again(
    daemon: Daemon, client: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    written = tmp_path / f"kineto_{PID}.json"
    server = threading.Thread(
        target=on_demand.window, args=(daemon, tmp_path, 0.5),
        kwargs={"over": lambda: False, "ahead_s": 3},
    )  # fmt: skip
    server.start()
    assert client(REQUEST)[40:]
    written.write_text('{"traceEvents": []}')
    while not (again := client(REQUEST)[40:]):
        os.sched_yield()
    assert b"ACTIVITIES_LOG_FILE" in again
    assert not written.exists()
    written.write_text('{"traceEvents": [{"ph": "X"}]}')
    server.join(30)
    assert not server.is_alive()


@pytest.mark.parametrize("message", [b"", b"\0" * 39, REQUEST[:41], REGISTER[:44], b"x" * 60])
def test_what_is_not_understood_is_not_answered(
    daemon: Daemon, address: bytes, client: Callable[[bytes], bytes], message: bytes
) -> None:
    over = threading.Event()
    server = threading.Thread(target=daemon.serve, args=(lambda _: None, lambda _: over.is_set()))
    server.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(address + b"-other")
        other.sendto(message, address)
        assert client(REGISTER)[40:] == struct.pack("<i", 1)  # it lives, and counted one
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(1)
    over.set()
    server.join(30)


@pytest.mark.usefixtures("daemon")
def test_two_daemons_do_not_fit_on_a_machine(address: bytes) -> None:
    with pytest.raises(BadUsage, match="a daemon runs here already"):
        Daemon(address)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_an_unchanged_torch_process_writes_what_it_was_asked(tmp_path: Path) -> None:
    try:
        daemon = Daemon()
    except BadUsage:
        pytest.skip("another daemon has the socket of this machine")
    environment = os.environ | {"KINETO_USE_DAEMON": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", STEPS], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as steps:  # fmt: skip
        assert steps.stdout
        assert steps.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 120
        seen = on_demand.window(
            daemon, tmp_path, 0.2, over=lambda: time.monotonic() > deadline
        )  # fmt: skip
        steps.kill()
    daemon.close()
    assert seen.told[steps.pid] == tmp_path / f"kineto_{steps.pid}.json"
    # On a CPU it may come out empty: libkineto says so itself.
    assert "traceEvents" in json.loads(seen.told[steps.pid].read_text())
