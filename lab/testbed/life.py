"""One life of the service: hosts up, ranks up, clients, faults one after the other, all down."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from teller.errors import BadUsage
from teller.lab.collect.build import recorder
from teller.lab.testbed import machine
from teller.lab.testbed.certificate import Pressure
from teller.lab.testbed.faults import Planned, kind_named, lacking
from teller.lab.testbed.inject import Done, Site
from teller.lab.testbed.monitor import Monitor
from teller.lab.testbed.net import Loopback, Namespaces, network
from teller.lab.testbed.settings import Load, Rank, Service

START_S: Final = 120.0  # until the service must be up
END_S: Final = 60.0  # for the ranks to end once the client has


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How a life is led. `real_time` makes a busy machine look like a quiet one, and needs root."""

    service: Service = Service()
    rate: float = 3.0  # requests a second
    seed: int = 0
    before_s: float = 3.0
    after_s: float = 2.0
    net: Literal["namespaces", "loopback"] = "loopback"
    real_time: bool = False
    kineto_steps: int = 0  # of the last episode that torch's own profiler records, too


@dataclass(frozen=True, slots=True)
class Lived:
    """What a life left: files of the folder `control`, and what was done."""

    control: Path
    setup: Setup
    hosts: tuple[str, ...]  # of the ranks
    addresses: tuple[str, ...]
    pids: tuple[int, ...]
    done: tuple[Done, ...]
    paths: tuple[tuple[tuple[str, str], ...], ...]  # links that each of `done` struck
    load_ns: int  # when the client began
    pressure: dict[str, Any]


def best_net() -> Literal["namespaces", "loopback"]:
    """Give the network that this machine allows."""
    return "namespaces" if "namespaces" in machine.there() else "loopback"


def check(setup: Setup, plan: Sequence[Planned]) -> None:
    """Say what is missing before anything is started."""
    if not machine.has_torch():
        raise BadUsage("the testbed needs torch: teller testbed setup says how to get it")
    if setup.real_time and not machine.has_real_time():
        raise BadUsage("--quiet-machine needs root: real-time priorities are refused here")
    have = machine.there() if setup.net == "namespaces" else ()
    for one in plan:
        if missing := lacking(kind_named(one.kind), have):
            raise BadUsage(
                f"{one.kind} cannot be injected here: it needs {', '.join(missing)}; "
                "teller testbed setup says how to get it"
            )
        if not 0 <= one.rank < setup.service.world:
            raise BadUsage(f"there is no rank {one.rank}: the service has {setup.service.world}")


@contextlib.contextmanager
def lived(setup: Setup, plan: Sequence[Planned], disk: Path) -> Iterator[Lived]:
    """Lead a life; what it left is there until the context ends."""
    check(setup, plan)
    control = Path(tempfile.mkdtemp(prefix="teller-testbed-"))
    try:
        with network(setup.service.world, namespaces=setup.net == "namespaces") as net:
            life = _lead(setup, plan, net, control, disk)
        yield life
    finally:
        shutil.rmtree(control, ignore_errors=True)  # its sockets may go meanwhile


def _lead(
    setup: Setup, plan: Sequence[Planned], net: Loopback | Namespaces, control: Path, disk: Path
) -> Lived:
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(_rank(setup, net, control, r))
                 for r in range(setup.service.world)]  # fmt: skip
        _wait_until_up(ranks, control)
        pids = [one.pid for one in ranks]
        site = Site(net, pids, control, control / "load", setup.real_time, disk)
        monitor = Monitor(pids, net, control / "metrics.jsonl")
        monitor.start()
        stack.callback(monitor.stop)
        pressure, load_ns = Pressure.now(), time.time_ns()
        client = stack.enter_context(_client(setup, net, control))
        time.sleep(setup.before_s)
        done = []
        for at, one in enumerate(plan):
            if setup.kineto_steps and at == len(plan) - 1:
                site.profile(setup.kineto_steps)
            done.append(site.episode(one))
            time.sleep(one.rest_s)
        time.sleep(setup.after_s)
        site.end_load()
        _wait_for_end([client, *ranks], control)
        told = Pressure.now().since(pressure)
    count = setup.service.world
    paths = tuple(
        net.paths(one.planned.kind, one.planned.rank)
        if isinstance(net, Namespaces) and kind_named(one.planned.kind).culprit == "link"
        else ()
        for one in done
    )
    return Lived(
        control, setup, net.hosts[:count], net.addresses[:count], tuple(pids), tuple(done), paths,
        load_ns, told,
    )  # fmt: skip


@contextlib.contextmanager
def _rank(
    setup: Setup, net: Loopback | Namespaces, control: Path, rank: int
) -> Iterator[subprocess.Popen[bytes]]:
    port, http_port = net.ports
    me = Rank(
        rank=rank, service=setup.service, master=net.addresses[0], port=port,
        http_port=http_port, interface=net.interface, folder=str(control),
        profiled=setup.kineto_steps > 0,
    )  # fmt: skip
    ranges = control / f"nvtx{rank}"
    ranges.mkdir()
    file = control / f"rank{rank}.settings.json"
    file.write_bytes(msgspec.json.encode(me))
    quiet = {
        "GLOO_SOCKET_IFNAME": net.interface, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
        "KINETO_LOG_LEVEL": "99", "TORCH_CPP_LOG_LEVEL": "ERROR",
        "RANK": str(rank), "WORLD_SIZE": str(setup.service.world),
        "LOCAL_RANK": "0" if net.namespaces else str(rank),
        "MASTER_ADDR": net.addresses[0], "MASTER_PORT": str(port),
        "NVTX_INJECTION64_PATH": str(recorder()), "TELLER_NVTX_DIR": str(ranges),
    }  # fmt: skip
    with _started(setup, net, rank, 5, "rank", file, quiet) as process:
        yield process


@contextlib.contextmanager
def _client(
    setup: Setup, net: Loopback | Namespaces, control: Path
) -> Iterator[subprocess.Popen[bytes]]:
    load = Load(
        host=net.addresses[0], port=net.ports[1], rate=setup.rate,
        seed=setup.seed, out=str(control / "client.jsonl"), control=str(control / "load"),
    )  # fmt: skip
    file = control / "client.settings.json"
    file.write_bytes(msgspec.json.encode(load))
    with _started(setup, net, len(net.hosts) - 1, 6, "client", file, {}) as process:
        yield process


@contextlib.contextmanager
def _started(
    setup: Setup, net: Loopback | Namespaces, host: int, priority: int, module: str, file: Path,
    environment: dict[str, str],
) -> Iterator[subprocess.Popen[bytes]]:  # fmt: skip
    first = ["chrt", "-f", str(priority)] if setup.real_time else []
    words = [*net.inside(host), *first, sys.executable, "-m", f"teller.lab.testbed.{module}"]
    with file.with_suffix(".said").open("wb") as said:
        process = subprocess.Popen(
            [*words, str(file)], stdout=said, stderr=subprocess.STDOUT, cwd=file.parent,
            env={**machine.environment(), **environment}, preexec_fn=lambda: _begin(net, host),
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def _begin(net: Loopback | Namespaces, host: int) -> None:
    """Take the host's name, and end with the process that started this one."""
    machine.end_with_parent()
    net.become(host)


def _wait_until_up(ranks: Sequence[subprocess.Popen[bytes]], control: Path) -> None:
    end = time.monotonic() + START_S
    while not all((control / f"agent{rank}").exists() for rank in range(len(ranks))):
        _check_alive(ranks, control)
        if time.monotonic() > end:
            raise BadUsage(f"the service did not come up within {START_S:.0f} s")
        time.sleep(0.05)


def _wait_for_end(processes: Sequence[subprocess.Popen[bytes]], control: Path) -> None:
    for process in processes:
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            raise BadUsage(f"the service did not end within {END_S:.0f} s") from None
    _check_alive([one for one in processes if one.returncode], control)


def _check_alive(processes: Sequence[subprocess.Popen[bytes]], control: Path) -> None:
    if any(process.poll() is not None for process in processes):
        said = (f"{file.stem}: {file.read_text(errors='replace')[-1500:].strip()}"
                for file in sorted(control.glob("*.said")) if file.stat().st_size)  # fmt: skip
        raise BadUsage("a process of the service ended: " + "; ".join(said))
