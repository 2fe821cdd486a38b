"""The network between the ranks: a namespace a host, joined by a bridge, or just loopback."""

import contextlib
import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from typing import Final

from teller.errors import BadUsage
from teller.lab.testbed.machine import delay_line, environment, run

SUBNET: Final = "10.77.0"
QUEUE: Final = 5
_NEW_HOST_NAME: Final = 0x04000000  # CLONE_NEWUTS
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Loopback:
    """All on 127.0.0.1 of this host: no privileges, and no faults of the network.

    `hosts` and `addresses` are of the ranks and, last, of the client; `ports` are those of the
    group of ranks and of the front end.
    """

    interface = "lo"
    namespaces: tuple[str, ...] = ()  # of each host

    def __init__(self, ranks: int) -> None:
        self.hosts = (*[socket.gethostname()] * ranks, "client")
        self.addresses = ("127.0.0.1",) * (ranks + 1)
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self.ports = (one.getsockname()[1], other.getsockname()[1])

    def inside(self, host: int) -> list[str]:
        """Give nothing: there is one host."""
        return []

    def become(self, host: int) -> None:
        """Keep the name."""


class Namespaces:
    """Host `node-I` has a network and a name of its own; a bridge joins all."""

    interface = "eth0"
    ports = (29500, 8000)

    def __init__(self, ranks: int, tag: str) -> None:
        self.hosts = (*(f"node-{i}" for i in range(ranks)), "client")
        self.addresses = (*(f"{SUBNET}.{10 + i}" for i in range(ranks)), f"{SUBNET}.100")
        self.namespaces = tuple(f"tb{tag}{i}" for i in range(ranks + 1))
        self._switch = f"tb{tag}sw"

    def inside(self, host: int) -> list[str]:
        """Give the words that enter a host's network."""
        return ["ip", "netns", "exec", self.namespaces[host]]

    def become(self, host: int) -> None:
        """Take the host's name, in a namespace of names of its own."""
        if _LIBC.unshare(_NEW_HOST_NAME) == 0:
            socket.sethostname(self.hosts[host])

    def up(self) -> None:
        """Make all hosts and join them."""
        run("ip", "netns", "add", self._switch)
        run("ip", "-n", self._switch, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self._switch, "link", "set", "br0", "up")
        for i, name in enumerate(self.namespaces):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", "eth0", "netns", name, "type", "veth",
                "peer", "name", f"p{i}", "netns", self._switch)  # fmt: skip
            run("ip", "-n", name, "addr", "add", f"{self.addresses[i]}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", self._switch, "link", "set", f"p{i}", "master", "br0", "up")
            # the usual bbr hides loss, and only a few may be chosen in a namespace
            run("ip", "netns", "exec", name, "sysctl", "-qw",
                "net.ipv4.tcp_congestion_control=reno", check=False)  # fmt: skip

    def down(self) -> None:
        """Take all away, also what is half made."""
        for name in (*self.namespaces, self._switch):
            run("ip", "netns", "del", name, check=False)

    def paths(self, kind: str, host: int) -> tuple[tuple[str, str], ...]:
        """Give the directed links that a fault of a host's network strikes."""
        me, ranks = self.hosts[host], self.hosts[:-1]
        others = [name for name in ranks if name != me]
        out = [(me, name) for name in others if kind != "net_loss"]
        return (*out, *((name, me) for name in others if kind != "net_delay"))

    @contextlib.contextmanager
    def limited(self, host: int, mbit: int) -> Iterator[None]:
        """Limit a host's link both ways, by the kernel's token bucket."""
        ends = ((self.namespaces[host], "eth0"), (self._switch, f"p{host}"))
        for name, device in ends:
            run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root", "tbf",
                "rate", f"{mbit}mbit", "burst", "16k", "latency", "30ms")  # fmt: skip
        try:
            yield
        finally:
            for name, device in ends:
                run("ip", "netns", "exec", name, "tc", "qdisc", "del", "dev", device, "root",
                    check=False)  # fmt: skip

    @contextlib.contextmanager
    def lossy(self, host: int, pct: float) -> Iterator[None]:
        """Drop a share of the packets that come to a host; its kernel's TCP sends them again."""
        rule = ("INPUT", "-p", "tcp", "-m", "statistic", "--mode", "random",
                "--probability", f"{pct / 100:.6f}", "-j", "DROP")  # fmt: skip
        self._table(host, "-A", *rule)
        try:
            yield
        finally:
            self._table(host, "-D", *rule)

    @contextlib.contextmanager
    def delayed(self, host: int, us: int, real_time: bool) -> Iterator[None]:
        """Hold back what a host sends. The rule is there only meanwhile."""
        words = [str(delay_line()), str(QUEUE), str(us), str(us // 10)]
        before = [*self.inside(host), *(["chrt", "-f", "20"] if real_time else [])]
        line = subprocess.Popen(
            [*before, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(),
        )  # fmt: skip
        assert line.stdout is not None
        rule = ("OUTPUT", "-p", "tcp", "-j", "NFQUEUE", "--queue-num", QUEUE, "--queue-bypass")
        try:
            if line.stdout.readline().strip() != "ready":
                raise BadUsage(f"net_delay: {line.communicate()[1].strip()}")
            self._table(host, "-A", *rule)
            try:
                yield
            finally:
                self._table(host, "-D", *rule)
        finally:
            line.terminate()
            line.communicate()

    def _table(self, host: int, *words: object) -> None:
        run(*self.inside(host), "iptables-legacy", *words)


@contextlib.contextmanager
def network(ranks: int, *, namespaces: bool) -> Iterator[Loopback | Namespaces]:
    """Give the network of a run, and take it away afterwards."""
    if not namespaces:
        yield Loopback(ranks)
        return
    net = Namespaces(ranks, f"{os.getpid() % 46656:x}")
    try:
        net.up()
        yield net
    finally:
        net.down()
